"""`doctor`: per upstream, whether it can be asked, what is left, and how to fix it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from functools import partial
from typing import Any

from api import wiring
from api.errors import Broken, SourceError
from api.faces.cli.printing import Format, as_json, say
from api.faces.cli.running import closing, remembered, run
from api.faces.cli.terminal import wrapped
from api.services.containment import Failure, contained, translated
from api.services.ports import Probing, Source
from api.services.text import clean, one_line
from api.settings import Settings
from api.sources import SOURCES, TITLES

_OTHERS = {
    "model": ("models", ("OPENAI_API_KEY",), "docs/settings.md", "OPENAI_BASE_URL"),
    "langfuse": (
        "tracing", ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"), "docs/langfuse.md",
        "LANGFUSE_BASE_URL",
    ),
}  # fmt: skip
"""What is no source: its group of settings, those it needs, its page, and that of its address."""
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
_SAMPLE = "sample world: made up and offline; no key is used and nothing is spent"
_WAY_OUT = "`LISTENPOST_MODE=sandbox` is set; without it the real places are asked."
_NAME = 10
"""Columns of the first column at least."""
_WIDE, _INDENT = 76, 2
"""Columns that a row takes; on a narrower terminal it is wrapped, what to do below it indented."""
Answered = tuple[str, str, int | None]
"""Outcome, detail and what is left of a quota."""


def doctor_command(form: Format) -> int:
    """Probe everything at once, at the lowest cost there is; exit code 4 when no source answers."""
    settings = wiring.load_settings()

    async def work() -> int:
        async with (
            remembered(settings) as memory,
            closing(wiring.build(settings, memory=memory)) as product,
        ):
            names, sample = product.usual, product.sample
            probes, model, langfuse = await asyncio.gather(
                asyncio.gather(*(_probe(product.sources[name]) for name in names)),
                _other(product.probes, "model"),
                _other(product.probes, "langfuse"),
            )
        others: list[Answered] = [model, langfuse]
        named = zip([*names, *_OTHERS], [*probes, *others], strict=True)
        rows = [_row(settings, name, *answer, sample=sample) for name, answer in named]
        mode = "sandbox" if sample else "live"
        if form is Format.json:
            say(as_json({"mode": mode, "upstreams": rows}))
        else:
            lines = [_SAMPLE if sample else f"mode: {mode}"]
            titles = {row["upstream"]: _title(row["upstream"]) for row in rows}
            width = max(_NAME, *map(len, titles.values()))
            for row in rows:
                left = row["quota_left"]
                details = [row["detail"], "" if left is None else f"{left} searches left today"]
                name = titles[row["upstream"]]
                words = ", ".join(filter(None, details))
                lines.append(f"{name:<{width}} {row['outcome']:<16} {words}".rstrip())
                label = "to be real" if row["outcome"] == "ok" else "fix"
                lines += [f"{'':<{width}} {label}: {row['fix']}"] if row["fix"] else []
            if sample:
                lines.append(_WAY_OUT)
            columns = shutil.get_terminal_size((_WIDE, 24)).columns
            if columns < _WIDE:
                leads = (" " * _INDENT if line.startswith(" ") else "" for line in lines)
                lines = [
                    part
                    for line, lead in zip(lines, leads, strict=True)
                    for part in wrapped(line, columns, lead)
                ]
            say("\n".join(lines))
        return 0 if any(row["outcome"] == "ok" for row in rows[: len(names)]) else 4

    return run(work)


def _title(name: str) -> str:
    return TITLES.get(name, name.capitalize())


async def _probe(source: Source | SourceError) -> Answered:
    try:
        if isinstance(source, SourceError):
            raise source
        broken = partial(Broken, source.name)
        probe = await translated(source.probe(), f"the probe of {source.name}", broken)
    except SourceError as error:
        return error.code, error.detail, None
    return probe.outcome, probe.detail, probe.quota_left


async def _other(probes: Mapping[str, Probing], name: str) -> Answered:
    answer = await contained(probes[name](), f"the probe of {name}")
    if isinstance(answer, Failure):
        return "broken", answer.message, None
    return *answer, None


def _row(
    settings: Settings, name: str, outcome: str, detail: str, left: int | None, *, sample: bool
) -> dict[str, Any]:
    """One upstream; what would make it real is the fix of a stand-in."""
    if spec := SOURCES.get(name):
        variables, page, address = spec.needs(settings.sources), spec.page, spec.address
        missing = spec.missing(settings.sources)
    else:
        group, variables, page, address = _OTHERS[name]
        values = getattr(settings, group)
        missing = tuple(name for name in variables if not getattr(values, name.lower()))
    keys = " and ".join(f"`{variable}`" for variable in variables)
    where = f"{keys or 'its settings'}, see {page}"
    fix = _FIXES.get(outcome, "").format(keys=where, address=address)
    if outcome == "not_configured" and not missing:
        fix = f"correct what is named, see {page}"
    if sample and outcome == "ok":
        detail = "a stand-in answers"
        if missing:
            fix = f"set {where}"
        elif variables:
            detail += f", though {keys} is set"
    return {
        "upstream": name,
        "configured": not missing if sample else outcome != "not_configured",
        "outcome": outcome,
        "detail": one_line(clean(detail)),
        "quota_left": None if sample else left,
        "fix": fix,
    }
