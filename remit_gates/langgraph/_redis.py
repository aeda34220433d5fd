"""What LangGraph's sync Redis saver loses, and a gate cannot do without.

LangGraph writes a checkpoint, and what its tasks wrote, in the background at the same time.
The Redis savers note in the checkpoint that there are writes, and a checkpoint that comes
last is written without that note. The sync saver then finds nothing that waits, and a gate
that believed it would refuse the answer that is waited for.
"""

from __future__ import annotations

import functools
from typing import Any, Final


LOOK: Final = "_load_pending_writes_with_registry_check"
"""What the sync saver finds writes with."""


def looks(cls: type[Any]) -> dict[str, Any]:
    """The methods of its own that a gated `cls` needs: it looks for writes whatever the note
    says, which costs one command where there are none."""
    look = getattr(cls, LOOK, None)
    if look is None:
        return {}

    @functools.wraps(look)
    def always(self: Any, *args: Any, **kwargs: Any) -> Any:
        return look(self, *args, **{**kwargs, "checkpoint_has_writes": True})

    return {LOOK: always}
