"""Words that stand out in a text."""

from __future__ import annotations

import pytest

from api.interfaces.pages.templates_rendering import asked_for


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
