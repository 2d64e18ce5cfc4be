"""`/healthz`, `/readyz` and `/metrics`.

An app's metrics are made when they are first needed: their library is no part of getting ready.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response

from api.faces.web.access import Opened, Reader
from api.faces.web.errors import documented
from api.faces.web.schemas import Health, Readiness

if TYPE_CHECKING:
    from api.faces.web.metrics import Metrics

router = APIRouter(tags=["operations"])
_TEXT = {"text/plain": {"schema": {"type": "string"}}}


def counted(app: FastAPI) -> Metrics:
    """The app's own counters."""
    from api.faces.web.metrics import Metrics

    made: Metrics | None = getattr(app.state, "metrics", None)
    if made is None:
        made = app.state.metrics = Metrics(app.state.house.sample)
    return made


@router.get("/healthz", responses=documented(500), summary="The process answers")
async def health() -> Health:
    """Needs no key and asks nothing."""
    return Health(status="ok")


@router.get("/readyz", responses=documented(500, 503), summary="Requests can be answered")
async def readiness(house: Opened) -> Readiness:
    """Needs no key; 503 when the database cannot be used."""
    await house.ping()
    product = "loaded" if house.loaded else "loading"
    return Readiness(status="ready", product=product, sample=house.sample)


@router.get(
    "/metrics",
    responses={200: {"content": _TEXT}, **documented(401, 403, 422, 500, 503)},
    response_class=Response,
    summary="Counters for Prometheus",
)
async def metrics(request: Request, tenant: Reader) -> Response:
    """Needs a key when keys are configured; of all tenants together."""
    shown = counted(request.app)
    return Response(shown.page(), media_type=shown.media_type)
