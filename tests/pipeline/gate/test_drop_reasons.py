"""Why something was dropped, in words, and what of them the judge gave."""

from __future__ import annotations

import pytest

from api.core.domain import Verdict, drop_reason, judge_reason


@pytest.mark.parametrize(
    ("verdict", "words", "given"),
    [
        (Verdict(False, "m"), "judged off topic by m", ""),
        (Verdict(False), "judged off topic by the gate", ""),
        (Verdict(False, "m", 0.07), "judged off topic by m (7 % likely)", ""),
        (Verdict(False, "m", reason="names no mug"), "names no mug", "names no mug"),
        (
            Verdict(False, "m", 0.071, reason="names no mug"),
            "names no mug (7 % likely)",
            "names no mug",
        ),
    ],
)
def test_a_reason_is_told_from_what_stands_beside_it(verdict: Verdict, words: str, given: str) -> None:
    """Judge and likelihood are fields of their own; who said yes or no alone gave no reason."""
    assert drop_reason(verdict) == words
    assert judge_reason(words, verdict.judge or None, verdict.probability) == given
