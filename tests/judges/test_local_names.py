"""A name in all its spellings, and words that only look like it."""

from __future__ import annotations

import pytest
from api.judges.local_names import Sighting, aliased, name_of, sight, split

from api.judges.local_marks import common_use


def seen(query: str, text: str, about: str = "") -> Sighting:
    """The best sighting of a queried name in a text."""
    return sight(name_of(query, about), split(text), text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("plaud.ai", "My Plaud broke"),
        ("plaud.ai", "plaud ai is fine"),
        ("plaud.ai", "PlaudAI!"),
        ("plaud.ai", "see #plaudai"),
        ("plaud.ai", "ask @plaud_ai"),
        ("plaud.ai", "on www.plaud.ai/shop"),
        ("plaud ai", "My Plaud broke"),
        ("ZorvexAI", "zorvex again"),
        ("Plaud", "the PlaudNote in my pocket"),
        ("Oura", "Oura’s app"),
        ("Red Dead Redemption 2", "RDR2 tonight"),
        ("Red Dead Redemption 2", "rdr2 tonight"),
        ("Red Dead Redemption 2", "Red-Dead Redemption 2"),
        ("Call of Duty", "COD again"),
        ("Assassin's Creed", "assassins creed"),
        ("Dota 2", "dota2"),
        ("Dota 2", "DotA 2"),
        ("Black Ops Cold War", "Black Ops: Cold War"),
        ("PlayStation", "play station five"),
        ("Apex Legends", "@PlayApexLegends fix it"),
        ("Pokémon", "POKEMON cards"),
        ("Rabbit r1", "my rabbit R1"),
        ("小米", "我買了小米手機"),
        ("카카오", "카카오톡이 안 돼요"),
        ("نون", "طلبت من نون أمس"),
        ("ソニー", "ｿﾆｰのカメラ"),
    ],
)
def test_the_whole_name_is_found(query: str, text: str) -> None:
    """However it is written, with a strength near one."""
    assert seen(query, text).strength >= 0.9


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("plaud.ai", "we applaud it"),
        ("Oura", "ourang and ourania"),
        ("Arc", "search the archive"),
        ("Ember mug", "September, December"),
        ("Red Dead Redemption 2", "a red car, dead battery"),
        ("Call of Duty", "a cod in batter"),
        ("小米", "大米和小麦"),
        ("HP", "the graph paper"),
    ],
)
def test_parts_of_other_words_are_not_the_name(query: str, text: str) -> None:
    """Letters inside a longer word are no sighting."""
    assert seen(query, text).strength < 0.5


def test_a_part_of_the_name_counts_less() -> None:
    """Arc without the browser is weaker than with it."""
    assert seen("Arc browser", "Arc browser 2").strength == 1.0
    assert seen("Arc browser", "Arc is slow").strength == 0.6


def test_an_inflected_name_counts_where_it_has_a_capital() -> None:
    """Finnish hangs a case ending on the name; in small letters it is another word."""
    assert seen("Plaud", "Plaudin akku").strength == 0.7
    assert seen("Plaud", "plaudin akku").strength == 0.0


def test_a_description_gives_other_names() -> None:
    """What it begins with is a name of the thing; other proper names are its company."""
    about = "Xiaomi, the maker of phones, with HyperOS"
    assert seen("小米", "my Xiaomi phone", about).strength == 1.0
    assert not seen("小米", "my Xiaomi phone").strength
    known = name_of("Arc browser", "the web browser by The Browser Company")
    assert aliased(known, split("they say the Browser Company sold it"))
    assert not aliased(known, split("a browser company"))


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("Notion", True),
        ("plaud.ai", True),
        ("Bolt app", True),
        ("Rabbit r1", True),
        ("小米", True),
        ("bass guitar", False),
        ("Colorado wildfires", False),
        ("flamenco vs classical guitarist pricing", False),
    ],
)
def test_names_are_told_from_topics(query: str, named: bool) -> None:
    """By capitals, digits, a web ending or a script of their own."""
    assert name_of(query).named is named


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("Notion", "I put it all into Notion yesterday.", 0.0),
        ("Notion", "The very notion of it. I Laughed.", 1.0),
        ("Monday", "See you next Monday!", 0.7),
        ("Whoop", "@whoop help", 0.0),
        ("bass", "a bass in the lake", 0.0),
    ],
)
def test_everyday_use_of_a_name_is_seen(query: str, text: str, expected: float) -> None:
    """Small letters, an article, a date; a topic is no name and cannot be misused."""
    words = split(text)
    name = name_of(query)
    used = common_use(sight(name, words, text), words, named=name.named)
    assert used == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", " ", "???", "\u200d", "🙂", "\ufffd"])
def test_odd_texts_hold_no_name(text: str) -> None:
    """Nothing to read is nothing found, on either side."""
    assert seen("Notion", text).count == 0
    assert seen(text, "Notion").count == 0
