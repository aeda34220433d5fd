------------------------- MODULE ResumeConsumption -------------------------
(* Consume-once is two clauses. Several deliveries come to one gate; each     *)
(* looks, and consumes what it saw open. Where looking and consuming are two  *)
(* steps, several consume: clause (c) fails. Whether the effect then fires    *)
(* more than once is another matter: where a single worker runs what is       *)
(* recorded, it does not, and (c) fails alone. The other way round, a worker  *)
(* that dies between the effect and the record of it makes (e) fail, and EO   *)
(* with it, while (c) holds.                                                  *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Racers, Crashes,
  Fault   \* "look then take": looking and consuming are two steps
          \* "each runs": whoever consumed runs the step itself
          \* "no key": the receiver cannot tell an effect that it has seen

ASSUME Fault \subseteq {"look then take", "each runs", "no key"}

VARIABLES
  pc,       \* of each delivery: new, saw (that the gate is open), took, ran, refused
  answer,   \* durable: the answer on record, 0 for none
  eaten,    \* whose delivery was told that it consumed the gate
  worker,   \* of the single worker: idle, fired, done
  log,      \* durable: the results of the finished steps; there is one step
  fired,    \* outside: how often its effect fired
  fork,     \* what a fork was answered, and was served
  crashes

vars == <<pc, answer, eaten, worker, log, fired, fork, crashes>>

Init ==
  /\ pc = [r \in 1..Racers |-> "new"] /\ answer = 0 /\ eaten = {} /\ worker = "idle"
  /\ log = <<>> /\ fired = 0 /\ fork = <<>> /\ crashes = Crashes

Look(r) ==
  /\ pc[r] = "new" /\ "look then take" \in Fault
  /\ pc' = [pc EXCEPT ![r] = IF answer = 0 THEN "saw" ELSE "refused"]
  /\ UNCHANGED <<answer, eaten, worker, log, fired, fork, crashes>>

Take(r) ==
  /\ IF "look then take" \in Fault THEN pc[r] = "saw" ELSE pc[r] = "new" /\ answer = 0
  /\ pc' = [pc EXCEPT ![r] = "took"]
  /\ eaten' = eaten \cup {r}
  /\ answer' = IF answer = 0 THEN r ELSE answer    \* the first that is recorded stays
  /\ UNCHANGED <<worker, log, fired, fork, crashes>>

Refuse(r) ==
  /\ "look then take" \notin Fault /\ pc[r] = "new" /\ answer # 0
  /\ pc' = [pc EXCEPT ![r] = "refused"]
  /\ UNCHANGED <<answer, eaten, worker, log, fired, fork, crashes>>

Again == IF "no key" \in Fault \/ fired = 0 THEN fired + 1 ELSE fired

(* Stock: whoever consumed fires the effect and records the step. *)
RunOwn(r) ==
  /\ "each runs" \in Fault /\ pc[r] = "took"
  /\ pc' = [pc EXCEPT ![r] = "ran"]
  /\ fired' = Again
  /\ log' = IF log = <<>> THEN <<answer>> ELSE log
  /\ UNCHANGED <<answer, eaten, worker, fork, crashes>>

Fire ==
  /\ "each runs" \notin Fault /\ answer # 0 /\ worker = "idle" /\ log = <<>>
  /\ worker' = "fired" /\ fired' = Again
  /\ UNCHANGED <<pc, answer, eaten, log, fork, crashes>>

Record ==
  /\ worker = "fired"
  /\ worker' = "done" /\ log' = <<answer>>
  /\ UNCHANGED <<pc, answer, eaten, fired, fork, crashes>>

Crash ==
  /\ worker = "fired" /\ crashes > 0
  /\ worker' = "idle" /\ crashes' = crashes - 1
  /\ UNCHANGED <<pc, answer, eaten, log, fired, fork>>

Fork(a) ==
  /\ fork = <<>> /\ log # <<>> /\ fork' = <<a, a>>
  /\ UNCHANGED <<pc, answer, eaten, worker, log, fired, crashes>>

Racer(r) == Look(r) \/ Take(r) \/ Refuse(r) \/ RunOwn(r)
Next == (\E r \in 1..Racers : Racer(r) \/ Fork(r)) \/ Fire \/ Record \/ Crash

Spec ==
  /\ Init /\ [][Next]_vars
  /\ WF_vars(Fire) /\ WF_vars(Record) /\ \A r \in 1..Racers : WF_vars(Racer(r))

(* A worker never fires for a step that is recorded, and the answer on record *)
(* is what it works from.                                                     *)
PC == (worker = "fired" => log = <<>>) /\ (log # <<>> => log[1] = answer)
EO == fired <= 1
FD == fork # <<>> => fork[1] = fork[2]
CV == \A i \in 1..Len(log) : log[i] \in 1..Racers
COc == Cardinality(eaten) <= 1
COe == fired <= 1
CO == COc /\ COe
(* Whether a worker that starts fires is a function of what is durable alone. *)
RD == worker = "idle" => (ENABLED Fire <=> answer # 0 /\ log = <<>> /\ "each runs" \notin Fault)
Live == <>(log # <<>>)
=============================================================================
