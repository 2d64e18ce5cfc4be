"""`/v1/fetch/{source}`, `/v1/sources`, `/v1/relevance` for own items, `/v1/search` in the archive, and `/v1/stats`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any

import fastapi
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from api.bootstrap.app_context import AppContext
from api.errors import SourceError
from api.features.analyses.api_keys import Tenant
from api.features.analyses.statistics import Stats, since_of, stats_of
from api.features.archive.search_values import ArchiveAnswer
from api.interfaces.http.access import Asker, OpenContext
from api.interfaces.http.errors_json import WRONG_DEPTH, documented
from api.interfaces.http.event_stream import GONE, unless_gone
from api.interfaces.http.schemas import Relevance, SourceList, SourceState
from api.interfaces.shared.listing_requests import SearchRequest, StatsRequest
from api.interfaces.shared.requests import FetchRequest, RelevanceRequest, SourceName
from api.reports.report import Fetched
from api.services.product import QuestionOptions, question_of

router = APIRouter(prefix="/v1")
_COMMON = (401, 403, 429, 500, 503)
_BLANK = "`source` names nothing; say where the items are from"


@router.post(
    "/fetch/{source}",
    tags=["sources"],
    responses={200: {"model": Fetched}, **documented(413, 422, *_COMMON, wrong=WRONG_DEPTH)},
    response_model=None,
    summary="Ask one source",
)
async def fetch_source(
    request: Request,
    source: SourceName,
    body: FetchRequest,
    tenant: Asker,
    app_context: OpenContext,
) -> Response:
    """Keep what is about the query; a source that cannot be asked is an `outcome`, not an error."""
    heard = await unless_gone(request.receive, app_context.fetch(tenant, source, body.ask(source)))
    if heard is None:
        return Response(status_code=GONE)
    return JSONResponse(heard.fetched.model_dump(mode="json"))


@router.get(
    "/sources",
    tags=["sources"],
    responses=documented(422, *_COMMON),
    summary="Which sources there are",
)
async def list_sources(tenant: Asker, app_context: OpenContext) -> SourceList:
    """List the sources and whether each is configured; no source is asked."""
    built = (await app_context.product()).sources
    shown = [
        SourceState(
            name=name,
            configured=not isinstance(source, SourceError),
            reason=source.reason if isinstance(source, SourceError) else None,
        )
        for name, source in built.items()
    ]
    return SourceList(sources=shown, sample=app_context.sample)


class _Echo(JSONResponse):
    """JSON that also holds what UTF-8 cannot: items go out as they came in."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content).encode()


@router.post(
    "/relevance",
    tags=["relevance"],
    responses={200: {"model": Relevance}, **documented(413, 422, *_COMMON, wrong=_BLANK)},
    response_model=None,
    summary="Keep the items that are about a query",
)
async def judge_relevance(
    request: Request, body: RelevanceRequest, tenant: Asker, app_context: OpenContext
) -> Response:
    """Judge items by one model call for each 50; when the judge fails, all pass and the reason is given."""
    question = question_of(QuestionOptions.of(body))
    work = app_context.judge(tenant, question, body.own, body.source)
    gated = await unless_gone(request.receive, work)
    if gated is None:
        return Response(status_code=GONE)
    return _Echo(Relevance.of(body.own, gated).model_dump())


search_router = APIRouter(prefix="/v1", tags=["search"])


@search_router.get(
    "/search",
    responses=documented(401, 403, 422, 429, 500, 503),
    summary="Search what is stored",
)
async def search_archive(
    tenant: Asker, app_context: OpenContext, query: Annotated[SearchRequest, fastapi.Query()]
) -> ArchiveAnswer:
    """Search the entries of your analyses and imports, best first; no source is asked."""
    return await app_context.search(tenant, query.query, query.filters(), query.k, sandbox=query.sandbox)


stats_router = APIRouter(prefix="/v1", tags=["stats"])


@stats_router.get(
    "/stats",
    responses=documented(401, 403, 422, 429, 500, 503),
    summary="Yields, outcomes, decisions and cost",
)
async def get_stats(tenant: Asker, app_context: OpenContext, query: Annotated[StatsRequest, fastapi.Query()]) -> Stats:
    """Over your analyses alone: the figures that a Langfuse dashboard shows, from what is kept.

    Counting thousands of them is work, which waits for its turn like any other.
    """
    return await stats_for(app_context, tenant, query)


async def stats_for(app_context: AppContext, tenant: Tenant, query: StatsRequest) -> Stats:
    """The figures of a tenant, once it is their turn."""
    now = datetime.now(UTC)
    since = since_of(query.since, now)
    async with app_context.limits.queue.slot(tenant):
        return await stats_of(app_context.store, tenant.id, since, now, with_samples=query.sample)
