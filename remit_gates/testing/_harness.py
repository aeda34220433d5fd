"""What the kit needs of whoever has a store checked: one database, and as many store
objects over it as asked for."""

from __future__ import annotations

from typing import Protocol, TypeVar


S_co = TypeVar("S_co", covariant=True)


class Harness(Protocol[S_co]):
    """Makes the stores of a check. A plain function will do.

    Two more methods are optional. Without one, the clause that needs it is reported as
    not run:

    `losing() -> store`
        A store object over the same database whose next swap is sent, and whose
        acknowledgement then is lost on the way.
    `newer() -> store`
        A store object over a database that a newer release has set up.
    """

    def __call__(self) -> S_co:
        """A store object over the database of this check, which is empty at first and not
        set up. Each call may return another object, and all see the same records."""
        ...
