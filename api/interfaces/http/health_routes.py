"""`/healthz`, `/readyz` and `/metrics`.

An app's metrics are made when they are first needed: their library is no part of getting ready.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response

from api.interfaces.http.access import OpenContext, Reader
from api.interfaces.http.errors_json import documented
from api.interfaces.http.schemas import Health, Readiness

if TYPE_CHECKING:
    from api.interfaces.http.prometheus_metrics import Metrics


router = APIRouter(tags=["operations"])
_TEXT = {"text/plain": {"schema": {"type": "string"}}}


def counted(app: FastAPI) -> Metrics:
    """The app's own counters."""
    from api.interfaces.http.prometheus_metrics import Metrics

    made: Metrics | None = getattr(app.state, "metrics", None)
    if made is None:
        made = app.state.metrics = Metrics(app.state.app_context.sample)
    return made


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
    shown = counted(request.app)
    return Response(shown.page(), media_type=shown.media_type)
