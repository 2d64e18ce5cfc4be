"""Twelve pages, computed by hand, that hold the rules of ranking together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from api.errors import ModelError
from api.features.archive.index_words import Chunk
from api.features.archive.search import ArchiveSearch, Rerank
from api.features.archive.search_values import FloorCounts, Match
from api.settings import RankingSettings, RetrievalSettings
from tests.features.archive.made import QUERY, archive_of, embed, match, no_vectors, page

# cosines with the question: 1, 0.96, 0.936, 0.8, 0.6, 0.28, 0
C100, C96, C936, C80, C60, C28, C0 = (
    (100, 0), (96, 28), (117, 44), (80, 60), (60, 80), (28, 96), (0, 100),
)  # fmt: skip


async def never(query: str, pieces: Sequence[Chunk]) -> list[float]:
    """A page with a clear winner is not reranked."""
    raise AssertionError(query)


async def last_first(query: str, pieces: Sequence[Chunk]) -> list[float]:
    """Turns the order round."""
    return [float(place) for place, _ in enumerate(pieces)]


async def too_slow(query: str, pieces: Sequence[Chunk]) -> list[float]:
    """Never answers."""
    await asyncio.get_running_loop().create_future()
    return []


async def failing(query: str, pieces: Sequence[Chunk]) -> list[float]:
    """Has no model."""
    raise ModelError("quota")


async def miscounting(query: str, pieces: Sequence[Chunk]) -> list[float]:
    """Answers for one piece too few."""
    return [1.0] * (len(pieces) - 1)


def part(key: str, number: int, plane: tuple[int, int], words: int = 1) -> Match:
    """A comment under an item."""
    return match(key, words, plane, id=(key, str(number), 0))


@dataclass(frozen=True)
class Page:
    """What is found, under which settings, and what is shown: labels and combined scores."""

    name: str
    found: tuple[Match, ...]
    shown: dict[str, float]
    """`key` or `key/comment`, in order."""
    low: frozenset[str] = frozenset()
    out: dict[str, int] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    rerank: Rerank = never
    reranked: bool = False
    failure: str | None = None
    vectors: bool = True


# words: m of the question's five words; w = (m - least) / (most - least) of the page
# vector: cosine c;                       v = (c - least) / (most - least) of the page
# combined = 0.65 v + 0.35 w
DOUBTFUL = (
    # with weights of a half: a = (1 + 0) / 2; b = (0 + 1) / 2; c = (4/9 + 1/2) / 2
    match("x:a", 1, C100), match("x:b", 5, C28), match("x:c", 3, C60),
)  # fmt: skip
ONE_THREAD = (
    # words are equal, so w = 1; v = (c - 0.28) / 0.72
    part("x:a", 1, C100),  # v = 1           1.0
    part("x:a", 2, C96),  #  v = 0.68 / 0.72  0.65 * 0.94444 + 0.35 = 0.96389
    part("x:a", 3, C936),  # v = 0.656 / 0.72 0.65 * 0.91111 + 0.35 = 0.94222
    match("x:z", 1, C28),  # v = 0, 0.35: below the floor of 0.45
)
PAGES = (
    Page(
        "both scores are stretched over their own page",
        (
            match("x:a", 5, C60),  # w = 4/4, v = 0.32/0.72: 0.65 * 0.44444 + 0.35 = 0.63889
            match("x:b", 1, C100),  # w = 0, v = 1: 0.65
            match("x:c", 3, C28),  # w = 2/4, v = 0: 0.175, below 0.45
        ),
        {"x:b": 0.65, "x:a": 0.63889},
        out={"score": 1},
    ),
    Page(
        "equal scores are all the best, and ties go by key",
        (match("x:b", 2, C60), match("x:a", 2, C60)),  # w = v = 1
        {"x:a": 1.0, "x:b": 1.0},
    ),
    Page(
        "an id that was found twice counts once, as it was found first",
        (
            match("x:a", 1, C60),  # w = 0, v = 0: below 0.45
            match("x:a", 5, C100),  # left out: else 1.0
            match("x:b", 2, C96),  # w = v = 1
        ),
        {"x:b": 1.0},
        out={"score": 1},
    ),
    Page(
        "the best hit by words passes the floor of likeness",
        (
            match("x:a", 1, C100),  # v = 1, w = 0: 0.65
            match("x:b", 5, C28),  # v = 0, w = 1: 0.35, and the first of two with w = 1
            match("x:c", 5, C28),  # v = 0, w = 1: 0.35
        ),
        {"x:a": 0.65, "x:b": 0.35},
        low=frozenset({"x:b"}),
        out={"vector": 1},
        settings={"score_floor": 0.3, "keyword_floor": 2},
    ),
    Page(
        "unless that is switched off",
        (match("x:a", 1, C100), match("x:b", 5, C28), match("x:c", 5, C28)),
        {"x:a": 0.65},
        out={"vector": 2},
        settings={
            "score_floor": 0.3, "keyword_floor": 2, "allow_keyword_top1_override": False,
        },
    ),
    Page(
        "the strongest hit by words is kept below every floor of its page",
        (
            match("x:a", 1, C100),  # 0.65
            match("x:b", 5, C28),  # 0.35
            match("x:c", 4, C28),  # w = 3/4: 0.2625
        ),
        {"x:a": 0.65, "x:b": 0.35},
        low=frozenset({"x:b"}),
        out={"score": 1},
    ),
    Page(
        "what is neither near nor holds the words is left out, however it compares",
        # m words have a BM25 of m * ln(1 + 990.5 / 10.5) = m * 4.557
        (
            match("x:a", 1, C28),  # 4.557 < 10 and 0.28 < 0.3
            match("x:b", 1, C60),  # near enough; v = 1, w = 0: 0.65
            match("x:c", 4, C28),  # words enough: 18.2; v = 0, w = 1: 0.35, the strongest
        ),
        {"x:b": 0.65, "x:c": 0.35},
        low=frozenset({"x:c"}),
        out={"absolute": 1},
        settings={"min_cosine": 0.3, "min_bm25": 10},
    ),
    Page(
        "an order in doubt is judged again",
        DOUBTFUL,  # a = b = 0.5 by key, then c = 0.47222
        {"x:c": 0.47222, "x:b": 0.5, "x:a": 0.5},
        low=frozenset({"x:c"}),
        settings={"vector_weight": 0.5},
        rerank=last_first,
        reranked=True,
    ),
    *(
        Page(
            f"and stays as it was after {failure}",
            DOUBTFUL,
            {"x:a": 0.5, "x:b": 0.5, "x:c": 0.47222},
            low=frozenset({"x:c"}),
            settings={"vector_weight": 0.5, "rerank_timeout": 0.01},
            rerank=rerank,
            failure=failure,
        )
        for rerank, failure in (
            (too_slow, "timeout"), (failing, "quota"), (miscounting, "count_mismatch"),
        )
    ),
    Page(
        "another item comes before the third of one, if it is nearly as good",
        # v = 0.52 / 0.72: 0.65 * 0.72222 + 0.35 = 0.81944, by 0.12278 less than the third
        (*ONE_THREAD, match("x:b", 1, C80)),
        {"x:a/1": 1.0, "x:a/2": 0.96389, "x:b": 0.81944, "x:a/3": 0.94222},
        out={"score": 1},
    ),
    Page(
        "and stays behind it where it is much worse",
        # v = 0.32 / 0.72: 0.65 * 0.44444 + 0.35 = 0.63889, by 0.30333 less than the third
        (*ONE_THREAD, match("x:b", 1, C60)),
        {"x:a/1": 1.0, "x:a/2": 0.96389, "x:a/3": 0.94222, "x:b": 0.63889},
        out={"score": 1},
    ),
    Page(
        "where no entry holds enough of the question, nothing is shown",
        # of five words that weigh the same the best holds three
        (match("x:a", 3, C80), match("x:b", 2, C80)),
        {},
        out={"absolute": 2},
        settings={"evidence_floor": 0.61},
    ),
    Page(
        "without guardrails it is the best eight of both searches",
        (
            *ONE_THREAD[:3],
            match("x:b", 1, C80),  # 0.81944: behind all of one item
            *(match(f"x:c{number}", 1, C28) for number in range(5)),  # v = 0: 0.35
        ),
        {"x:a/1": 1.0, "x:a/2": 0.96389, "x:a/3": 0.94222, "x:b": 0.81944}
        | {f"x:c{number}": 0.35 for number in range(4)},
        low=frozenset(f"x:c{number}" for number in range(4)),
        settings={
            "guardrails_enable": False, "min_cosine": 1, "min_bm25": 1000, "vector_floor": 1,
            "score_floor": 0, "rerank_trigger_max": 1, "evidence_floor": 1,
        },
    ),
    Page(
        "without vectors words are all there is",
        # w = (m - 1) / 4; 0.25 is below the floor of 0.45, and no vector is missed
        tuple(match(f"x:{n}", words, None) for n, words in zip("abcd", (3, 5, 2, 1), strict=True)),
        {"x:b": 1.0, "x:a": 0.5},
        out={"score": 2},
        vectors=False,
    ),
)  # fmt: skip


@pytest.mark.parametrize("case", PAGES, ids=lambda case: case.name)
async def test_page_is_shown_as_computed_by_hand(case: Page) -> None:
    """Order, combined scores, marks, floors and reranking of a page together."""
    search = ArchiveSearch(
        archive_of(page(*case.found, vectors=case.vectors)),
        embed if case.vectors else no_vectors,
        RetrievalSettings(**{"evidence_floor": 0, **case.settings}),
        RankingSettings(),
        rerank=case.rerank,
    )

    answer = await search.search("a", QUERY)

    label = {hit.label: hit.key + (f"/{hit.comment_id[1:]}" if hit.comment_id else "") for hit in answer.hits}
    assert {label[hit.label]: round(hit.relevance, 5) for hit in answer.hits} == case.shown
    assert list(label.values()) == list(case.shown)
    assert list(label) == [f"E{place}" for place in range(1, len(label) + 1)]
    assert {label[hit.label] for hit in answer.hits if hit.low_relevance} == case.low
    retrieval = answer.retrieval
    assert retrieval.filteredByFloor == FloorCounts(**case.out)
    assert (retrieval.usedRerank, retrieval.rerank_failed) == (case.reranked, case.failure)
    assert (retrieval.rerankMs is None) == (case.rerank is never)
    assert retrieval.words_only != case.vectors
    assert (retrieval.candidates, retrieval.shown) == (
        len({entry.id for entry in case.found}),
        len(case.shown),
    )
