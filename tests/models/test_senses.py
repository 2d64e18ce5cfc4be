"""Senses of a name: groups of items about the same thing, found without a model."""

from __future__ import annotations

import random

import pytest

from api.core.domain import Question
from api.core.items import Item
from api.models.local.senses import find_senses
from api.models.local.word_vectors import vectors

pytestmark = pytest.mark.skipif(vectors() is None, reason="word vectors have no wheel here")
# Two things named Arc, written for this test.
BROWSER = (
    ("Arc sidebar keeps my tabs in order", "I switched browsers and the vertical tabs are great."),
    ("Which browser has spaces like Arc?", "Chrome and Firefox have no spaces in the sidebar."),
    ("Arc profiles for work tabs", "The browser opens every window with another profile."),
    ("Leaving Chrome for the Arc browser", "Extensions work, and the tabs close by themselves."),
    ("Arc sync between two computers", "The sidebar and its tabs came back in the browser."),
)
GAME = (
    ("Arc Raiders lobby is full", "Players wait for matchmaking before every map of the game."),
    ("Best weapon in Arc Raiders?", "My squad lost the map to players with better loot."),
    ("Arc Raiders needs a duo mode", "The matchmaking puts me against squads of three players."),
    ("New map for Arc this week", "The game brings loot and weapons for players in the north."),
    ("Arc extraction is unfair", "Players camp the exit of the map and take all the loot."),
)
ARC = Question("Arc")


def items(*texts: tuple[str, str], place: str | None = None) -> list[Item]:
    """One item a text."""
    return [
        Item(key=f"reddit:{at}", id=str(at), source="reddit", title=title, body=body, place=place)
        for at, (title, body) in enumerate(texts)
    ]


def test_two_things_are_told_apart() -> None:
    """Each has its own items, words that the other lacks, and two titles that it holds."""
    found = find_senses(ARC, items(*BROWSER, *GAME), {"reddit:0", "reddit:1", "reddit:7"})

    assert [sense.number for sense in found] == [1, 2]
    browser = next(sense for sense in found if "browser" in sense.words)
    game = next(sense for sense in found if sense is not browser)
    assert (browser.count, game.count) == (5, 5)
    assert (browser.kept, game.kept) == (2, 1)
    assert {"map", "players"} & set(game.words)
    assert not set(game.words) & set(browser.words)
    assert set(browser.titles) <= {title for title, _ in BROWSER}
    assert len(browser.titles) == len(game.titles) == 2
    assert not any("arc" in words for sense in found for words in sense.words)


def test_the_order_of_items_changes_no_group() -> None:
    """The groups are the same; equal ones are numbered as they come."""
    mixed = items(*BROWSER, *GAME)
    plain = {sense.words for sense in find_senses(ARC, mixed)}
    random.Random(3).shuffle(mixed)

    assert {sense.words for sense in find_senses(ARC, mixed)} == plain


@pytest.mark.parametrize(
    ("question", "found"),
    [
        (Question("Arc", about="the browser"), items(*BROWSER, *GAME)),
        (ARC, items(*BROWSER)),
        (ARC, items(*BROWSER[:2], *GAME[:2])),
        (ARC, items(*[BROWSER[0]] * 6, *[GAME[0]] * 6)),
        (ARC, []),
        (ARC, items(*[("", "")] * 12)),
        (ARC, items(*[(f"12 {n} 🙂", "http://a.example/?q=1") for n in range(12)])),
    ],
    ids=["described", "one thing", "too few", "copies", "nothing", "empty", "no words"],
)
def test_no_meanings_are_made_up(question: Question, found: list[Item]) -> None:
    """Where the question says which, one thing is found, or too little tells things apart."""
    assert find_senses(question, found) == ()


def test_a_long_list_is_bounded() -> None:
    """Of thousands of items the first ones are compared, each title once."""
    many = [(f"{title} {n}", body) for n in range(200) for title, body in (*BROWSER, *GAME)]

    assert sum(sense.count for sense in find_senses(ARC, items(*many))) <= 150
