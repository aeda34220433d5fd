"""`remit-gates setup`: the table of a store is there afterwards. It only ever adds, and may be
repeated, so it does not ask."""

from __future__ import annotations

import argparse
from contextlib import closing
from typing import Final

from remit_gates import open_store
from remit_gates._cli.common import document, looking
from remit_gates._model import RunKey
from remit_gates.errors import SetupRequired


PROBE: Final = RunKey("remit-gates", "", "probe")
"""A run that no framework has: reading it tells whether a store can be read."""


def setup(arguments: argparse.Namespace) -> int:
    """Create the table of a store, or bring it up to date."""
    if arguments.dry_run:
        needed = _needed(arguments.url)
        if arguments.json:
            document({"ready": not needed})
        elif needed:
            print("The table would be made. Nothing was changed.")
        else:
            print("The store is ready. There is nothing to do.")
        return 0
    with closing(open_store(arguments.url)) as store:
        store.setup()
    if arguments.json:
        document({"ready": True})
    else:
        print("The store is ready.")
    return 0


def _needed(url: str) -> bool:
    with looking(url) as store:
        try:
            store.read(PROBE)
        except SetupRequired:
            return True
    return False
