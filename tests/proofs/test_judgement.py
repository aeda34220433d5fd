"""The LangGraph adapter's judgements, all of them on a small domain, and broken ones."""

from __future__ import annotations

import pytest

from remit_gates._model import Record
from tests.proofs.judgement import PENDING, Judgement, bold, breach, cases, records, trusting


def test_no_judgement_serves_what_it_should_not() -> None:
    seen = 0
    for case in cases(records(1, PENDING[1:2])):
        seen += 1
        assert breach(case) is None, case
    assert seen > 10_000


@pytest.mark.parametrize(
    ("judgement", "wrong"),
    [
        pytest.param(trusting, "an answer to an older checkpoint is not superseded", id="trusting"),
        pytest.param(bold, "a bare answer is bound", id="bold"),
    ],
)
def test_a_broken_judgement_is_caught(judgement: Judgement, wrong: str) -> None:
    assert wrong in {breach(case, judgement) for case in cases([Record()])}
