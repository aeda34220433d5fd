"""What a store can say of the settings under which it works, for `remit-gates doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: What it is, in a word or two.
        state: `ok`; `warn`, which costs no claim; or `fail`, which can.
        says: What was found.
        mend: What to do about it; empty where all is well.
    """

    name: str
    state: Literal["ok", "warn", "fail"]
    says: str
    mend: str = ""
