"""What a question compares, and whether it points back."""

from __future__ import annotations

import pytest

from api.pipeline.question.query_guard import compared_names, refers_back


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("plaud.ai vs ember mug?", ("plaud.ai", "ember mug")),
        ("What do people say about Plaud versus Otter.ai?", ("Plaud", "Otter.ai")),
        ("compare plaud.ai with the Ember mug", ("plaud.ai", "Ember mug")),
        ("Compare Notion, Obsidian, and Evernote", ("Notion", "Obsidian", "Evernote")),
        ("what is the difference between Whoop and Oura", ("Whoop", "Oura")),
        ("compare it with Otter", ("Otter",)),
        ("how does it compare to the Oura Ring", ("Oura Ring",)),
        ("how is it compared to the Oura Ring", ("Oura Ring",)),
        ("is it better than Best Buy?", ("Best Buy",)),
        ("compare it with X", ("X",)),
        ("小米手环 vs 华为手环", ("小米手环", "华为手环")),
        ("mug vs. mug", ("mug",)),
        ("compare it with that one", ()),
        ("is the battery better than before", ()),
        ("compare that", ()),
        ("it lasts more than a day", ()),
        ("What do people say about the Ember mug?", ()),
        ("", ()),
    ],
)
def test_names_that_are_compared(question: str, names: tuple[str, ...]) -> None:
    """As they are written, without the words of asking and what only points back."""
    assert compared_names(question) == names


@pytest.mark.parametrize(
    ("question", "points"),
    [("is it loud?", True), ("what do Its owners say", True), ("iTunes, item", False), ("", False)],
)
def test_what_points_back(question: str, points: bool) -> None:
    """A pronoun as a word of its own."""
    assert refers_back(question) is points
