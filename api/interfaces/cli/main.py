"""The command line: translate words into one call, and the answer back into text and exit codes.

Data goes to stdout, progress and warnings to stderr. Exit codes: 0 answered, 2 usage or
configuration, 3 too little or unclear, 4 no source could be asked, 130 interrupted, 143 ended by
SIGTERM. Without a command it prints the help and ends with 2.

`compare`: several products side by side, asked alike.
"""

from __future__ import annotations

import gc
import shutil
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

import api
from api.core.context import Caller, as_caller
from api.errors import ConfigurationError, ListenpostError, UsageError
from api.interfaces.cli import (
    correction_commands,
    import_command,
    langfuse_commands,
    stats_commands,
    stored_commands,
    watch_commands,
    watch_run_commands,
)
from api.interfaces.cli.output import (
    Format,
    OutputOptions,
    ReportFormat,
    check_output,
    deliver,
    finish,
    prepare,
    tell,
)
from api.interfaces.cli.watch_commands import (
    About,
    As,
    Depth,
    DepthChoice,
    Dropped,
    Estimate,
    Limit,
    Output,
    Query,
    ReportAs,
    Sample,
    Since,
    Sources,
    Verbose,
    WindowChoice,
)
from api.sources import SOURCE_LIST, SOURCES

if TYPE_CHECKING:
    from api.services.product import Ask


def compare(
    products: Annotated[list[str], typer.Argument(help="Two to five products.")],
    about: Annotated[
        list[str] | None,
        typer.Option(help="What it is, once for each product in their order, or not at all."),
    ] = None,
    depth: Depth = DepthChoice.standard,
    source: Sources = None,
    since: Since = WindowChoice.all,
    limit: Limit = None,
    form: ReportAs = ReportFormat.text,
    verbose: Verbose = False,
    output: Output = None,
    estimate: Estimate = False,
    sandbox: Sample = False,
) -> NoReturn:
    """Ask the same about each product, and set them side by side; see docs/compare.md."""
    from api.features.comparisons.compare import asks_of
    from api.services.product import Ask

    abouts = about or [""] * len(products)
    if len(abouts) != len(products):
        raise UsageError(f"`--about` came {len(abouts)} times for {len(products)} products")
    like = Ask("", depth.value, tuple(source or ()), limit, sandbox=sandbox, since=since.value)
    asks = asks_of(list(zip(products, abouts, strict=True)), like)
    handover = OutputOptions(form, output=output)
    raise typer.Exit(_compare(asks, handover, verbose=verbose, estimate=estimate))


def _compare(asks: Sequence[Ask], handover: OutputOptions, *, verbose: bool, estimate: bool) -> int:
    """Compare, print and keep; see the module `main` for exit codes."""
    import asyncio

    from api import bootstrap
    from api.choices import MIN_PRODUCTS
    from api.features.comparisons.compare import analyze_each, comparison_of
    from api.interfaces.cli.analyze_commands import (
        ANSWERED,
        INSUFFICIENT,
        NOT_ASKED,
        LiveProgress,
        built,
        keep,
        say_estimate,
    )
    from api.interfaces.cli.output import run
    from api.reports.report import Report
    from api.services.product import analyze
    from api.sources import check_askable

    like = asks[0]
    settings = bootstrap.load_settings(sandbox=like.sandbox)
    check_output(handover.output)
    if estimate:
        from api.bootstrap.estimates import estimate as estimated
        from api.bootstrap.estimates import together

        check_askable(like.sources)
        sample = bootstrap.mode_of(settings) == "sandbox"
        total = together([estimated(settings, ask) for ask in asks])
        return say_estimate(total, handover, sample=sample)

    async def work() -> int:
        keeping: list[asyncio.Task[None]] = []
        try:
            async with built(settings, None, like.sources) as product:
                product.scope(like)
                with LiveProgress(verbose=verbose, sample=product.sample) as live:
                    answers = await analyze_each(
                        lambda ask, listener: analyze(product, ask, listener), asks, live.listen
                    )
                if verbose:
                    live.say_requests(product.requests())
                reports = [answer for answer in answers if isinstance(answer, Report)]
                keeping.append(asyncio.create_task(keep(settings, *reports)))
                comparison = comparison_of(asks, answers, product.places)
                deliver(comparison, handover)
        finally:  # stored while the last traces are handed over
            await asyncio.gather(*keeping)
        if len(comparison.comparable) >= MIN_PRODUCTS:
            return ANSWERED
        return INSUFFICIENT if comparison.answered else NOT_ASKED

    return run(work)


# Columns of this terminal, and those that help in boxes takes; below them it is plain text.
_COLUMNS, _BOXES = max(shutil.get_terminal_size().columns, 40), 70
app = typer.Typer(
    name="listenpost",
    help=f"What people really say about a product on {SOURCE_LIST}.",
    no_args_is_help=True,
    # boxes with three columns cut the names of options where there is no room for them
    rich_markup_mode="rich" if _COLUMNS >= _BOXES else None,
    context_settings={"terminal_width": _COLUMNS} if _COLUMNS < _BOXES else {},
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(stored_commands.keys, name="keys")
app.add_typer(stored_commands.reports, name="reports")
app.add_typer(langfuse_commands.langfuse, name="langfuse")
app.add_typer(import_command.imports, name="import")
app.add_typer(watch_commands.watches, name="watch")
for command in (
    correction_commands.correct,
    correction_commands.review,
    correction_commands.corrections,
):
    app.command()(command)
watch_commands.watches.command(name="notify-test")(watch_run_commands.notify_test)
watch_commands.watches.command(name="notify-again")(watch_run_commands.notify_again)
watch_commands.watches.command()(watch_run_commands.feed)
app.command()(stats_commands.stats)
app.command()(stats_commands.feedback)
app.command()(stats_commands.search)


class JudgeChoice(StrEnum):
    """Who is evaluated."""

    local = "local"
    openai = "openai"
    grader = "grader"
    keyword = "keyword"
    names = "names"
    bm25 = "bm25"
    cosine = "cosine"
    hybrid = "hybrid"
    keep_all = "keep_all"


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"listenpost {api.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", help="Print the version and leave.",
            callback=_say_version, is_eager=True,
        ),
    ] = False,
) -> None:  # fmt: skip
    """What comes before a command."""


@app.command()
def analyze(
    query: Query,
    depth: Depth = DepthChoice.standard,
    about: About = "",
    source: Sources = None,
    since: Since = WindowChoice.all,
    limit: Limit = None,
    form: ReportAs = ReportFormat.text,
    items: Annotated[
        Path | None,
        typer.Option(help="Your own items, in a file that `import` takes."),
    ] = None,
    dropped: Dropped = False,
    verbose: Verbose = False,
    output: Output = None,
    estimate: Estimate = False,
    sandbox: Sample = False,
) -> None:
    """Ask every source, keep what is about the question, and report."""
    from api.interfaces.cli.analyze_commands import analyze_command

    ask = _ask(query, depth, about, source or [], since, limit, sandbox=sandbox)
    handover = OutputOptions(form, dropped, output)
    raise typer.Exit(analyze_command(ask, handover, items, verbose=verbose, estimate=estimate))


app.command()(compare)


@app.command()
def fetch(
    source: Annotated[str, typer.Argument(help=f"One of: {', '.join(SOURCES)}.")],
    query: Query,
    depth: Depth = DepthChoice.quick,
    about: About = "",
    since: Since = WindowChoice.all,
    limit: Limit = None,
    form: As = Format.text,
    dropped: Dropped = False,
    verbose: Verbose = False,
    output: Output = None,
    estimate: Estimate = False,
    sandbox: Sample = False,
) -> None:
    """Ask one source and keep what is about the query."""
    from api.interfaces.cli.analyze_commands import fetch_command

    ask = _ask(query, depth, about, [source], since, limit, sandbox=sandbox)
    handover = OutputOptions(ReportFormat(form), dropped, output)
    raise typer.Exit(fetch_command(ask, source, handover, verbose=verbose, estimate=estimate))


@app.command(name="filter")
def filter_(
    query: Query,
    source: Annotated[str, typer.Option(help="Where the items are from.")],
    about: About = "",
    form: As = Format.text,
) -> None:
    """Keep the items on stdin (one JSON object a line) that are about the query."""
    from api.interfaces.cli.analyze_commands import filter_command

    raise typer.Exit(filter_command(query, source, about, form))


@app.command()
def chat(
    question: Annotated[
        str | None, typer.Argument(help="Ask this and leave; without it: a conversation.")
    ] = None,
    session: Annotated[str | None, typer.Option(help="Go on with this session.")] = None,
    report: Annotated[str | None, typer.Option(help="Begin over this report's items.")] = None,
    depth: Depth = DepthChoice.quick,
    sandbox: Sample = False,
) -> None:
    """Talk about products; Ctrl-C ends a turn, Ctrl-D leaves. See docs/chat.md."""
    from api.interfaces.cli.chat_command import chat_command

    raise typer.Exit(chat_command(question, session, report, depth.value, sandbox=sandbox))


@app.command()
def mcp(
    text_only: Annotated[
        bool, typer.Option("--text-only", help="No structured content, for clients that show it.")
    ] = False,
    sandbox: Sample = False,
) -> None:
    """Serve the tools to an MCP client over stdin and stdout; see docs/mcp.md."""
    from api.interfaces.mcp.mcp_transports import mcp_command

    raise typer.Exit(mcp_command(text_only=text_only, sandbox=sandbox))


@app.command(name="sandbox")
def sandbox_(
    host: Annotated[str, typer.Option(help="A loopback address.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any free port.", min=0, max=65535)] = 8765,
    fault: Annotated[
        list[str] | None, typer.Option(help="UPSTREAM=NAME, for example youtube=quota; repeatable.")
    ] = None,
    latency: Annotated[
        list[str] | None,
        typer.Option(help="UPSTREAM[.ENDPOINT]=TIME, for example openai=800ms; repeatable."),
    ] = None,
    recordings: Annotated[
        Path | None, typer.Option(help="A folder of recorded answers to serve first.")
    ] = None,
) -> None:
    """Serve all places, OpenAI and Langfuse on this machine, with sample data."""
    from api.interfaces.cli.server_commands import sandbox_command

    raise typer.Exit(sandbox_command(host, port, fault or [], latency or [], recordings))


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Without API keys: a loopback address.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any free port.", min=0, max=65535)] = 8420,
    sandbox: Sample = False,
) -> None:
    """Serve the HTTP API; see docs/http.md."""
    gc.disable()  # what is imported stays: looking for garbage meanwhile is a sixth of the start
    from api.interfaces.cli.server_commands import serve_command

    gc.freeze()
    gc.enable()
    raise typer.Exit(serve_command(host, port, sandbox=sandbox))


@app.command()
def work(sandbox: Sample = False) -> None:
    """Run watches and queued analyses without a port; see docs/scaling.md."""
    from api.interfaces.cli.server_commands import work_command

    raise typer.Exit(work_command(sandbox=sandbox))


@app.command()
def doctor(form: As = Format.text) -> None:
    """Say per upstream: configured, reachable, what is left of the quota, how to fix it."""
    from api.interfaces.cli.server_commands import doctor_command

    raise typer.Exit(doctor_command(form))


@app.command(name="eval")
def eval_(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Labelled queries, one JSON object a line.")
    ] = None,
    judge: Annotated[JudgeChoice, typer.Option(help="Who is evaluated.")] = JudgeChoice.local,
    model: Annotated[str | None, typer.Option(help="Model for `openai` and `grader`.")] = None,
    corpus: Annotated[bool, typer.Option("--corpus", help="Also the sample corpus.")] = False,
    about: Annotated[bool, typer.Option(help="Show the judge what a query is about.")] = True,
    pure: Annotated[
        bool, typer.Option("--pure", help="Split pages into all relevant and all irrelevant.")
    ] = False,
    page: Annotated[int, typer.Option(help="Items in one call.", min=1, max=50)] = 25,
    form: As = Format.text,
    compare: Annotated[
        Path | None, typer.Option(help="Result (JSON) to subtract: of FILE, or a newer result.")
    ] = None,
    fail_below: Annotated[
        float | None,
        typer.Option(
            help="With --compare: end with 1 when the MCC surely fell by more, such as -0.03.",
            min=-2,
            max=0,
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="New SVG file for the calibration.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder for answers of models.")] = None,
    support: Annotated[
        Path | None, typer.Option(help="Labelled claims: measure a support check on them.")
    ] = None,
    langfuse: Annotated[
        str | None,
        typer.Option(help="Dataset in Langfuse: upload the labels, run an experiment."),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(help="Name of that experiment, after the judge's; default: the time."),
    ] = None,
    retrieval: Annotated[
        Path | None, typer.Option(help="Labelled questions: measure the archive's search on them.")
    ] = None,
) -> None:
    """Measure a judge on labelled items; see docs/evaluation.md."""
    from api.interfaces.cli.eval_command import EvalRequest, eval_command

    evaluation = EvalRequest(
        files or [], judge.value, model, corpus, about, pure, page, form, compare, plot, cache,
        support, langfuse, run, fail_below, retrieval,
    )  # fmt: skip
    raise typer.Exit(eval_command(evaluation))


def _ask(
    query: str,
    depth: DepthChoice,
    about: str,
    sources: list[str],
    since: WindowChoice,
    limit: int | None,
    *,
    sandbox: bool,
) -> Ask:
    from api.services.product import Ask

    return Ask(query, depth.value, tuple(sources), limit, about, sandbox, since=since.value)


def run(words: Sequence[str] | None = None) -> NoReturn:
    """The console script: every expected failure is one line on stderr and an exit code.

    `words` stand in for the command line's own.
    """
    prepare()
    code = 0
    try:
        with as_caller(Caller("cli")):
            app(words)
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 0
    except ListenpostError as error:
        from api.core.text import clean, one_line

        kind = "configuration" if isinstance(error, ConfigurationError) else "error"
        tell(f"listenpost: {kind}: {one_line(clean(str(error)))}")
        code = 2
    except KeyboardInterrupt:
        code = 130
    finish()
    raise SystemExit(code)
