"""One cell of the fault matrix: a question with one broken call, and one after the repair."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from pydantic import SecretStr

from api import bootstrap
from api.bootstrap.storage import open_store_of
from api.core.display_names import MODEL_REASONS, OUTCOME_REASONS
from api.core.http_limits import LONGEST_WAIT
from api.errors import StoreUnavailable
from api.reports.report import Report, SourceReport
from api.sandbox.discourse_server import FORUM
from api.sandbox.feeds_server import ROOT as FEEDS
from api.services.product import Ask, Product, analyze, fetch
from api.settings import DeepDepth, Settings
from api.sources import SOURCES
from fault_proxy import Breaker, FaultProxy

SECRET = "planted-K3y"
"""Part of every key, secret and password."""
MOST_SECONDS = 90
"""Longest time of a question, whatever is wrong."""
MOST_BYTES = 60_000_000
"""Most bytes that one run may read of an endless answer: some requests, each up to its limit."""
SHORT_WAIT, LONG_WAIT = 6.0, 60.0
"""Seconds for a call without an answer, and for any other: machines are busy."""
STREAM_SECONDS = 8.0
"""Seconds that a stream is read at most."""
BEFORE, QUESTION, AFTER = "plaud", "plaud note", "plaud note pro"
UpstreamKind = Literal["api", "open", "lists", "feed", "stream", "page", "paid", "model", "traces", "database"]
KEYLESS: frozenset[UpstreamKind] = frozenset({"open", "lists", "feed", "stream"})
"""Kinds that need no key. Each is asked beside one neighbour alone."""
ConnectionMode = Literal["answer", "closed", "tls", "warm"]
# `comments: 3 of 4 failed (access refused, unreachable)`
_UNREAD = re.compile(r"(?:answers|comments|reviews)\b.*\(([\w, ]+)\)$")
_SEARCHES = {"token", "search", "reviews", "list", "file", "document", "xml", "stream"}
"""Calls of which each is a part of its source's search."""
_WARNINGS = {
    "model grades": re.compile(r"grades defaulted to 3 \((\w+): \d+"),
    "model rewrite": re.compile(r"only the original query is asked: model: (\w+)"),
    "langfuse traces": re.compile(r"takes no (traces)"),
}
"""Log lines of calls that no report mentions, with the reason."""
# `the report model could not be used (an HTTP error: report): themes of the items instead`
_UNWRITTEN = re.compile(r"the report model could not be used \(([^:)]+)")


@dataclass(frozen=True, slots=True)
class Call:
    """One kind of request to another machine."""

    name: str
    """`reddit search`: its upstream, and the call that the proxy recognises."""
    kind: UpstreamKind
    """Kind of upstream; expected outcomes depend on it."""
    first: bool = False
    """The first call to its upstream, which also meets faults of the connection."""
    only_faults: frozenset[str] = frozenset()
    """Faults that it meets, where the same code meets the others elsewhere; empty: all."""

    @property
    def upstream(self) -> str:
        """Name of the source, or `model`, `langfuse`, `database`; `paid` is Amazon by a provider."""
        return self.name.split(" ")[0]

    @property
    def part(self) -> str:
        """Name of the call without its upstream."""
        return self.name.split(" ")[1]

    @property
    def outcome_of(self) -> str:
        """The call in whose outcome a report tells of this one."""
        upstream = self.upstream.replace("paid", "amazon")
        return f"{upstream} search" if self.part in _SEARCHES else f"{upstream} {self.part}"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong, and the outcome that `docs/errors.md` names for it."""

    name: str
    breaker: Breaker
    expected: Mapping[UpstreamKind, str]
    """Outcome by kind of upstream, alternatives with `|`; other kinds cannot have the fault."""
    mode: ConnectionMode = "answer"
    waits: bool = False
    """Whether only a deadline ends the call, since no answer comes."""
    parts: tuple[str, ...] = ()
    """Calls that can have the fault; empty: all."""

    def concerns(self, call: Call) -> bool:
        """Whether the call can have the fault."""
        if call.kind not in self.expected or (self.parts and call.part not in self.parts):
            return False
        if call.only_faults and self.name not in call.only_faults:
            return False
        if self.mode in {"closed", "tls"}:
            return call.first
        return self.mode != "warm" or call.part not in {"token", "file"}  # which are not asked for again


@dataclass(slots=True)
class FaultResult:
    """Outcome of one call with one fault."""

    call: Call
    fault: str
    expected: str
    """Outcome, or alternatives with `|`, in the words of `docs/errors.md`."""
    outcome: str = "nothing"
    """The outcome that was observed; `ok` when nothing was lost."""
    recovered: bool | None = None
    """Whether the next question succeeded; None: the fault does not go away."""
    unexplained: list[str] = field(default_factory=list)
    """Defects, hanging calls, harm to other calls, a fault that was not met."""
    secrets: list[str] = field(default_factory=list)
    """Texts in which a planted key appeared."""
    log: list[str] = field(default_factory=list)

    @property
    def as_expected(self) -> bool:
        """Whether the outcome is one of the expected ones."""
        return self.outcome in self.expected.split("|")

    @property
    def passed(self) -> bool:
        """Whether nothing has to be repaired."""
        return self.as_expected and not self.secrets and not self.unexplained and self.recovered != 0

    def __str__(self) -> str:
        """One line with the outcome and what is wrong."""
        line = f"{self.call.name}, {self.fault}: {self.outcome}, expected {self.expected}"
        more = [*self.unexplained, *self.secrets, *(() if self.recovered else self.log[-2:])]
        return " | ".join([line, *more])


_current: ContextVar[FaultResult] = ContextVar("cell")
_asked: dict[str, FaultResult] = {}
"""Results by the address of their proxy, for threads without a context."""


class _Log(logging.Handler):
    """Adds log records to the run that is current; threads of clients carry its context."""

    def emit(self, record: logging.LogRecord) -> None:
        text = logging.Formatter().format(record)
        named = (cell for address, cell in _asked.items() if f"`{address}`" in text)
        cell = _current.get(None) or next(named, None)
        if cell is not None:
            cell.log.append(text)
            if record.name == "api.core.work":
                cell.unexplained.append(f"a defect: {text.splitlines()[-1]}")


@contextmanager
def logged() -> Iterator[None]:
    """Log records inside belong to the current run, and are not printed."""
    root, handler = logging.getLogger(), _Log(logging.INFO)
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


async def run(call: Call, fault: Fault, sandbox: str) -> FaultResult:
    """Ask a question with the fault, and one without; ends after `MOST_SECONDS` at the latest."""
    expected = fault.expected[call.kind]
    if call.part == "details":  # of the reason its note says nothing
        words = ("ok" if word == "ok" else "unread" for word in expected.split("|"))
        expected = "|".join(words)
    cell = FaultResult(call, fault.name, expected)
    _current.set(cell)
    try:
        async with asyncio.timeout(MOST_SECONDS):
            await _run(cell, fault, sandbox)
    except TimeoutError:
        cell.unexplained.append(f"not ended after {MOST_SECONDS} s")
    except Exception as error:  # whatever gets this far is what the matrix looks for
        cell.unexplained.append(f"{type(error).__name__} left the question: {error}"[:300])
    return cell


async def _run(cell: FaultResult, fault: Fault, sandbox: str) -> None:
    call = cell.call
    async with FaultProxy(sandbox, call.part, fault.breaker, raw=call.kind == "database") as proxy:
        host = f"127.0.0.1:{proxy.port}"
        _asked[host] = cell
        address = f"{'https' if fault.mode == 'tls' else 'http'}://{host}"
        settings = _settings(call, address, sandbox, SHORT_WAIT if fault.waits else LONG_WAIT)
        product = bootstrap.build(settings)
        if fault.mode == "warm":
            proxy.breaking = False
            await analyze(product, Ask(BEFORE, "deep"))
            proxy.breaking = True
        if fault.mode == "closed":
            proxy.shut()
        stored = await _stored(settings) if call.kind == "database" else "ok"
        report = await analyze(product, Ask(QUESTION, "deep"))
        if call.kind == "traces":
            await product.aclose()
        outcomes = _outcomes(report.sources, cell.log, report) | {"database store": stored}
        cell.outcome = outcomes.pop(call.outcome_of, "ok")
        _examine(cell, report, proxy, fault.mode, outcomes)
        if fault.mode != "tls" and call.kind != "database":
            cell.log.clear()
            proxy.breaking = False
            await proxy.open()
            if call.kind in {"traces", "feed"}:  # a feed is asked again in five minutes, by another process now
                await product.aclose()
                product = bootstrap.build(_settings(call, address, sandbox, LONG_WAIT))
            outcomes = await _ask_again(cell, product)
            await product.aclose()
            failing = {name: outcome for name, outcome in outcomes.items() if outcome != "ok"}
            limits = ({call.outcome_of: "rate_limited"}, {call.outcome_of: "quota_exhausted"})
            waits = failing in limits and call.kind in KEYLESS
            cell.recovered = None if waits else not failing  # such a place is left alone as it asks
            cell.log += [f"then: {failing}"]
        await product.aclose()
        if call.kind == "traces" and any(SECRET.encode() in body for body in proxy.bodies):
            cell.secrets.append("in a trace")
        del _asked[host]


async def _ask_again(cell: FaultResult, product: Product) -> dict[str, str]:
    """Outcomes of the next question, or of the part of it that makes the call again."""
    if cell.call.part in {"rewrite", "report", "support"}:
        report = await analyze(product, Ask(AFTER, "deep"))
        return _outcomes(report.sources, cell.log, report)
    upstream = cell.call.upstream.replace("paid", "amazon")
    source = upstream if upstream in product.sources else "youtube"
    answer = await fetch(product, source, Ask(AFTER, "standard"))
    return _outcomes({source: answer.fetched}, cell.log)


def _settings(call: Call, proxy: str, sandbox: str, seconds: float) -> Settings:
    """Settings with all upstreams in the sandbox but that of the call; every key is planted."""
    settings, key = bootstrap.load_settings(), SecretStr(f"sk-{SECRET}")
    upstream = call.upstream
    at = dict.fromkeys((*SOURCES, "model", "langfuse"), sandbox)
    at["amazon" if call.kind == "paid" else upstream] = proxy
    waiting = {
        "gate": "scoring", "grades": "scoring", "support": "scoring", "rewrite": "rewrite",
        "report": "report", "traces": "flush", "store": "store",
    }.get(call.part, "source")  # fmt: skip
    limits = dict.fromkeys(("source", "scoring", "rewrite", "report", "flush"), LONG_WAIT)
    limits[waiting] = seconds
    # with one neighbour, which must not suffer
    neighbour = "lemmy" if upstream == "hackernews" else "hackernews"
    beside = f"{neighbour},{upstream}" if call.kind in KEYLESS else "reddit,youtube,amazon"
    sources: dict[str, Any] = {
        "sources": beside,
        "reddit_client_id": key, "reddit_client_secret": key, "reddit_url": at["reddit"],
        "youtube_api_key": key, "youtube_url": at["youtube"],
        "amazon_provider": "openwebninja" if call.kind == "paid" else "html",
        "amazon_api_key": key, "amazon_url": at["amazon"],
        **{f"{name}_url": at[name] for name in ("hackernews", "stackexchange", "github", "lemmy", "steam")},
        "news_url": at["news"], "news_hours": 1, "bluesky_url": at["bluesky"], "bluesky_appview_url": at["bluesky"],
        "bluesky_seconds": STREAM_SECONDS, "bluesky_megabytes": 20,
        "feeds": f"{at['feeds']}{FEEDS}/{'notes.xml' if call.part == 'xml' else 'log.json'}?key=sk-{SECRET}",
        "stackexchange_sites": "superuser", "stackexchange_key": key, "github_token": key,
        "discourse_forums": f"{at['discourse']}{FORUM}", "source_timeout": limits["source"],
        "provider_timeout": limits["source"], "crawl_timeout": LONG_WAIT, "comments_per_item": 3,
    }  # fmt: skip
    models: dict[str, Any] = {
        "openai_api_key": key, "openai_base_url": f"{at['model']}/v1",
        **{f"{name}_timeout": limits[name] for name in ("scoring", "rewrite", "report")},
    }  # fmt: skip
    # each upstream once, and of places without a key one that has one: building a tracing takes
    # longer than a question
    traced = call.first and (call.kind not in KEYLESS or upstream in {"stackexchange", "feeds"})
    tracing: dict[str, Any] = {
        "langfuse_public_key": f"pk-lf-{proxy}", "langfuse_secret_key": key if traced else None,
        "langfuse_base_url": at["langfuse"], "trace_flush_timeout": limits["flush"],
    }  # fmt: skip
    database = f"postgresql://owner:{SECRET}@{proxy.partition('//')[2]}/kept"
    deep = DeepDepth(limit=2, max_evidence=6, query_variants=2 if call.part == "rewrite" else 1, retry_variants=1)
    return replace(
        settings,
        general=settings.general.model_copy(update={"mode": "live", "database_url": database}),
        sources=settings.sources.model_copy(update=sources),
        models=settings.models.model_copy(update=models),
        tracing=settings.tracing.model_copy(update=tracing),
        depths={**settings.depths, "deep": deep},
    )


async def _stored(settings: Settings) -> str:
    """Whether the database can be used."""
    try:
        store = await open_store_of(settings)
    except StoreUnavailable as error:
        logging.getLogger(__name__).warning("%s", error)
        return error.code
    await store.aclose()
    return "ok"


def _examine(
    cell: FaultResult,
    report: Report,
    proxy: FaultProxy,
    mode: ConnectionMode,
    others: Mapping[str, str],
) -> None:
    """Add what must not happen, whatever the outcome of the call is."""
    unexplained = cell.unexplained
    affected = {name: outcome for name, outcome in others.items() if outcome != "ok"}
    if mode in {"closed", "tls"}:  # then its other calls are gone, too
        gone = {"model": ("model", "report")}.get(cell.call.upstream, (cell.call.upstream,))
        affected = {name: harm for name, harm in affected.items() if not name.startswith(gone)}
    if affected:
        unexplained.append(f"others suffer: {affected}")
    if not proxy.broken_requests and mode not in {"closed", "tls"}:
        unexplained.append("the fault was not met")
    if proxy.sent > MOST_BYTES:
        unexplained.append(f"{proxy.sent} bytes were taken")
    if proxy.stray_requests:
        unexplained.append(f"{proxy.stray_requests} requests were sent to another host")
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()
        unexplained.append("a cancellation is left behind in the caller's task")
    latest = datetime.now(UTC) + timedelta(seconds=LONGEST_WAIT)
    waits = [source.retry_at for source in report.sources.values() if source.retry_at]
    unexplained += [f"to be asked again at {wait}" for wait in waits if wait > latest]
    texts = [*cell.log, report.model_dump_json()]
    cell.secrets += [text[:200] for text in texts if SECRET in text]


def _outcomes(sources: Mapping[str, SourceReport], log: Sequence[str], report: Report | None = None) -> dict[str, str]:
    """Outcome of each call by report and log; `ok` where neither says anything."""
    outcomes = {}
    for name, source in sources.items():
        outcomes[f"{name} search"] = str(source.outcome)
        unread = next(filter(None, map(_UNREAD.search, source.notes)), None)
        outcomes[f"{name} comments"] = _codes(unread[1], OUTCOME_REASONS) if unread else "ok"
        lost = any("full texts and counts could not be read" in note for note in source.notes)
        outcomes[f"{name} details"] = "unread" if lost else "ok"
    gates = {source.gate.reason or "ok" for source in sources.values()}
    outcomes["model gate"] = " and ".join(sorted(gates - {"ok"})) or "ok"
    for name, pattern in _WARNINGS.items():
        warned = next(filter(None, map(pattern.search, log)), None)
        outcomes[name] = warned[1] if warned else "ok"
    if report is not None:
        unwritten = next(filter(None, map(_UNWRITTEN.search, report.quality_notes)), None)
        outcomes["model report"] = _codes(unwritten[1], MODEL_REASONS) if unwritten else "ok"
        outcomes["model support"] = report.support.reason or "ok"
        if report.decision not in {"full_report", "short_report"}:
            outcomes["report"] = str(report.decision)
    return outcomes


def _codes(words: str, known: Mapping[Any, str]) -> str:
    """The codes of the reasons in a note; of others their words."""
    return ", ".join(sorted(code for code, why in known.items() if why in words)) or words
