"""Order, floors, reranking and diversity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.core.domain import Grade, Verdict
from api.core.items import Assessed, Item
from api.pipeline.evidence.ranking import Ranked, Reranker, by_words, rank
from api.settings import DeepDepth, Depth, QuickDepth, RankingSettings, RetrievalSettings

NOW = datetime(2025, 3, 10, 12, tzinfo=UTC)
DEEP, QUICK = DeepDepth(), QuickDepth()
PLAIN = QuickDepth(relevance_cutoff=1)


def one(key: str, score: int | None = 4, **fields: Any) -> Assessed:
    """An item the gate kept, graded unless `score` is None."""
    grade = None if score is None else Grade(score, defaulted=fields.pop("defaulted", False))
    relevance = fields.pop("relevance", None)
    source, _, name = key.partition(":")
    title = fields.pop("title", f"{name} {key}")
    item = Item(key=key, id=name, source=source, title=title, **fields)
    return Assessed(item, Verdict(True), grade, relevance)


def ranked(
    *items: Assessed,
    depth: Depth = PLAIN,
    rerank: Reranker | None = None,
    weights: dict[str, float] | None = None,
    retrieval: RetrievalSettings | None = None,
    **ranking: Any,
) -> Ranked:
    """`rank` with defaults."""
    return rank(
        items, depth=depth, ranking=RankingSettings(**ranking), now=NOW, rerank=rerank,
        retrieval=retrieval or RetrievalSettings(), source_weights=weights or {},
    )  # fmt: skip


def names(found: Sequence[Assessed]) -> list[str]:
    """The ids in order."""
    return [one.item.key.partition(":")[2] for one in found]


def test_relevance_then_engagement_then_recency_then_key() -> None:
    """
    Each measure decides only where the ones before it are equal.
    """
    found = ranked(
        one("r:d", 4, engagement={"votes": 9}),
        one("r:a", 5, engagement={"votes": 1}),
        one("r:b", 4, engagement={"votes": 9}, created_at=NOW),
        one("r:c", 4, engagement={"votes": 9}),
        one("r:e", 4, engagement={"votes": 1}, created_at=NOW),
    )

    assert names(found.kept) == ["a", "b", "c", "d", "e"]
    assert [kept.rank for kept in found.kept] == [1, 2, 3, 4, 5]


def test_stale_goes_last_and_undated_is_neutral() -> None:
    """
    Today, undated, ten months old: in this order, and a date to come counts as today.
    """
    found = ranked(
        one("r:stale", created_at=NOW - timedelta(days=300)),
        one("r:undated"),
        one("r:today", created_at=NOW),
        one("r:tomorrow", created_at=NOW + timedelta(days=1)),
    )

    assert names(found.kept) == ["today", "tomorrow", "undated", "stale"]


def test_half_a_year_is_where_undated_stands() -> None:
    """
    Recency halves in 180 days, to the day: an undated item stands between 179 and 181.
    """
    found = ranked(
        one("r:after", created_at=NOW - timedelta(days=180, hours=1)),
        one("r:undated"),
        one("r:before", created_at=NOW - timedelta(days=179, hours=23)),
    )

    assert names(found.kept) == ["before", "undated", "after"]


def test_engagement_counts_within_its_own_source() -> None:
    """
    Millions of views do not beat votes: ungraded items interleave by their standing.
    """
    found = ranked(
        *(one(f"youtube:v{n}", None, engagement={"views": 10**6 + n}) for n in (1, 2, 3)),
        *(one(f"reddit:r{n}", None, engagement={"votes": n}) for n in (1, 2, 3)),
        one("amazon:none", None, engagement={"stars": None}),
    )

    assert names(found.kept) == ["r3", "v3", "none", "r2", "v2", "r1", "v1"]


def test_without_grades_the_judge_s_probability_orders() -> None:
    """
    The likelier first, whatever the alphabet says; an unlikely one is marked, a grade outweighs it.
    """

    def likely(key: str, probability: float | None, score: int | None = None) -> Assessed:
        entry = one(key, score)
        return replace(entry, verdict=Verdict(True, "local", probability))

    found = ranked(likely("r:a", 0.4), likely("r:b", 0.9), likely("r:c", None), likely("r:d", 0.1, 5))

    assert names(found.kept) == ["d", "b", "c", "a"]
    assert [entry.low_relevance for entry in found.kept] == [False, False, False, True]


@pytest.mark.parametrize(
    ("level", "first"),
    [("auto", "loved"), ("low", "other"), ("medium", "other"), ("high", "other")],
)
def test_source_weights_count_under_auto_only(level: str, first: str) -> None:
    """A source's weight reorders under `auto`; the fixed levels weigh all alike."""
    items = (one("a:loved", 4), one("b:other", 4, created_at=NOW))

    found = ranked(*items, weights={"a": 1.2}, rerank_weight_source=level)

    assert names(found.kept)[0] == first


@pytest.mark.parametrize(
    ("link", "first"),
    [
        ("https://lab.edu/x", "linked"),
        ("https://lab.gov./x", "linked"),
        ("https://me@lab.edu:8443/x", "linked"),
        ("https://lab.edu@evil.example/x.gov", "plain"),
        ("https://notedu/x", "plain"),
        ("http://[broken", "plain"),
    ],
)
def test_only_a_real_official_host_weighs_more(link: str, first: str) -> None:
    """The host is parsed, so a path, a user name or a look-alike does not help."""
    found = ranked(one("a:linked", link=link), one("a:plain", created_at=NOW))

    assert names(found.kept)[0] == first


def test_weights_never_lift_relevance_above_one() -> None:
    """
    Two clamped items are equal, so recency decides.
    """
    found = ranked(one("a:x", 5), one("b:y", 5, created_at=NOW), weights={"a": 2.0})

    assert names(found.kept) == ["y", "x"]


def test_cutoff_and_threshold_drop_with_a_reason() -> None:
    """
    The stricter of the two wins, and each drop says why.
    """
    found = ranked(
        one("a:5", 5), one("a:4", 4), one("a:3", 3), one("a:2", 2),
        one("b:raw", None, relevance=0.2),
        depth=QUICK, relevance_threshold=0.7,
    )  # fmt: skip

    assert names(found.kept) == ["5", "4"]
    assert [(drop.dropped_by, drop.reason, drop.rank) for drop in found.dropped] == [
        ("cutoff", "score 2 of 5, below the cutoff 3", None),
        ("floor", "relevance 0.50, below the threshold 0.70", None),
        ("floor", "relevance 0.20, below the threshold 0.70", None),
    ]


def test_exactly_at_a_floor_is_kept() -> None:
    """
    All at the cutoff, and all at the threshold, survive; all one below do not.
    """
    at, below = [one(f"a:{n}", 3) for n in range(4)], [one(f"a:{n}", 2) for n in range(4)]

    assert len(ranked(*at, depth=QUICK, relevance_threshold=0.5).kept) == 4
    assert ranked(*below, depth=QUICK).kept == ()


def test_what_a_person_kept_passes_cutoff_and_floor() -> None:
    """A correction stands above every grade; the grade still orders it."""
    corrected = replace(one("a:x", 1), verdict=Verdict(True, "correction"))
    found = ranked(corrected, one("a:y", 1), one("a:z", 5), depth=QUICK, relevance_threshold=0.9)

    assert names(found.kept) == ["z", "x"]
    assert names(found.dropped) == ["y"]


@pytest.mark.parametrize("cutoff", [1, 2, 3, 4, 5])
def test_an_outage_of_the_grader_drops_nothing(cutoff: int) -> None:
    """Defaulted and missing grades pass whatever the cutoff and threshold."""
    depth = QuickDepth(relevance_cutoff=cutoff)
    items = (one("a:x", 3, defaulted=True), one("a:y", None))

    assert len(ranked(*items, depth=depth, relevance_threshold=0.9).kept) == 2


def test_guardrails_off_leaves_cutoff_and_order() -> None:
    """
    Off: no threshold, rerank or diversity; the cutoff of the depth stays.
    """
    retrieval = RetrievalSettings(guardrails_enable=False)
    items = [one(f"a:{n}", 3, place="p") for n in range(3)]

    found = ranked(
        *items, one("a:9", 3, place="q"), one("a:low", 2), depth=DEEP, retrieval=retrieval,
        rerank=lambda window: tuple(reversed(window)), relevance_threshold=0.9,
    )  # fmt: skip

    assert names(found.kept) == ["0", "1", "2", "9"]
    assert not found.used_rerank


def test_a_borderline_head_is_reranked_within_its_window() -> None:
    """
    Only the window is reordered, and the telemetry says so.
    """
    items = [one(f"a:{n}", 3) for n in range(4)]

    found = ranked(
        *items, depth=DEEP, rerank=lambda window: tuple(reversed(window)),
        retrieval=RetrievalSettings(rerank_window=3),
    )  # fmt: skip

    assert names(found.kept) == ["2", "1", "0", "3"]
    assert found.used_rerank


@pytest.mark.parametrize(
    ("score", "depth", "retrieval"),
    [
        (4, DEEP, RetrievalSettings()),
        (3, QUICK, RetrievalSettings()),
        (3, DEEP, RetrievalSettings(rerank_enable=False)),
        (3, DEEP, RetrievalSettings(rerank_trigger_max=0.5)),
        (3, DEEP, RetrievalSettings(score_floor=0.51)),
        (None, DEEP, RetrievalSettings()),
    ],
)
def test_no_rerank_without_need(score: int | None, depth: Depth, retrieval: RetrievalSettings) -> None:
    """A sure head, another depth, an off switch or no relevance at all: it is not asked."""

    def never(window: Sequence[Assessed]) -> Sequence[Assessed]:
        raise AssertionError("asked")

    found = ranked(one("a:x", score), one("a:y", score), depth=depth, retrieval=retrieval, rerank=never)

    assert not found.used_rerank


def test_reranking_can_only_reorder() -> None:
    """
    Items a reranker drops, repeats or invents change nothing but the order.
    """
    items = [one(f"a:{n}", 3) for n in range(3)]

    found = ranked(*items, depth=DEEP, rerank=lambda window: (window[2], one("a:made-up", 5), window[2]))

    assert names(found.kept) == ["2", "0", "1"]


def test_a_place_does_not_fill_the_top() -> None:
    """
    At most two per place or author come before others, unless those are much worse.
    """
    same = [one(f"a:{n}", 5, place="p") for n in range(3)]
    writer = [one(f"b:{n}", 5, author="w") for n in range(3, 6)]
    weak = one("c:weak", 3, place="q")

    found = ranked(*same, *writer, weak, depth=DEEP)

    assert names(found.kept) == ["0", "1", "3", "4", "2", "5", "weak"]
    assert names(ranked(*same, weak, depth=DEEP, diversity_delta=0.5).kept) == [
        "0", "1", "weak", "2",
    ]  # fmt: skip
    assert names(ranked(*same, *writer, depth=DEEP, diversity_max=0).kept) == list("012345")
    assert names(ranked(*same, *writer, depth=QUICK).kept) == list("012345")


def test_low_relevance_is_marked() -> None:
    """
    Score 3 is marked; 0 switches the mark off.
    """
    items = (one("a:4", 4), one("a:3", 3), one("b:hit", None, relevance=0.4), one("b:raw", None))

    marked = {kept.item.id: kept.low_relevance for kept in ranked(*items).kept}

    assert marked == {"4": False, "3": True, "hit": True, "raw": False}
    assert not any(kept.low_relevance for kept in ranked(*items, low_relevance_below=0).kept)


def test_the_writer_sees_the_top_and_the_rest_stays() -> None:
    """
    `rerank_top_k`, or the depth's `max_evidence`, bounds the exhibits, not what is kept.
    """
    items = [one(f"a:{n:02}", 4) for n in range(20)]

    assert len(ranked(*items).exhibits) == 15
    assert len(ranked(*items, rerank_top_k=2).exhibits) == 2
    assert len(ranked(*items, rerank_top_k=2).kept) == 20


def test_copies_are_dropped_before_the_cutoff() -> None:
    """
    A crosspost is dropped as a duplicate that names what was kept.
    """
    found = ranked(one("a:x", 5), one("a:y", 1, crosspost_parent="a:x"), depth=QUICK)

    assert [(drop.dropped_by, drop.reason) for drop in found.dropped] == [("duplicate", "copy of a:x")]


ITEMS = st.builds(
    lambda n, score, source, votes, days, place, author, parent: one(
        f"{source}:{n}", score, engagement={"votes": votes}, place=place, author=author,
        created_at=None if days is None else NOW - timedelta(days=days),
        crosspost_parent=None if parent is None else f"{source}:{parent}",
    ),
    st.integers(0, 9), st.none() | st.integers(1, 5), st.sampled_from("ab"),
    st.none() | st.integers(0, 3), st.none() | st.integers(0, 400),
    st.none() | st.sampled_from("pq"), st.none() | st.sampled_from("vw"),
    st.none() | st.integers(0, 9),
)  # fmt: skip


@given(st.lists(ITEMS, max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(items: list[Assessed], random: Any) -> None:
    """Any permutation gives the same answer, and every item is kept or dropped exactly once."""
    shuffled = list(items)
    random.shuffle(shuffled)
    reranker = by_words("anything")

    found = ranked(*items, depth=DEEP, rerank=reranker)

    assert ranked(*shuffled, depth=DEEP, rerank=reranker) == found
    assert sorted(names([*found.kept, *found.dropped])) == sorted(
        {key: key.partition(":")[2] for key in (each.item.key for each in items)}.values()
    )
