"""`analyze`, `fetch` and `filter`, and what the first two would cost."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from stat import S_ISFIFO, S_ISREG
from typing import TYPE_CHECKING

from api import wiring
from api.errors import ConfigurationError, StoreUnavailable, UsageError
from api.faces.cli.greeting import greet
from api.faces.cli.live import Live
from api.faces.cli.printing import (
    Format,
    Handover,
    ReportFormat,
    as_json,
    check_output,
    deliver,
    say,
    say_bytes,
    tell,
)
from api.faces.cli.running import closing, remembered, run
from api.services import listening
from api.services.keeping.forgetting import keep_report
from api.services.keeping.keys import LOCAL
from api.services.listening import Ask, Product
from api.services.question.accepting import origin_of, question_of
from api.services.reasons import reason_in_words
from api.services.reporting.report import Report
from api.services.schemas import Decision, Outcome
from api.services.text import SHORT_ID
from api.settings import Settings
from api.sources import ARCHIVE, ASKABLE, check_askable
from api.sources.items import NAME, OwnItems, item_of
from api.sources.lines import read_lines
from api.sources.paging import within

if TYPE_CHECKING:
    from api.wiring.estimating import Estimate

ANSWERED, USAGE, INSUFFICIENT, NOT_ASKED = 0, 2, 3, 4
_MAX_BYTES = 64_000_000


def analyze_command(
    ask: Ask, handover: Handover, items: Path | None, *, verbose: bool, estimate: bool
) -> int:
    """Analyze, print and keep; see the module `main` for exit codes."""
    settings = wiring.load_settings(sandbox=ask.sandbox)
    check_output(handover.output)
    own = None if items is None else _read(items)
    if estimate:
        from api.wiring.estimating import estimate as estimated

        check_askable(ask.sources, ASKABLE if own is None else (NAME,))
        count = None
        if own is not None:
            count = len({item.key for item in own.items if within(ask.window, item.created_at)})
        sample = own is None and wiring.mode_of(settings) == "sandbox"
        return say_estimate(estimated(settings, ask, count), handover, sample=sample)

    async def work() -> int:
        keeping: list[asyncio.Task[None]] = []
        try:
            async with built(settings, own, ask.sources) as product:
                product.scope(ask)
                with Live(verbose=verbose, sample=product.sample) as live:
                    report = await listening.analyze(product, ask, live.listen)
                if verbose:
                    live.say_requests(product.requests())
                keeping.append(asyncio.create_task(keep(settings, report)))
                deliver(report, handover)
        finally:  # stored while the last traces are handed over
            await asyncio.gather(*keeping)
        if report.decision in {Decision.FULL, Decision.SHORT}:
            return ANSWERED
        sources = report.sources.values()
        answered = not sources or any(source.outcome.answered for source in sources)
        return INSUFFICIENT if answered else NOT_ASKED

    return run(work)


def fetch_command(
    ask: Ask, source: str, handover: Handover, *, verbose: bool, estimate: bool
) -> int:
    """Fetch from one source and print."""
    settings = wiring.load_settings(sandbox=ask.sandbox)
    check_output(handover.output)
    if estimate:
        from api.wiring.estimating import fetch_estimate

        check_askable(ask.sources)
        sample = wiring.mode_of(settings) == "sandbox"
        return say_estimate(fetch_estimate(settings, ask), handover, sample=sample)

    async def work() -> int:
        async with built(settings, places=(source,)) as product:
            product.scope(ask)
            with Live(verbose=verbose, sample=product.sample) as live:
                heard = await listening.fetch(product, source, ask, listener=live.listen)
            if verbose:
                live.say_requests(product.requests())
            deliver(heard.fetched, handover)
        outcome = heard.fetched.outcome
        if outcome is Outcome.OK:
            return ANSWERED
        return INSUFFICIENT if outcome.answered else NOT_ASKED

    return run(work)


def filter_command(query: str, source: str, about: str, form: Format) -> int:
    """Judge the items on stdin; kept lines go to stdout as they came, byte for byte.

    Raises:
        UsageError: a line that is no item, or a query or source that names nothing.
    """
    from api.faces.web.schemas import Relevance  # nobody else here needs the shapes of HTTP

    question, name = question_of(query, about), origin_of(source, "--source")
    settings = wiring.load_settings()
    lines = read_lines(sys.stdin.buffer.read())
    items = [item_of(line.fields, line.number, name) for line in lines]

    async def work() -> int:
        async with closing(wiring.build_gate(settings)) as product:
            gated = await product.gate.judge(question, items, name)
        relevance = Relevance.of([dict(line.fields) for line in lines], gated)
        counted = f"{len(relevance.relevant)} of {len(lines)}"
        judge = f", judged by {gated.model}" if gated.model else ""
        if relevance.status == "degraded":
            why = f"relevance could not be judged ({reason_in_words(relevance.reason)})"
            tell(f"kept {counted}; {why}{judge}")
        else:
            tell(f"{counted} were about it{judge}")
        if form is Format.json:
            say(as_json(relevance.model_dump()))
        else:
            pairs = zip(lines, gated.verdicts, strict=True)
            say_bytes(b"".join(line.raw for line, verdict in pairs if verdict.relevant))
        return ANSWERED

    return run(work)


@asynccontextmanager
async def built(
    settings: Settings, own: OwnItems | None = None, places: Sequence[str] = ()
) -> AsyncIterator[Product]:
    """The product for a question to `places`; its real sources remember what was asked before."""
    async with AsyncExitStack() as stack:
        memory = await stack.enter_async_context(remembered(settings)) if own is None else None
        product = await stack.enter_async_context(
            closing(wiring.build(settings, own, memory=memory))
        )
        if own is None:
            greet(product, places)
        if ARCHIVE.name in places:
            from api.wiring.archive import with_archive  # with what reads vectors
            from api.wiring.storing import open_store_of  # and the database's libraries

            store = await stack.enter_async_context(closing(await open_store_of(settings)))
            product = with_archive(product, settings, store)
        yield product


async def keep(settings: Settings, *reports: Report) -> None:
    """Store reports and say how to see them; a store that fails is one warning, never an error."""
    from api.wiring.storing import open_store_of  # the database's libraries load after the answer

    try:
        async with closing(await open_store_of(settings)) as store:
            for report in reports:
                await keep_report(store, LOCAL.id, report)
                tell(f"kept as {report.id}: `listenpost reports show {report.id[:SHORT_ID]}`")
    except (StoreUnavailable, ConfigurationError) as error:
        tell(f"listenpost: warning: the answer is not kept: {error}")


def _read(path: Path) -> OwnItems:
    """All of a file, a pipe or what is typed; a device may have no end."""
    most = f"{_MAX_BYTES // 1_000_000} MB"
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not (S_ISREG(mode) or S_ISFIFO(mode) or file.isatty()):
                raise UsageError(f"is neither file nor pipe; name a file of at most {most}")
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise UsageError(f"holds more than {most}; split it")
        from api.sources.collected.handing import read_collected  # with what unpacks dumps

        return read_collected(data)
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}") from None
    except UsageError as error:
        raise UsageError(f"`{path}`: {error}") from None


def say_estimate(estimate: Estimate, handover: Handover, *, sample: bool) -> int:
    """Print what a question would take at least, likely and at most, before anything is asked."""
    low, middle, high = estimate.least, estimate.likely, estimate.most
    if handover.format is ReportFormat.json:
        say(as_json({"minimum": low, "likely": middle, "maximum": high, "sample": sample}))
        return ANSWERED
    lines = []
    for name in ("upstream_calls", "youtube_searches", "model_calls", "usd"):
        least, likely, most = (
            "unknown" if value is None else f"{value:.4f}" if isinstance(value, float) else value
            for value in (low[name], middle[name], high[name])
        )
        lines.append(f"{name}: {least} to {most}, likely {likely}")
    lines += ["Offline sandbox: nothing is spent."] if sample else []
    say("\n".join(lines))
    return ANSWERED
