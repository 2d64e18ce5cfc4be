"""`keys` and `reports`: what the store holds."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.cells import cell_len

from api.errors import NotFound, UsageError
from api.interfaces.cli.output import (
    Format,
    OutputOptions,
    ReportFormat,
    as_json,
    check_output,
    deliver,
    say,
    tell,
)

if TYPE_CHECKING:
    from api.features.analyses.api_keys import Keys
    from api.features.analyses.store_ports import AnalysisSummary, Store, StoredAnalysis
    from api.reports.report import Report


keys = typer.Typer(help="API keys of the HTTP API.", no_args_is_help=True)
reports = typer.Typer(help="Analyses that were kept; without a command: list them.")
As = Annotated[Format, typer.Option("--format", help="How to print it.")]
Limit = Annotated[int, typer.Option(help="How many, newest first.", min=1, max=1000)]
Id = Annotated[str, typer.Argument(help="As listed, or its beginning.")]
Dropped = Annotated[bool, typer.Option("--dropped", help="Also what was dropped.")]
# Candidates that are named when an id's beginning fits several.
_NAMED = 5
# Columns from which on an analysis is one line.
_TABLE = 76


@keys.command()
def add(name: Annotated[str, typer.Argument(help="Whose key it is.")]) -> None:
    """Make a key and print it, this once."""

    async def work(store: Store, keys: Keys) -> None:
        made, text = await keys.add(name)
        say(text)
        tell(f"key `{made.id}` for {made.name}; it is not shown again")

    with_store(work)


@keys.command(name="list")
def list_keys(form: As = Format.text) -> None:
    """Every key with its origin, revoked ones too; never the key itself."""

    async def work(store: Store, keys: Keys) -> None:
        from api.interfaces.cli.terminal_text import shown

        listed = await keys.listed()
        if form is Format.json:
            rows = [
                {
                    "id": key.id,
                    "name": key.name,
                    "origin": key.origin,
                    "created_at": key.created_at and key.created_at.isoformat(),
                    "revoked": key.revoked,
                }
                for key in listed
            ]
            say(as_json(rows))
            return
        for key in listed:
            state = "revoked" if key.revoked else "valid"
            say(f"{key.id:<18}{key.origin:<13}{state:<9}{shown(key.name)}")
        if not listed:
            tell("no keys: the HTTP API serves this machine only")

    with_store(work)


@keys.command()
def revoke(key: Annotated[str, typer.Argument(help="Id or name.")]) -> None:
    """Make a key invalid for good."""

    async def work(store: Store, keys: Keys) -> None:
        await keys.revoke(key)
        tell(f"`{key}` is revoked")

    with_store(work)


@reports.callback(invoke_without_command=True)
def every(context: typer.Context) -> None:
    """Analyses that were kept; without a command: list them."""
    if context.invoked_subcommand is None:
        list_reports()


@reports.command(name="list")
def list_reports(limit: Limit = 20, form: As = Format.text) -> None:
    """The newest first: id, when, what became of it, how many items were kept, question."""

    async def work(store: Store, keys: Keys) -> None:
        from api.features.analyses.api_keys import LOCAL
        from api.features.analyses.store_ports import Filters
        from api.interfaces.http.schemas import ListedAnalysis

        analyses = (await store.listing(LOCAL.id, Filters(), limit)).analyses
        if form is Format.json:
            say(as_json([ListedAnalysis.of(row).model_dump(mode="json") for row in analyses]))
            return
        for listed in analyses:
            say(_line(listed))
        if not analyses:
            tell("nothing is kept yet; `listenpost analyze QUERY` keeps its answer")

    with_store(work)


@reports.command()
def show(
    report: Id, form: Annotated[ReportFormat, typer.Option("--format")] = ReportFormat.text,
    dropped: Dropped = False,
) -> None:  # fmt: skip
    """One report again, as `analyze` printed it."""
    _with_report(report, lambda kept: deliver(kept, OutputOptions(form, dropped)))


@reports.command()
def export(
    report: Id,
    form: Annotated[
        ReportFormat, typer.Option("--format", help="What to make of it.")
    ] = ReportFormat.markdown,
    dropped: Dropped = False,
    output: Annotated[Path | None, typer.Option(help="Write it to a new file.")] = None,
) -> None:
    """One report in another format, on stdout or in a file."""
    check_output(output)
    _with_report(report, lambda kept: deliver(kept, OutputOptions(form, dropped, output)))


@reports.command(name="open")
def open_report(report: Id) -> None:
    """One report as a page in the browser; prints the path of the page."""

    def work(kept: Report) -> None:
        import tempfile
        import webbrowser

        from api.interfaces.pages.report_files import report_html

        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", errors="replace", prefix="listenpost-", suffix=".html",
            delete=False,
        ) as file:  # fmt: skip
            file.write(report_html(kept))
        say(file.name)
        if not _browsable():
            tell("there is no display here; open it where there is one")
        elif not webbrowser.open(Path(file.name).as_uri()):
            tell("no browser could be started; open it yourself")

    _with_report(report, work)


@reports.command()
def delete(report: Id) -> None:
    """One report, with every item that only it held."""

    async def work(store: Store, keys: Keys) -> None:
        from api.features.analyses.api_keys import LOCAL

        kept = await kept_of(store, report)
        await store.delete(LOCAL.id, kept.id)
        tell(f"`{kept.id}` is deleted")

    with_store(work)


def with_store(work: Callable[[Store, Keys], Awaitable[None]]) -> NoReturn:
    """Open the store for `work`, and leave with the code of how that ended."""
    from api import bootstrap  # with the database's libraries, which help and `analyze` do not need
    from api.bootstrap.storage import environment_keys, open_store_of
    from api.interfaces.cli.output import closing, run

    settings = bootstrap.load_settings()

    async def opened() -> int:
        async with closing(await open_store_of(settings)) as store:
            await work(store, environment_keys(settings, store))
        return 0

    raise typer.Exit(run(opened))


def _with_report(name: str, work: Callable[[Report], None]) -> NoReturn:
    """Hand the report of this id, or of the only one that begins so, to `work`."""

    async def read(store: Store, keys: Keys) -> None:
        kept = await kept_of(store, name)
        if kept.report is None:
            raise UsageError(kept.why_none)
        work(kept.report)

    with_store(read)


async def kept_of(store: Store, name: str) -> StoredAnalysis:
    """The analysis of this id, or the only one whose id begins so.

    Raises:
        NotFound: there is none.
        UsageError: there are several.
    """
    from api.features.analyses.api_keys import LOCAL
    from api.features.analyses.store_ports import Filters
    from api.interfaces.cli.terminal_text import shown

    kept = await store.get(LOCAL.id, name)
    if kept is None and name:
        candidates = (await store.listing(LOCAL.id, Filters(prefix=name), _NAMED + 1)).analyses
        if len(candidates) > 1:
            named = [f"`{row.id}` ({shown(row.query)[:40]})" for row in candidates[:_NAMED]]
            more = ", and more" if len(candidates) > _NAMED else ""
            raise UsageError(
                f"several reports begin with `{name}`: {', '.join(named)}{more}; write more of it"
            )
        for listed in candidates:
            kept = await store.get(LOCAL.id, listed.id)
    if kept is None:
        raise NotFound(f"there is no report `{name[:60]}`; `listenpost reports` lists them")
    return kept


def _line(listed: AnalysisSummary) -> str:
    """One analysis: on one line, or with its question on a second where the terminal is narrow."""
    from api.core.text import SHORT_ID, utc_minute
    from api.interfaces.cli.terminal_text import padded, shown

    summary, columns = listed.summary, shutil.get_terminal_size((100, 24)).columns
    ended, kept, query = str(listed.state), "", shown(listed.query)
    if summary is not None:
        sources = summary.sources.values()
        ended = str(summary.decision)
        fetched = sum(part.fetched for part in sources)
        kept = f"kept {summary.total_survived} of {fetched}" if sources else ""
        query += f" - {shown(summary.about)}" if summary.about else ""
        query = f"(sample) {query}" if summary.sample else query
    head = f"{listed.id[:SHORT_ID]:<{SHORT_ID}}  {utc_minute(listed.created_at)}"
    facts = f"  {ended:<17}  {kept:>14}"
    narrow = columns < _TABLE
    room = columns - 2 if narrow else min(columns, 120) - len(head) - len(facts) - 2
    if cell_len(query) > room:
        query = padded(query, room - 1).rstrip() + "…"
    return f"{head}\n  {facts.strip()}\n  {query}" if narrow else f"{head}{facts}  {query}"


def _browsable() -> bool:
    """Whether a page that is opened here is seen here: not over ssh without a display."""
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return True
    remote = os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY")
    return not remote and (sys.platform in {"darwin", "win32"} or "BROWSER" in os.environ)
