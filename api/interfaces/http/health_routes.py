"""`/healthz` (the process answers), `/readyz` (its database does), `/metrics` (for Prometheus)."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.interfaces.http.access import OpenContext, Reader, metrics_of
from api.interfaces.http.errors_json import documented
from api.interfaces.http.schemas import Health, Readiness

router = APIRouter(tags=["operations"])
_TEXT = {"text/plain": {"schema": {"type": "string"}}}


@router.get("/healthz", responses=documented(500), summary="The process answers")
async def health() -> Health:
    """Needs no key and asks nothing."""
    return Health(status="ok")


@router.get("/readyz", responses=documented(500, 503), summary="Requests can be answered")
async def readiness(app_context: OpenContext) -> Readiness:
    """Needs no key; 503 when the database cannot be used."""
    await app_context.ping()
    product = "loaded" if app_context.loaded else "loading"
    return Readiness(status="ready", product=product, sample=app_context.sample)


@router.get(
    "/metrics",
    responses={200: {"content": _TEXT}, **documented(401, 403, 422, 500, 503)},
    response_class=Response,
    summary="Counters for Prometheus",
)
async def metrics(request: Request, tenant: Reader) -> Response:
    """Needs a key when keys are configured; of all tenants together."""
    shown = metrics_of(request.app)
    return Response(shown.page(), media_type=shown.media_type)
