"""Two results side by side, and when one blocks a change."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from api.errors import UsageError
from api.evaluation.metrics import LabelledVerdict, compare, is_regression, tally

ALLOWED = -0.03


def result(judge: str, wrong: Sequence[int], items: int = 20, queries: int = 30) -> dict[str, Any]:
    """A result in which each query has so many wrong verdicts, by turns."""
    draw = Random(7)
    rows = {}
    for number in range(queries):
        labels = [at % 2 == 0 for at in range(items)]
        missed = set(draw.sample(range(items), wrong[number % len(wrong)]))
        verdicts = [LabelledVerdict(t, t != (at in missed)) for at, t in enumerate(labels)]
        rows[f"q{number}"] = {"family": "f", "tally": list(tally(verdicts))}
    return {"judge": judge, "queries": rows}


BEFORE = result("before", [2, 3, 4])


@pytest.mark.parametrize(
    ("after", "worse"),
    [
        ([6, 7, 8], True),
        ([3, 2, 4], False),
        ([2, 3, 5], False),
        ([0, 1, 1], False),
        ([2, 3, 4], False),
    ],
    ids=["clear regression", "noise", "within what is allowed", "improvement", "the same"],
)
def test_only_a_certain_loss_is_a_regression(after: list[int], worse: bool) -> None:
    """That is when the whole interval lies below what is allowed."""
    comparison = compare(result("after", after), BEFORE)
    mcc = comparison["overall"]["mcc"]

    assert is_regression(comparison, ALLOWED) is worse
    assert (mcc["high"] < ALLOWED) is worse


def test_a_loss_that_is_certain_may_still_be_allowed() -> None:
    """What counts is by how much it is lower for certain."""
    comparison = compare(result("after", [6, 7, 8]), BEFORE)

    assert is_regression(comparison, 0)
    assert not is_regression(comparison, -0.9)


def test_without_an_interval_nothing_is_decided() -> None:
    """One query has none: that is said, never passed over."""
    one = result("one", [1], queries=1)
    with pytest.raises(UsageError, match="no interval"):
        is_regression(compare(one, one), ALLOWED)


def test_what_was_not_answered_by_both_counts_for_none() -> None:
    """A judge does not gain by failing where it is hard; what is left out is counted."""
    after = result("after", [2, 3, 4])
    after["queries"]["q0"] = result("", [0], items=10, queries=1)["queries"]["q0"]
    del after["queries"]["q1"]
    after["queries"]["new"] = after["queries"]["q2"]
    comparison = compare(after, BEFORE)

    counts = [comparison[key] for key in ("queries", "unpaired", "missing", "changed")]
    assert counts == [28, 1, 1, 1]
    assert comparison["overall"]["mcc"]["difference"] == 0


def test_nothing_in_common_is_refused() -> None:
    """Neither by name nor by items."""
    other = result("", [0], items=10)
    for foreign in (other, {**other, "queries": {"x": other["queries"]["q0"]}}):
        with pytest.raises(UsageError, match="share no query"):
            compare(BEFORE, foreign)
