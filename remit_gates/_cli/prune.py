"""`remit-gates prune`: forget what nobody will ask about any more."""

from __future__ import annotations

import argparse

from remit_gates._cli.common import confirm, document, looking
from remit_gates._cli.runs import phase_of
from remit_gates._cli.setup import PROBE
from remit_gates._cli.values import moment
from remit_gates._phases import RunPhase


def prune(arguments: argparse.Namespace) -> int:
    """Forget the records without a claim that did not change for a time.

    Raises:
        RemitError: It was not confirmed.
    """
    seconds, text = arguments.older_than
    with looking(arguments.url, long=True) as store:
        since = moment(store.read(PROBE).now - seconds)
        which = f"no claim and did not change for {text}, that is since {since}"
        if arguments.dry_run:
            count = failed = 0
            for entry in store.scan(claimed=False, idle=seconds):
                count += 1
                failed += phase_of(entry.snapshot) is RunPhase.FAILED
            if arguments.json:
                document({"pruned": 0, "would_prune": count, "failed": failed})
            else:
                print(
                    f"Records with {which}: {count}, of which {failed} failed. They would be"
                    " forgotten. Nothing was changed."
                )
            return 0
        what = f"Every record with {which} is forgotten, and with it which answers were given."
        confirm(what, "Go on?", "Nothing was forgotten.", yes=arguments.yes)
        count = store.prune(seconds)
    if arguments.json:
        document({"pruned": count})
    else:
        print(f"Records forgotten: {count}.")
    return 0
