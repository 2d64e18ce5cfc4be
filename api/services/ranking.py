"""Ranking: distinct, floored, weighed, ordered and made diverse; the same input, the same order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from urllib.parse import urlsplit

from api.services.duplicates import distinct
from api.services.reranking import Reranker
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
    judged = [_floored(one, depth, ranking.relevance_threshold if guarded else None)
              for one in unique.kept]  # fmt: skip
    failed = [one for one in judged if one.dropped_by is not None]
    order = _Order([one for one in judged if one.dropped_by is None], ranking, source_weights, now)
    window, notes = None, [f"{len(unique.copies)} copies merged"] if unique.copies else []
    if guarded and depth.rerank and retrieval.rerank_enable and rerank is not None:
        window = _reranked(order, rerank, retrieval)
        notes += ["reranking ignored: it did not return the same items"] if window == [] else []
    lined = order.line if not window else window + order.line[len(window) :]
    if guarded and depth.diversity and ranking.diversity_max:
        lined = list(_diverse(lined, order.worth, ranking))
    return Ranked(
        tuple(_placed(one, at, ranking) for at, one in enumerate(lined, 1)),
        tuple(sorted((*failed, *unique.copies), key=lambda one: one.item.key)),
        ranking.rerank_top_k or depth.max_evidence,
        tuple(notes),
        order.top,
        bool(window),
        len(failed),
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


class _Order:
    """Items by relevance, engagement within their source, recency and key."""

    def __init__(
        self,
        items: Sequence[Assessed],
        ranking: RankingSettings,
        weights: Mapping[str, float],
        now: datetime,
    ) -> None:
        level = ranking.rerank_weight_source
        self._known = {
            one.item.key: min(1.0, one.relevance * _weight(one.item, level, weights))
            for one in items
            if one.relevance is not None
        }
        standing = _percentiles([one.item for one in items])
        self.line = sorted(
            items,
            key=lambda one: (
                -self.worth(one),
                -standing.get(one.item.key, NEUTRAL),
                -_recency(one.item, now),
                one.item.key,
            ),
        )
        self.top = max((one.relevance for one in items if one.relevance is not None), default=None)

    def worth(self, one: Assessed) -> float:
        """Weighted relevance, at most 1."""
        return self._known.get(one.item.key, NEUTRAL)


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
    """Where an item's main measure stands among its own source's, 0 to 1; unknown ones are absent."""
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


def _reranked(
    order: _Order, rerank: Reranker, retrieval: RetrievalSettings
) -> list[Assessed] | None:
    """The reordered head; None when the best item needs no second look, empty when it was no
    reordering."""
    if order.top is None or not retrieval.score_floor <= order.top < retrieval.rerank_trigger_max:
        return None
    head = {one.item.key: one for one in order.line[: retrieval.rerank_window]}
    keys = [one.item.key for one in rerank(tuple(head.values()))]
    return [head[key] for key in keys] if Counter(keys) == Counter(head) else []


def _diverse(
    line: Sequence[Assessed], worth: Worth, ranking: RankingSettings
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
        if worth(left[0]) - worth(left[at]) > ranking.diversity_delta:
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
