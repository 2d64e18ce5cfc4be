"""`analyze`, `fetch` and `filter`, and what the first two would cost.

What a person at a terminal is told once: where questions go, and how to change that.

What a person sees while waiting, on stderr: one line per source, and grades when verbose.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from stat import S_ISFIFO, S_ISREG
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console, RenderableType
from rich.live import Live as RichLive
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from api import bootstrap
from api.core.display_names import reason_in_words, title_in
from api.core.domain import Decision, Outcome, Question
from api.core.progress import (
    Event,
    ItemGraded,
    ProductEvent,
    Reported,
    SourceGathered,
    SourceRefetching,
)
from api.core.text import SHORT_ID
from api.errors import ConfigurationError, SourceError, StoreUnavailable, UsageError
from api.features.analyses.analysis_job import keep_report
from api.features.analyses.api_keys import LOCAL
from api.interfaces.cli.output import (
    Format,
    OutputOptions,
    ReportFormat,
    as_json,
    check_output,
    closing,
    deliver,
    remembered,
    run,
    say,
    say_bytes,
    tell,
)
from api.interfaces.cli.terminal_text import shown
from api.interfaces.shared.presentation import LONGEST_PRODUCT, progress, shortened, source_title
from api.reports.report import Report
from api.services import product as product_service
from api.services.product import Ask, Product, origin_of, question_of
from api.settings import Settings, data_folder
from api.sources import ARCHIVE, ASKABLE_SOURCES, check_askable
from api.sources.own_items import NAME, OwnItems, item_of, read_lines
from api.sources.searched_source import in_window

if TYPE_CHECKING:
    from api.bootstrap.estimates import Estimate


def greet(product: Product, places: Sequence[str] = ()) -> None:
    """Say it at the first question that leaves this machine; a file remembers that it was said.

    `places` are those that the question names; empty: it names none.
    """
    mark = data_folder() / "greeted"
    if product.sample or not sys.stderr.isatty() or mark.exists():
        return
    titles = [
        title_in(product.places, name)
        for name in places or product.usual
        if not isinstance(product.sources.get(name), SourceError | None)
    ]
    tell(
        f"Your question is sent to {', '.join(titles) or 'nobody'}. `LISTENPOST_SOURCES` or "
        "`--source` choose others, `--sandbox` asks nobody, `listenpost doctor` shows all. "
        "(This is said once.)"
    )
    with suppress(OSError):  # then it is said again
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


_BUSY, _DONE, _FAILED = "busy", "done", "failed"
_MARKS = {_DONE: Text("✓", style="green"), _FAILED: Text("✗", style="red")}


@dataclass(slots=True)
class _Row:
    words: str
    state: str
    spinner: Spinner


class LiveProgress:
    """A table that follows the events in a terminal; plain lines elsewhere.

    Sources that are not configured share one line, unless there is no other.
    """

    def __init__(self, *, verbose: bool, sample: bool) -> None:
        """`sample`: say at once that everything is made up."""
        self._verbose, self._sample = verbose, sample
        self._rows: dict[str, _Row] = {}
        self._unset: dict[str, str] = {}
        self._others = False
        self._live: RichLive | None = None

    def __enter__(self) -> Self:
        """Start following."""
        if self._sample:
            self._say("Sample data: everything below is made up and served by the offline sandbox.")
        console = Console(stderr=True, highlight=False)
        if sys.stderr.isatty() and not console.is_dumb_terminal:
            self._live = RichLive(console=console, redirect_stdout=False, refresh_per_second=8)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop following; the last state stays on the screen, what is still under way as failed."""
        if self._others and self._unset:
            self._say(f"Not configured: {', '.join(self._unset)}; see `listenpost doctor`")
        else:
            for name, words in self._unset.items():
                self._say(f"{name}: {words}")
        if self._live is None:
            return
        for row in self._rows.values():
            row.state = _FAILED if row.state == _BUSY else row.state
        self._live.update(self._table())
        with suppress(OSError):  # the terminal is gone: no reason to lose the answer
            self._live.stop()
        self._live = None

    def listen(self, event: Event, product: str = "") -> None:
        """Show one event; of a `product` beside others in a line of its own."""
        if isinstance(event, ProductEvent):
            self.listen(event.event, shortened(event.product, LONGEST_PRODUCT))
            return
        if isinstance(event, ItemGraded):
            if self._verbose:
                # a default grade keeps whatever the cutoff: `reddit 1 (r/a): score 4/5 - KEEP: why`
                kept = event.defaulted or event.score >= event.cutoff
                place = f" ({event.place})" if event.place else ""
                head = f"{event.source} {event.number}{place}: score {event.score}/5"
                self._say(f"{head} - {'KEEP' if kept else 'DROP'}: {event.explanation}")
            return
        words = progress(event)
        if words is None:
            return
        name = shown(source_title(event.source) if event.source else "Report")
        if isinstance(event, SourceGathered) and event.outcome == Outcome.NOT_CONFIGURED:
            self._unset[name] = words
            return
        self._others |= isinstance(event, SourceGathered)
        if self._live is None:
            if self._verbose or isinstance(event, SourceGathered | SourceRefetching):
                self._say(f"{product and f'{product}: '}{name}: {words}")
            return
        state = _BUSY
        if isinstance(event, Reported):
            state = _DONE
        elif product:
            words = f"{name}: {words}"
        elif isinstance(event, SourceGathered):
            state = _DONE if Outcome(event.outcome).answered else _FAILED
        name = shown(product) if product else name
        row = self._rows.setdefault(name, _Row(words, state, Spinner("dots")))
        row.words, row.state = shown(words), state
        self._live.update(self._table())

    def say_requests(self, lines: Iterable[str]) -> None:
        """List what the sandbox was asked."""
        for line in lines:
            self._say(line)

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 1))
        table.add_column(width=1)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name, row in self._rows.items():
            mark: RenderableType = _MARKS.get(row.state, row.spinner)
            table.add_row(mark, Text(name, style="bold"), Text(row.words))
        return table

    def _say(self, line: str) -> None:
        if self._live is None:
            tell(shown(line))
        else:
            with suppress(OSError):
                self._live.console.print(Text(shown(line)))


ANSWERED, USAGE, INSUFFICIENT, NOT_ASKED = 0, 2, 3, 4
_MAX_BYTES = 64_000_000


def analyze_command(
    ask: Ask, handover: OutputOptions, items: Path | None, *, verbose: bool, estimate: bool
) -> int:
    """Analyze, print and keep; see the module `main` for exit codes."""
    settings = bootstrap.load_settings(sandbox=ask.sandbox)
    check_output(handover.output)
    own = None if items is None else _read(items)
    if estimate:
        from api.bootstrap.estimates import estimate as estimated

        check_askable(ask.sources, ASKABLE_SOURCES if own is None else (NAME,))
        count = None
        if own is not None:
            count = len({item.key for item in own.items if in_window(ask.since, item.created_at)})
        sample = own is None and bootstrap.mode_of(settings) == "sandbox"
        return say_estimate(estimated(settings, ask, count), handover, sample=sample)

    async def work() -> int:
        keeping: list[asyncio.Task[None]] = []
        try:
            async with built(settings, own, ask.sources) as product:
                product.scope(ask)
                taught = await _taught(settings, ask)
                with LiveProgress(verbose=verbose, sample=product.sample) as live:
                    report = await product_service.analyze(product, taught, live.listen)
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
    ask: Ask, source: str, handover: OutputOptions, *, verbose: bool, estimate: bool
) -> int:
    """Fetch from one source and print."""
    settings = bootstrap.load_settings(sandbox=ask.sandbox)
    check_output(handover.output)
    if estimate:
        from api.bootstrap.estimates import fetch_estimate

        check_askable(ask.sources)
        sample = bootstrap.mode_of(settings) == "sandbox"
        return say_estimate(fetch_estimate(settings, ask), handover, sample=sample)

    async def work() -> int:
        async with built(settings, places=(source,)) as product:
            product.scope(ask)
            taught = await _taught(settings, ask)
            with LiveProgress(verbose=verbose, sample=product.sample) as live:
                heard = await product_service.fetch(product, source, taught, listener=live.listen)
            if verbose:
                live.say_requests(product.requests())
            deliver(heard.fetched, handover)
        outcome = heard.fetched.outcome
        if outcome is Outcome.OK:
            return ANSWERED
        return INSUFFICIENT if outcome.answered else NOT_ASKED

    return run(work)


async def _taught(settings: Settings, ask: Ask) -> Ask:
    """The question with what this machine's user corrected of it."""
    from api.bootstrap.storage import stored_corrections  # loads the database's libraries

    question = Question(ask.query, ask.about)
    return replace(ask, corrections=await stored_corrections(settings, question))


def filter_command(query: str, source: str, about: str, form: Format) -> int:
    """Judge the items on stdin; kept lines go to stdout as they came, byte for byte.

    Raises:
        UsageError: a line that is no item, or a query or source that names nothing.
    """
    from api.interfaces.http.schemas import Relevance  # nobody else here needs the shapes of HTTP

    question, name = question_of(query, about), origin_of(source, "--source")
    settings = bootstrap.load_settings()
    lines = read_lines(sys.stdin.buffer.read())
    items = [item_of(line.fields, line.number, name) for line in lines]

    async def work() -> int:
        async with closing(bootstrap.build_gate(settings)) as product:
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
            closing(bootstrap.build(settings, own, memory=memory))
        )
        if own is None:
            greet(product, places)
        if ARCHIVE.name in places:
            from api.bootstrap.storage import (
                open_store_of,  # and the database's libraries
                with_archive,  # with what reads vectors
            )

            store = await stack.enter_async_context(closing(await open_store_of(settings)))
            product = with_archive(product, settings, store)
        yield product


async def keep(settings: Settings, *reports: Report) -> None:
    """Store reports and say how to see them; a store that fails is one warning, never an error."""
    from api.bootstrap.storage import (
        open_store_of,  # the database's libraries load after the answer
    )

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
        from api.sources.imported.detection import read_collected  # with what unpacks dumps

        return read_collected(data)
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}") from None
    except UsageError as error:
        raise UsageError(f"`{path}`: {error}") from None


def say_estimate(estimate: Estimate, handover: OutputOptions, *, sample: bool) -> int:
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
