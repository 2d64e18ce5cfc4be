"""`reports` and `feedback`: stored reports and their ratings, and the store that other commands open.

The database's libraries are imported where a command runs: help does without.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.cells import cell_len

from api.errors import NotFound, UsageError
from api.interfaces.cli.output import (
    As,
    Data,
    DataFormat,
    Dropped,
    Output,
    OutputOptions,
    ReportAs,
    as_json,
    check_output,
    closing,
    deliver,
    langfuse_words,
    say,
    tell,
)

if TYPE_CHECKING:
    from api.features.analyses.store_ports import AnalysisSummary, Feedback, Store, StoredAnalysis
    from api.interfaces.shared.listing_requests import FeedbackRequest
    from api.reports.report import Report

AnalysisId = Annotated[str, typer.Argument(help="Id of a stored analysis, as listed, or its beginning.")]
WholeAnalysisId = Annotated[str, typer.Argument(help="Whole id of a stored analysis.")]
# Candidates that are named when an id's beginning fits several.
_NAMED = 5
# Columns from which on an analysis is one line.
_TABLE_COLUMNS = 76


@asynccontextmanager
async def opened_store() -> AsyncIterator[Store]:
    """The store of the settings.

    Raises:
        ConfigurationError: a setting is wrong.
        StoreUnavailable: the database cannot be used.
    """
    from api import bootstrap
    from api.bootstrap.storage import open_store_of

    async with closing(await open_store_of(bootstrap.load_settings())) as store:
        yield store


async def list_reports(
    limit: Annotated[int, typer.Option(help="Number of analyses at most, newest first.", min=1, max=1000)] = 20,
    form: As = "text",
) -> None:
    """List stored analyses: id, time, decision, how many items were kept, question."""
    from api.features.analyses.api_keys import LOCAL
    from api.features.analyses.store_ports import Filters
    from api.interfaces.http.schemas import ListedAnalysis

    async with opened_store() as store:
        analyses = (await store.listing(LOCAL.id, Filters(), limit)).analyses
    if form == "json":
        say(as_json([ListedAnalysis.of(row).model_dump(mode="json") for row in analyses]))
        return
    for listed in analyses:
        say(_line(listed))
    if not analyses:
        tell("nothing is kept yet; `listenpost analyze QUERY` keeps its answer")


async def show_report(report: AnalysisId, form: ReportAs = "text", dropped: Dropped = False) -> None:
    """Print one report again, as `analyze` printed it."""
    deliver(await _read_report(report), OutputOptions(form, dropped))


async def export_report(
    report: AnalysisId, form: ReportAs = "markdown", dropped: Dropped = False, output: Output = None
) -> None:
    """Print one report in another format, or write it to a file."""
    check_output(output)
    deliver(await _read_report(report), OutputOptions(form, dropped, output))


async def open_report(report: AnalysisId) -> None:
    """Open one report as a page in the browser; prints the path of the page."""
    import tempfile
    import webbrowser

    from api.interfaces.pages.report_values import report_html

    page = report_html(await _read_report(report))
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", errors="replace", prefix="listenpost-", suffix=".html", delete=False
    ) as file:
        file.write(page)
    say(file.name)
    if not _has_display():
        tell("there is no display here; open it where there is one")
    elif not webbrowser.open(Path(file.name).as_uri()):
        tell("no browser could be started; open it yourself")


async def delete_report(report: WholeAnalysisId) -> None:
    """Delete one report, and every item that no other report holds."""
    from api.features.analyses.api_keys import LOCAL
    from api.interfaces.cli.terminal_text import shown

    async with opened_store() as store:
        kept = await kept_of(store, report)
        if kept.id != report:
            question = shown(kept.query)[:60]
            raise UsageError(f"what is deleted is named whole: `listenpost reports delete {kept.id}` (“{question}”)")
        await store.delete(LOCAL.id, kept.id)
    tell(f"`{kept.id}` is deleted")


async def feedback(
    request: FeedbackRequest,
    report: AnalysisId,
    up: Annotated[bool, typer.Option("--up", help="Rate it as good.")] = False,
    down: Annotated[bool, typer.Option("--down", help="Rate it as bad.")] = False,
    labels: Annotated[bool, typer.Option("--labels", help="Print ratings of items as labels for `eval`.")] = False,
    form: Data = "text",
) -> None:
    """Rate a report, or a finding or item of it; without --up or --down: list the ratings."""
    if up and down:
        raise UsageError("`--up` or `--down`, not both")
    if labels and (up or down):
        raise UsageError("`--labels` prints ratings; it goes with no thumb")
    if not (up or down) and (request.comment or request.finding or request.item_key):
        raise UsageError("say `--up` or `--down` with it")
    from api.bootstrap import load_settings
    from api.bootstrap.storage import feedback_sender
    from api.features.analyses.api_keys import LOCAL
    from api.features.analyses.feedback import author_of, give

    async with opened_store() as store:
        kept = await kept_of(store, report)
        if labels:
            await _say_labels(store, kept.id)
        elif up or down:
            request.rating = "up" if up else "down"
            send, author = feedback_sender(load_settings()), author_of(LOCAL.id)
            given = await give(store, LOCAL.id, author, kept.id, request.vote(), send)
            if form == "json":
                state = {"status": given.watched, "reason": given.why or None}
                say(as_json({**_plain(given.feedback), "langfuse": state}))
            tell(langfuse_words(given.watched, given.why))
        else:
            _list_ratings(await store.feedback(LOCAL.id, kept.id), form)


async def _say_labels(store: Store, report_id: str) -> None:
    import json

    from api.evaluation.labelled_items import corrections
    from api.features.analyses.analysis_job import stored_report
    from api.features.analyses.api_keys import LOCAL

    report = await stored_report(store, LOCAL.id, report_id)
    lines = corrections(report, await store.feedback(LOCAL.id, report_id))
    for line in lines:
        say(json.dumps(line, ensure_ascii=False))
    if not lines:
        tell("nothing was said of its items that is a label")


def _list_ratings(opinions: Sequence[Feedback], form: DataFormat) -> None:
    from api.core.text import clean, one_line
    from api.interfaces.cli.terminal_text import shown

    if form == "json":
        say(as_json([_plain(opinion) for opinion in opinions]))
        return
    for opinion in opinions:
        subject = {
            "report": "report",
            "finding": f"finding {opinion.finding}",
            "item": f"item {one_line(clean(opinion.item_key))}",  # unbroken, for `--item`
        }[opinion.subject]
        say(f"{opinion.rating:<5}{subject}  {shown(opinion.comment)}".rstrip())
    if not opinions:
        tell("nothing was said of it yet; `--up` or `--down` does")


def _plain(opinion: Feedback) -> dict[str, Any]:
    from dataclasses import asdict

    given = opinion.created_at
    return asdict(opinion) | {"created_at": given and given.isoformat()}


async def _read_report(name: str) -> Report:
    async with opened_store() as store:
        kept = await kept_of(store, name)
    if kept.report is None:
        raise UsageError(kept.why_none)
    return kept.report


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
            raise UsageError(f"several reports begin with `{name}`: {', '.join(named)}{more}; write more of it")
        for listed in candidates:
            kept = await store.get(LOCAL.id, listed.id)
    if kept is None:
        raise NotFound(f"there is no report `{name[:60]}`; `listenpost reports` lists them")
    return kept


def _line(listed: AnalysisSummary) -> str:
    """One analysis in one line, or with its question on a second line in a narrow terminal."""
    from api.core.text import SHORT_ID, utc_minute
    from api.interfaces.cli.terminal_text import padded, shown

    summary, columns = listed.summary, shutil.get_terminal_size((100, 24)).columns
    ended, kept, query = str(listed.state), "", shown(listed.query)
    if summary is not None:
        sources = summary.sources.values()
        ended = str(summary.decision).replace("_", " ")
        fetched = sum(part.fetched for part in sources)
        kept = f"kept {summary.total_survived} of {fetched}" if sources else ""
        query += f" - {shown(summary.about)}" if summary.about else ""
        query = f"(sample) {query}" if summary.sample else query
    head = f"{listed.id[:SHORT_ID]:<{SHORT_ID}}  {utc_minute(listed.created_at)}"
    facts = f"  {ended:<17}  {kept:>14}"
    narrow = columns < _TABLE_COLUMNS
    room = columns - 2 if narrow else min(columns, 120) - len(head) - len(facts) - 2
    if cell_len(query) > room:
        query = padded(query, room - 1).rstrip() + "…"
    return f"{head}\n  {facts.strip()}\n  {query}" if narrow else f"{head}{facts}  {query}"


def _has_display() -> bool:
    """Whether a page that is opened here is seen here: not over ssh without a display."""
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return True
    remote = os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY")
    return not remote and (sys.platform in {"darwin", "win32"} or "BROWSER" in os.environ)
