"""`/v1/fetch/{source}` and `/v1/sources`."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from api.errors import SourceError
from api.faces.web.access import Asker, Opened
from api.faces.web.counting import counted
from api.faces.web.errors import documented
from api.faces.web.events import GONE, unless_gone
from api.faces.web.schemas import FetchRequest, SourceName, Sources, SourceState
from api.services.reporting.report import Fetched

router = APIRouter(prefix="/v1", tags=["sources"])
_COMMON = (401, 403, 429, 500, 503)


@router.post(
    "/fetch/{source}",
    responses={200: {"model": Fetched}, **documented(413, 422, *_COMMON)},
    response_model=None,
    summary="Ask one source",
)
async def fetch(
    request: Request, source: SourceName, body: FetchRequest, tenant: Asker, house: Opened
) -> Response:
    """Keep what is about the query; a source that cannot be asked is an `outcome`, not an error."""
    heard = await unless_gone(request.receive, house.fetch(tenant, source, body.ask(source)))
    if heard is None:
        return Response(status_code=GONE)
    counted(request.app).fetched(heard.fetched)
    return JSONResponse(heard.fetched.model_dump(mode="json"))


@router.get("/sources", responses=documented(*_COMMON), summary="Which sources there are")
async def sources(tenant: Asker, house: Opened) -> Sources:
    """Configured or not; nothing is asked."""
    built = (await house.product()).sources
    shown = [
        SourceState(
            name=name,
            configured=not isinstance(source, SourceError),
            reason=str(source) if isinstance(source, SourceError) else None,
        )
        for name, source in built.items()
    ]
    return Sources(sources=shown, sample=house.sample)
