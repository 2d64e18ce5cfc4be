"""Whole sentences."""

from __future__ import annotations

import pytest

from api.reports.quotes import sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Great lamp! It glows. Does it?", ["Great lamp!", "It glows.", "Does it?"]),
        ("Costs 4.50 vs. 5 there. Fine.", ["Costs 4.50 vs. 5 there.", "Fine."]),
        ("很好。亮！", ["很好。", "亮！"]),
        ("He said “no.” Then left.", ["He said “no.”", "Then left."]),
        ("Read https://example.com/x\nBright", ["Bright"]),
        ("0:00 intro\n#lamp #glow\nBright", ["Bright"]),
        ("0:00 intro 2:40 battery log", []),
        ("", []),
    ],
)
def test_a_text_is_its_sentences(text: str, expected: list[str]) -> None:
    """As they stand; addresses, chapters and rows of hashtags are none."""
    assert sentences(text) == expected
