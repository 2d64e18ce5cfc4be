"""The gate alone: `/v1/fetch/{source}`, `/v1/sources`, and `/v1/relevance` for own items."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from api.errors import SourceError
from api.faces.web.access import Asker, Opened
from api.faces.web.errors import WRONG_DEPTH, documented
from api.faces.web.events import GONE, unless_gone
from api.faces.web.schemas import (
    FetchRequest,
    Relevance,
    RelevanceRequest,
    SourceName,
    Sources,
    SourceState,
)
from api.services.question.accepting import question_of
from api.services.reporting.report import Fetched

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
    request: Request, source: SourceName, body: FetchRequest, tenant: Asker, house: Opened
) -> Response:
    """Keep what is about the query; a source that cannot be asked is an `outcome`, not an error."""
    heard = await unless_gone(request.receive, house.fetch(tenant, source, body.ask(source)))
    if heard is None:
        return Response(status_code=GONE)
    return JSONResponse(heard.fetched.model_dump(mode="json"))


@router.get(
    "/sources",
    tags=["sources"],
    responses=documented(422, *_COMMON),
    summary="Which sources there are",
)
async def list_sources(tenant: Asker, house: Opened) -> Sources:
    """Configured or not; nothing is asked."""
    built = (await house.product()).sources
    shown = [
        SourceState(
            name=name,
            configured=not isinstance(source, SourceError),
            reason=source.reason if isinstance(source, SourceError) else None,
        )
        for name, source in built.items()
    ]
    return Sources(sources=shown, sample=house.sample)


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
    request: Request, body: RelevanceRequest, tenant: Asker, house: Opened
) -> Response:
    """One model call for 50 items; a judge that fails lets all pass and says why."""
    question = question_of(body.query, body.about)
    work = house.judge(tenant, question, body.own, body.source)
    gated = await unless_gone(request.receive, work)
    if gated is None:
        return Response(status_code=GONE)
    return _Echo(Relevance.of(body.own, gated).model_dump())
