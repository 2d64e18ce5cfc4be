"""The status of every source, of the model and of Langfuse, each probed once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from api.core.ports import Source, UpstreamCheck
from api.core.text import clean, one_line
from api.core.work import Failure, contained, translated
from api.errors import Broken, SourceError, install_command, missing_module
from api.services.product import Product, ServerCheck
from api.settings import Settings
from api.sources import SOURCE_TITLES, SOURCES

# Upstreams that are no sources: group of settings, variables that they need, page of the docs, variable of the address.
_OTHERS = {
    "model": ("models", ("OPENAI_API_KEY",), "docs/settings.md", "OPENAI_BASE_URL"),
    "langfuse": (
        "tracing", ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"), "docs/langfuse.md",
        "LANGFUSE_BASE_URL",
    ),
}  # fmt: skip
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
Answered = tuple[str, str, int | None]
"""Outcome, detail and what is left of a quota."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """State of one source, of the model or of Langfuse, with its remedy."""

    upstream: str
    configured: bool
    outcome: str
    detail: str
    quota_left: int | None
    """Searches left today; None when they are not counted."""
    fix: str
    """Empty where there is nothing to do."""

    @property
    def title(self) -> str:
        """Display name, such as `Hacker News`."""
        return SOURCE_TITLES.get(self.upstream, self.upstream.capitalize())

    @property
    def is_source(self) -> bool:
        """Whether it is a source, not the model or Langfuse."""
        return self.upstream not in _OTHERS


_SLOW = (
    "the server is slow or busy: raise `LISTENPOST_SCORING_TIMEOUT`, and on one's own server set "
    "`LISTENPOST_MODEL_CONCURRENCY` to its slots, see docs/models.md"
)


async def check_upstreams(settings: Settings, product: Product, *, thorough: bool = False) -> list[Upstream]:
    """Probe sources and services at the same time, each by its cheapest request.

    Sources come first; those that are switched off are the last of them, and no request is sent to them.

    `thorough` asks a real model what it will be asked, at real size, instead of one item.
    """
    names = product.usual
    server = product.server_check if thorough and not product.sample else None
    others = [name for name in _OTHERS if server is None or name != "model"]
    probes = [*(_probe(product.sources[name]) for name in names), *(_other(product.probes, name) for name in others)]
    answers, checked = await asyncio.gather(asyncio.gather(*probes), _server(server))
    named = zip([*names, *others], answers, strict=True)
    rows = [_upstream(settings, name, *answer, sample=product.sample) for name, answer in named]
    if checked is not None:
        outcome, detail, remedies = checked
        model = _upstream(settings, "model", outcome, detail, None, sample=False)
        rows.insert(len(names), replace(model, fix=remedies or model.fix))
    # `LISTENPOST_SOURCES` leaves out what it does not name
    off = [] if settings.sources.sources else [spec.name for spec in SOURCES.values() if spec.name not in names]
    return [*rows[: len(names)], *_switched_off(settings, off), *rows[len(names) :]]


def _switched_off(settings: Settings, names: Sequence[str]) -> Iterator[Upstream]:
    for name in names:
        if note := SOURCES[name].off_note(settings.sources):
            yield Upstream(name, SOURCES[name].configured(settings.sources), "not_asked", note, None, "")


async def _server(check: ServerCheck | None) -> tuple[str, str, str] | None:
    if check is None:
        return None
    answer = await contained(check(), "the check of the model server")
    return ("broken", answer.message, "") if isinstance(answer, Failure) else answer


async def _probe(source: Source | SourceError) -> Answered:
    try:
        if isinstance(source, SourceError):
            raise source
        broken = partial(Broken, source.name)
        probe = await translated(source.probe(), f"the probe of {source.name}", broken)
    except SourceError as error:
        return error.code, error.detail, None
    return probe.outcome, probe.detail, probe.quota_left


async def _other(probes: Mapping[str, UpstreamCheck], name: str) -> Answered:
    answer = await contained(probes[name](), f"the probe of {name}")
    if isinstance(answer, Failure):
        return "broken", answer.message, None
    return *answer, None


def _upstream(settings: Settings, name: str, outcome: str, detail: str, left: int | None, *, sample: bool) -> Upstream:
    """State of one upstream; for a stand-in the remedy says how to use the real one."""
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
    if not missing and missing_module(name):
        fix = f"run {install_command(name)}"
    elif outcome == "not_configured" and not missing:
        fix = f"correct what is named, see {page}"
    if name == "model" and outcome == "timed_out":
        fix = _SLOW
    if sample and outcome == "ok":
        detail = "a stand-in answers"
        if missing:
            fix = f"set {where}"
        elif variables:
            detail += f", though {keys} is set"
    return Upstream(
        upstream=name,
        configured=not missing if sample else outcome != "not_configured",
        outcome=outcome,
        detail=one_line(clean(detail)),
        quota_left=None if sample else left,
        fix=fix,
    )
