"""`/v1/relevance`: the gate alone, for the caller's own items."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from api.faces.filtering import filtered
from api.faces.web.access import Asker, Opened
from api.faces.web.errors import documented
from api.faces.web.events import GONE, unless_gone
from api.faces.web.schemas import Relevance, RelevanceRequest
from api.services.schemas import Question
from api.services.text import clean

router = APIRouter(prefix="/v1", tags=["relevance"])


class _Echo(JSONResponse):
    """JSON that also holds what UTF-8 cannot: items go out as they came in."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content).encode()


@router.post(
    "/relevance",
    responses={200: {"model": Relevance}, **documented(401, 403, 413, 422, 429, 500, 503)},
    response_model=None,
    summary="Keep the items that are about a query",
)
async def judge(request: Request, body: RelevanceRequest, tenant: Asker, house: Opened) -> Response:
    """One model call for 50 items; a judge that fails lets all pass and says why."""
    question = Question(clean(body.query), clean(body.about))
    work = filtered(house, tenant, question, body.source, body.items)
    relevance = await unless_gone(request.receive, work)
    if relevance is None:
        return Response(status_code=GONE)
    return _Echo(relevance.model_dump())
