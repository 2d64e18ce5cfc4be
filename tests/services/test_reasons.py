"""Why there is no answer, in words."""

from __future__ import annotations

import re
from pathlib import Path

from api.services.reasons import MODEL_REASONS, WHY, reason_in_words
from api.services.schemas import Outcome

ERRORS = Path(__file__).parents[2] / "docs" / "errors.md"


def test_every_code_that_is_documented_has_words() -> None:
    """And no other."""
    _, _, reasons = ERRORS.read_text("utf-8").partition("\n## Reasons\n")
    section, _, _ = reasons.partition("\n## ")

    assert set(re.findall(r"^### `(\w+)`$", section, re.M)) == set(MODEL_REASONS)
    assert {outcome for outcome in Outcome if not outcome.answered} == set(WHY)


def test_a_reason_is_read_in_words() -> None:
    """What is no code stays as it is; what nobody knows is said."""
    assert reason_in_words("http_error") == "an HTTP error"
    assert reason_in_words("the disk is full") == "the disk is full"
    assert reason_in_words(None) == "unknown"
