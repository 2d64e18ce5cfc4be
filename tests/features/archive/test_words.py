"""The index's own words, and how well they fit."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.core.words import LONGEST_WORD, index_tokens
from api.features.archive.index_words import K1, USUAL_LENGTH, B, bm25


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The batteries of my mugs", ["battery", "mug"]),
        ("Ember's MUG² café", ["ember", "mug2", "cafe"]),
        ("ember’s, but its’sound", ["ember", "sound"]),
        ("rtx4090 t3_1a v2.1", ["rtx4090", "t3", "1a", "v2", "1"]),
        ("me@example.org app.log", ["example", "org", "app", "log"]),
        ("小米手环", ["小米", "米手", "手环"]),
        ("小米", ["小米"]),
        ("米", ["米"]),
        ("iPhone15充電器abc", ["iphone15", "充電", "電器", "abc"]),
        ("コーヒー", ["コー", "ーヒ", "ヒー"]),
        ("ｶﾌﾟ", ["カプ"]),
        ("กาแฟ", ["กา", "าแ", "แฟ"]),
        ("머그컵 좋아요", ["머그컵", "좋아요"]),
        ("Плауд ΚΑΦΈΣ", ["плауд", "καφεσ"]),
        ("ß STRASSE Straße", ["ss", "strasse", "strasse"]),
        ('!?. -- \' \\ & :* | () "" <->', []),
        ("\x00a\x00 \ud83d b\ud83d", ["b"]),
        ("👍🏽 \u200d", []),
        ("x" * 100, ["x" * LONGEST_WORD]),
        ("", []),
    ],
)
def test_text_has_these_words(text: str, words: list[str]) -> None:
    """Folded, in the singular, without the smallest; in pairs where a script has no blanks."""
    assert index_tokens(text) == words


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_text_has_the_words_that_it_has_beside_others(text: str) -> None:
    """English goes a shorter way, to the same words."""
    assert index_tokens(f"{text} 米") == [*index_tokens(text), "米"]


@pytest.mark.parametrize("text", ["Plaud's Batteries", "小米手环と", "ΚΑΦΈΣ ÉCOLES", "İstanbul ẞ"])
def test_words_have_words_that_are_themselves(text: str) -> None:
    """What is found by a word is found by it as it is written in the index."""
    assert [word for written in index_tokens(text) for word in index_tokens(written)] == index_tokens(text)


def rarity(entries: int, holding: int) -> float:
    """As Robertson has it."""
    return math.log(1 + (entries - holding + 0.5) / (holding + 0.5))


def test_score_is_bm25() -> None:
    """Computed by hand: twice `mug` and once `lid` in four tokens."""
    length = 1 - B + B * 4 / USUAL_LENGTH
    mug = rarity(100, 10) * 2 * (K1 + 1) / (2 + K1 * length)
    lid = rarity(100, 5) * 1 * (K1 + 1) / (1 + K1 * length)

    score = bm25(["mug", "lid", "cup"], ["mug", "lid", "mug", "a"], {"mug": 10, "lid": 5}, 100)

    assert score == pytest.approx(mug + lid)


def test_score_grows_with_rarity_and_falls_with_length() -> None:
    """A word asked twice counts once; no common word is nothing; scores are never negative."""
    entry = ["mug", "x", "y"]

    assert bm25(["mug"], entry, {"mug": 1}, 100) > bm25(["mug"], entry, {"mug": 50}, 100) > 0
    assert bm25(["mug"], entry + ["z"] * 99, {"mug": 1}, 9) < bm25(["mug"], entry, {"mug": 1}, 9)
    assert bm25(["mug", "mug"], entry, {"mug": 1}, 9) == bm25(["mug"], entry, {"mug": 1}, 9)
    assert bm25(["cup"], entry, {"cup": 1}, 9) == bm25([], entry, {}, 9) == 0
    assert bm25(["mug"], entry, {"mug": 50}, 9) > 0, "more entries hold it than were counted"
    assert bm25(["mug"], entry, {}, 0) > 0
