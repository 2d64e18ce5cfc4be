"""What a question may cost, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api.judges.completions import Tokens
from api.services.listening import Ask
from api.settings import Settings
from api.sources import SOURCES

_GATE, _GRADE, _REWRITE = (150, 80, 4), (700, 600, 60), (1500, 500)
"""Tokens: per gate call and item in and out; per grade call and item in and out; per other call."""
_REPORT = (900, 320, 900)
"""Tokens in per report and per exhibit, and out."""
_PAGES = {"reddit": 100, "youtube": 50, "amazon": 16}
"""Entries a page of each source holds."""
_TOKEN_CALLS = {"reddit": 1}
"""Requests a source makes once, before its first search."""
UNKNOWN_USD = 0.1
"""Stands in for an analysis by models whose price nobody knows."""


def bounds(settings: Settings, ask: Ask) -> tuple[dict[str, Any], dict[str, Any]]:
    """Least (one page a source, nothing kept) and most (refetched, everything kept, rewritten)."""
    depth = settings.depths[ask.depth]
    limit, names = ask.limit or depth.limit, ask.sources or tuple(SOURCES)
    widest = limit * settings.adaptive.refetch_factor
    most_queries = max(depth.query_variants, depth.retry_variants)
    low = _costs(settings, names, [limit] * depth.query_variants, kept=0)
    high = _costs(settings, names, [widest] * most_queries, kept=widest)
    return low, high


def most_usd(settings: Settings, ask: Ask) -> float:
    """USD that a question may cost at most."""
    usd = bounds(settings, ask)[1]["usd"]
    return UNKNOWN_USD if usd is None else float(usd)


def gate_usd(settings: Settings, items: int) -> float:
    """USD that judging this many items may cost."""
    from api.judges.client import price  # loads the model's library

    calls = _chunks(items, 50)
    used = Tokens(
        prompt_tokens=calls * _GATE[0] + items * _GATE[1], completion_tokens=items * _GATE[2]
    )
    return price(used, settings.models.filter_model) or UNKNOWN_USD / 100


def _costs(
    settings: Settings, names: Sequence[str], limits: Sequence[int], kept: int
) -> dict[str, Any]:
    from api.judges.client import price  # loads the model's library

    queries, limit = len(limits), limits[0]
    pages = {name: queries * _chunks(limit, _PAGES.get(name, 50)) for name in names}
    details = {
        name: queries * kept + (queries if kept and name == "youtube" else 0) for name in names
    }
    calls = sum(_TOKEN_CALLS.get(name, 0) + pages[name] + details[name] for name in names)
    judged = len(names) * queries * limit
    gates = len(names) * queries * (2 if kept else 1)
    grades = len(names) * queries * _chunks(kept, 10)
    others = (queries > 1) + 1
    filter_in = gates * _GATE[0] + judged * _GATE[1] + grades * _GRADE[0]
    filter_in += len(names) * queries * kept * _GRADE[1] + others * _REWRITE[0]
    filter_out = judged * _GATE[2] + len(names) * queries * kept * _GRADE[2] + others * _REWRITE[1]
    exhibits = min(
        len(names) * queries * kept, max(d.max_evidence for d in settings.depths.values())
    )
    models = settings.models
    usd = add(
        price(Tokens(prompt_tokens=filter_in, completion_tokens=filter_out), models.filter_model),
        price(_report_tokens(exhibits), models.agent_model) if kept else 0.0,
    )
    return {
        "upstream_calls": calls,
        "youtube_searches": pages.get("youtube", 0),
        "model_calls": gates + grades + others,
        "usd": None if usd is None else round(usd, 4),
    }


def _report_tokens(exhibits: int) -> Tokens:
    return Tokens(prompt_tokens=_REPORT[0] + exhibits * _REPORT[1], completion_tokens=_REPORT[2])


def add(one: float | None, other: float | None) -> float | None:
    """The sum; an unknown price stays unknown."""
    return None if one is None or other is None else one + other


def _chunks(items: int, size: int) -> int:
    return -(-items // size)
