"""Single rules of ranking; `test_pages.py` holds them together."""

from __future__ import annotations

from typing import Any

import pytest

from api.features.archive.search_ranking import Scored, above_floors, combine_scores, diverse, is_doubtful, reranked
from api.features.archive.search_values import FloorCounts
from api.settings import RankingSettings, RetrievalSettings


def entry(name: str, worth: float = 0.0, thread: str = "", comment: str = "", **more: Any) -> Scored:
    """An entry whose score is combined already."""
    fields: dict[str, Any] = {"words": 1.0, "cosine": 0.5, "combined": worth, **more}
    return Scored((name, comment, 0), thread or name, **fields)


def names(line: list[Scored]) -> list[str]:
    """Keys, in order."""
    return [scored.id[0] + scored.id[1] for scored in line]


def test_nothing_is_found() -> None:
    """Every rule has nothing to say about nothing."""
    settings = RetrievalSettings()

    assert combine_scores([], 0.65, vectors=True) == []
    assert above_floors([], settings, vectors=True) == ([], FloorCounts())
    assert not is_doubtful([], settings)
    assert reranked([], [], 20) == []
    assert diverse([], RankingSettings()) == []


def test_each_score_is_stretched_over_what_its_own_search_found() -> None:
    """What only the other search found is 0 in it, and moves neither its least nor its best."""
    line = combine_scores(
        [
            entry("a", words=9.0, cosine=0.2, by_vector=False),
            entry("b", words=3.0, cosine=0.9, by_words=False),
            entry("c", words=5.0, cosine=0.5),
            entry("d", words=1.0, cosine=None),
        ],
        0.65,
        vectors=True,
    )

    shares = {e.id[0]: (e.words_share, e.vector_share) for e in line}
    assert shares == {"a": (1.0, 0.0), "b": (0.0, 1.0), "c": (0.5, 0.0), "d": (0.0, 0.0)}
    assert names(line) == ["b", "a", "c", "d"]


def test_unlikeness_may_be_negative() -> None:
    """A cosine below 0 is stretched like any other."""
    line = combine_scores([entry("a", cosine=-0.5), entry("b", cosine=0.0)], 1.0, vectors=True)

    assert [(e.id[0], e.combined) for e in line] == [("b", 1.0), ("a", 0.0)]


def test_only_the_first_of_the_strongest_by_words_passes_the_floors() -> None:
    """A stronger one that was not found by words is none; below the setting it is dropped."""
    line = [
        entry("n", 0.2, words_share=1.0, by_words=False),
        entry("a", 0.1, words_share=0.5),
        entry("b", 0.1, words_share=0.5),
    ]

    passed, out = above_floors(line, RetrievalSettings(), vectors=True)
    assert (names(passed), out) == (["a"], FloorCounts(score=2))
    higher = RetrievalSettings(keyword_floor=0.51)
    assert above_floors(line, higher, vectors=True) == ([], FloorCounts(score=3))


def test_without_a_word_nobody_is_strongest() -> None:
    """A keyword floor of 0 keeps the strongest hit, and not one without a word."""
    line = [entry("a", 0.1, words_share=0.0)]

    assert above_floors(line, RetrievalSettings(keyword_floor=0), vectors=True)[0] == []


@pytest.mark.parametrize(("share", "kept"), [(0.9, True), (0.89, False)])
def test_word_hit_passes_the_floor_of_likeness_when_it_is_sure(share: float, kept: bool) -> None:
    """From 0.9, when words alone do not keep it."""
    settings = RetrievalSettings(keyword_floor=2)
    line = [entry("a", 0.5, words_share=share, vector_share=0.1)]

    assert above_floors(line, settings, vectors=True)[0] == (line if kept else [])


@pytest.mark.parametrize(
    ("values", "out"),
    [
        ({"score_floor": 0.5, "vector_floor": 0.5}, FloorCounts()),
        ({"score_floor": 0.51}, FloorCounts(score=1)),
        ({"vector_floor": 0.51}, FloorCounts(vector=1)),
        ({"min_cosine": 0.5, "min_bm25": 4.0}, FloorCounts()),
        ({"min_cosine": 0.51, "min_bm25": 4.01}, FloorCounts(absolute=1)),
        ({"min_cosine": 0.51, "min_bm25": 4.0}, FloorCounts()),
        ({"min_cosine": 0.51}, FloorCounts()),
        ({"min_bm25": 4.01}, FloorCounts()),
        ({"score_floor": 0, "vector_floor": 0}, FloorCounts()),
    ],
)
def test_floors_hold_from_their_value(values: dict[str, float], out: FloorCounts) -> None:
    """What has just that much passes; either absolute floor is enough; 0 is none."""
    line = [entry("a", 0.5, by_words=False, words=4.0, cosine=0.5, vector_share=0.5)]
    settings = RetrievalSettings.model_validate(values)

    passed, counted = above_floors(line, settings, vectors=True)

    assert counted == out
    assert passed == ([] if out != FloorCounts() else line)


def test_absolute_floor_holds_for_the_strongest_hit_by_words_and_for_no_vector() -> None:
    """Without a vector there is no likeness."""
    settings = RetrievalSettings(min_cosine=0.1, min_bm25=5)
    line = [entry("a", 1.0, words=4.0, words_share=1.0, cosine=None)]

    assert above_floors(line, settings, vectors=False) == ([], FloorCounts(absolute=1))


def test_likeness_is_no_floor_where_nobody_looked_for_it() -> None:
    """Words alone pass."""
    line = [entry("a", 0.6, cosine=None), entry("b", 0.5, cosine=None)]

    assert above_floors(line, RetrievalSettings(), vectors=False)[0] == line


@pytest.mark.parametrize(("top", "doubt"), [(0.449, False), (0.45, True), (0.599, True), (0.60, False)])
def test_order_is_in_doubt_between_the_floor_and_the_trigger(top: float, doubt: bool) -> None:
    """Half open: from 0.45 to below 0.60, by the best alone."""
    assert is_doubtful([entry("a", top), entry("b", 0.5)], RetrievalSettings()) is doubt


def test_rerank_moves_the_window_alone() -> None:
    """Ties and what lies beyond keep their order."""
    line = [entry(name) for name in "abcde"]

    assert names(reranked(line, [0.0, 1.0, 0.0], 3)) == ["b", "a", "c", "d", "e"]


def test_comment_that_was_found_by_itself_counts_for_its_thread() -> None:
    """Two of a thread come first, whether they are its post, comments of it or items."""
    line = [
        entry("post", 0.9),
        entry("post", 0.9, comment="1"),
        entry("item", 0.9, thread="post"),
        entry("other", 0.8),
    ]

    assert names(diverse(line, RankingSettings())) == ["post", "post1", "other", "item"]
    assert diverse(line, RankingSettings(diversity_max=0)) == line
    assert diverse(line, RankingSettings(diversity_delta=0.05)) == line
