"""`/v1/relevance`: the gate alone, for the caller's own items."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from api.faces.web.access import Asker, Opened
from api.faces.web.errors import documented
from api.faces.web.events import GONE, unless_gone
from api.faces.web.schemas import Relevance, RelevanceRequest
from api.services.keeping.keys import Tenant
from api.services.schemas import Question
from api.services.text import clean
from api.wiring.serving import House

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
async def relevance(
    request: Request, body: RelevanceRequest, tenant: Asker, house: Opened
) -> Response:
    """One model call for 50 items; a judge that fails lets all pass and says why."""
    told = await unless_gone(request.receive, _filtered(house, tenant, body))
    return Response(status_code=GONE) if told is None else _Echo(told)


async def _filtered(house: House, tenant: Tenant, body: RelevanceRequest) -> dict[str, Any]:
    await house.product()  # its libraries, which the import below needs, load in the background
    from api.services.tools import Filtered, shown

    seen = [shown(item, body.source, number) for number, item in enumerate(body.items)]
    question = Question(clean(body.query), clean(body.about))
    gated = await house.judge(tenant, question, seen, clean(body.source))
    filtered = Filtered.of(body.items, gated)
    relevant, share = filtered
    kept = [verdict.relevant for verdict in gated.verdicts]
    return {
        "relevant": relevant,
        "dropped": [item for item, keep in zip(body.items, kept, strict=True) if not keep],
        "yield_ratio": share,
        "status": gated.status,
        "reason": gated.reason,
    }
