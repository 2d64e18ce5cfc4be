"""`/v1/analyses`: begin, follow, list, read, export and delete; with the OpenAPI description of the stream."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field

from api.bootstrap.app_context import AppContext
from api.core.domain import Decision, Outcome, Question
from api.core.items import Gathered
from api.core.progress import SourceFetched, SourceGathered, SourceKept, SourceStarted
from api.errors import Conflict, NotFound, UsageError
from api.features.analyses.analysis_job import AnalysisTask, stored_report
from api.features.analyses.api_keys import Tenant
from api.features.analyses.rejudging import ask_again, ask_again_and_remember
from api.features.analyses.store_ports import Filters, StoredAnalysis
from api.interfaces.http.access import Asker, Looker, OpenContext, Reader
from api.interfaces.http.errors_json import WRONG_DEPTH, WRONG_LIMIT, documented
from api.interfaces.http.event_stream import (
    EVENT_SCHEMA,
    GONE,
    MEDIA_TYPE,
    RETRY,
    EventStream,
    LastSeen,
    accepted,
    frame,
    unless_gone,
    unless_kept,
    wants_events,
)
from api.interfaces.http.schemas import AnalysesPage, Done, Format, ListedAnalysis, Pending
from api.interfaces.pages.report_values import report_html
from api.interfaces.pages.templates_rendering import saved_policy
from api.interfaces.shared.csv_export import report_csv
from api.interfaces.shared.listing_requests import AgainRequest, ListingRequest, ReplayRequest
from api.interfaces.shared.markdown_report import report_markdown
from api.interfaces.shared.requests import AnalysisRequest, RequestBody
from api.reports.composition import Origin, clarified, source_report
from api.reports.replay import Replay
from api.reports.report import Report
from api.services.product import Ask

_ID, _QUERY = "8c1f0d5e7b2a4963a1c4e8f7d2b60935", "plaud.ai"
_EXAMPLE_BEGUN = datetime(2026, 11, 2, tzinfo=UTC)
_FIRST = int(_EXAMPLE_BEGUN.timestamp()) * 1_000_000
_ORIGIN = Origin(_ID, False, None)
_NOTHING = Gathered("reddit", _QUERY, Outcome.EMPTY)
_REPORT = clarified(_QUERY, Question(_QUERY), "quick", "", _ORIGIN).model_copy(
    update={
        "since": "all",
        "decision": Decision.INSUFFICIENT,
        "decision_rationale": "No source had anything about it.",
        "explanation_text": None,
        "sources": {"reddit": source_report(_NOTHING, _ORIGIN)},
        "created_at": _EXAMPLE_BEGUN,
    }
)
_MOMENTS = (
    SourceStarted(source="reddit", query=_QUERY, limit=10),
    SourceFetched(source="reddit", query=_QUERY, fetched=0),
    SourceKept.of(_NOTHING),
    SourceGathered.of(_NOTHING),
)
_PENDING = Pending(id=_ID, state="running", query=_QUERY, created_at=_EXAMPLE_BEGUN)
EVENTS = b"".join(
    (
        frame("begun", _PENDING.model_dump(mode="json"), f"{_ID}:{_FIRST}", RETRY),
        *(
            frame(each.kind, {"source": each.source, **each.data}, f"{_ID}:{number}")
            for number, each in enumerate(_MOMENTS, _FIRST + 1)
        ),
        frame("report", _REPORT.model_dump(mode="json"), f"{_ID}:end"),
    )
).decode()
"""Example of a short event stream: one source without posts."""


router = APIRouter(prefix="/v1/analyses", tags=["analyses"])
LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        description="The `id` of the last event that was seen: its analysis goes on from there.",
    ),
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="The same key and body: one analysis.",
    ),
]
COMMON = (401, 403, 429, 500, 503)
_LOCATION = {"Location": {"schema": {"type": "string"}, "description": "Where it can be read."}}
RETRY_AFTER = 2
"""Seconds until it is worth asking again for one that runs."""
_MEDIA: dict[str, Format] = {
    "application/json": "json",
    "text/html": "html",
    "text/markdown": "markdown",
    "text/csv": "csv",
    MEDIA_TYPE: "events",
}
HTML_HEADERS = {
    "Content-Security-Policy": saved_policy(),
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_BEGUN: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Report,
        "description": "The report; as an event stream its progress first.",
        "headers": _LOCATION,
        "content": {MEDIA_TYPE: {"schema": EVENT_SCHEMA, "example": EVENTS}},
    },
    202: {
        "model": Pending,
        "description": "It runs on its own; read it at `Location`.",
        "headers": {
            **_LOCATION,
            "Preference-Applied": {"schema": {"type": "string"}, "description": "respond-async"},
            "Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."},
        },
    },
    **documented(404, 409, 413, 422, *COMMON, wrong=WRONG_DEPTH),
}
_READ: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Done | Pending,
        "description": "The analysis: its report when it is done, else its state.",
        "headers": {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds, while it runs."}},
        "content": {
            media: {"schema": {"type": "string"}, "example": example}
            for media, example in (
                ("text/html", "<!doctype html>..."),
                ("text/markdown", "# What people say about plaud.ai"),
                ("text/csv", "rank,key,source,title,..."),
            )
        }
        | {MEDIA_TYPE: {"schema": EVENT_SCHEMA, "example": EVENTS}},
    },
    204: {"description": "The last event has been seen: there is nothing to come back for."},
    304: {"description": "The copy that `If-None-Match` names is still the answer."},
    **documented(
        404,
        409,
        422,
        *COMMON,
        wrong="`format` must be `json`, `html`, `markdown`, `csv` or `events`, not `xml`",
    ),
}


class ReadQuery(RequestBody):
    """The format in which a report is read."""

    format: Annotated[Format | None, Field(description="Takes precedence over `Accept`.")] = None


async def beginner(request: Request, tenant: Reader, app_context: OpenContext) -> Tenant:
    """Count a request; a request with `Last-Event-ID` continues an analysis, so it counts as a read."""
    await app_context.limits.admit(tenant, looks=bool(_last_event_id(request)))
    return tenant


async def comeback(
    request: Request, tenant: Annotated[Tenant, Depends(beginner)], shown: LastEventId = None
) -> LastSeen | None:
    """What a POST has seen already; `shown` is for the OpenAPI document.

    Raises:
        UsageError: its `Last-Event-ID` is none of ours. It would begin, and pay, what nobody meant.
    """
    return LastSeen.required(_last_event_id(request))


def _last_event_id(request: Request) -> str:
    """The last event id as sent, joined when sent twice, which is then invalid; empty without one."""
    return ",".join(filter(None, map(str.strip, request.headers.getlist("last-event-id"))))


@dataclass(frozen=True, slots=True)
class AnalysisStart:
    """How a request begins or follows an analysis: its tenant and the form of the answer."""

    request: Request
    tenant: Tenant
    last_seen: LastSeen | None
    app_context: AppContext
    prefer: str
    idempotency_key: str | None

    async def answer(self, ask: Ask) -> Response:
        """The report, its events, or where it can be read: as the headers wish."""
        runner, tenant, last_seen = self.app_context.runner, self.tenant, self.last_seen
        keepalive = self.app_context.settings.streams.keepalive
        detached = "respond-async" in self.prefer.lower()
        streamed = wants_events(self.request.headers.get("accept", ""))

        async def work() -> Response:
            task: AnalysisTask | StoredAnalysis | None
            if last_seen is None:
                task = await runner.join(tenant, ask, self.idempotency_key, detached=detached)
            elif (task := await runner.follow(tenant, last_seen.analysis_id)) is None:
                raise _nothing(last_seen.analysis_id)
            location = {"Location": f"/v1/analyses/{task.id}"}
            if task.query != ask.query:
                if not isinstance(task, StoredAnalysis):
                    runner.leave(task)
                raise Conflict("the `Last-Event-ID` belongs to another question")
            if streamed and not detached:
                return EventStream(runner, task, last_seen, keepalive, location)
            if isinstance(task, StoredAnalysis) and task.state != "running":
                # what the key or the event stands for already
                report = await runner.outcome(task)
                done = {"state": "done"} if detached else {}
                return JSONResponse(report.model_dump(mode="json") | done, headers=location)
            if isinstance(task, StoredAnalysis) or detached:
                if not isinstance(task, StoredAnalysis):
                    runner.leave(task)
                applied = {"Preference-Applied": "respond-async"} if detached else {}
                shown = Pending.of(task).model_dump(mode="json")
                return JSONResponse(shown, 202, {**location, "Retry-After": str(RETRY_AFTER), **applied})
            try:
                report = await task.result()
                return JSONResponse(report.model_dump(mode="json"), headers=location)
            finally:
                runner.leave(task)

        gone = Response(status_code=GONE)
        return await unless_gone(self.request.receive, work()) or gone


async def analysis_start(
    request: Request,
    tenant: Annotated[Tenant, Depends(beginner)],
    last_seen: Annotated[LastSeen | None, Depends(comeback)],
    app_context: OpenContext,
    prefer: Annotated[str, Header(description="`respond-async` for 202 at once.")] = "",
    idempotency_key: IdempotencyKey = None,
) -> AnalysisStart:
    """`Start`, as a dependency; a class would be called in a thread."""
    return AnalysisStart(request, tenant, last_seen, app_context, prefer, idempotency_key)


Start = Annotated[AnalysisStart, Depends(analysis_start)]


@router.post("", responses=_BEGUN, response_model=None, summary="Analyze a question")
async def create_analysis(body: AnalysisRequest, start: Start) -> Response:
    """Ask every source, keep the posts that are about the product, and write a report.

    With `Accept: text/event-stream` real progress comes first: `begun`, `source.started`,
    `source.fetched`, `source.judged`, `source.refetching`, `source.looked_again`, `source.kept`,
    `source.gathered`, `graded`, `writing`; `report` or `error` is the last.
    With the `Last-Event-ID` of an earlier stream that one goes on, and nothing is begun.
    Hanging up cancels the work, unless another request waits for the same answer or
    `Prefer: respond-async` was sent; who lost a stream has some seconds to come back.
    """
    return await start.answer(body.ask())


@router.post(
    "/{analysis_id}/again",
    responses=_BEGUN | documented(422),  # it takes no `depth`
    response_model=None,
    summary="Judge a report again",
)
async def judge_again(analysis_id: str, body: AgainRequest, start: Start) -> Response:
    """A new report on the items of a stored one: no source is asked, only the judge.

    Use it after corrections, or with another description, or with the number of one of the
    report's `senses`, which is then taken whenever you ask about this name and describe nothing.
    It is answered as `POST /v1/analyses` is.
    """
    store, tenant = start.app_context.store, start.tenant.id
    report = await stored_report(store, tenant, analysis_id)
    return await start.answer(await ask_again_and_remember(store, tenant, report, **body.model_dump()))


@router.post(
    "/{analysis_id}/replay",
    responses={200: {"model": Replay, "description": "The differences."}, **documented(404, 413, 422, *COMMON)},
    response_model=None,
    summary="Compare a report with its items judged again",
)
async def replay(
    request: Request, analysis_id: str, body: ReplayRequest, tenant: Asker, app_context: OpenContext
) -> Response:
    """Which items and claims another description, sense, judge or model would keep; nothing is stored.

    No source is asked, and the stored report stays. It counts and costs as an analysis of so many items does; hanging
    up cancels it.
    """

    async def work() -> Response:
        before = await stored_report(app_context.store, tenant.id, analysis_id)
        ask = ask_again(before, **body.meaning)
        answer = await app_context.replay(tenant, before, ask, body.judge, body.model)
        return JSONResponse(answer.model_dump(mode="json"))

    return await unless_gone(request.receive, work()) or Response(status_code=GONE)


@router.get(
    "",
    responses=documented(422, *COMMON, wrong=WRONG_LIMIT),
    summary="List analyses, newest first",
)
async def list_analyses(
    tenant: Asker, app_context: OpenContext, query: Annotated[ListingRequest, Query()]
) -> AnalysesPage:
    """List your analyses; the reports themselves are at `/v1/analyses/{id}`."""
    since, until = _aware(query.since), _aware(query.until)
    if since is not None and until is not None and until < since:
        raise UsageError("`until` is before `since`, so that nothing lies between: swap them")
    filters = Filters(query.decision, query.source, since, until)
    page = await app_context.store.listing(tenant.id, filters, query.limit, query.cursor)
    return AnalysesPage(analyses=list(map(ListedAnalysis.of, page.analyses)), cursor=page.cursor)


def _aware(text: str | None) -> datetime | None:
    """ISO 8601, in UTC where it does not say."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError("`since` and `until` need a date: `2026-03-01T00:00:00Z`") from None


@router.get("/{analysis_id}", responses=_READ, response_model=None, summary="Read or export one")
async def get_analysis(
    request: Request,
    analysis_id: str,
    tenant: Looker,
    app_context: OpenContext,
    query: Annotated[ReadQuery, Query()],
    last_event_id: LastEventId = None,
    if_none_match: Annotated[str | None, Header(description="`ETag`s of the copies that you have.")] = None,
) -> Response:
    """Read an analysis, or its state when it runs or failed; then a `format` other than JSON gets 409.

    As events it is followed, from `Last-Event-ID` or the start to its report; whoever has seen that
    gets 204, so that an `EventSource` ends.
    """
    if not is_possible(analysis_id):
        raise _nothing(analysis_id)
    wanted = query.format or preferred(request.headers.get("accept", ""))
    if wanted == "events":
        last_seen = LastSeen.read(last_event_id or "")
        if last_seen is not None and last_seen.analysis_id != analysis_id:
            last_seen = None
        analysis = await app_context.runner.follow(tenant, analysis_id)
        if analysis is None:
            raise _nothing(analysis_id)
        if isinstance(analysis, StoredAnalysis) and last_seen and last_seen.ended == analysis.state:
            return Response(status_code=204)
        keepalive = app_context.settings.streams.keepalive
        return EventStream(app_context.runner, analysis, last_seen, keepalive, {"Vary": "Accept"})
    kept = await app_context.runner.kept(tenant.id, analysis_id)
    if kept is None:
        raise _nothing(analysis_id)
    if kept.report is not None:
        return unless_kept(request, await asyncio.to_thread(shown_as, kept.report, wanted))
    if query.format in {None, "json"}:
        wait = {"Retry-After": str(RETRY_AFTER)} if kept.state == "running" else None
        return JSONResponse(Pending.of(kept).model_dump(mode="json"), headers=wait)
    # a state in JSON would be saved as the table or page that was asked for
    lack = f"the analysis `{kept.id}` has no {query.format}"
    if kept.state == "running":
        words = f"{lack} yet: it runs; try again in {RETRY_AFTER} s"
        raise Conflict(words, retry_after=RETRY_AFTER)
    reason = (kept.reason or kept.state).rstrip(".")
    raise Conflict(f"{lack}: it failed ({reason}); ask its question again")


def shown_as(report: Report, form: Format) -> Response:
    """A report in one of its formats; JSON where the name is none of those."""
    match form:
        case "html":
            return Response(report_html(report), 200, HTML_HEADERS, "text/html")
        case "markdown":
            return Response(report_markdown(report, True), media_type="text/markdown")
        case "csv":
            attached = {"Content-Disposition": f'attachment; filename="analysis-{report.id}.csv"'}
            return Response(report_csv(report), 200, attached, "text/csv")
        case _:
            return JSONResponse(report.model_dump(mode="json") | {"state": "done"})


def preferred(accept: str) -> Format:
    """The best liked format in an `Accept` header that there is; JSON without one."""
    return next((_MEDIA[media] for media in accepted(accept) if media in _MEDIA), "json")


@router.delete(
    "/{analysis_id}",
    status_code=204,
    responses=documented(404, 422, *COMMON),
    summary="Delete one",
)
async def delete_analysis(analysis_id: str, tenant: Asker, app_context: OpenContext) -> None:
    """Delete an analysis with every item that only it has; a running one is cancelled first."""
    if not is_possible(analysis_id) or not await app_context.runner.delete(tenant, analysis_id):
        raise _nothing(analysis_id)


def is_possible(analysis_id: str) -> bool:
    """Whether an analysis can have this id; if not, the store is not queried."""
    return analysis_id.isascii() and analysis_id.isalnum() and len(analysis_id) <= 64


def _nothing(analysis_id: str) -> NotFound:
    name = analysis_id[:40] if is_possible(analysis_id) else "of that name"
    return NotFound(f"there is no analysis `{name}`")
