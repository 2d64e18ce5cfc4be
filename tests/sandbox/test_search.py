"""How the sandbox searches."""

from __future__ import annotations

import pytest

from api.sandbox.corpus import posts
from api.sandbox.site_search import Index, tokens
from tests.sandbox.conftest import reddit_row


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plaud.ai", ["plaud", "ai"]),
        ("Café R1", ["café", "r1"]),
        ("小米手机", ["小米", "米手", "手机"]),
        ("水", ["水"]),
        ("اپل", ["اپل"]),
        ("!!!", []),
    ],
)
def test_words_of_any_script(text: str, expected: list[str]) -> None:
    """Words are words in every script; scripts without blanks give pairs."""
    assert tokens(text) == expected


def index(*rows: dict[str, object]) -> Index:
    """An index over rows."""
    return Index(posts(rows))


def test_any_word_is_enough_and_more_words_rank_higher() -> None:
    """A post with both words stands before one with a single word; others are not found."""
    found = index(reddit_row(1, "ai news"), reddit_row(2, "plaud ai pin"), reddit_row(3, "weather")).search("plaud.ai")

    assert [post.title for post in found] == ["plaud ai pin", "ai news"]


def test_fame_moves_a_post_up() -> None:
    """Of two equal texts the popular one comes first."""
    found = index(reddit_row(1, "glow lamp one", votes=1), reddit_row(2, "glow lamp two", votes=90_000)).search(
        "glow lamp"
    )

    assert [post.title for post in found] == ["glow lamp two", "glow lamp one"]


def test_a_quoted_phrase_must_stand_there() -> None:
    """With `exact` the words of a quoted phrase must follow each other."""
    shelf = index(reddit_row(1, "glow big lamp"), reddit_row(2, "big glow lamp"))

    assert [p.title for p in shelf.search('"glow lamp"', exact=True)] == ["big glow lamp"]
    assert len(shelf.search('"glow lamp"')) == 2


def test_words_of_asking_are_not_searched() -> None:
    """Common words find nothing beside a real one, but stand for themselves alone."""
    shelf = index(reddit_row(1, "what is it"), reddit_row(2, "glow"))

    assert [p.title for p in shelf.search("what is glow")] == ["glow"]
    assert [p.title for p in shelf.search("what is it")] == ["what is it"]
