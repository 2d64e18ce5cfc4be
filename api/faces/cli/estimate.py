"""What a question would cost, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api import wiring
from api.errors import UsageError
from api.faces.cli.printing import as_json as json_text
from api.services.listening import Ask
from api.services.schemas import Item
from api.settings import Settings
from api.sources import SOURCES
from api.sources.items import NAME
from api.sources.paging import within
from api.wiring.estimating import bounds, fetch_bounds

Bounds = tuple[dict[str, Any], dict[str, Any]]


def analysis_text(
    settings: Settings, ask: Ask, own: Sequence[Item] | None, *, as_json: bool
) -> str:
    """Least and most of an analysis, as text or JSON.

    Raises:
        UsageError: an unknown source.
    """
    _check(ask, (NAME,) if own is not None else tuple(SOURCES))
    count = None
    if own is not None:
        count = len({item.key for item in own if within(ask.window, item.created_at)})
    sample = wiring.mode_for(settings, own) == "sandbox"
    return _text(bounds(settings, ask, count), sample=sample, as_json=as_json)


def fetch_text(settings: Settings, ask: Ask, *, as_json: bool) -> str:
    """The same for one source."""
    _check(ask, tuple(SOURCES))
    sample = wiring.mode_of(settings) == "sandbox"
    return _text(fetch_bounds(settings, ask), sample=sample, as_json=as_json)


def _check(ask: Ask, known: Sequence[str]) -> None:
    for name in ask.sources:
        if name not in known:
            there = ", ".join(f"`{source}`" for source in known)
            raise UsageError(f"there is no source `{name[:40]}`; there are {there}")


def _text(found: Bounds, *, sample: bool, as_json: bool) -> str:
    low, high = found
    if as_json:
        return json_text({"minimum": low, "maximum": high, "sample": sample})
    names = ("upstream_calls", "youtube_searches", "model_calls", "usd")
    lines = [f"{name}: {_show(low[name])} to {_show(high[name])}" for name in names]
    lines += ["Offline sandbox: nothing is really spent."] if sample else []
    return "\n".join(lines)


def _show(value: float | int | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
