"""`/v1/stats`: figures over the analyses that a key keeps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query

from api.faces.web.access import Asker, Opened
from api.faces.web.errors import documented
from api.services.keeping.stats import Stats
from api.services.keeping.summing import SINCE, since_of, stats_of

router = APIRouter(prefix="/v1", tags=["stats"])
_Since = Annotated[
    str,
    Query(
        max_length=40,
        description="Days or weeks back (`30d`, `12w`), a date or time (UTC), or `all`.",
        examples=["30d", "2026-03-01"],
    ),
]
_Sample = Annotated[bool, Query(description="Also what was made from sample data.")]


@router.get(
    "/stats",
    responses=documented(401, 403, 422, 429, 500, 503),
    summary="Yields, outcomes, decisions and cost",
)
async def stats(
    tenant: Asker, house: Opened, since: _Since = SINCE, sample: _Sample = False
) -> Stats:
    """Over your analyses alone: the figures that a Langfuse dashboard shows, from what is kept."""
    now = datetime.now(UTC)
    return await stats_of(house.store, tenant.id, since_of(since, now), now, with_samples=sample)
