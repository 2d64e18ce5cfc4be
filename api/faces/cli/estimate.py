"""What a question would cost, before anything is asked."""

from __future__ import annotations

import json

from api import wiring
from api.services.listening import Ask
from api.settings import Settings
from api.wiring.estimating import bounds


def estimate(settings: Settings, ask: Ask, *, as_json: bool) -> str:
    """Minimum and maximum of source requests, model calls and USD, as text or JSON."""
    low, high = bounds(settings, ask)
    sample = wiring.mode_of(settings) == "sandbox"
    if as_json:
        return json.dumps({"minimum": low, "maximum": high, "sample": sample})
    lines = [
        f"{name}: {_show(low[name])} to {_show(high[name])}"
        for name in ("upstream_calls", "youtube_searches", "model_calls", "usd")
    ]
    note = "Offline sandbox: nothing is really spent." if sample else ""
    return "\n".join([*lines, note]).rstrip()


def _show(value: float | int | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
