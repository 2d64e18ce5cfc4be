"""How the gate is doing over what is stored: yields, second fetches, failing open, and cost."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.faces import statistics
from api.faces.web.access import Opened
from api.faces.web.pages.access import Guest
from api.faces.web.pages.fields import SPANS, validated
from api.faces.web.pages.screen import PageRoute, page
from api.faces.web.stats import StatsQuery, stats_for
from api.faces.web.timelines import gate_figure
from api.services.keeping.storage import Filters
from api.services.keeping.summing import SINCE
from api.settings import Settings

router = APIRouter(include_in_schema=False, route_class=PageRoute)
TRACED = 20
"""Analyses of which the trace is linked, the newest."""
_HOW = "tick the box to count them"


@router.get("/gate")
async def gate_page(
    request: Request, visitor: Guest, house: Opened, since: str = SINCE, sample: str = ""
) -> Response:
    """Over the analyses of this time; made-up ones where somebody wants them."""
    wanted = validated(StatsQuery, {"since": since, "sample": bool(sample) or house.sample})
    stats = await stats_for(house, visitor.tenant, wanted)
    kept = await house.store.listing(visitor.tenant.id, Filters(since=stats.since), TRACED)
    root = trace_root(house.settings)
    return page(
        request, visitor, "gate.html",
        title="How the gate is doing",
        stats=stats,
        statistics=statistics,
        gate_figure=gate_figure,
        places=list(zip(*statistics.source_table(stats.sources), strict=True)),  # a row for each
        how=_HOW,
        since=since,
        spans=SPANS,
        traces=[
            # an address of Langfuse that leads on to the project which holds the trace
            (each.query, each.created_at, f"{root}/trace/{each.summary.trace_id}")
            for each in kept.analyses
            if root and each.summary is not None and each.summary.trace_id
        ],
    )  # fmt: skip


def trace_root(settings: Settings) -> str:
    """Where traces are looked at; empty where none are sent."""
    tracing = settings.tracing
    sent = tracing.langfuse_public_key and tracing.langfuse_secret_key
    if not sent or not tracing.langfuse_tracing_enabled:
        return ""
    return tracing.langfuse_base_url.rstrip("/")
