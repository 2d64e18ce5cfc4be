"""Whether anything of what was found is about the question at all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from api.features.archive.index_words import ORDINARY, held_share, holds_phrase, quoted_phrases
from api.features.archive.search_ranking import Scored, above_floors, score_matches
from api.features.archive.search_values import FloorCounts, Match, Matches
from api.settings import RetrievalSettings

MANY = 10 * ORDINARY


def test_a_word_that_nothing_holds_weighs_most() -> None:
    """So a question about what was never heard of is not answered by its other words."""
    frequencies = {"battery": MANY // 10, "mug": MANY // 10}

    share = held_share(["battery", "mug"], ["mug", "battery", "mug"], frequencies, MANY)
    half = held_share(["battery", "mug"], ["mug"], frequencies, MANY)
    unmatched_words = held_share(["sonos", "battery", "mug"], ["mug", "battery"], frequencies, MANY)

    assert (share, half) == (1.0, 0.5)
    assert unmatched_words < 0.5
    assert held_share([], ["mug"], {}, MANY) == 0.0
    assert held_share(["mug"], [], {}, MANY) == 0.0


def test_a_repeated_word_counts_once_and_a_usual_one_little() -> None:
    """The rarer a word, the more of the question it is."""
    frequencies = {"the": MANY, "gasket": 3}

    assert held_share(["gasket", "gasket"], ["gasket"], frequencies, MANY) == 1.0
    assert held_share(["the", "gasket"], ["gasket"], frequencies, MANY) > 0.99


def test_a_small_archive_is_weighed_like_an_ordinary_one() -> None:
    """Where ten of ten entries hold `mug`, it still is half of a question about it."""
    frequencies = {"ember": 10, "mug": 10, "lid": 2}

    shares = [held_share(["ember", "mug", "lid"], ["ember", "mug"], frequencies, n) for n in (10, ORDINARY)]

    assert shares[0] == shares[1] > 0.55


def test_the_share_of_every_entry_is_known() -> None:
    """Scores come with it."""
    match = Match(("x:a", "", 0), "x:a", ("mug", "lid"), None, by_words=True, by_vector=False)
    matches = Matches((match,), {"mug": 1, "lid": 1}, 1, vectors=False)

    assert [entry.held for entry in score_matches(matches, ["mug", "lid"], None)] == [1.0]


@pytest.mark.parametrize(("floor", "shown"), [(0.6, True), (0.61, False), (0.0, True)])
def test_where_no_entry_holds_enough_nothing_is_cited(floor: float, shown: bool) -> None:
    """One that does is enough for all; the floor itself is enough."""
    best = Scored(("x:a", "", 0), "x:a", 9.0, 0.9, held=0.6, words_share=1.0, combined=1.0)
    other = replace(best, id=("x:b", "", 0), held=0.31, vector_share=1.0, words_share=0.9)
    settings = RetrievalSettings(evidence_floor=floor)

    passed, out = above_floors([best, other], settings, vectors=True)

    assert passed == ([best, other] if shown else [])
    assert out == (FloorCounts() if shown else FloorCounts(absolute=2))


@pytest.mark.parametrize(("share", "shown"), [(0.3, True), (0.29, False), (0.0, False)])
def test_beside_enough_half_of_it_is_enough(share: float, shown: bool) -> None:
    """What is merely near in meaning is not shown beside what answers."""
    best = Scored(("x:a", "", 0), "x:a", 9.0, 0.9, held=0.6, words_share=1.0, combined=1.0)
    other = replace(best, id=("x:b", "", 0), held=share, vector_share=1.0, words_share=0.9)

    passed, out = above_floors([best, other], RetrievalSettings(evidence_floor=0.6), vectors=True)

    assert passed == [best, *([other] if shown else [])]
    assert out == FloorCounts(absolute=0 if shown else 1)


def test_a_quotation_passes_every_floor() -> None:
    """Who writes words in quotation marks has read them."""
    entry = Scored(("x:a", "", 0), "x:a", 0.1, -0.5, held=0.1)
    settings = RetrievalSettings(min_cosine=0.9, min_bm25=30)

    assert above_floors([entry], settings, vectors=True) == ([], FloorCounts(absolute=1))
    quoted = replace(entry, quoted=True)
    assert above_floors([quoted], settings, vectors=True) == ([quoted], FloorCounts())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('who said "drawn with crayons"?', [["drawn", "crayon"]]),
        ("„fällt ab“ and «sans fil»", [["fallt", "ab"], ["san", "fil"]]),
        ('"mug" alone, "the" and "a b', []),
        ('"a mug" "of it"', []),
        ("the 'lid' falls", []),
    ],
)
def test_a_quotation_has_two_words_and_more(text: str, expected: list[list[str]]) -> None:
    """One word in quotation marks is a word; without the smallest, as in the index."""
    assert quoted_phrases(text) == expected


@pytest.mark.parametrize(
    ("phrase", "there"),
    [
        ("drawn crayon", True), ("crayon page", True), ("page drawn", True),
        ("status page drawn crayon page", True), ("crayon drawn", False), ("status drawn", False),
        ("crayon page page", False), ("mug lid", False),
    ],
)  # fmt: skip
def test_an_entry_holds_a_quotation_word_for_word(phrase: str, there: bool) -> None:
    """In this order, nothing between, from its beginning to its end."""
    assert holds_phrase("status page drawn crayon page".split(), phrase.split()) is there


def test_all_quotations_of_a_question_must_be_held() -> None:
    """Each entry is asked; a question without one has none."""
    both = Match(("x:a", "", 0), "x:a", ("lid", "off", "mug", "cold"), None, True, False)
    first = Match(("x:b", "", 0), "x:b", ("lid", "off"), None, True, False)
    matches = Matches((both, first), {}, 2, vectors=False)
    quoted = [["lid", "off"], ["mug", "cold"]]

    assert [entry.quoted for entry in score_matches(matches, ["lid"], None, quoted)] == [
        True,
        False,
    ]
    assert [entry.quoted for entry in score_matches(matches, ["lid"], None)] == [False, False]


def test_a_pair_of_letters_that_nothing_holds_counts_half() -> None:
    """`米手` of `小米手环` is no word; an unknown word of letters with blanks is one."""
    known = {"小米": 3, "手环": 3}

    assert held_share(["小米", "米手", "手环"], ["小米", "手环"], known, MANY) > 0.75
    assert held_share(["小米", "ab", "手环"], ["小米", "手环"], known, MANY) < 0.65
    assert held_share(["小米", "ーム", "手环"], ["小米", "手环"], known, MANY) < 0.65


def test_an_empty_page_is_no_fault() -> None:
    """Nothing found is nothing left out."""
    assert above_floors([], RetrievalSettings(), vectors=True) == ([], FloorCounts())
