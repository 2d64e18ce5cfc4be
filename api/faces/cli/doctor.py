"""`doctor`: per upstream, whether it can be asked, what is left, and how to fix it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from api import wiring
from api.errors import SourceError
from api.faces.cli.choices import Format
from api.faces.cli.printing import as_json, say
from api.faces.cli.remembering import remembered
from api.faces.cli.running import closing, run
from api.services.ports import Source
from api.services.text import clean, one_line
from api.settings import Settings
from api.sources import SOURCES, TITLES

_KEYS = {
    "model": "`OPENAI_API_KEY`, see docs/settings.md",
    "langfuse": "`LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY`, see docs/langfuse.md",
}
_ADDRESS = {
    "model": "OPENAI_BASE_URL",
    "langfuse": "LANGFUSE_BASE_URL",
}
_FIXES = {
    "not_configured": "set {keys}",
    "refused": "check {keys}",
    "rate_limited": "wait some minutes and ask less often",
    "quota_exhausted": "wait for the reset, or use the key of another project",
    "blocked": "ask less often, from another network or another provider",
    "timed_out": "try again later; check the network and, if it is set, `{address}`",
    "unreachable": "check the network and, if it is set, `{address}`",
    "broken": "check `{address}`, if it is set; else report what it says",
}


def doctor_command(form: Format) -> int:
    """Probe everything at once, at the lowest cost there is; exit code 4 when no source answers."""
    settings = wiring.load_settings()

    async def work() -> int:
        async with (
            remembered(settings) as memory,
            closing(wiring.build(settings, memory=memory)) as product,
        ):
            names = list(product.sources)
            *probes, model, langfuse = await asyncio.gather(
                *(_probe(product.sources[name]) for name in names),
                _alone(product.probes["model"]()),
                _alone(product.probes["langfuse"]()),
            )
            mode = "sandbox" if product.sample else "live"
        rows = [_row(settings, name, *probe) for name, probe in zip(names, probes, strict=True)]
        asked = any(row["outcome"] == "ok" for row in rows)
        rows += [_row(settings, "model", *model), _row(settings, "langfuse", *langfuse)]
        report = {"mode": mode, "upstreams": rows}
        say(as_json(report) if form is Format.json else _text(report))
        return 0 if asked else 4

    return run(work)


async def _alone(probing: Awaitable[tuple[str, str]]) -> tuple[str, str, int | None]:
    """Of what has no quota that it tells."""
    return (*await probing, None)


async def _probe(source: Source | SourceError) -> tuple[str, str, int | None]:
    if isinstance(source, SourceError):
        return source.code, source.detail, None
    try:
        probe = await source.probe()
    except SourceError as error:
        return error.code, error.detail, None
    return probe.outcome, probe.detail, probe.quota_left


def _row(
    settings: Settings, name: str, outcome: str, detail: str, left: int | None = None
) -> dict[str, Any]:
    keys, address = _KEYS.get(name, ""), _ADDRESS.get(name, "")
    if spec := SOURCES.get(name):
        needed = " and ".join(f"`{variable}`" for variable in spec.needs(settings.sources))
        keys, address = f"{needed}, see {spec.page}", spec.address
    return {
        "upstream": name,
        "configured": outcome != "not_configured",
        "outcome": outcome,
        "detail": one_line(clean(detail)),
        "quota_left": left,
        "fix": _FIXES.get(outcome, "").format(keys=keys, address=address),
    }


def _text(report: dict[str, Any]) -> str:
    mode = report["mode"]
    lines = [f"mode: {mode}" + (" (offline, sample data)" if mode == "sandbox" else "")]
    for row in report["upstreams"]:
        left = [] if row["quota_left"] is None else [f"{row['quota_left']} searches left today"]
        name = TITLES.get(row["upstream"], row["upstream"].capitalize())
        said = ", ".join([row["detail"], *left] if row["detail"] else left)
        lines.append(f"{name:<10} {row['outcome']:<16} {said}".rstrip())
        if row["fix"]:
            lines.append(f"{'':<10} fix: {row['fix']}")
    if mode == "sandbox":
        lines.append("To ask the real sites, set at least one source's variables.")
    return "\n".join(lines)
