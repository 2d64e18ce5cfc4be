"""Which communities bear a name, and which merely begin with its letters."""

from __future__ import annotations

import pytest

from api.pipeline.gate.name_matches import is_community_of, name_of


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("Notion", "r/Notion"), ("Notion", "notion"), ("Arc", "ArcApp"), ("Square", "r/squareHQ"),
        ("Linear", "r/LinearUsers"), ("monday", "r/mondaydotcom"), ("Bolt", "r/TheBoltCommunity"),
        ("ftl", "r/ftlgame"), ("Plaud", "PlaudNote"), ("Anki", "r/ankimcat"),
        ("Rain Bird", "Rain Bird Official"), ("Zorvex", "Zorvex Fans"), ("小米", "小米"),
    ],
)  # fmt: skip
def test_the_whole_name_alone_or_with_a_companion(query: str, place: str) -> None:
    """A name that is no everyday word may be followed by anything."""
    assert is_community_of(name_of(query), place)


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("Arc", "r/arcane"), ("Arc", "r/ArcRaiders"), ("Linear", "r/LinearAlgebra"),
        ("Square", "r/squaredcircle"), ("Dove", "r/DoveCameron"), ("Monday", "Monday Motivation"),
        ("Plaud", "r/applause"), ("HP", "hpux"), ("Notion", ""), ("Notion", "r/productivity"),
    ],
)  # fmt: skip
def test_other_words_that_begin_with_its_letters(query: str, place: str) -> None:
    """They are communities of something else."""
    assert not is_community_of(name_of(query), place)


def test_a_word_of_the_description_is_a_companion() -> None:
    """`browser` is a kind of thing, `fastener` a word of the description."""
    assert is_community_of(name_of("Arc"), "r/ArcBrowser")
    assert not is_community_of(name_of("Bolt"), "r/boltfasteners")
    assert is_community_of(name_of("Bolt"), "r/boltfasteners", frozenset({"fastener"}))
