"""Words that stand out in a text."""

from __future__ import annotations

import pytest

from api.interfaces.pages.templates_rendering import asked_for, unmarked


@pytest.mark.parametrize(
    ("text", "question", "marked"),
    [
        ("Its Batteries died; the battery’s gone", "battery life", ["Batteries", "battery"]),
        ("that cat", "a cat", ["cat"]),
        ("小米手环很好 battery", "手环", ["小米手环很好"]),
        ("nothing of it", "mug", []),
        ("", "mug", []),
    ],
)
def test_words_of_the_question_are_marked(text: str, question: str, marked: list[str]) -> None:
    """In whichever form the index knows them, whole, and no letter of the text is lost."""
    stretches = asked_for(text, question)
    assert [stretch.text for stretch in stretches if stretch.cited] == marked
    assert "".join(stretch.text for stretch in stretches) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**Money:** 329 + 314", "Money: 329 + 314"),
        ("run `pull --since` *now*", "run pull --since now"),
        ("2 * 3 * 4 and config_entry_id", "2 * 3 * 4 and config_entry_id"),
        ("cut at **the end", "cut at **the end"),
        ("<b>**x**</b>", "<b>x</b>"),
    ],
)
def test_a_quote_is_shown_without_marks_of_markdown(text: str, shown: str) -> None:
    """Those that stand in pairs; what else uses the same signs stays."""
    assert unmarked(text) == shown
