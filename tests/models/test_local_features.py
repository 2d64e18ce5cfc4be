"""Every feature of one made-up page, pinned: the weights were fitted to these very numbers.

Whoever changes a feature on purpose trains anew (`scripts/training/train_local_judge.py`) and pins
again.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from api.core.domain import Question
from api.core.items import Item
from api.models.local.judge_features import Row, page
from api.models.local.parsed_text import Reading, topic_of
from api.models.local.word_vectors import Vectors, vectors
from api.pipeline.gate.excerpt import excerpt_of
from tests.models.items import item

QUESTION = Question("quill", "an app that turns meetings into notes")
ITEMS = (
    item("Quill meeting notes after a month", "Quill wrote good notes of every meeting."),
    item("A feather and ink", "My grandmother wrote letters with a quill every Sunday."),
    item("quill pens for school", "the Museum in Bath sells one, said Ann from Leeds"),
    item("Which note taker?", "I moved from Otter to Quill 2 and the notes are fine."),
    item("We are hiring", "Quill is looking for an engineer. Apply now, remote, full time."),
    item("monday.com or Quill?", "Prices rose. Use code INK20 for 20 % off, link in my bio."),
    item("", "sharpen the quill before you write", "so I said to Tom, Ann and Bob of Leeds"),
    item("Rain again", "Wind in the hills and rain on the roads all week."),
)


BY_WORDS = [
    {"like": 0.6, "named": 1, "named_like": 0.6, "sense": 1, "told": 0.5, "clear": 1},
    {"late": 1, "like": 0.2, "named": 1, "named_like": 0.2},
    {"like": 0.2, "named": 1, "named_like": 0.2, "small": 1},
    {
        "late": 1,
        "like": 0.4,
        "named": 1,
        "named_like": 0.4,
        "sense": 0.5,
        "told": 0.25,
    },
    {"job": 1, "late": 1, "like": 0.2, "named": 1, "named_like": 0.2},
    {"advert": 1, "like": 0.2, "named": 1, "named_like": 0.2},
    {"like": 0.2, "named": 1, "named_like": 0.2, "vague": 0.12},
    {},
]
BY_VECTORS = [
    {"clear": 1, "like": 0.7752, "named_like": 0.7752, "nearby": 0.6583, "sense": 0.6583},
    {"like": 0.4792, "named_like": 0.4792, "nearby": 0.0817, "sense": 0.1112},
    {"like": 0.4024, "named_like": 0.4024, "nearby": 0.0957},
    {"like": 0.5298, "named_like": 0.5298, "nearby": 0.2997, "sense": 0.3527},
    {"like": 0.2234, "named_like": 0.2234, "nearby": 0.048},
    {"like": 0.3473, "named_like": 0.3473, "nearby": 0.023},
    {"clear": 1, "like": 0.3999, "named_like": 0.3999, "nearby": 0.1414, "sense": 0.1414},
    {"like": 0.0052},
]
"""What vectors change; the other features do not ask them. The untitled text is near enough to the
description (`clear`) by vectors and shares no word with it (`vague`)."""
_LIKENESS = ("like", "named_like", "sense", "nearby", "setting", "vague", "clear")


def rows(items: Sequence[Item], source: str, known: Vectors | None) -> list[Row]:
    """The features of one page of items."""
    topic = topic_of(QUESTION.text, QUESTION.about)
    return page(topic, [Reading(topic, excerpt_of(QUESTION, entry)) for entry in items], source, known)


def measured(known: Vectors | None) -> list[dict[str, float]]:
    """The features of each item that are not nothing."""
    return [
        {name: value for name, value in row.items() if value and name != "lexical"}
        for row in rows(ITEMS, "reddit", known)
    ]


@pytest.mark.parametrize(
    ("title", "offered"),
    [("Case for Quill", 1.0), ("Quill 2, with a case for Quill", None), ("Quill 2", None)],
)
def test_what_is_made_for_the_thing_names_it_first_as_that(title: str, offered: float | None) -> None:
    """A shop's title that begins with the thing sells the thing."""
    (row,) = rows([item(title)], "amazon", None)

    assert (row["made_for"] or None) == offered


def test_without_vectors_the_features_are_these() -> None:
    """One item shows each: a name late in a text, in small letters, as a word of every day."""
    assert measured(None) == BY_WORDS


def test_with_vectors_the_likenesses_are_these() -> None:
    """How much a description speaks and an everyday name gives way stands in these numbers."""
    if (known := vectors()) is None:
        pytest.skip("word vectors are not installed")
    expected = [
        {name: value for name, value in row.items() if name not in _LIKENESS} | likenesses
        for row, likenesses in zip(BY_WORDS, BY_VECTORS, strict=True)
    ]
    for row, wanted in zip(measured(known), expected, strict=True):
        assert row == pytest.approx(wanted, abs=1e-3)
