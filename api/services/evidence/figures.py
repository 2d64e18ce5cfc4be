"""Every number in a report, counted from items; the model never counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from math import sqrt
from statistics import median
from typing import Any

from api.services.schemas import Assessed, Gathered
from api.services.text import one_line

Z95 = 1.959963984540054
"""Normal quantile of a two-sided 95 % interval."""
DAYS_BY_DAY = 31
"""A timeline that reaches back further is counted by week."""
SENTIMENTS = {"positive": 1, "neutral": 0, "negative": -1}


def figures(
    sources: Sequence[Gathered], kept: Sequence[Assessed], *, now: datetime
) -> dict[str, Any]:
    """All figures of a report, ready for JSON; the order of the input does not matter.

    Days and weeks (from Monday) are UTC. Shares and intervals of nothing are None. Engagement is
    summarised per source and measure, never summed.
    """
    return {
        "sources": _sources(sources, kept),
        "sentiment": _sentiment(kept),
        "timeline": _timeline(kept, now),
        "aspects": _aspects(kept),
        "places": _places(kept),
        "engagement": _engagement(kept),
    }


def _sources(sources: Sequence[Gathered], kept: Sequence[Assessed]) -> dict[str, Any]:
    """By source over all its queries: distinct items seen, past the gate, and kept in the end."""
    found: dict[str, Any] = {}
    for name in sorted({gathered.source for gathered in sources}):
        mine = [gathered for gathered in sources if gathered.source == name]
        relevant = {one.item.key for gathered in mine for one in gathered.kept}
        seen = relevant | {one.item.key for gathered in mine for one in gathered.dropped}
        found[name] = {
            "fetched": len(seen),
            "relevant": len(relevant),
            "kept": sum(one.item.key in seen for one in kept),
            "yield_ratio": len(relevant) / len(seen) if seen else 1.0,
            "refetched": any(gathered.refetched for gathered in mine),
        }
    return found


def _sentiment(kept: Sequence[Assessed]) -> dict[str, Any]:
    felt = Counter(one.grade.sentiment for one in kept if one.grade is not None)
    counts = {name: felt[value] for name, value in SENTIMENTS.items()}
    n = sum(counts.values())
    return {
        "n": n,
        **counts,
        "shares": {name: count / n if n else None for name, count in counts.items()},
        "wilson95": {name: wilson(count, n) for name, count in counts.items()},
        "ungraded": len(kept) - n,
    }


def wilson(count: int, n: int) -> list[float] | None:
    """The 95 % Wilson interval of a share; None of nothing."""
    if not n:
        return None
    share = count / n
    middle = share + Z95**2 / (2 * n)
    spread = Z95 * sqrt(share * (1 - share) / n + Z95**2 / (4 * n * n))
    scale = 1 + Z95**2 / n
    return [max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)]


def _timeline(kept: Sequence[Assessed], now: datetime) -> dict[str, Any]:
    """Items by day, or by week once the oldest is 31 days past; empty ones are left out."""
    days = [
        one.item.created_at.astimezone(UTC).date()
        for one in kept
        if one.item.created_at is not None
    ]
    weekly = bool(days) and (now.astimezone(UTC).date() - min(days)).days > DAYS_BY_DAY
    starts = Counter(_monday(day) if weekly else day for day in days)
    return {
        "unit": "week" if weekly else "day",
        "points": [
            {"start": start.isoformat(), "count": starts[start]} for start in sorted(starts)
        ],
        "undated": len(kept) - len(days),
    }


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _aspects(kept: Sequence[Assessed]) -> list[dict[str, Any]]:
    """By aspect, most often named first: the items that name it, each once, best ranked first."""
    named: dict[str, dict[str, Assessed]] = {}
    for one in kept:
        for aspect in one.grade.aspects if one.grade is not None else ():
            if label := one_line(aspect).casefold():
                named.setdefault(label, {})[one.item.key] = one
    return [
        {
            "aspect": label,
            "count": len(items),
            "positive": _feeling(items.values(), 1),
            "negative": _feeling(items.values(), -1),
            "cites": sorted(items, key=lambda key: (items[key].rank or len(kept) + 1, key)),
        }
        for label, items in sorted(named.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    ]


def _feeling(items: Iterable[Assessed], sentiment: int) -> int:
    return sum(one.grade is not None and one.grade.sentiment == sentiment for one in items)


def _places(kept: Sequence[Assessed]) -> list[dict[str, Any]]:
    """Where the items stood, most first; a merged copy counts once, in its main place."""
    counts = Counter((one.item.source, one.item.place) for one in kept if one.item.place)
    return [
        {"place": place, "source": source, "count": count}
        for (source, place), count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    ]


def _engagement(kept: Sequence[Assessed]) -> dict[str, Any]:
    values: dict[str, dict[str, list[float]]] = {}
    for one in kept:
        for name, value in one.item.engagement.items():
            if value is not None:
                values.setdefault(one.item.source, {}).setdefault(name, []).append(value)
    return {
        source: {
            name: {"n": len(many), "median": median(many), "max": max(many)}
            for name, many in sorted(measures.items())
        }
        for source, measures in sorted(values.items())
    }
