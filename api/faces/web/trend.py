"""`/v1/watches/{id}/trend`: how a watch has gone, week by week."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from api.faces.web.access import Asker, Opened
from api.faces.web.analyses import COMMON
from api.faces.web.errors import documented
from api.faces.web.schemas import RequestBody
from api.services.watching.running import utc_now, watch_of
from api.services.watching.trend import MOST_WEEKS, WEEKS, Trend, read_trend

router = APIRouter(prefix="/v1/watches", tags=["watches"])


_WRONG_WEEKS = "`weeks` must be a whole number from 1 to 260, not `0`"


class TrendQuery(RequestBody):
    """How far back."""

    weeks: Annotated[int, Field(ge=1, le=MOST_WEEKS)] = WEEKS


@router.get(
    "/{watch_id}/trend",
    responses=documented(404, 422, *COMMON, wrong=_WRONG_WEEKS),
    summary="Read a watch over time",
)
async def read_watch_trend(
    watch_id: str, tenant: Asker, house: Opened, query: Annotated[TrendQuery, Query()]
) -> Trend:
    """Volume, sentiment and aspects by week; what was not heard is `null`, never 0.

    When the question is changed another line begins.
    """
    watch = await watch_of(house.store, tenant.id, watch_id)
    return await read_trend(house.store, watch, utc_now(), query.weeks)
