"""Which places can be asked: what the settings say, and, on a button, what each answers."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.faces.upstreams import Upstream, probed
from api.faces.web.access import Opened
from api.faces.web.events import GONE, unless_gone
from api.faces.web.pages.access import Filled, Guest
from api.faces.web.pages.asking import places_of
from api.faces.web.pages.screen import PageRoute, Visitor, page
from api.wiring.serving import House

router = APIRouter(prefix="/sources", include_in_schema=False, route_class=PageRoute)


@router.get("")
async def sources_page(request: Request, visitor: Guest, house: Opened) -> Response:
    """What each place needs; nobody is asked."""
    return await _shown(request, visitor, house, ())


@router.post("")
async def probe(request: Request, form: Filled, house: Opened) -> Response:
    """What each place, the model and Langfuse answer to the cheapest question there is."""

    async def work() -> Sequence[Upstream]:
        return await probed(house.settings, await house.product())

    answers = await unless_gone(request.receive, work())
    if answers is None:
        return Response(status_code=GONE)
    return await _shown(request, form.visitor, house, answers)


async def _shown(
    request: Request, visitor: Visitor, house: House, answers: Sequence[Upstream]
) -> Response:
    return page(
        request, visitor, "sources.html",
        title="Sources", places=await places_of(house), answers=answers,
    )  # fmt: skip
