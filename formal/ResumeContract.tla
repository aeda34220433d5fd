--------------------------- MODULE ResumeContract ---------------------------
(* What a resume may do: the reference semantics of the contract, with one  *)
(* switch a fault. All switches off, every property holds; each switch on   *)
(* breaks the properties that the fault matrix names, and no other.         *)
(*                                                                          *)
(* A run is a list of steps. A step has two parallel tasks, whose writes    *)
(* become durable in any order; then it is finished: its result is appended *)
(* to the durable log and its effect fires, in one durable transaction. A   *)
(* gated step waits for an answer first, and its result is that answer. A   *)
(* process that works on a run may die at every point. A fork is a branch   *)
(* of the main run from just before a gate, with an answer of its own.      *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  Steps,     \* how many steps a run has
  Gates,     \* which of them wait for an answer
  Answers,   \* what may be answered, a set of numbers above 1
  Forks,     \* how many forks there may be
  Crashes,   \* how many processes may die
  Misfits,   \* how many results may not fit their schema
  Fault      \* the switches that are on

Faults == {
  "replay",           \* after a crash, the step finished last runs again
  "ignored fork",     \* a fork is served the answer recorded on the main run
  "invalid persist",  \* a result that does not fit its schema is persisted
  "unordered",        \* recovery depends on which task wrote first
  "double consume",   \* a second answer is taken while the step runs
  "prefix replay",    \* every resume runs the whole prefix again
  "rebuilt",          \* after a crash, state is that of a new run
  "retry is fork",    \* a copy of an answer that was taken begins a branch
  "fork is retry",    \* a fork is taken for such a copy, and begins none
  "refuse all" }      \* no answer is ever taken

ASSUME Fault \subseteq Faults /\ Gates \subseteq 1..Steps

VARIABLES
  log,      \* durable: the results of the finished steps of each branch
  writes,   \* durable: the tasks of the next step that have written, in order
  taken,    \* durable: the answers taken for the next step
  mode,     \* of each branch: off, parked, live, down
  at,       \* volatile: the step that the live process does next
  mem,      \* volatile: the results that it works from
  own,      \* the gate at which a fork began, and the answer that came with it
  fired,    \* outside: how often the effect of each step fired
  eaten,    \* how many answers were consumed at each step
  asked,    \* how many forks were asked for
  crashes, misfits

vars == <<log, writes, taken, mode, at, mem, own, fired, eaten, asked, crashes, misfits>>

Main == 0
Branches == 0..Forks
Misfit == 0
Plain == 1
Frontier(b) == Len(log[b])
Upto(s, n) == SubSeq(s, 1, n)

Init ==
  /\ log = [b \in Branches |-> <<>>]
  /\ writes = [b \in Branches |-> <<>>]
  /\ taken = [b \in Branches |-> <<>>]
  /\ mode = [b \in Branches |-> IF b = Main THEN "live" ELSE "off"]
  /\ at = [b \in Branches |-> 1]
  /\ mem = [b \in Branches |-> <<>>]
  /\ own = [b \in Branches |-> <<>>]
  /\ fired = [b \in Branches |-> [i \in 1..Steps |-> 0]]
  /\ eaten = [b \in Branches |-> [i \in 1..Steps |-> 0]]
  /\ asked = 0
  /\ crashes = Crashes
  /\ misfits = Misfits

-----------------------------------------------------------------------------
(* Where a resume goes on, and from what. *)

Start(b) == IF "prefix replay" \in Fault THEN 1 ELSE Frontier(b) + 1

Resumed(b, first, state) ==
  /\ mode' = [mode EXCEPT ![b] = "live"]
  /\ at' = [at EXCEPT ![b] = first]
  /\ mem' = [mem EXCEPT ![b] = state]

(* The decision of a recovery: which durable writes of the step in flight   *)
(* it keeps. It may depend on what was written, and on nothing else.        *)
Kept(order) ==
  IF "unordered" \in Fault /\ order # <<>> /\ order[1] = 2 THEN <<>> ELSE order

Recover(b) ==
  /\ mode[b] = "down"
  /\ LET last == IF "replay" \in Fault /\ Frontier(b) > 0 THEN Frontier(b) ELSE Start(b)
         state == IF "rebuilt" \in Fault THEN <<>> ELSE Upto(log[b], last - 1)
     IN Resumed(b, last, state)
  /\ writes' = [writes EXCEPT ![b] = Kept(writes[b])]
  /\ UNCHANGED <<log, taken, own, fired, eaten, asked, crashes, misfits>>

Crash(b) ==
  /\ mode[b] = "live" /\ crashes > 0
  /\ crashes' = crashes - 1
  /\ mode' = [mode EXCEPT ![b] = "down"]
  /\ at' = [at EXCEPT ![b] = 1]
  /\ mem' = [mem EXCEPT ![b] = <<>>]
  /\ UNCHANGED <<log, writes, taken, own, fired, eaten, asked, misfits>>

-----------------------------------------------------------------------------
(* Answers. A parked run has no process; an answer that is taken starts one. *)

AtFrontier(b) == mode[b] = "live" /\ at[b] = Frontier(b) + 1 /\ at[b] <= Steps
Asks(b) == Frontier(b) < Steps /\ Frontier(b) + 1 \in Gates

Park(b) ==
  /\ AtFrontier(b) /\ Asks(b) /\ taken[b] = <<>>
  /\ mode' = [mode EXCEPT ![b] = "parked"]
  /\ at' = [at EXCEPT ![b] = 1]
  /\ mem' = [mem EXCEPT ![b] = <<>>]
  /\ UNCHANGED <<log, writes, taken, own, fired, eaten, asked, crashes, misfits>>

Deliver(b, answer) ==
  /\ mode[b] = "parked" /\ "refuse all" \notin Fault
  /\ taken' = [taken EXCEPT ![b] = <<answer>>]
  /\ Resumed(b, Start(b), Upto(log[b], Start(b) - 1))
  /\ UNCHANGED <<log, writes, own, fired, eaten, asked, crashes, misfits>>

(* Any number of copies may come; the reference takes none of them, so that *)
(* only the fault has a step here.                                          *)
DeliverAgain(b, answer) ==
  /\ "double consume" \in Fault /\ b = Main       \* enough to be seen
  /\ mode[b] = "live" /\ Len(taken[b]) = 1
  /\ taken' = [taken EXCEPT ![b] = Append(@, answer)]
  /\ UNCHANGED <<log, writes, mode, at, mem, own, fired, eaten, asked, crashes, misfits>>

Branch(b, gate, answer) ==
  /\ own' = [own EXCEPT ![b] = <<gate, answer>>]
  /\ log' = [log EXCEPT ![b] = Upto(log[Main], gate - 1)]
  /\ taken' = [taken EXCEPT ![b] =
       <<IF "ignored fork" \in Fault THEN log[Main][gate] ELSE answer>>]
  /\ Resumed(b, gate, Upto(log[Main], gate - 1))
  /\ UNCHANGED <<writes, fired, eaten, crashes, misfits>>

(* Who comes to a gate that was passed asks for a fork, or sends again what *)
(* was taken there: two calls, and not one.                                 *)
Passed(b, gate) == b # Main /\ mode[b] = "off" /\ gate \in Gates /\ gate <= Frontier(Main)

Fork(b, gate, answer) ==
  /\ Passed(b, gate) /\ asked < Forks
  /\ asked' = asked + 1
  /\ IF "fork is retry" \in Fault
     THEN UNCHANGED <<log, writes, taken, mode, at, mem, own, fired, eaten, crashes, misfits>>
     ELSE Branch(b, gate, answer)

(* A retry does nothing in the reference, so that only the fault has a step *)
(* here.                                                                    *)
Retry(b, gate, answer) ==
  /\ "retry is fork" \in Fault /\ Passed(b, gate)
  /\ Branch(b, gate, answer)
  /\ UNCHANGED asked

-----------------------------------------------------------------------------
(* Work. *)

Write(b, task) ==
  /\ AtFrontier(b) /\ (Asks(b) => taken[b] # <<>>)
  /\ \A n \in 1..Len(writes[b]) : writes[b][n] # task
  /\ writes' = [writes EXCEPT ![b] = Append(@, task)]
  /\ UNCHANGED <<log, taken, mode, at, mem, own, fired, eaten, asked, crashes, misfits>>

Finish(b) ==
  /\ AtFrontier(b) /\ Len(writes[b]) = 2
  /\ LET step == at[b]
         result == IF step \in Gates THEN taken[b][1] ELSE Plain
         times == IF step \in Gates THEN Len(taken[b]) ELSE 1
     IN /\ log' = [log EXCEPT ![b] = Append(@, result)]
        /\ mem' = [mem EXCEPT ![b] = Append(@, result)]
        /\ at' = [at EXCEPT ![b] = step + 1]
        /\ fired' = [fired EXCEPT ![b][step] = @ + times]
        /\ eaten' = [eaten EXCEPT ![b][step] = @ + Len(taken[b])]
  /\ writes' = [writes EXCEPT ![b] = <<>>]
  /\ taken' = [taken EXCEPT ![b] = <<>>]
  /\ UNCHANGED <<mode, own, asked, crashes, misfits>>

(* A step without a gate comes to a result that does not fit. The reference *)
(* refuses it, loudly, and the step is done again.                          *)
Misfits_(b) ==
  /\ AtFrontier(b) /\ Len(writes[b]) = 2 /\ at[b] \notin Gates /\ misfits > 0
  /\ misfits' = misfits - 1
  /\ writes' = [writes EXCEPT ![b] = <<>>]
  /\ IF "invalid persist" \in Fault
     THEN /\ log' = [log EXCEPT ![b] = Append(@, Misfit)]
          /\ mem' = [mem EXCEPT ![b] = Append(@, Misfit)]
          /\ at' = [at EXCEPT ![b] = @ + 1]
          /\ fired' = [fired EXCEPT ![b][at[b]] = @ + 1]
     ELSE UNCHANGED <<log, mem, at, fired>>
  /\ UNCHANGED <<taken, mode, own, eaten, asked, crashes>>

(* Only the faults come here: a process that stands before the frontier. *)
RunAgain(b) ==
  /\ mode[b] = "live" /\ at[b] <= Frontier(b)
  /\ fired[b][at[b]] < 3                        \* enough to be seen
  /\ fired' = [fired EXCEPT ![b][at[b]] = @ + 1]
  /\ at' = [at EXCEPT ![b] = @ + 1]
  /\ mem' = [mem EXCEPT ![b] = Append(@, log[b][at[b]])]
  /\ UNCHANGED <<log, writes, taken, mode, own, eaten, asked, crashes, misfits>>

Work(b) == (\E task \in {1, 2} : Write(b, task)) \/ Finish(b) \/ Park(b) \/ RunAgain(b)
Answer(b) == \E answer \in Answers : Deliver(b, answer)

Next == \E b \in Branches :
  \/ Work(b) \/ Misfits_(b) \/ Crash(b) \/ Recover(b) \/ Answer(b)
  \/ \E answer \in Answers :
       \/ DeliverAgain(b, answer)
       \/ \E gate \in Gates : Fork(b, gate, answer) \/ Retry(b, gate, answer)

Fair == \A b \in Branches : WF_vars(Work(b)) /\ WF_vars(Recover(b)) /\ WF_vars(Answer(b))

Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ Fair

-----------------------------------------------------------------------------
(* The contract. *)

Types ==
  /\ \A b \in Branches :
       /\ log[b] \in Seq({Misfit, Plain} \cup Answers) /\ Len(log[b]) <= Steps
       /\ mode[b] \in {"off", "parked", "live", "down"}
       /\ at[b] \in 1..(Steps + 1)
  /\ asked \in 0..Forks /\ crashes \in 0..Crashes /\ misfits \in 0..Misfits

(* Prefix continuation: a live process stands just past the durable         *)
(* frontier and works from the durable prefix, the whole of it.             *)
PC == \A b \in Branches : mode[b] = "live" => at[b] = Frontier(b) + 1 /\ mem[b] = log[b]

(* Effect exactly-once, the half that is safety: no effect fires twice. *)
EO == \A b \in Branches, i \in 1..Steps : fired[b][i] <= 1

(* Fork determinism: at its gate, a fork has the answer that came with it. *)
FD == \A b \in Branches :
  own[b] # <<>> /\ Frontier(b) >= own[b][1] => log[b][own[b][1]] = own[b][2]

(* Checkpoint validity: what is durable fits its schema. *)
CV == \A b \in Branches : \A i \in 1..Frontier(b) : log[b][i] # Misfit

(* Consume-once: (c) one answer at the most is consumed at a gate, (e) the  *)
(* gated effect fires at most once: on the run, and in each fork that was   *)
(* asked for.                                                               *)
COc == \A b \in Branches : Len(taken[b]) <= 1 /\ \A i \in Gates : eaten[b][i] <= 1
COe == \A i \in Gates :
  /\ \A b \in Branches : fired[b][i] <= 1
  /\ Cardinality({b \in Branches : fired[b][i] > 0}) <= 1 + asked
CO == COc /\ COe

(* Recovery determinism: the same writes, in another order, are decided     *)
(* upon alike.                                                              *)
RD == \A b \in Branches :
  LET order == writes[b]
      other == IF Len(order) = 2 THEN <<order[2], order[1]>> ELSE order
  IN (Kept(order) = <<>>) <=> (Kept(other) = <<>>)

(* Fork intent: a branch begins with each fork that is asked for, and with  *)
(* nothing else.                                                            *)
FI == Cardinality({b \in Branches \ {Main} : mode[b] # "off"}) = asked

(* A run that is answered finishes. *)
Finished(b) == Frontier(b) = Steps
Live == \A b \in Branches : mode[b] = "parked" ~> Finished(b)
=============================================================================
