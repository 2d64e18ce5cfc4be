"""Why there is no answer, in words."""

from __future__ import annotations

from api.core.display_names import OUTCOME_REASONS, reason_in_words
from api.core.domain import Outcome


def test_every_outcome_without_an_answer_has_words() -> None:
    """And no other."""
    assert {outcome for outcome in Outcome if not outcome.answered} == set(OUTCOME_REASONS)


def test_a_reason_is_read_in_words() -> None:
    """What is no code stays as it is; what nobody knows is said."""
    assert reason_in_words("http_error") == "an HTTP error"
    assert reason_in_words("the disk is full") == "the disk is full"
    assert reason_in_words(None) == "unknown"
