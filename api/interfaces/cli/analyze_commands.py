"""`analyze`, `compare`, `fetch`, `filter` and `chat`: questions, and what they would cost.

Help needs only the signatures: what asks and prints is imported where it runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from stat import S_ISFIFO, S_ISREG
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.choices import MIN_PRODUCTS, DepthName
from api.errors import ConfigurationError, StoreUnavailable, UsageError
from api.interfaces.cli.command_product import built
from api.interfaces.cli.output import (
    As,
    Dropped,
    Encoding,
    Output,
    OutputOptions,
    ReportAs,
    as_json,
    check_output,
    closing,
    deliver,
    say,
    say_bytes,
    tell,
)
from api.sources import ASKABLE_SOURCES, SOURCES, check_askable

if TYPE_CHECKING:
    from api.bootstrap.estimates import Estimate
    from api.interfaces.cli.terminal_progress import LiveProgress
    from api.interfaces.shared.requests import (
        AnalysisRequest,
        ChatRequest,
        ComparisonRequest,
        FetchRequest,
        RelevanceRequest,
    )
    from api.reports.report import Report
    from api.services.product import Product
    from api.settings import Settings
    from api.sources.own_items import OwnItems

ANSWERED, INSUFFICIENT, NOT_ASKED = 0, 3, 4
# Largest file of own items, in bytes: all of it is read into memory.
_MAX_BYTES = 64_000_000
Verbose = Annotated[bool, typer.Option(help="Print more on stderr: grades, upstream requests.")]
EstimateOnly = Annotated[
    bool, typer.Option("--estimate", help="Print the expected requests and cost, and send nothing.")
]

Again = Annotated[
    bool,
    typer.Option(
        "--again",
        help="Judge the items of a stored report again; write its id in place of QUERY. No source "
        "is asked; of the question's options only --about, --not and --mentions apply.",
    ),
]
SenseNumber = Annotated[
    int | None,
    typer.Option(
        help="With --again: take only the group of this number that the report lists; later "
        "questions about the name take it, too. 0 forgets the choice.",
        min=0,
    ),
]


async def analyze(
    request: AnalysisRequest,
    form: ReportAs = "text",
    items: Annotated[
        Path | None,
        typer.Option(help="Your own items instead of the sources, in a file that `import` takes."),
    ] = None,
    product: Annotated[
        str,
        typer.Option(help="With --items: the product that the file is about, such as reviews that do not name it."),
    ] = "",
    columns: Annotated[
        str, typer.Option("--map", help="Columns of a table of items: body=Full Text,rating=Stars")
    ] = "",
    encoding: Encoding = "",
    again: Again = False,
    sense: SenseNumber = None,
    dropped: Dropped = False,
    verbose: Verbose = False,
    output: Output = None,
    estimate: EstimateOnly = False,
) -> int:
    """Ask every source, keep the posts that are about the product, and write a report."""
    from api import bootstrap
    from api.bootstrap.storage import with_stored_sense_and_corrections
    from api.services import product as product_service
    from api.sources.own_items import NAME
    from api.sources.searched_source import in_window

    check_output(output)
    options = OutputOptions(form, dropped, output)
    if sense is not None and not again:
        raise UsageError("`--sense` belongs to a stored report: `analyze --again ID --sense N`")
    if again:
        if items is not None or columns or encoding or product or estimate or request.sources:
            raise UsageError("`--again` judges what a report holds: it asks and reads nothing else")
        return await _analyze_again(request, sense, options, verbose)
    ask = request.ask()
    settings, own = bootstrap.load_settings(sandbox=ask.sandbox), _own_items(items, columns, encoding, product)
    if own is None and (products := product_service.compared_products(ask)):
        return await _compare_alike(request, products, form, verbose, output, estimate)
    if estimate:
        from api.bootstrap import estimates

        check_askable(ask.sources, ASKABLE_SOURCES if own is None else (NAME,))
        count = None if own is None else len({i.key for i in own.items if in_window(ask.since, i.created_at)})
        say_estimate(estimates.estimate(settings, ask, count), options, settings, own)
        return ANSWERED
    async with AsyncExitStack() as after, built(settings, own, ask.sources) as service:
        service.scope(ask)
        with _progress(service, verbose) as live:
            ask = await with_stored_sense_and_corrections(settings, ask)
            report = await product_service.analyze(service, ask, live.listen)
        # stored while the last traces are handed over
        await after.enter_async_context(_kept(settings, report))
        number = await _chosen_sense(report) if form == "text" and output is None else None
        if number is None:
            deliver(report, options)
            return _exit_code(report)
    return await _judge_again(report, number, {}, options, verbose)


def _exit_code(report: Report) -> int:
    from api.core.domain import Decision

    if report.decision in {Decision.FULL, Decision.SHORT}:
        return ANSWERED
    sources = report.sources.values()
    answered = not sources or any(source.outcome.answered for source in sources)
    return INSUFFICIENT if answered else NOT_ASKED


async def _chosen_sense(report: Report) -> int | None:
    """Number of the sense that a person chooses at the terminal; None without a choice."""
    if not (report.senses and sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    import asyncio

    from api.interfaces.cli.terminal_text import shown
    from api.interfaces.shared import presentation

    tell(shown(presentation.senses_heading(report)))
    for number, line in enumerate(presentation.sense_lines(report), 1):
        tell(f"  {number}. {shown(line)}")
    tell(f"Which one is meant? 1 to {len(report.senses)}, or Enter for all of them:")
    answer = (await asyncio.to_thread(sys.stdin.readline)).strip()
    numbers = {str(sense.number): sense.number for sense in report.senses}
    return numbers.get(answer)


async def _analyze_again(request: AnalysisRequest, sense: int | None, options: OutputOptions, verbose: bool) -> int:
    from api.interfaces.cli.report_commands import kept_of, opened_store

    async with opened_store() as store:
        stored = await kept_of(store, request.query)
    if stored.report is None:
        raise UsageError(stored.why_none)
    options_of_meaning = request.model_fields_set & {"about", "not_about", "aim"}
    meaning = {name: getattr(request, name) for name in options_of_meaning}
    return await _judge_again(stored.report, sense, meaning, options, verbose)


async def _judge_again(
    before: Report,
    sense: int | None,
    meaning: Mapping[str, Any],
    options: OutputOptions,
    verbose: bool,
) -> int:
    """Report on the items of a report as one of its senses, or with another `meaning`."""
    from api import bootstrap
    from api.bootstrap.storage import with_report_items, with_stored_sense_and_corrections
    from api.features.analyses.api_keys import LOCAL
    from api.features.analyses.rejudging import ask_again_and_remember
    from api.interfaces.cli.report_commands import opened_store
    from api.services import product as product_service
    from api.sources.own_items import NAME, OwnItems

    settings = bootstrap.load_settings(sandbox=before.sample)
    async with opened_store() as store:
        ask = await ask_again_and_remember(store, LOCAL.id, before, sense=sense, **meaning)
    own = OwnItems(()) if NAME in before.sources else None
    async with AsyncExitStack() as after, built(settings, own, ()) as product:
        over = with_report_items(product, before)
        with _progress(over, verbose) as live:
            ask = await with_stored_sense_and_corrections(settings, ask)
            report = await product_service.analyze(over, ask, live.listen)
        await after.enter_async_context(_kept(settings, report))
        deliver(report, options)
    return _exit_code(report)


async def _compare_alike(
    request: AnalysisRequest,
    products: Sequence[str],
    form: ReportAs,
    verbose: bool,
    output: Path | None,
    estimate: bool,
) -> int:
    """Compare what a question names, asked as the question would have been."""
    from api.interfaces.shared.requests import ComparisonRequest

    tell(f"{' and '.join(products)} are compared; in quotation marks it is one name")
    alike = request.model_dump(exclude={"query", "about", "items"})
    return await compare(ComparisonRequest(products=list(products), **alike), form, verbose, output, estimate)


async def compare(
    request: ComparisonRequest,
    form: ReportAs = "text",
    verbose: Verbose = False,
    output: Output = None,
    estimate: EstimateOnly = False,
) -> int:
    """Ask the same question about each product and compare the answers; see docs/compare.md."""
    import asyncio

    from api import bootstrap
    from api.bootstrap.storage import with_stored_sense_and_corrections
    from api.features.comparisons.compare import analyze_each, comparison_of
    from api.reports.report import Report
    from api.services import product as product_service

    asks, options = request.asks(), OutputOptions(form, output=output)
    settings = bootstrap.load_settings(sandbox=request.sandbox)
    check_output(output)
    if estimate:
        from api.bootstrap import estimates

        check_askable(request.sources)
        total = estimates.together([estimates.estimate(settings, ask) for ask in asks])
        say_estimate(total, options, settings)
        return ANSWERED
    async with AsyncExitStack() as after, built(settings, None, request.sources) as product:
        product.scope(asks[0])
        with _progress(product, verbose) as live:
            asks = tuple([await with_stored_sense_and_corrections(settings, ask) for ask in asks])
            answers = await analyze_each(
                lambda ask, listener: product_service.analyze(product, ask, listener),
                asks,
                live.listen,
            )
        reports = [answer for answer in answers if isinstance(answer, Report)]
        await after.enter_async_context(_kept(settings, *reports))
        comparison = await asyncio.to_thread(comparison_of, asks, answers, product.places)
        deliver(comparison, options)
    if len(comparison.comparable) >= MIN_PRODUCTS:
        return ANSWERED
    return INSUFFICIENT if comparison.answered else NOT_ASKED


async def fetch(
    request: FetchRequest,
    source: Annotated[str, typer.Argument(help=f"One of: {', '.join(SOURCES)}.")],
    form: As = "text",
    dropped: Dropped = False,
    verbose: Verbose = False,
    output: Output = None,
    estimate: EstimateOnly = False,
) -> int:
    """Ask one source, and keep the posts that are about the query."""
    from api import bootstrap
    from api.bootstrap.storage import with_stored_sense_and_corrections
    from api.core.domain import Outcome
    from api.services import product as product_service

    ask, options = request.ask(source), OutputOptions(form, dropped, output)
    settings = bootstrap.load_settings(sandbox=ask.sandbox)
    check_output(output)
    if estimate:
        from api.bootstrap import estimates

        check_askable(ask.sources)
        say_estimate(estimates.fetch_estimate(settings, ask), options, settings)
        return ANSWERED
    async with built(settings, None, (source,)) as product:
        product.scope(ask)
        with _progress(product, verbose) as live:
            ask = await with_stored_sense_and_corrections(settings, ask)
            answer = await product_service.fetch(product, source, ask, listener=live.listen)
        deliver(answer.fetched, options)
    outcome = answer.fetched.outcome
    if outcome is Outcome.OK:
        return ANSWERED
    return INSUFFICIENT if outcome.answered else NOT_ASKED


async def filter_items(request: RelevanceRequest, form: As = "text") -> int:
    """Keep the items on stdin (one JSON object a line) that are about the query.

    Kept lines are printed as they came, byte for byte.
    """
    from api import bootstrap
    from api.core.display_names import reason_in_words
    from api.interfaces.http.schemas import Relevance
    from api.services.product import QuestionOptions, origin_of, question_of
    from api.sources.own_items import item_of, read_lines

    question = question_of(QuestionOptions.of(request))
    name = origin_of(request.source, "--source")
    settings = bootstrap.load_settings()
    lines = read_lines(sys.stdin.buffer.read())
    items = [item_of(line.fields, line.number, name) for line in lines]
    async with closing(bootstrap.build_gate(settings)) as product:
        gated = await product.gate.judge(question, items, name)
    relevance = Relevance.of([dict(line.fields) for line in lines], gated)
    count = f"{len(relevance.relevant)} of {len(lines)}"
    judge = f", judged by {gated.model}" if gated.model else ""
    if relevance.status == "degraded":
        why = f"relevance could not be judged ({reason_in_words(relevance.reason)})"
        tell(f"kept {count}; {why}{judge}")
    else:
        tell(f"{count} were about it{judge}")
    if form == "json":
        say(as_json(relevance.model_dump()))
    else:
        pairs = zip(lines, gated.verdicts, strict=True)
        say_bytes(b"".join(line.raw for line, verdict in pairs if verdict.relevant))
    return ANSWERED


def chat(
    request: ChatRequest,
    question: Annotated[
        str | None,
        typer.Argument(help="Question to answer before exiting (default: start a conversation)."),
    ] = None,
    depth: Annotated[DepthName, typer.Option(help="How far a look-up goes: quick, standard, or deep.")] = "quick",
    listed: Annotated[
        bool,
        typer.Option("--list", help="List stored conversations and exit; with `--report`: those over that report."),
    ] = False,
) -> int:
    """Chat about products; Ctrl-C ends a turn, Ctrl-D the conversation. See docs/chat.md."""
    from api.interfaces.cli.chat_command import chat_command, chat_list_command

    if listed:
        if question is not None or request.session_id is not None:
            raise UsageError("`--list` asks nothing: leave the question and `--session` out")
        return chat_list_command(request)
    return chat_command(request, question, depth)


@contextmanager
def _progress(product: Product, verbose: bool) -> Iterator[LiveProgress]:
    """Progress on stderr; when verbose also what the sandbox was asked."""
    from api.interfaces.cli.terminal_progress import LiveProgress

    with LiveProgress(verbose=verbose, sample=product.sample) as live:
        yield live
    if verbose:
        live.say_requests(product.requests())


@asynccontextmanager
async def _kept(settings: Settings, *reports: Report) -> AsyncIterator[None]:
    """Store reports meanwhile; a store that fails is one warning, never an error."""
    import asyncio

    from api.bootstrap.storage import open_store_of
    from api.core.text import SHORT_ID
    from api.features.analyses.analysis_job import keep_report
    from api.features.analyses.api_keys import LOCAL

    async def keep() -> None:
        try:
            async with closing(await open_store_of(settings)) as store:
                for report in reports:
                    await keep_report(store, LOCAL.id, report)
                    tell(f"kept as {report.id}: `listenpost reports show {report.id[:SHORT_ID]}`")
        except (StoreUnavailable, ConfigurationError) as error:
            tell(f"listenpost: warning: the answer is not kept: {error}")

    keeping = asyncio.create_task(keep())
    try:
        yield
    finally:
        await keeping


def _own_items(path: Path | None, columns: str, encoding: str, product: str) -> OwnItems | None:
    """The items of `--items FILE`, None without it."""
    from api.core.text import clean, one_line

    if path is not None:
        return _read_items(path, columns, encoding, one_line(clean(product)))
    if product or columns or encoding:
        named = "`--map` names columns of a table" if columns else "`--encoding` is the encoding of a file"
        named = "`--product` says what a file is about" if product else named
        raise UsageError(f"{named}: it belongs to `--items FILE`")
    return None


def _read_items(path: Path, columns: str, encoding: str, product: str) -> OwnItems:
    """All of a file, a pipe or what is typed; a device may have no end.

    Raises:
        UsageError: it cannot be read, is too large, or holds no items.
    """
    # with what unpacks dumps
    from api.sources.imported.detection import ReadOptions, read_collected, read_columns
    from api.sources.imported.table_files import NoColumn
    from api.sources.imported.text_encoding import UnreadableFile

    options = ReadOptions(columns=read_columns(columns) or None, encoding=encoding.strip())
    largest = f"{_MAX_BYTES // 1_000_000} MB"
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not (S_ISREG(mode) or S_ISFIFO(mode) or file.isatty()):
                raise UsageError(f"is neither file nor pipe; name a file of at most {largest}")
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise UsageError(f"holds more than {largest}; split it")
        return read_collected(data, options, product)
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}") from None
    except (NoColumn, UnreadableFile) as error:
        raise UsageError(f"`{path}` {error}") from None
    except UsageError as error:
        raise UsageError(f"`{path}`: {error}") from None


def say_estimate(estimate: Estimate, options: OutputOptions, settings: Settings, own: OwnItems | None = None) -> None:
    """Print what a question would take at least, likely and at most."""
    from api import bootstrap

    sample = own is None and bootstrap.mode_of(settings) == "sandbox"
    low, middle, high = estimate.least, estimate.likely, estimate.most
    if options.format == "json":
        say(as_json({"minimum": low, "likely": middle, "maximum": high, "sample": sample}))
        return
    for name in ("upstream_calls", "youtube_searches", "model_calls", "usd"):
        least, likely, most = (
            "unknown" if value is None else f"{value:.4f}" if isinstance(value, float) else value
            for value in (low[name], middle[name], high[name])
        )
        say(f"{name}: {least} to {most}, likely {likely}")
    if sample:
        say("Offline sandbox: nothing is spent.")
