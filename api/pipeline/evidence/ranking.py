"""Ranking: distinct, floored, weighed, ordered and made diverse; the same input, the same order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from urllib.parse import urlsplit

from api.core.diversity import diversify
from api.core.domain import Usage
from api.core.items import Assessed, Comment, Item
from api.core.words import content_words, words
from api.pipeline.evidence.duplicates import distinct
from api.pipeline.gate.verdicts import CORRECTED
from api.settings import Depth, RankingSettings, RetrievalSettings

LEVELS = {"low": 1.0, "medium": 1.05, "high": 1.1}
"""What `rerank_weight_source` multiplies relevance by, the same for all items."""
AUTHORITY = 1.1
"""Weight of an item whose linked host ends in .gov or .edu, under `auto`."""
NEUTRAL = 0.5
"""Stands in for an unknown relevance, engagement or date: neither first nor last."""
HALF_LIFE_DAYS = 180.0
"""Age at which recency has halved, and which an undated item is taken for."""

Reranker = Callable[[Sequence[Assessed]], Sequence[Assessed]]
"""Returns the same items in another order."""

_EQUAL: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Ranked:
    """Kept items in order, and what was dropped on the way."""

    kept: tuple[Assessed, ...]
    """Best first, `rank` from 1."""
    dropped: tuple[Assessed, ...]
    """By `cutoff`, `floor` or `duplicate`, each with its reason; in the order of keys."""
    top_k: int
    """How many of the kept the writer sees."""
    used_rerank: bool = False
    usage: Usage = Usage()
    """Tokens and USD of the grading."""

    @property
    def exhibits(self) -> tuple[Assessed, ...]:
        """The best kept items, as many as the writer is shown."""
        return self.kept[: self.top_k]

    @property
    def defaulted(self) -> int:
        """Grades that stand in for ones that could not be had."""
        entries = (*self.kept, *self.dropped)
        return sum(entry.grade is not None and entry.grade.defaulted for entry in entries)


def rank(
    assessed: Sequence[Assessed],
    *,
    depth: Depth,
    ranking: RankingSettings,
    retrieval: RetrievalSettings,
    now: datetime,
    source_weights: Mapping[str, float] = _EQUAL,
    rerank: Reranker | None = None,
    known: Sequence[Assessed] = (),
) -> Ranked:
    """Order what the gate kept and drop copies and what falls below the floors.

    A defaulted grade passes cutoff and floor: an outage never drops everything; so does what a
    person said is relevant. Without
    `retrieval.guardrails_enable` there is no relevance floor, rerank or diversity; the depth's
    cutoff stays. What is `known` already, kept or dropped, does not come back; a copy of a known
    kept item is dropped, however good it is.
    """
    guarded = retrieval.guardrails_enable
    threshold = ranking.relevance_threshold if guarded else None
    seen = {entry.item.original for entry in known}
    unique = distinct(
        [replace(entry, relevance=_relevance(entry)) for entry in assessed if entry.item.original not in seen],
        similarity=ranking.duplicate_similarity,
        known=[entry for entry in known if entry.dropped_by is None],
    )
    judged = [_floored(entry, depth, threshold) for entry in unique.kept]
    failed = [entry for entry in judged if entry.dropped_by is not None]
    survivors = [entry for entry in judged if entry.dropped_by is None]
    worths = _worths(survivors, ranking.rerank_weight_source, source_weights)
    line = _ordered(survivors, worths, now)
    top = max((entry.relevance for entry in line if entry.relevance is not None), default=None)
    doubt = top is not None and retrieval.score_floor <= top < retrieval.rerank_trigger_max
    used = guarded and depth.rerank and retrieval.rerank_enable and doubt and rerank is not None
    if rerank is not None and used:
        line = _reranked(line, rerank, retrieval.rerank_window)
    if guarded and depth.diversity:
        line = diversify(line, lambda entry: _groups(entry.item), lambda entry: worths[entry.item.key], ranking)
    below = ranking.low_relevance_below
    return Ranked(
        tuple(
            replace(
                entry,
                rank=place,
                low_relevance=entry.relevance is not None and entry.relevance < below,
            )
            for place, entry in enumerate(line, 1)
        ),
        tuple(sorted((*failed, *unique.copies), key=lambda entry: entry.item.key)),
        ranking.rerank_top_k or depth.max_evidence,
        used,
    )


def by_words(question: str) -> Reranker:
    """Orders by the share of the question's content words that an item's text holds.

    Costs no call; items that hold equally many keep their order.
    """
    wanted = frozenset(content_words(question))

    def held(entry: Assessed) -> int:
        item = entry.item
        return len(wanted.intersection(words(f"{item.title} {item.body}")))

    return lambda window: sorted(window, key=held, reverse=True)


def best_comments(item: Item, question: str) -> tuple[Comment, ...]:
    """All comments of an item, those that share words with question or post first, then by votes.

    So that a joke with thousands of votes does not stand before what was asked about.
    """
    about = frozenset(content_words(f"{question} {item.title} {item.body}"))

    def order(comment: Comment) -> tuple[bool, float, str]:
        votes = next(iter(comment.engagement.values()), None)
        return (about.isdisjoint(words(comment.body)), -(votes or 0), comment.id)

    return tuple(sorted(item.comments, key=order))


def _relevance(entry: Assessed) -> float | None:
    """By grade; of what nobody graded, by the judge's calibrated probability, where it has one."""
    if entry.grade is not None:
        return entry.grade.relevance
    return entry.verdict.probability if entry.relevance is None else entry.relevance


def _floored(entry: Assessed, depth: Depth, threshold: float | None) -> Assessed:
    """Marked as dropped when its grade misses the cutoff or its relevance the threshold."""
    grade, relevance = entry.grade, entry.relevance
    if entry.verdict.judge == CORRECTED or (grade is not None and grade.defaulted):
        return entry
    if grade is not None and grade.score < depth.relevance_cutoff:
        reason = f"score {grade.score} of 5, below the cutoff {depth.relevance_cutoff}"
        return replace(entry, rank=None, dropped_by="cutoff", reason=reason)
    if threshold is not None and relevance is not None and relevance < threshold:
        reason = f"relevance {relevance:.2f}, below the threshold {threshold:.2f}"
        return replace(entry, rank=None, dropped_by="floor", reason=reason)
    return entry


def _worths(entries: Sequence[Assessed], level: str, weights: Mapping[str, float]) -> dict[str, float]:
    """Weighted relevance by key, at most 1."""
    return {
        entry.item.key: NEUTRAL
        if entry.relevance is None
        else min(1.0, entry.relevance * _weight(entry.item, level, weights))
        for entry in entries
    }


def _ordered(entries: Sequence[Assessed], worths: Mapping[str, float], now: datetime) -> list[Assessed]:
    """By weighted relevance, engagement within the own source, recency, key."""
    standings = _percentiles([entry.item for entry in entries])
    return sorted(
        entries,
        key=lambda entry: (
            -worths[entry.item.key],
            -standings.get(entry.item.key, NEUTRAL),
            -_recency(entry.item, now),
            entry.item.key,
        ),
    )


def _weight(item: Item, level: str, weights: Mapping[str, float]) -> float:
    if level != "auto":
        return LEVELS[level]
    try:
        host = urlsplit(item.link or item.url).hostname or ""
    except ValueError:
        host = ""
    official = host.rstrip(".").endswith((".gov", ".edu"))
    return AUTHORITY if official else weights.get(item.source, 1.0)


def _percentiles(items: Sequence[Item]) -> dict[str, float]:
    """Where an item's main measure stands in its own source, 0 to 1; without the unknown."""
    values: dict[tuple[str, str], dict[str, float]] = {}
    for item in items:
        name, value = next(iter(item.engagement.items()), ("", None))
        if value is not None:
            values.setdefault((item.source, name), {})[item.key] = value
    percentiles: dict[str, float] = {}
    for group in values.values():
        line = sorted(group.values())
        for key, value in group.items():
            middle = (bisect_left(line, value) + bisect_right(line, value)) / 2
            percentiles[key] = middle / len(line)
    return percentiles


def _recency(item: Item, now: datetime) -> float:
    if item.created_at is None:
        return NEUTRAL
    days = max(0.0, (now - item.created_at).total_seconds() / 86_400)
    return float(NEUTRAL ** (days / HALF_LIFE_DAYS))


def _reranked(line: Sequence[Assessed], rerank: Reranker, window: int) -> list[Assessed]:
    """The head in the reranker's order; what it left out or made up changes nothing else."""
    head = {entry.item.key: entry for entry in line[:window]}
    named = dict.fromkeys(entry.item.key for entry in rerank(tuple(head.values())))
    keys = [key for key in named if key in head] + [key for key in head if key not in named]
    return [head[key] for key in keys] + list(line[window:])


def _groups(item: Item) -> list[tuple[str, ...]]:
    """What an item shares with others; copies of one thread are merged already."""
    named = (("place", item.place), ("author", item.author), ("thread", item.thread or item.key))
    return [(kind, item.source, name) for kind, name in named if name]
