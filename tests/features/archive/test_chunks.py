"""How an item is cut into the pieces that are searched."""

from __future__ import annotations

from datetime import UTC, datetime

from api.features.archive.index_words import LONGEST_CHUNK, MOST_CHUNKS, TITLE, chunked, comment_of
from tests.features.archive.made import comment, facts

KEY = "reddit:t3_1stck6g"
EARLY, LATE = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC)


def test_text_and_comments_are_entries_of_their_own() -> None:
    """Each under the item's title, with its own date or the item's."""
    dated = comment("It \n leaks.", created_at=LATE)
    item = facts(body="Warm.", comments=(dated, comment("", "c2"), comment("Same.", "c3")),
                 title=" My\nmug ", created_at=EARLY)  # fmt: skip

    chunks = chunked(item)

    assert [(c.id, c.full_text, c.created_at) for c in chunks] == [
        (("reddit:t3_1", "", 0), "My mug\nWarm.", EARLY),
        (("reddit:t3_1", "1", 0), "My mug\nIt leaks.", LATE),
        (("reddit:t3_1", "3", 0), "My mug\nSame.", EARLY),
    ]
    assert [comment_of(item, chunk) for chunk in chunks] == [None, dated, item.comments[2]]


def test_first_pieces_have_names_that_nothing_else_has() -> None:
    """A question that is a key finds the item, one that is a comment's id that comment."""
    long = "word " * 300
    remarks = (comment(long, "ns769h0"), comment("Same.", "7"), comment("Same.", ""))

    named = [(c.id[1:], c.name) for c in chunked(facts(KEY, body=long, comments=remarks))]
    short = chunked(facts("items:12", title="", body="Warm."))

    assert named == [
        (("", 0), KEY), (("", 1), ""), (("1", 0), "ns769h0"), (("1", 1), ""), (("2", 0), ""),
        (("3", 0), ""),
    ]  # fmt: skip
    assert [(c.name, c.index_text) for c in short] == [("", "Warm.\n")]
    assert chunked(facts(KEY, title="", body="Warm."))[0].index_text == f"Warm.\n{KEY}"


def test_comments_with_equal_or_empty_ids_stay_apart() -> None:
    """No two pieces of an item have one id, whatever a person's file calls its comments."""
    item = facts(comments=(comment("a", ""), comment("b", "c"), comment("c", "c")))

    chunks = chunked(item)

    assert len({chunk.id for chunk in chunks}) == len(chunks) == 4
    assert [comment_of(item, chunk) for chunk in chunks[1:]] == list(item.comments)


def test_item_without_any_text_is_not_indexed() -> None:
    """A title alone is; so is a comment without a title, which begins with its words."""
    assert chunked(facts(title=" ", body="\n")) == []
    assert [c.full_text for c in chunked(facts(title="Mug", body=""))] == ["Mug"]
    bare = chunked(facts(title="", body="", comments=(comment("Me too"),)))
    assert [(c.comment, c.full_text) for c in bare] == [("1", "Me too")]


def test_long_text_is_cut_between_words() -> None:
    """Pieces are as long as may be, and together hold every word."""
    words = [f"word{number}" for number in range(400)]

    pieces = [chunk.text for chunk in chunked(facts(body=" ".join(words)))]

    assert " ".join(pieces).split() == words
    assert all(LONGEST_CHUNK - 10 < len(piece) <= LONGEST_CHUNK for piece in pieces[:-1])
    assert [chunk.part for chunk in chunked(facts(body=" ".join(words)))] == [0, 1, 2, 3]


def test_text_without_blanks_is_cut_at_the_limit() -> None:
    """So is one whose only blank stands in the first half of a piece."""
    assert [len(c.text) for c in chunked(facts(body="字" * 2500))] == [
        LONGEST_CHUNK,
        LONGEST_CHUNK,
        500,
    ]
    assert [len(c.text) for c in chunked(facts(body="a " + "字" * 1500))] == [LONGEST_CHUNK, 502]


def test_book_in_a_post_is_searched_up_to_a_bound() -> None:
    """So is a title of a million letters."""
    chunks = chunked(facts(title="t" * 1_000_000, body="word " * 1_000_000))

    assert len(chunks) == MOST_CHUNKS
    assert all(len(chunk.title) == TITLE for chunk in chunks)
