"""A name in all its spellings, words that only look like it, and its other versions."""

from __future__ import annotations

import pytest

from api.core.words import joined_pieces, split_words, stem
from api.pipeline.gate.name_matches import (
    BRAND,
    MODEL,
    NEARLY,
    PART,
    WHOLE,
    Sighting,
    best,
    name_of,
    other_version,
    sightings,
)


def seen(query: str, text: str, about: str = "") -> Sighting:
    """The best sighting of a queried name in a text."""
    return best(sightings(name_of(query, about), split_words(text), text))


def another(query: str, text: str) -> bool:
    """Whether a text speaks of another version only."""
    name, words = name_of(query), split_words(text)
    return other_version(name, words, sightings(name, words, text))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("plaud.ai", "My Plaud broke"),
        ("plaud.ai", "plaud ai is fine"),
        ("plaud.ai", "PlaudAI!"),
        ("plaud.ai", "see #plaudai"),
        ("plaud.ai", "on www.plaud.ai/shop"),
        ("plaud ai", "My Plaud broke"),
        ("“plaud.ai”", "two plauds"),
        ("ZorvexAI", "ZorvexAI again"),
        ("Plaud", "the PlaudNote in my pocket"),
        ("monday", "we are on monday.com"),
        ("Oura", "Oura’s app"),
        ("Oura", "better than OuraRing"),
        ("Oura", "better than ouraring"),
        ("Red Dead Redemption 2", "Red-Dead Redemption 2"),
        ("Assassin's Creed", "assassins creed"),
        ("Dota 2", "dota2"),
        ("Dota 2", "DotA 2"),
        ("Diablo 4", "Diablo IV"),
        ("PlayStation", "play station five"),
        ("Apex Legends", "@PlayApexLegends fix it"),
        ("Pokémon", "POKEMON cards"),
        ("Rabbit r1", "my rabbit R1"),
        ("Python 3.12", "on python 3.12 now"),
        ("小米", "我買了小米手機"),
        ("카카오", "카카오톡이 안 돼요"),
        ("نون", "طلبت من نون أمس"),
        ("ソニー", "ｿﾆｰのカメラ"),
    ],
)
def test_the_whole_name_is_found(query: str, text: str) -> None:
    """However it is written, with a strength of one."""
    assert seen(query, text).strength == WHOLE


@pytest.mark.parametrize(
    ("query", "text", "strength"),
    [
        ("Red Dead Redemption 2", "rdr2 tonight", MODEL),
        ("Call of Duty", "COD again", MODEL),
        ("Call of Duty", "a cod in batter", 0.0),
        ("Acme WH-1000XM5", "the XM5 folds no more", MODEL),
        ("Tesla Model Y", "our Model Y", MODEL),
        ("Arc browser", "Arc is slow", PART),
        ("New England Revolution", "New England won", PART),
        ("Echo Dot", "the Echo Show", BRAND),
        ("Activision", "activison did it", NEARLY),
        ("Activision", "activation", 0.0),
        ("Zorvex", "ask @thezorvexfans", PART),
    ],
)
def test_a_part_of_the_name_counts_less(query: str, text: str, strength: float) -> None:
    """Initials, the model alone, one letter off, the name without its kind, the brand."""
    assert seen(query, text).strength == strength


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("plaud.ai", "we applaud it"),
        ("Oura", "ourang and ourania"),
        ("Arc", "search the archive"),
        ("Ember mug", "September, December"),
        ("小米", "大米和小麦"),
        ("HP", "the graph paper"),
        ("Dota 2", "2 of them"),
    ],
)
def test_parts_of_other_words_are_not_the_name(query: str, text: str) -> None:
    """Letters inside a longer word are no sighting, nor is a bare figure."""
    assert seen(query, text).strength == 0


@pytest.mark.parametrize(
    ("query", "about", "text"),
    [
        ("小米", "Xiaomi, the maker of phones", "my Xiaomi phone"),
        ("リング", "the fitness game (Ring Fit, RFA)", "RFA every day"),
    ],
)
def test_a_description_gives_other_names(query: str, about: str, text: str) -> None:
    """What it says before its first comma, and in brackets."""
    assert seen(query, text, about).strength == WHOLE
    assert not seen(query, text).strength


@pytest.mark.parametrize("about", ["the game of 2013", "Zorvex, a maker (2013)", "app, notes", ""])
def test_a_phrase_a_year_or_a_kind_is_no_other_name(about: str) -> None:
    """A description that begins with an article or a kind of thing names nothing."""
    forms = {form for form, _ in name_of("Zorvex", about).forms}
    assert forms == {form for form, _ in name_of("Zorvex").forms}


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("acme S2 Pro", "my acme S1 Pro leaks", True),
        ("acme S2 Pro", "S2 Pro against S1 Pro", False),
        ("Acme WH-1000XM5", "the XM4 are better", True),
        ("Pixel 9a", "Pixel 8a in hand", True),
        ("Pixel 9", "Pixel 9a in hand", True),
        ("Pixel 9", "Pixel 9 Pro in hand", True),
        ("Pixel 9", "Pixel 9 in hand", False),
        ("Pixel 9", "I got a Pixel 9", False),
        ("Python 3.12", "Python 3.14 is out", True),
        ("AirPods Max", "AirPods Max 2", True),
        ("AirPods Max", "AirPods Pro", True),
        ("AirPods Max", "AirPods, 2 of them", False),
        ("Surface", "Surface Pro", False),
        ("Zorvex", "nothing of the kind", False),
    ],
)
def test_other_versions_are_told_apart(query: str, text: str, expected: bool) -> None:
    """By their codes and tiers, where the question names one."""
    assert another(query, text) is expected


@pytest.mark.parametrize(
    ("query", "codes"),
    [
        ("Oura Ring 4", {"ring4"}),
        ("X 20 Pro", {"x20"}),
        ("WH-1000XM5", {"1000xm5", "xm5"}),
        ("42 Bottles", set()),
        ("4", set()),
        ("Plaud", set()),
    ],
)
def test_a_bare_figure_is_a_code_with_the_word_before_it(query: str, codes: set[str]) -> None:
    """`4` alone is any four."""
    assert name_of(query).codes == codes


def test_a_names_own_words_are_its_words_and_spellings() -> None:
    """What is left of a text without them says what is meant."""
    assert {"ember", "mug", "embermug", "embermugs"} <= name_of("Ember mugs").own


def test_sightings_come_in_order_and_the_first_of_equals_is_best() -> None:
    """Their places are those of the text."""
    text = "Plaud, then plaud.ai: 2 plauds"
    found = sightings(name_of("Plaud"), split_words(text), text)
    assert [sighting.start for sighting in found] == [0, 12, 24]
    assert best(found).start == 0


def test_a_name_in_running_text_stands_where_it_stands() -> None:
    """Where a script has no blanks, and where a letter falls apart when folded."""
    text = "我買了小米手機, 小米"
    found = sightings(name_of("小米"), split_words(text), text)
    assert [text[sighting.start :][:2] for sighting in found] == ["小米", "小米"]


@pytest.mark.parametrize("text", ["", " ", "???", "\u200d", "🙂", "\ufffd", "of the"])
def test_odd_texts_hold_no_name(text: str) -> None:
    """Nothing to read is nothing found, on either side."""
    assert seen("Notion", text).strength == 0
    assert seen(text, "Notion").strength == 0


def test_words_are_pieces_with_their_place() -> None:
    """A change of case or to figures ends one; handles are marked; Roman numbers are figures."""
    words = split_words("@PlaudNote XM5 IV")
    assert [word.text for word in words] == ["plaud", "note", "xm", "5", "4"]
    assert [word.marked for word in words] == [True, True, False, False, False]
    assert [(word.start, word.end) for word in words][:2] == [(1, 6), (6, 10)]
    assert joined_pieces("WH-1000 XM5") == "wh1000xm5"


@pytest.mark.parametrize(
    ("word", "bare"),
    [("batteries", "battery"), ("mugs", "mug"), ("bus", "bus"), ("class", "class")],
)
def test_a_plural_is_cut_off(word: str, bare: str) -> None:
    """But not what only looks like one."""
    assert stem(word) == bare
