"""Ranking: distinct, floored, weighed, ordered and made diverse; the same input, the same order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from urllib.parse import urlsplit

from api.services.evidence.duplicates import distinct
from api.services.evidence.reranking import Reranker
from api.services.schemas import Assessed, Item
from api.settings import Depth, RankingSettings, RetrievalSettings

LEVELS = {"low": 1.0, "medium": 1.05, "high": 1.1}
"""What `rerank_weight_source` multiplies relevance by, the same for all items."""
AUTHORITY = 1.1
"""Weight of an item whose linked host ends in .gov or .edu, under `auto`."""
NEUTRAL = 0.5
"""Stands in for an unknown relevance, engagement or date: neither first nor last."""
HALF_LIFE_DAYS = 180.0
"""Age at which recency has halved, and which an undated item is taken for."""

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
    notes: tuple[str, ...] = ()
    combined_top: float | None = None
    """The best relevance; None when nothing kept has one."""
    used_rerank: bool = False
    filtered_by_floor: int = 0
    """Items dropped by cutoff or floor."""

    @property
    def exhibits(self) -> tuple[Assessed, ...]:
        """What the writer sees."""
        return self.kept[: self.top_k]


def rank(
    assessed: Sequence[Assessed],
    *,
    depth: Depth,
    ranking: RankingSettings,
    retrieval: RetrievalSettings,
    now: datetime,
    source_weights: Mapping[str, float] = _EQUAL,
    rerank: Reranker | None = None,
) -> Ranked:
    """Order what the gate kept and drop copies and what falls below the floors.

    A defaulted grade passes cutoff and floor: an outage never drops everything. Without
    `retrieval.guardrails_enable` there is no relevance floor, rerank or diversity; the depth's
    cutoff stays.
    """
    guarded = retrieval.guardrails_enable
    unique = distinct(
        [replace(one, relevance=_relevance(one)) for one in assessed],
        similarity=ranking.duplicate_similarity,
    )
    threshold = ranking.relevance_threshold if guarded else None
    judged = [_floored(one, depth, threshold) for one in unique.kept]
    failed = [one for one in judged if one.dropped_by is not None]
    line = [one for one in judged if one.dropped_by is None]
    worths = _worths(line, ranking.rerank_weight_source, source_weights)
    line = _ordered(line, worths, now)
    top = max((one.relevance for one in line if one.relevance is not None), default=None)
    used = rerank is not None and guarded and depth.rerank and _borderline(top, retrieval)
    if rerank is not None and used:
        line = _reranked(line, rerank, retrieval.rerank_window)
    if guarded and depth.diversity and ranking.diversity_max:
        line = list(_diverse(line, worths, ranking))
    return Ranked(
        tuple(_placed(one, at, ranking) for at, one in enumerate(line, 1)),
        tuple(sorted((*failed, *unique.copies), key=lambda one: one.item.key)),
        ranking.rerank_top_k or depth.max_evidence,
        _notes(unique.copies, failed), top, used, len(failed),
    )  # fmt: skip


def _notes(copies: Sequence[Assessed], failed: Sequence[Assessed]) -> tuple[str, ...]:
    counts = {
        "merged as copies of others": len(copies),
        "below the grade cutoff": sum(one.dropped_by == "cutoff" for one in failed),
        "below the relevance threshold": sum(one.dropped_by == "floor" for one in failed),
    }
    return tuple(
        f"{count} item{'s' * (count > 1)} {what}" for what, count in counts.items() if count
    )


def _relevance(one: Assessed) -> float | None:
    return one.relevance if one.grade is None else one.grade.relevance


def _floored(one: Assessed, depth: Depth, threshold: float | None) -> Assessed:
    """Marked as dropped when its grade misses the cutoff or its relevance the threshold."""
    grade, relevance = one.grade, one.relevance
    if grade is not None and grade.defaulted:
        return one
    if grade is not None and grade.score < depth.relevance_cutoff:
        reason = f"score {grade.score} of 5, below the cutoff {depth.relevance_cutoff}"
        return replace(one, rank=None, dropped_by="cutoff", reason=reason)
    if threshold is not None and relevance is not None and relevance < threshold:
        reason = f"relevance {relevance:.2f}, below the threshold {threshold:.2f}"
        return replace(one, rank=None, dropped_by="floor", reason=reason)
    return one


def _worths(
    items: Sequence[Assessed], level: str, weights: Mapping[str, float]
) -> dict[str, float]:
    """Weighted relevance by key, at most 1."""
    return {
        one.item.key: NEUTRAL
        if one.relevance is None
        else min(1.0, one.relevance * _weight(one.item, level, weights))
        for one in items
    }


def _ordered(
    items: Sequence[Assessed], worths: Mapping[str, float], now: datetime
) -> list[Assessed]:
    """By relevance, engagement within the own source, recency, key."""
    standing = _percentiles([one.item for one in items])
    return sorted(
        items,
        key=lambda one: (
            -worths[one.item.key],
            -standing.get(one.item.key, NEUTRAL),
            -_recency(one.item, now),
            one.item.key,
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
    found: dict[str, float] = {}
    for group in values.values():
        line = sorted(group.values())
        for key, value in group.items():
            found[key] = (bisect_left(line, value) + bisect_right(line, value)) / (2 * len(line))
    return found


def _recency(item: Item, now: datetime) -> float:
    if item.created_at is None:
        return NEUTRAL
    days = max(0.0, (now - item.created_at).total_seconds() / 86_400)
    return float(NEUTRAL ** (days / HALF_LIFE_DAYS))


def _borderline(top: float | None, retrieval: RetrievalSettings) -> bool:
    """Whether even the best item is uncertain enough for a second look."""
    if top is None or not retrieval.rerank_enable:
        return False
    return retrieval.score_floor <= top < retrieval.rerank_trigger_max


def _reranked(line: Sequence[Assessed], rerank: Reranker, window: int) -> list[Assessed]:
    """The head in the reranker's order; what it left out or made up changes nothing else."""
    head = {one.item.key: one for one in line[:window]}
    named = dict.fromkeys(one.item.key for one in rerank(tuple(head.values())))
    keys = [key for key in named if key in head] + [key for key in head if key not in named]
    return [head[key] for key in keys] + list(line[window:])


def _diverse(
    line: Sequence[Assessed], worths: Mapping[str, float], ranking: RankingSettings
) -> Iterator[Assessed]:
    """At most `diversity_max` per place and author before others, unless those are much worse."""
    left, seen = list(line), Counter[tuple[str, ...]]()
    while left:
        at = next(
            (
                at
                for at, one in enumerate(left)
                if all(seen[group] < ranking.diversity_max for group in _groups(one.item))
            ),
            0,
        )
        drop = worths[left[0].item.key] - worths[left[at].item.key]
        if drop > ranking.diversity_delta:
            at = 0
        chosen = left.pop(at)
        seen.update(_groups(chosen.item))
        yield chosen


def _groups(item: Item) -> list[tuple[str, ...]]:
    """What an item shares with others; copies of one thread are merged already."""
    named = (("place", item.place), ("author", item.author))
    return [(kind, item.source, name) for kind, name in named if name]


def _placed(one: Assessed, at: int, ranking: RankingSettings) -> Assessed:
    low = one.relevance is not None and one.relevance < ranking.low_relevance_below
    return replace(one, rank=at, low_relevance=low)
