"""What is said of each kind of error: its title, and a sentence or two for a person.

The words are for whoever delivered an answer, and say nothing that only an operator needs.
"""

from __future__ import annotations

from typing import Final

from remit_gates._model import Reason
from remit_gates.errors import (
    ClaimLost,
    InvalidState,
    OutcomeUnknown,
    RemitError,
    StoreError,
    StoreUnavailable,
)


UNUSED: Final = "This answer was not used."

REFUSED: Final[dict[Reason, tuple[str, str]]] = {
    Reason.IN_PROGRESS: (
        "Another answer is being handled",
        f"Another answer to this run is being handled right now{{by}}. {UNUSED}",
    ),
    Reason.CONSUMED: (
        "Already answered",
        f"This was already answered{{by}}{{so}}. {UNUSED}",
    ),
    Reason.FAILED: (
        "Already answered, and failed",
        (
            f"This was already answered{{by}}, and then something went wrong. {UNUSED}"
            " Somebody has to look at it before it can go on."
        ),
    ),
    Reason.ABANDONED: (
        "Abandoned",
        (
            f"An earlier answer was being handled{{by}} when its worker died. {UNUSED}"
            " Somebody has to look at it before it can go on."
        ),
    ),
    Reason.STALE_TICKET: (
        "No longer asked",
        f"The question that this answers is no longer asked. {UNUSED}",
    ),
    Reason.NOT_PARKED: (
        "Nothing waits for this answer",
        f"Nothing waits for this answer. {UNUSED}",
    ),
    Reason.SUPERSEDED: (
        "Gone on to something else",
        f"The run has gone on to something else since this was asked. {UNUSED}",
    ),
}
"""For each reason its title, and its sentence, which takes who and when (`by`) and what came of
it (`so`)."""

OUTCOMES: Final = {
    "finished": ", and everything that followed is done",
    "parked": ", and the next question has been asked since",
}
"""What became of an answer, as a part of that sentence."""

OTHERS: Final[tuple[tuple[type[RemitError], str, int, str, str], ...]] = (
    (
        StoreUnavailable,
        "store-unavailable",
        503,
        "Claims cannot be made just now",
        (
            "Whether this was answered before cannot be looked up just now, so nothing was done."
            " Send it again."
        ),
    ),
    (
        OutcomeUnknown,
        "outcome-unknown",
        503,
        "The claim was not acknowledged",
        (
            "The claim for this answer was sent and not acknowledged. Nothing was done."
            " Send it again; if it had come through, that ends by itself."
        ),
    ),
    (
        ClaimLost,
        "claim-lost",
        500,
        "Replaced while it ran",
        (
            "This answer was being handled, and stood still for so long that it was replaced."
            " See how the run stands now before anything else."
        ),
    ),
    (
        InvalidState,
        "invalid-state",
        422,
        "What it leads to is not allowed",
        "This leads to a state that is not allowed, so it was not kept.",
    ),
    (
        StoreError,
        "store-not-ready",
        500,
        "The store of claims is not ready",
        "The service's store of claims is not set up for it. Nothing was done.",
    ),
    (
        RemitError,
        "service-at-fault",
        500,
        "The service is at fault",
        "The service uses its gate in a way that means nothing. Nothing was done.",
    ),
)
"""For each other error the last part of its type, its status, its title and its sentence. The
first that fits is used."""
