"""`/v1/stats`: figures over the analyses that a key keeps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from api.faces.web.access import Asker, Opened
from api.faces.web.errors import documented
from api.faces.web.schemas import Back, RequestBody
from api.services.keeping.keys import Tenant
from api.services.keeping.stats import Stats
from api.services.keeping.summing import SINCE, since_of, stats_of
from api.wiring.serving import House

router = APIRouter(prefix="/v1", tags=["stats"])


class StatsQuery(RequestBody):
    """Over which analyses."""

    since: Back = SINCE
    sample: Annotated[bool, Field(description="Also what was made from sample data.")] = False


@router.get(
    "/stats",
    responses=documented(401, 403, 422, 429, 500, 503),
    summary="Yields, outcomes, decisions and cost",
)
async def get_stats(tenant: Asker, house: Opened, query: Annotated[StatsQuery, Query()]) -> Stats:
    """Over your analyses alone: the figures that a Langfuse dashboard shows, from what is kept.

    Counting thousands of them is work, which waits for its turn like any other.
    """
    return await stats_for(house, tenant, query)


async def stats_for(house: House, tenant: Tenant, query: StatsQuery) -> Stats:
    """The figures of a tenant, once it is their turn."""
    now = datetime.now(UTC)
    since = since_of(query.since, now)
    with house.limits.turns.seat(tenant) as seat:
        await seat.turn()
        return await stats_of(house.store, tenant.id, since, now, with_samples=query.sample)
