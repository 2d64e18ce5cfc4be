"""`/healthz`, `/readyz` and `/metrics`."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.faces.web.access import Opened, Reader
from api.faces.web.counting import counted
from api.faces.web.errors import documented
from api.faces.web.schemas import Health, Readiness

router = APIRouter(tags=["operations"])
_TEXT = {"text/plain": {"schema": {"type": "string"}}}


@router.get("/healthz", responses=documented(500), summary="The process answers")
async def healthz() -> Health:
    """Needs no key and asks nothing."""
    return Health(status="ok")


@router.get("/readyz", responses=documented(500, 503), summary="Requests can be answered")
async def readyz(house: Opened) -> Readiness:
    """Needs no key; 503 when the database cannot be used."""
    await house.ping()
    product = "loaded" if house.loaded else "loading"
    return Readiness(status="ready", product=product, sample=house.sample)


@router.get(
    "/metrics",
    responses={200: {"content": _TEXT}, **documented(401, 403, 500, 503)},
    response_class=Response,
    summary="Counters for Prometheus",
)
async def metrics(request: Request, tenant: Reader) -> Response:
    """Needs a key when keys are configured; of all tenants together."""
    shown = counted(request.app)
    return Response(shown.page(), media_type=shown.media_type)
