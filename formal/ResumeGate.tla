------------------------------ MODULE ResumeGate ------------------------------
(* The gate as it is built: read, load, decide, swap; leases, fencing, leaving. *)
(*                                                                              *)
(* One run waits at question 1, its node runs, it waits at question 2, that     *)
(* node runs, and it is over (3). Deliveries come at any time, each a process   *)
(* of its own. The store and the run are apart; any step of one process may     *)
(* come between any two of another. The names are those of `_decide.py` and     *)
(* `_passage.py`. What follows is checked by TLC for every interleaving.        *)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS
  None,
  Firsts,      \* answers that name question 1
  Seconds,     \* answers that name question 2
  Bares,       \* answers that name nothing, sent when question 1 was seen
  Marked,      \* the same with a delivery id: copies of one message
  Continues,   \* deliveries without an answer
  Breaks,      \* questions that are static breakpoints: a continue runs their node
  OnConflict, OnFailure, OnAbandoned, AnswersPolicy,    \* the policy
  Crashes, Losses, Failures, Releases,   \* how many of each may come
  Lapses,      \* how often a holder may lose its lease; Always: without end
  Resends,     \* whether who was turned away comes again
  (* What a broken twin lacks. *)
  VersionCheck, ReadFirst, Ledger, Fence, StoreClock, Ids, Reread, KeepToken, Binds,
  BareToo      \* whether a bare answer, too, must be applied only where it was meant

Always == 99
Places == 1..2
End == 3
Answering == Firsts \cup Seconds \cup Bares \cup Marked
D == Answering \cup Continues

VARIABLES
  rec, alive,          \* the store: the record, and whether its claim's lease lives
  adrift,              \* swaps of which the answer was lost, and that may still land
  place, ans,          \* the framework: where the run is, and whose answer it has there
  pc, snap, fresh, seen, first, again, lost, sure, out,   \* of each process
  crashes, losses, failures, releases, lapses,
  served, reopened, saved, marked, oops                   \* what the invariants look at

vars == <<rec, alive, adrift, place, ans, pc, snap, fresh, seen, first, again, lost, sure, out,
          crashes, losses, failures, releases, lapses, served, reopened, saved, marked, oops>>

store == <<rec, alive, adrift>>
framework == <<place, ans>>
budgets == <<crashes, losses, failures, releases, lapses>>
ghosts == <<served, reopened, saved, marked>>

Symmetry == Permutations(Firsts) \cup Permutations(Seconds) \cup Permutations(Bares)
            \cup Permutations(Marked) \cup Permutations(Continues)

IsAnswer(d) == d \in Answering
Bound(d) == d \in Firsts \cup Seconds
Meant(d) == IF d \in Seconds THEN 2 ELSE 1
Named(d, pl) == IF Bound(d) THEN Meant(d) ELSE pl
Serving == {"held", "store", "node", "save"}
Ended == {"over", "crashed", "gone"}

-------------------------------------------------------------------------------
(* The record, and the decisions on it: `_model.py`, `_decide.py`. *)

Empty == [token |-> 0, served |-> 0, claim |-> None, cons |-> [p \in Places |-> None],
          spent |-> FALSE]

Holds(d) == rec.claim # None /\ rec.claim.who = d
Closed(r, p) == p \in Places /\ r.cons[p] # None /\ r.cons[p].open = "no"
Last(r) == IF r.claim = None THEN r.served ELSE r.claim.token
Unfinished(r) == {p \in Places : Closed(r, p) /\ r.cons[p].token = Last(r)
                                 /\ r.cons[p].phase # "settled"}

(* A delivery id that did its work already. *)
Spent(r, d, p) ==
  /\ Ids /\ d \in Marked
  /\ LET used == {q \in Places : r.cons[q] # None /\ r.cons[q].of \in Marked}
     IN IF used = {} THEN r.spent
        ELSE used # {p} \/ \E q \in used : r.cons[q].open = "anew"

Why(r, d, p) ==
  LET entry == r.cons[p] IN
  IF entry.phase = "settled" THEN "consumed"
  ELSE IF entry.phase = "failed"
  THEN IF OnFailure = "retry" \/ (d \in Marked /\ entry.of \in Marked) THEN "none" ELSE "failed"
  ELSE IF OnAbandoned = "serve" THEN "none" ELSE "abandoned"

Decide(r, d, pl) ==
  LET p == Named(d, pl)
      why == IF IsAnswer(d) /\ Ledger /\ Closed(r, p) THEN Why(r, d, p) ELSE "none"
  IN IF Spent(r, d, p) THEN "consumed"
     ELSE IF why # "none" THEN why
     ELSE IF pl = End \/ (IsAnswer(d) /\ p # pl) THEN "not_parked"
     ELSE IF r.claim # None /\ IsAnswer(d) /\ OnAbandoned = "refuse" THEN "abandoned"
     ELSE "granted"

(* A delivery that names no question, and looks again after another was served. *)
Overtaken(r, d, pl) ==
  LET was == first[d] IN
  /\ ~Bound(d) /\ again[d]
  /\ IF r.claim # None /\ was.claim = r.claim.token
     THEN IsAnswer(d) /\ Named(d, pl) \notin r.claim.pauses
     ELSE IF r.claim = None THEN r.served # was.served ELSE r.token # was.token

Verdict(d, pl) ==
  IF AnswersPolicy = "bound" /\ IsAnswer(d) /\ ~(Bound(d) /\ Binds) THEN "usage"
  ELSE IF Overtaken(snap[d], d, pl) THEN "overtaken" ELSE Decide(snap[d], d, pl)

Granted(r, d, pl) ==
  LET t == r.token + 1
      old == IF IsAnswer(d) THEN r.cons[pl] ELSE None
      mine == IF IsAnswer(d) THEN {pl} ELSE Unfinished(r)
      entry(p) == IF IsAnswer(d)
                  THEN [phase |-> "running", token |-> t, of |-> d, who |-> d,
                        open |-> "no", applied |-> FALSE]
                  ELSE [r.cons[p] EXCEPT !.phase = "running", !.token = t, !.who = d]
  IN [token |-> t, served |-> r.served,
      claim |-> [who |-> d, token |-> t, pauses |-> mine],
      cons |-> [p \in Places |-> IF p \in mine THEN entry(p) ELSE r.cons[p]],
      spent |-> r.spent \/ (old # None /\ old.of \in Marked /\ d \notin Marked)]

(* Leaving: what becomes of each consumption when the run ended failed, or waits at `at`. *)
Settled(r, d, failed, at, applied) ==
  LET t == r.claim.token
      settle(p) ==
        LET entry == r.cons[p]
            waits == p = at /\ entry.open = "no"
            took == (IsAnswer(d) /\ entry.of = d) \/ entry.applied
                    \/ (applied /\ ~IsAnswer(d))
        IN IF entry.token = t
           THEN [entry EXCEPT !.phase = IF failed THEN "failed" ELSE "settled",
                              !.applied = entry.applied \/ applied,
                              !.open = IF waits THEN IF took THEN "anew" ELSE "again" ELSE @]
           ELSE IF waits THEN [entry EXCEPT !.open = "again"] ELSE entry
  IN [r EXCEPT !.served = t, !.claim = None,
               !.cons = [p \in Places |-> IF r.cons[p] = None THEN None ELSE settle(p)]]

Withdrawn(r, before) == IF KeepToken THEN [before EXCEPT !.token = r.token] ELSE before

Released(r) ==
  LET free(p) == r.cons[p] # None /\ r.cons[p].phase # "settled" /\ r.cons[p].open = "no"
  IN [r EXCEPT !.served = IF r.claim = None THEN @ ELSE r.claim.token, !.claim = None,
               !.cons = [p \in Places |->
                 IF free(p) THEN [r.cons[p] EXCEPT !.phase = "failed", !.open = "again"]
                 ELSE r.cons[p]]]

-------------------------------------------------------------------------------
(* A swap that lands: whatever was read before is of an older version now. *)

Land(new, living, whose) ==
  /\ rec' = new /\ alive' = living /\ adrift' = {}
  /\ fresh' = [d \in D |-> FALSE]
  /\ oops' = IF new.token < rec.token THEN oops \cup {"token"} ELSE oops
  /\ snap' = [d \in D |-> IF pc[d] = "swap" /\ d # whose /\ VersionCheck THEN None ELSE snap[d]]

Still == UNCHANGED <<store, fresh, snap, oops>>

Go(d, to) == pc' = [pc EXCEPT ![d] = to]

(* A delivery that is turned away has left nothing behind. Its claim may have landed unknown *)
(* to it and lapsed, and who took that over may have put it back as dead as it was.          *)
Marks(d) ==
  IF Holds(d) THEN alive
  ELSE \/ \E p \in Places : rec.cons[p] # None /\ rec.cons[p].who = d
                            /\ rec.cons[p].phase = "running"
       \/ \E a \in adrift : a.who = d

(* What a process forgets when it ends. *)
Forget(d) ==
  /\ seen' = [seen EXCEPT ![d] = None] /\ first' = [first EXCEPT ![d] = None]
  /\ again' = [again EXCEPT ![d] = FALSE] /\ lost' = [lost EXCEPT ![d] = FALSE]

TurnedAway(d) ==
  /\ Go(d, "over") /\ Forget(d)
  /\ oops' = IF Marks(d) THEN oops \cup {"loser"} ELSE oops
  /\ snap' = [snap EXCEPT ![d] = None]
  /\ fresh' = [fresh EXCEPT ![d] = FALSE]
  /\ UNCHANGED store

-------------------------------------------------------------------------------
(* Entering: `_passage.enter`. *)

(* Only the twin without `ReadFirst` starts here. *)
Look(d) ==
  /\ pc[d] = "look"
  /\ seen' = [seen EXCEPT ![d] = [place |-> place, ans |-> ans]]
  /\ Go(d, "read") /\ Still
  /\ UNCHANGED <<framework, first, again, lost, sure, out, budgets, ghosts>>

(* What a delivery that names no question keeps of the record as it first read it. *)
Glance(d) ==
  IF Bound(d) THEN None
  ELSE [claim |-> IF rec.claim = None THEN 0 ELSE rec.claim.token,
        served |-> rec.served, token |-> rec.token]

(* A claim that it sent itself. One who comes again is another holder than it was before. *)
Own(d) == Holds(d) /\ lost[d]

Read(d) ==
  /\ pc[d] = "read"
  /\ IF Own(d)
     THEN \* Its own claim, of which the acknowledgement was lost, has landed.
          /\ Go(d, "held") /\ sure' = [sure EXCEPT ![d] = alive]
          /\ served' = IF IsAnswer(d) /\ rec.cons[seen[d].place].of = d
                       THEN [served EXCEPT ![seen[d].place] = @ + 1] ELSE served
          /\ Still
          /\ UNCHANGED <<seen, first, again, lost>>
     ELSE IF rec.claim # None /\ alive /\ pc[rec.claim.who] # "crashed"
          THEN \/ /\ OnConflict = "wait"
                  /\ again' = [again EXCEPT ![d] = ~Bound(d)]
                  /\ first' = [first EXCEPT ![d] = IF @ = None THEN Glance(d) ELSE @]
                  /\ UNCHANGED <<pc, seen, lost>> /\ Still
               \/ TurnedAway(d)       \* at once, or when the time to wait is over
          ELSE /\ Go(d, "load")
               /\ snap' = [snap EXCEPT ![d] = rec]
               /\ again' = [again EXCEPT ![d] = @ \/ (first[d] # None /\ ~fresh[d])]
               /\ first' = [first EXCEPT ![d] = IF @ = None THEN Glance(d) ELSE @]
               /\ lost' = [lost EXCEPT ![d] = @ /\ fresh[d]]
               /\ fresh' = [fresh EXCEPT ![d] = TRUE]
               /\ UNCHANGED <<store, seen, oops>>
  /\ IF Own(d) THEN TRUE ELSE UNCHANGED <<sure, served>>
  /\ UNCHANGED <<framework, out, budgets, reopened, saved, marked>>

Load(d) ==
  /\ pc[d] = "load"
  /\ LET at == IF ReadFirst THEN [place |-> place, ans |-> ans] ELSE seen[d]
         verdict == Verdict(d, at.place)
     IN IF verdict = "granted"
        THEN /\ Go(d, "swap")
             /\ seen' = [seen EXCEPT ![d] = at]
             /\ snap' = [snap EXCEPT ![d] = IF fresh[d] \/ Holds(d) \/ ~VersionCheck THEN @ ELSE None]
             /\ UNCHANGED <<store, fresh, first, again, lost, oops>>
        ELSE IF verdict = "not_parked" /\ rec # snap[d]
        THEN \* The record may know better by now.
             /\ Go(d, "read") /\ Still /\ UNCHANGED <<seen, first, again, lost>>
        ELSE TurnedAway(d)
  /\ UNCHANGED <<framework, sure, out, budgets, ghosts>>

Swap(d) ==
  /\ pc[d] = "swap"
  /\ IF fresh[d] \/ ~VersionCheck
     THEN LET pl == seen[d].place
              new == Granted(snap[d], d, pl)
              same == rec.cons[pl] # None /\ d \in Marked /\ rec.cons[pl].of \in Marked
                      /\ rec.cons[pl].phase = "failed"
          IN \/ /\ Land(new, TRUE, d)
                /\ Go(d, "held") /\ sure' = [sure EXCEPT ![d] = TRUE]
                /\ served' = IF IsAnswer(d) /\ ~same THEN [served EXCEPT ![pl] = @ + 1] ELSE served
                /\ UNCHANGED <<lost, losses>>
             \/ /\ losses > 0 /\ losses' = losses - 1
                /\ \/ Land(new, TRUE, d)
                   \/ /\ adrift' = adrift \cup {[who |-> d, new |-> new]}
                      /\ UNCHANGED <<rec, alive, fresh, snap, oops>>
                /\ Go(d, IF Reread THEN "read" ELSE "told")
                /\ lost' = [lost EXCEPT ![d] = TRUE]
                /\ UNCHANGED <<sure, served>>
     ELSE /\ Go(d, "read") /\ Still /\ UNCHANGED <<sure, served, lost, losses>>
  /\ UNCHANGED <<framework, seen, first, again, out, crashes, failures, releases, lapses,
                 reopened, saved, marked>>

(* Only the twin without `Reread` comes here: it takes a lost acknowledgement for a refusal. *)
Told(d) ==
  /\ pc[d] = "told" /\ TurnedAway(d)
  /\ UNCHANGED <<framework, sure, out, budgets, ghosts>>

(* The claim was sent, and then the store could not say whether it landed. *)
GiveUp(d) ==
  /\ pc[d] = "read" /\ lost[d] /\ ~Own(d)
  /\ Go(d, "over") /\ Forget(d) /\ Still
  /\ UNCHANGED <<framework, sure, out, budgets, ghosts>>

LandsLate == \E a \in adrift :
  /\ Land(a.new, a.new.claim # None, a.who)
  /\ UNCHANGED <<framework, pc, seen, first, again, lost, sure, out, budgets, ghosts>>

-------------------------------------------------------------------------------
(* The run of the one that was served. Each write of the framework is fenced. *)

Leaving(d, how, at, applied) ==
  /\ Go(d, "leave")
  /\ out' = [out EXCEPT ![d] = [how |-> how, at |-> at, applied |-> applied]]
  /\ sure' = [sure EXCEPT ![d] = FALSE]

Uncounted(d) ==
  IF IsAnswer(d) THEN [served EXCEPT ![seen[d].place] = IF @ > 0 THEN @ - 1 ELSE 0] ELSE served

Begin(d) ==
  /\ pc[d] = "held"
  /\ IF IsAnswer(d) THEN Go(d, "store") /\ UNCHANGED <<out, sure, reopened>>
     ELSE IF seen[d].ans = None /\ seen[d].place \notin Breaks
     THEN \* Nothing to go on with: the framework asks again.
          /\ Leaving(d, "parked", seen[d].place, FALSE)
          /\ reopened' = [reopened EXCEPT ![seen[d].place] = @ + 1]
     ELSE Go(d, "node") /\ UNCHANGED <<out, sure, reopened>>
  /\ Still
  /\ UNCHANGED <<framework, seen, first, again, lost, budgets, served, saved, marked>>

(* The framework rejects the input, before any node ran. *)
Withdraw(d) ==
  /\ pc[d] = "held" /\ failures > 0 /\ failures' = failures - 1
  /\ Leaving(d, "withdrawn", 0, FALSE) /\ served' = Uncounted(d)
  /\ Still
  /\ UNCHANGED <<framework, seen, first, again, lost, crashes, losses, releases, lapses,
                 reopened, saved, marked>>

Breach(bad, what) == IF bad THEN {what} ELSE {}

Store(d) ==
  /\ pc[d] = "store" /\ (sure[d] \/ ~Fence)
  /\ ans' = IF place = seen[d].place THEN d ELSE ans
  /\ oops' = oops \cup Breach(~Holds(d), "stray")
  /\ Go(d, "node")
  /\ UNCHANGED <<store, place, snap, fresh, seen, first, again, lost, sure, out, budgets, ghosts>>

Node(d) ==
  /\ pc[d] = "node"
  /\ LET user == IF IsAnswer(d) THEN d ELSE seen[d].ans
         pl == seen[d].place
         wrong == CASE user = None -> FALSE
                    [] user \in Marked -> marked \notin {0, pl}
                    [] OTHER -> Meant(user) # pl /\ (Bound(user) \/ BareToo)
     IN /\ oops' = oops \cup Breach(wrong, "stale answer")
        /\ marked' = IF user \in Marked THEN pl ELSE marked
  /\ \/ /\ Go(d, "save") /\ UNCHANGED <<out, sure, failures>>
     \/ /\ failures > 0 /\ failures' = failures - 1
        /\ Leaving(d, "failed", 0, IsAnswer(d) \/ seen[d].ans # None)
  /\ UNCHANGED <<store, framework, snap, fresh, seen, first, again, lost, crashes, losses,
                 releases, lapses, served, reopened, saved>>

Save(d) ==
  /\ pc[d] = "save" /\ (sure[d] \/ ~Fence)
  /\ LET pl == seen[d].place IN
     /\ place' = pl + 1 /\ ans' = None
     /\ saved' = [saved EXCEPT ![pl] = @ + 1]
     /\ Leaving(d, "parked", pl + 1, TRUE)
  /\ oops' = oops \cup Breach(~Holds(d), "stray")
  /\ UNCHANGED <<store, snap, fresh, seen, first, again, lost, budgets, served, reopened, marked>>

(* The heartbeat, or the fence past the deadline. A store extends only a lease that lives; a *)
(* holder that comes late must win the swap against those who may take over.                 *)
Renew(d) ==
  /\ pc[d] \in Serving /\ ~sure[d] /\ Holds(d)
  /\ sure' = [sure EXCEPT ![d] = TRUE]
  /\ IF alive THEN Still ELSE Land(rec, TRUE, d)
  /\ UNCHANGED <<framework, pc, seen, first, again, lost, out, budgets, ghosts>>

ClaimLost(d) ==
  /\ pc[d] \in {"store", "save"} /\ ~sure[d] /\ ~Holds(d) /\ Fence
  /\ IF pc[d] = "store"
     THEN Leaving(d, "withdrawn", 0, FALSE) /\ served' = Uncounted(d)
     ELSE Leaving(d, "failed", 0, TRUE) /\ UNCHANGED served
  /\ Still
  /\ UNCHANGED <<framework, seen, first, again, lost, budgets, reopened, saved, marked>>

Leave(d) ==
  /\ pc[d] = "leave"
  /\ LET how == out[d].how
         after == IF how = "withdrawn" THEN Withdrawn(rec, snap[d])
                  ELSE Settled(rec, d, how = "failed", out[d].at, out[d].applied)
     IN IF ~Holds(d)
        THEN Go(d, "over") /\ Forget(d) /\ Still /\ out' = [out EXCEPT ![d] = None]
             /\ UNCHANGED losses
        ELSE \/ /\ Land(after, FALSE, d)
                /\ Go(d, "over") /\ Forget(d) /\ out' = [out EXCEPT ![d] = None]
                /\ UNCHANGED losses
             \/ /\ losses > 0 /\ losses' = losses - 1
                /\ \/ Land(after, FALSE, d)
                   \/ /\ adrift' = adrift \cup {[who |-> d, new |-> after]}
                      /\ UNCHANGED <<rec, alive, fresh, snap, oops>>
                /\ UNCHANGED <<pc, out, seen, first, again, lost>>
  /\ UNCHANGED <<framework, sure, crashes, failures, releases, lapses, ghosts>>

-------------------------------------------------------------------------------
(* What happens to processes and to the store. *)

(* A holder's own deadline: it began to count before the claim was sent. *)
Lapse(d) ==
  /\ sure[d] /\ lapses > 0
  /\ lapses' = IF Lapses = Always THEN Always ELSE lapses - 1
  /\ sure' = [sure EXCEPT ![d] = FALSE] /\ Still
  /\ UNCHANGED <<framework, pc, seen, first, again, lost, out, crashes, losses, failures,
                 releases, ghosts>>

(* A lease ends by the store's clock, never before the holder's own deadline. *)
Expire ==
  /\ rec.claim # None /\ alive /\ (StoreClock => ~sure[rec.claim.who])
  /\ alive' = FALSE
  /\ UNCHANGED <<rec, adrift, framework, pc, snap, fresh, seen, first, again, lost, sure, out,
                 budgets, ghosts, oops>>

(* Without its claim in the store, a crash is the same as never moving again. Whoever crashed *)
(* is known to be dead; whoever is gone, on another host, is not: only its lease tells.       *)
Crash(d) ==
  /\ crashes > 0 /\ Holds(d) /\ pc[d] \notin Ended
  /\ crashes' = crashes - 1 /\ Forget(d) /\ Still
  /\ \E how \in {"crashed", "gone"} : Go(d, how)
  /\ sure' = [sure EXCEPT ![d] = FALSE] /\ out' = [out EXCEPT ![d] = None]
  /\ UNCHANGED <<framework, losses, failures, releases, lapses, ghosts>>

Release ==
  /\ releases > 0 /\ releases' = releases - 1
  /\ rec.claim # None => ~alive \/ pc[rec.claim.who] = "crashed"
  /\ Released(rec) # rec
  /\ Land(Released(rec), FALSE, None)
  /\ reopened' = [p \in Places |->
       IF Released(rec).cons[p] # rec.cons[p] THEN reopened[p] + 1 ELSE reopened[p]]
  /\ UNCHANGED <<framework, pc, seen, first, again, lost, sure, out, crashes, losses, failures,
                 lapses, served, saved, marked>>

(* Whoever was turned away, failed or died comes again while its question is open, as another *)
(* holder; a recovery comes when there is something to recover.                               *)
Resend(d) ==
  /\ Resends /\ pc[d] \in Ended
  /\ IF IsAnswer(d) THEN place <= Meant(d)
     ELSE (rec.claim # None /\ ~alive) \/ \E p \in Unfinished(rec) : rec.claim = None
  /\ Go(d, IF ReadFirst THEN "read" ELSE "look") /\ Still
  /\ UNCHANGED <<framework, seen, first, again, lost, sure, out, budgets, ghosts>>

Init ==
  /\ rec = Empty /\ alive = FALSE /\ adrift = {}
  /\ place = 1 /\ ans = None
  /\ pc = [d \in D |-> IF Resends /\ ~IsAnswer(d) THEN "over"
                       ELSE IF ReadFirst THEN "read" ELSE "look"]
  /\ snap = [d \in D |-> None] /\ fresh = [d \in D |-> FALSE] /\ seen = [d \in D |-> None]
  /\ first = [d \in D |-> None] /\ again = [d \in D |-> FALSE] /\ lost = [d \in D |-> FALSE]
  /\ sure = [d \in D |-> FALSE] /\ out = [d \in D |-> None]
  /\ crashes = Crashes /\ losses = Losses /\ failures = Failures /\ releases = Releases
  /\ lapses = Lapses
  /\ served = [p \in Places |-> 0] /\ reopened = [p \in Places |-> 0]
  /\ saved = [p \in Places |-> 0] /\ marked = 0 /\ oops = {}

Step(d) == Look(d) \/ Read(d) \/ Load(d) \/ Swap(d) \/ Told(d) \/ Begin(d) \/ Store(d) \/ Node(d)
           \/ Save(d) \/ Renew(d) \/ ClaimLost(d) \/ Leave(d)

Next ==
  \/ \E d \in D : Step(d) \/ GiveUp(d) \/ Withdraw(d) \/ Lapse(d) \/ Crash(d) \/ Resend(d)
  \/ LandsLate \/ Expire \/ Release

Spec == Init /\ [][Next]_vars

(* Every process that can go on does, and so does the clock of the store. *)
FairSpec ==
  Spec /\ WF_vars(Expire) /\ \A d \in D : WF_vars(Step(d)) /\ WF_vars(Resend(d))

-------------------------------------------------------------------------------
(* What must hold. *)

Refusing == OnAbandoned = "refuse" /\ OnFailure = "hold"

Types ==
  /\ place \in 1..End /\ ans \in Answering \cup {None}
  /\ rec.claim = None \/ (rec.claim.who \in D /\ rec.claim.token <= rec.token)
  /\ \A d \in D : pc[d] \in Serving \cup Ended \cup {"look", "read", "load", "swap", "told",
                                                       "leave"}

(* At most one delivery is served at a question, unless it was asked again. *)
AtMostOnce == Refusing => \A p \in Places : served[p] <= 1 + reopened[p]

(* Under every policy, at most one delivery carries the run past a question. *)
Once == \A p \in Places : saved[p] <= 1

(* At most one process believes that its lease lives, and the store agrees with it. *)
OneHolder ==
  /\ Cardinality({d \in D : sure[d]}) <= 1
  /\ \A d \in D : sure[d] => Holds(d) /\ alive

(* No write of a holder that was replaced lands. *)
NoStray == "stray" \notin oops

(* No answer is applied at a question that it was not meant for, and no copy of a message at *)
(* another question than the first copy was.                                                 *)
NoStale == "stale answer" \notin oops

(* What a holder works from is what the run is. *)
FreshLoad == \A d \in D : pc[d] \in Serving /\ sure[d] => seen[d].place = place

(* Who is turned away has written nothing. *)
LosersWriteNothing == "loser" \notin oops

(* A token that was granted is never granted again. *)
TokensGrow == "token" \notin oops

(* Every delivery comes to an end. *)
Ends == \A d \in D : <>(pc[d] \in Ended)

(* A parked run that is answered goes on, and in the end finishes. *)
Passes == <>(place > 1)
Finishes == <>(place = End)
=============================================================================
