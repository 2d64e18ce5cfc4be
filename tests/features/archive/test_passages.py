"""The words of an entry that answer best."""

from __future__ import annotations

from collections.abc import Sequence

from api.features.archive.index_words import chunked
from api.features.archive.search import passage_of
from api.features.archive.search_ranking import cosines
from api.reports.report import LONGEST_PASSAGE
from tests.features.archive.made import comment, embed, facts, no_vectors, vector

UP = vector(100, 0)
"""Of a question."""


def turning(texts: Sequence[str]) -> list[bytes]:
    """What says `near` points up nearly as the question does, all else aside."""
    return [vector(96, 28) if "near" in text else vector(0, 100) for text in texts]


def test_sentence_with_most_words_of_the_question_is_shown_as_it_stands() -> None:
    """Blanks and all; of equal ones the nearest, else the first."""
    item = facts(body="It is a mug. The  battery\tdied. The battery is near. Bye.")
    (chunk,) = chunked(item)

    assert passage_of("battery died", None, chunk, item, no_vectors) == "The  battery\tdied."
    assert passage_of("battery", UP, chunk, item, turning) == "The battery is near."
    assert passage_of("battery", None, chunk, item, turning) == "The  battery\tdied."
    assert passage_of("battery", UP, chunk, item, no_vectors) == "The  battery\tdied."
    assert passage_of("lid", UP, chunk, item, embed) == "It is a mug."


def test_comment_is_quoted_from_itself() -> None:
    """Of two with one id the one that was found."""
    item = facts(body="The lid is fine.", comments=(comment("The lid broke."), comment("A lid.")))

    quoted = [passage_of("lid", None, chunk, item, no_vectors) for chunk in chunked(item)]

    assert quoted == ["The lid is fine.", "The lid broke.", "A lid."]


def test_sentence_stands_in_the_piece_that_was_found() -> None:
    """Not elsewhere in a long text."""
    item = facts(body=("The lid broke. " + "word " * 250 + "The end. ") * 2)

    last = chunked(item)[-1]
    assert passage_of("end lid", None, last, item, no_vectors) in last.text


def test_item_without_a_sentence_is_quoted_from_its_beginning() -> None:
    """Whole words of a text without an end, a script without blanks cut, or the title."""
    long = facts(body="word " * 500)
    unspaced = facts(body="字" * 500)
    bare = facts(title="My\nmug", body="")
    link = facts(body="https://example.org/1")

    begun = [passage_of("mug", UP, chunked(i)[0], i, embed) for i in (long, unspaced, bare, link)]

    assert begun == [
        ("word " * 40).strip(), "字" * LONGEST_PASSAGE, "My mug", "https://example.org/1",
    ]  # fmt: skip


def test_likeness_is_that_of_directions() -> None:
    """Signed bytes, of any length; nothing is like a vector of zeros."""
    others = [vector(96, 28), vector(-50, 0), vector(0, 7), vector()]

    assert [round(c, 6) for c in cosines(vector(100, 0), others)] == [0.96, -1.0, 0.0, 0.0]
    assert cosines(vector(), others) == [0.0] * 4
