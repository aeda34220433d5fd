--------------------------- MODULE ResumeRecovery ---------------------------
(* Three properties of recovery that a fault of the larger module breaks     *)
(* together come apart: a model for each of PC, EO and RD in which it alone  *)
(* fails, and every other property of the contract holds.                    *)
(*                                                                           *)
(* Here an effect goes out before its step is recorded, so that a process    *)
(* may die in between. The receiver knows each effect by its key and lets    *)
(* the second one go. Step 1 is gated; its effect and its record are one     *)
(* transaction, as the answer's consumption is.                              *)
EXTENDS Naturals, Sequences

CONSTANTS Steps, Answers, Crashes,
  Fault   \* "no key": the receiver cannot tell an effect that it has seen
          \* "replay": a resume runs finished steps again, whose effects are kept back
          \* "unordered": recovery depends on which task wrote first

ASSUME Fault \subseteq {"no key", "replay", "unordered"} /\ Steps >= 2

VARIABLES
  log,      \* durable: the results of the finished steps
  writes,   \* durable: the tasks of the next step that have written, in order
  live,     \* whether a process works on the run
  at, mem,  \* volatile: what it does next, and from what
  out,      \* volatile: whether the effect of the step that it does has gone out
  keys,     \* outside: the effects that the receiver has seen
  fired,    \* outside: how often each effect fired
  eaten,    \* how many answers were consumed at step 1
  fork,     \* what a fork from before step 1 was answered, and was served
  crashes

vars == <<log, writes, live, at, mem, out, keys, fired, eaten, fork, crashes>>

Init ==
  /\ log = <<>> /\ writes = <<>> /\ live = TRUE /\ at = 1 /\ mem = <<>> /\ out = FALSE
  /\ keys = {} /\ fired = [i \in 1..Steps |-> 0] /\ eaten = 0 /\ fork = <<>>
  /\ crashes = Crashes

Frontier == Len(log)
AtFrontier == live /\ at = Frontier + 1 /\ at <= Steps

Consume(answer) ==
  /\ AtFrontier /\ at = 1
  /\ eaten' = eaten + 1
  /\ fired' = [fired EXCEPT ![1] = @ + 1]
  /\ log' = <<answer>> /\ mem' = <<answer>> /\ at' = 2
  /\ UNCHANGED <<writes, live, out, keys, fork, crashes>>

Write(task) ==
  /\ AtFrontier /\ at > 1
  /\ \A n \in 1..Len(writes) : writes[n] # task
  /\ writes' = Append(writes, task)
  /\ UNCHANGED <<log, live, at, mem, out, keys, fired, eaten, fork, crashes>>

Fire ==
  /\ AtFrontier /\ at > 1 /\ Len(writes) = 2 /\ ~out
  /\ out' = TRUE
  /\ keys' = keys \cup {at}
  /\ fired' = IF at \in keys /\ "no key" \notin Fault THEN fired
              ELSE [fired EXCEPT ![at] = @ + 1]
  /\ UNCHANGED <<log, writes, live, at, mem, eaten, fork, crashes>>

Finish ==
  /\ out
  /\ log' = Append(log, 1) /\ mem' = Append(mem, 1) /\ at' = at + 1
  /\ writes' = <<>> /\ out' = FALSE
  /\ UNCHANGED <<live, keys, fired, eaten, fork, crashes>>

Crash ==
  /\ live /\ crashes > 0
  /\ crashes' = crashes - 1 /\ live' = FALSE /\ at' = 1 /\ mem' = <<>> /\ out' = FALSE
  /\ UNCHANGED <<log, writes, keys, fired, eaten, fork>>

Kept(order) ==
  IF "unordered" \in Fault /\ order # <<>> /\ order[1] = 2 THEN <<>> ELSE order

Recover ==
  /\ ~live
  /\ live' = TRUE
  /\ at' = IF "replay" \in Fault THEN 1 ELSE Frontier + 1
  /\ mem' = SubSeq(log, 1, at' - 1)
  /\ writes' = Kept(writes)
  /\ UNCHANGED <<log, out, keys, fired, eaten, fork, crashes>>

RunAgain ==
  /\ live /\ at <= Frontier
  /\ at' = at + 1 /\ mem' = Append(mem, log[at])
  /\ UNCHANGED <<log, writes, live, out, keys, fired, eaten, fork, crashes>>

Fork(answer) ==
  /\ fork = <<>> /\ Frontier >= 1
  /\ fork' = <<answer, answer>>
  /\ UNCHANGED <<log, writes, live, at, mem, out, keys, fired, eaten, crashes>>

Work == (\E a \in Answers : Consume(a)) \/ (\E t \in {1, 2} : Write(t)) \/ Fire \/ Finish \/ RunAgain

Next == Work \/ Crash \/ Recover \/ \E a \in Answers : Fork(a)

Spec == Init /\ [][Next]_vars /\ WF_vars(Work) /\ WF_vars(Recover)

PC == live => at = Frontier + 1 /\ mem = log
EO == \A i \in 1..Steps : fired[i] <= 1
FD == fork # <<>> => fork[1] = fork[2]
CV == \A i \in 1..Frontier : log[i] \in {1} \cup Answers
COc == eaten <= 1
COe == fired[1] <= 1
CO == COc /\ COe
RD == LET other == IF Len(writes) = 2 THEN <<writes[2], writes[1]>> ELSE writes
      IN (Kept(writes) = <<>>) <=> (Kept(other) = <<>>)
Live == <>(Frontier = Steps)
=============================================================================
