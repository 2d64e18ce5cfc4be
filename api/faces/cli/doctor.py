"""`doctor`: per upstream, whether it can be asked, what is left, and how to fix it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from api import wiring
from api.errors import SourceError
from api.faces.cli.choices import Format
from api.faces.cli.running import closing, run
from api.services.dossier import TITLES
from api.services.ports import Source
from api.services.text import one_line

_FIX = {
    "reddit": "set `REDDIT_CLIENT_ID` and `REDDIT_CLIENT_SECRET`, see docs/sources/reddit.md",
    "youtube": "set `YOUTUBE_API_KEY`, see docs/sources/youtube.md",
    "amazon": "set `AMAZON_PROVIDER` (and `AMAZON_API_KEY`), see docs/sources/amazon.md",
    "model": "set `OPENAI_API_KEY` and, for another server, `OPENAI_BASE_URL`",
    "langfuse": "set `LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY`, see docs/langfuse.md",
}


def doctor_command(form: Format) -> int:
    """Probe everything at once, at the lowest cost there is; exit code 0 when something works."""
    settings = wiring.load_settings()

    async def work() -> int:
        async with closing(wiring.build(settings)) as built:
            names = list(built.kit.sources)
            probes = await asyncio.gather(*(_probe(built.kit.sources[name]) for name in names))
            rows = [_row(name, *probe) for name, probe in zip(names, probes, strict=True)]
            rows.append(_row("model", *await built.probe_model()))
            rows.append(_row("langfuse", *await built.probe_tracing()))
            mode = built.mode
        report = {"mode": mode, "upstreams": rows}
        print(json.dumps(report) if form is Format.json else _text(report))
        return 0 if any(row["outcome"] == "ok" for row in rows) else 4

    return run(work)


async def _probe(source: Source | SourceError) -> tuple[str, str, int | None]:
    if isinstance(source, SourceError):
        return source.code, str(source), None
    try:
        probe = await source.probe()
    except SourceError as error:
        return error.code, str(error), None
    return probe.outcome, probe.detail, probe.quota_left


def _row(name: str, outcome: str, detail: str, left: int | None = None) -> dict[str, Any]:
    return {
        "upstream": name,
        "configured": outcome != "not_configured",
        "outcome": outcome,
        "detail": one_line(detail),
        "quota_left": left,
        "fix": "" if outcome == "ok" else _FIX.get(name, ""),
    }


def _text(report: dict[str, Any]) -> str:
    mode = report["mode"]
    lines = [f"mode: {mode}" + (" (offline, sample data)" if mode == "sandbox" else "")]
    for row in report["upstreams"]:
        left = f", {row['quota_left']} searches left today" if row["quota_left"] is not None else ""
        name = TITLES.get(row["upstream"], row["upstream"].capitalize())
        lines.append(f"{name:<10} {row['outcome']:<16} {row['detail']}{left}")
        if row["fix"]:
            lines.append(f"{'':<10} fix: {row['fix']}")
    if mode == "sandbox":
        lines.append("To ask the real sites, set at least one source's variables.")
    return "\n".join(lines)
