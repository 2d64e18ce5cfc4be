"""`/v1/analyses`: begin, follow, list, read, export and delete."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import JSONResponse, Response

from api.errors import NotFound, UsageError
from api.faces.web import export
from api.faces.web.access import Asker, Opened
from api.faces.web.errors import documented
from api.faces.web.events import EVENT_SCHEMA, GONE, MEDIA_TYPE, EventStream, replayed, unless_gone
from api.faces.web.schemas import (
    AnalysisRequest,
    Done,
    Listed,
    ListingQuery,
    Page,
    Pending,
    ReadQuery,
    Report,
)
from api.services.keeping.analyses import Runner
from api.services.keeping.keys import Tenant
from api.services.keeping.storage import Filters, Kept
from api.services.listening import Ask
from api.wiring.serving import House

router = APIRouter(prefix="/v1/analyses", tags=["analyses"])
_COMMON = (401, 403, 429, 500, 503)
_LOCATION = {"Location": {"schema": {"type": "string"}, "description": "Where it can be read."}}
_EVENTS = (
    'event: source.started\ndata: {"source": "reddit", "limit": 10}\n\n'
    'event: report\ndata: {"id": "..."}\n\n'
)
_BEGUN: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Report,
        "description": "The report; as an event stream its progress first.",
        "headers": _LOCATION,
        "content": {MEDIA_TYPE: {"schema": EVENT_SCHEMA, "example": _EVENTS}},
    },
    202: {
        "model": Pending,
        "description": "It runs on its own; read it at `Location`.",
        "headers": {
            **_LOCATION,
            "Preference-Applied": {"schema": {"type": "string"}, "description": "respond-async"},
        },
    },
    **documented(409, 413, 422, *_COMMON),
}
_READ: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Done | Pending,
        "description": "The analysis: its report when it is done, else its state.",
        "content": {
            media: {"schema": {"type": "string"}, "example": example}
            for media, example in (
                ("text/html", "<!doctype html>..."),
                ("text/markdown", "# What people say about plaud.ai"),
                ("text/csv", "rank,key,source,title,..."),
            )
        },
    },
    **documented(404, 422, *_COMMON),
}


@router.post("", responses=_BEGUN, response_model=None, summary="Analyze a question")
async def begin(
    request: Request,
    body: AnalysisRequest,
    tenant: Asker,
    house: Opened,
    prefer: Annotated[str, Header(description="`respond-async` for 202 at once.")] = "",
    idempotency_key: Annotated[
        str | None,
        Header(min_length=1, max_length=255, description="The same key and body: one analysis."),
    ] = None,
) -> Response:
    """Ask every source, keep what is about the question, and report.

    With `Accept: text/event-stream` real progress comes first: `source.started`, `source.fetched`,
    `source.judged`, `source.refetching`, `source.kept`, `graded`, `writing`; `report` or `error`
    is the last.
    Hanging up cancels the work, unless another request waits for the same answer or
    `Prefer: respond-async` was sent.
    """
    ask = body.ask()
    if "respond-async" in prefer.lower():
        work = _detached(house.runner, tenant, ask, idempotency_key)
    elif MEDIA_TYPE in request.headers.get("accept", "").lower():
        work = _followed(house.runner, tenant, ask, idempotency_key)
    else:
        work = _answered(house.runner, tenant, ask, idempotency_key)
    return await unless_gone(request.receive, work) or Response(status_code=GONE)


async def _answered(runner: Runner, tenant: Tenant, ask: Ask, key: str | None) -> Response:
    found = await runner.join(tenant, ask, key)
    if isinstance(found, Kept):
        return _kept(found)
    try:
        report = await found.report()
        return JSONResponse(report, headers=_location(found.id))
    finally:
        runner.leave(found)


async def _followed(runner: Runner, tenant: Tenant, ask: Ask, key: str | None) -> Response:
    found = await runner.join(tenant, ask, key)
    if not isinstance(found, Kept):
        return EventStream(runner, found, _location(found.id))
    if found.report is None:
        return _kept(found)
    return replayed(found.report, _location(found.id))


async def _detached(runner: Runner, tenant: Tenant, ask: Ask, key: str | None) -> Response:
    found = await runner.join(tenant, ask, key)
    headers = {**_location(found.id), "Preference-Applied": "respond-async"}
    if not isinstance(found, Kept):
        found.detached = True
        runner.leave(found)
    began = found.created_at if isinstance(found, Kept) else found.began
    shown = Pending(id=found.id, state="running", query=ask.query, created_at=began)
    return JSONResponse(shown.model_dump(mode="json"), 202, headers)


def _kept(kept: Kept) -> Response:
    """What an idempotency key stands for already."""
    if kept.report is not None:
        return JSONResponse(dict(kept.report), headers=_location(kept.id))
    return JSONResponse(_state(kept), 202, _location(kept.id))


def _location(analysis_id: str) -> dict[str, str]:
    return {"Location": f"/v1/analyses/{analysis_id}"}


def _state(kept: Kept) -> dict[str, Any]:
    state = "failed" if kept.state == "failed" else "running"
    shown = Pending(
        id=kept.id, state=state, query=kept.query, created_at=kept.created_at, reason=kept.reason
    )
    return shown.model_dump(mode="json")


@router.get("", responses=documented(422, *_COMMON), summary="List analyses, newest first")
async def listing(tenant: Asker, house: Opened, wanted: Annotated[ListingQuery, Query()]) -> Page:
    """Yours only; the reports themselves are at `/v1/analyses/{id}`."""
    filters = Filters(wanted.decision, wanted.source, _aware(wanted.since), _aware(wanted.until))
    found = await house.store.listing(tenant.id, filters, wanted.limit, wanted.cursor)
    return Page(analyses=[_listed(kept) for kept in found.analyses], cursor=found.cursor)


def _aware(text: str | None) -> datetime | None:
    """ISO 8601, in UTC where it does not say."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError("`since` and `until` need a date: `2026-03-01T00:00:00Z`") from None


def _listed(kept: Kept) -> Listed:
    told: Mapping[str, Any] = kept.report or {}
    return Listed(
        id=kept.id, state=kept.state, query=kept.query, created_at=kept.created_at,
        reason=kept.reason, decision=told.get("decision"), depth=told.get("depth"),
        sample=told.get("sample"), total_survived=told.get("total_survived"),
    )  # fmt: skip


@router.get("/{analysis_id}", responses=_READ, response_model=None, summary="Read or export one")
async def read(
    request: Request,
    analysis_id: str,
    tenant: Asker,
    house: Opened,
    query: Annotated[ReadQuery, Query()],
) -> Response:
    """One that runs or failed is answered with its state, whatever format is asked for."""
    kept = await _found(house, tenant, analysis_id)
    if kept.report is None:
        return JSONResponse(_state(kept))
    wanted = query.format or export.preferred(request.headers.get("accept", ""))
    if wanted == "json":
        return JSONResponse({**kept.report, "state": "done"})
    return export.answer(kept.report, wanted)


@router.delete(
    "/{analysis_id}",
    status_code=204,
    responses=documented(404, 422, *_COMMON),
    summary="Delete one",
)
async def delete(analysis_id: str, tenant: Asker, house: Opened) -> None:
    """With every item that only it held; one that runs is cancelled first."""
    if not _possible(analysis_id) or not await house.runner.delete(tenant, analysis_id):
        raise _nothing(analysis_id)


async def _found(house: House, tenant: Tenant, analysis_id: str) -> Kept:
    kept = None
    if _possible(analysis_id):
        kept = await house.store.get(tenant.id, analysis_id)
    if kept is None:
        raise _nothing(analysis_id)
    return kept


def _possible(analysis_id: str) -> bool:
    return analysis_id.isascii() and analysis_id.isalnum() and len(analysis_id) <= 64


def _nothing(analysis_id: str) -> NotFound:
    name = analysis_id[:40] if _possible(analysis_id) else "of that name"
    return NotFound(f"there is no analysis `{name}`")
