"""`/v1/comparisons`: products side by side, an analysis for each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from api.choices import MAX_PRODUCTS, MIN_PRODUCTS
from api.errors import UsageError
from api.features.analyses.analysis_job import AnalysisTask
from api.features.analyses.store_ports import StoredAnalysis
from api.features.comparisons.compare import comparison_of
from api.features.comparisons.comparison import Comparison
from api.interfaces.http.access import Asker, OpenContext
from api.interfaces.http.analysis_routes import COMMON, HTML_HEADERS, RETRY_AFTER, IdempotencyKey, preferred
from api.interfaces.http.errors_json import documented
from api.interfaces.http.event_stream import GONE, unless_gone
from api.interfaces.http.schemas import Format, Pending
from api.interfaces.pages.report_values import comparison_html
from api.interfaces.shared.csv_export import comparison_csv
from api.interfaces.shared.markdown_report import comparison_markdown
from api.interfaces.shared.requests import ComparisonRequest
from api.sources import ALL_SOURCES

router = APIRouter(prefix="/v1/comparisons", tags=["comparisons"])
_WRONG = f"`products` must be a list of {MIN_PRODUCTS} to {MAX_PRODUCTS}, not of 1"


class PendingComparison(BaseModel):
    """A comparison whose analyses run; the same request with the same `Idempotency-Key` returns it when done."""

    analyses: list[Pending]


_BEGUN: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Comparison,
        "description": "The comparison.",
        "content": {
            media: {"schema": {"type": "string"}, "example": example}
            for media, example in (
                ("text/html", "<!doctype html>..."),
                ("text/markdown", "# Oura and Whoop, compared"),
                ("text/csv", ",Oura,Whoop"),
            )
        },
    },
    202: {
        "model": PendingComparison,
        "description": "Its analyses run on their own; ask again with the same key.",
        "headers": {
            "Preference-Applied": {"schema": {"type": "string"}, "description": "respond-async"},
            "Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."},
        },
    },
    **documented(409, 413, 422, *COMMON, wrong=_WRONG),
}


@router.post("", responses=_BEGUN, response_model=None, summary="Compare products")
async def create_comparison(
    request: Request,
    body: ComparisonRequest,
    tenant: Asker,
    app_context: OpenContext,
    prefer: Annotated[str, Header(description="`respond-async` for 202 at once.")] = "",
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Ask the same about each product at the same time, and set them side by side.

    Each product is an analysis of its own, counted, charged and kept as one; each counts against
    the limits. Hanging up cancels those that nobody else waits for. With `Prefer: respond-async`
    and an `Idempotency-Key` they run on their own: follow each at `/v1/analyses/{id}`, and ask for
    the comparison again. `Accept` chooses JSON, HTML, markdown or CSV.
    """
    asks, detached = body.asks(), "respond-async" in prefer.lower()
    if detached and idempotency_key is None:
        raise UsageError("`Prefer: respond-async` needs an `Idempotency-Key`, by which you ask for it again")
    wanted = preferred(request.headers.get("accept", ""))

    async def work() -> Response:
        comparisons = app_context.comparisons
        async with comparisons.begun(tenant, asks, idempotency_key) as tasks:
            if detached and (running := left_running(tasks)):
                headers = {"Preference-Applied": "respond-async", "Retry-After": str(RETRY_AFTER)}
                body = PendingComparison(analyses=running).model_dump(mode="json")
                return JSONResponse(body, 202, headers)
            answers = await comparisons.answers(asks, tasks)
        comparison = await asyncio.to_thread(comparison_of, asks, answers, ALL_SOURCES)
        return await asyncio.to_thread(shown_as, comparison, wanted)

    return await unless_gone(request.receive, work()) or Response(status_code=GONE)


def left_running(tasks: Sequence[AnalysisTask | StoredAnalysis]) -> list[Pending]:
    """Analyses that have not ended; they then run even when nobody waits for them."""
    running = []
    for task in tasks:
        if isinstance(task, AnalysisTask):
            task.detached = True
        if isinstance(task, AnalysisTask) or task.state == "running":
            running.append(Pending.of(task))
    return running


def shown_as(comparison: Comparison, form: Format) -> Response:
    """A comparison in one of its formats; JSON where the name is none of those."""
    match form:
        case "html":
            return Response(comparison_html(comparison), 200, HTML_HEADERS, "text/html")
        case "markdown":
            return Response(comparison_markdown(comparison), media_type="text/markdown")
        case "csv":
            return Response(comparison_csv(comparison), media_type="text/csv")
        case _:
            return JSONResponse(comparison.model_dump(mode="json"))
