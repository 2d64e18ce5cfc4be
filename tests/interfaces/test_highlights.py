"""Cited words in their text: found however they are spaced, and never changed."""

from __future__ import annotations

import pytest

from api.interfaces.pages.templates_rendering import highlighted


@pytest.mark.parametrize(
    ("passages", "cited"),
    [
        ([], []),
        (["keeps it warm"], ["keeps it warm"]),
        (["warm for hours. But"], ["warm\nfor hours. But"]),
        (["it warm", "warm for"], ["it warm\nfor"]),
        (["The mug", "hours"], ["The mug", "hours"]),
        (["nobody wrote this"], []),
        ([""], []),
        (["(loud)"], ["(loud)"]),
    ],
)
def test_passages_stand_out(passages: list[str], cited: list[str]) -> None:
    """Overlapping ones as one; all pieces together are the text."""
    text = "The mug keeps it warm\nfor hours. But (loud)."
    stretches = highlighted(text, passages)

    assert "".join(stretch.text for stretch in stretches) == text
    assert [stretch.text for stretch in stretches if stretch.cited] == cited
