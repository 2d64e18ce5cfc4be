"""Who hears of a watch: a trial, what did not arrive once more, and its feed."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.faces.web.access import Opened
from api.faces.web.events import GONE, unless_gone
from api.faces.web.pages.access import Ending, Filled, Submission
from api.faces.web.pages.screen import PageRoute, server_of
from api.faces.web.pages.watching import shown_watch, submitted_watch, watch_screen
from api.services.keeping.sharing import open_feed
from api.services.watching.deliveries import run_to_tell, tell_again, trial
from api.services.watching.run import Delivery
from api.services.watching.watch import Watch
from api.sources import EVERYWHERE
from api.wiring.serving import House
from api.wiring.watching import notifier_of

router = APIRouter(prefix="/watches/{watch_id}", include_in_schema=False, route_class=PageRoute)


@router.post("/try")
async def try_telling(request: Request, watch_id: str, form: Filled, house: Opened) -> Response:
    """Send a trial to everybody who is told, and say what became of it."""
    watch = await submitted_watch(form, house, watch_id)
    sending = trial(notifier_of(house.settings).send, watch)
    return await _answered(request, form, house, watch, sending)


@router.post("/runs/{run_id}/tell")
async def tell_once_more(
    request: Request, watch_id: str, run_id: str, form: Filled, house: Opened
) -> Response:
    """Tell those of a run who were not reached, and say what became of it."""
    watch = await submitted_watch(form, house, watch_id)
    run = await run_to_tell(house.store, watch, run_id)
    send = notifier_of(house.settings).send

    async def sending() -> Sequence[Delivery]:
        return (await tell_again(house.store, send, EVERYWHERE, watch, run)).deliveries

    return await _answered(request, form, house, watch, sending())


@router.post("/feed")
async def make_feed(request: Request, watch_id: str, form: Filled, house: Opened) -> Response:
    """Give it a feed, or its feed another address, which is shown this once."""
    watch = await submitted_watch(form, house, watch_id)
    address = server_of(request) + await open_feed(house.store, watch)
    watch = await submitted_watch(form, house, watch_id)
    return await watch_screen(request, form.visitor, house, watch, feed=address)


@router.post("/feed/close")
async def close_feed(watch_id: str, form: Ending, house: Opened) -> Response:
    """Its address reads nothing from now on; the watch stays."""
    watch = await submitted_watch(form, house, watch_id)
    await house.store.set_feed(watch, None)
    return shown_watch(watch)


async def _answered(
    request: Request,
    form: Submission,
    house: House,
    watch: Watch,
    sending: Coroutine[Any, Any, Sequence[Delivery]],
) -> Response:
    deliveries = await unless_gone(request.receive, sending)
    if deliveries is None:
        return Response(status_code=GONE)
    return await watch_screen(request, form.visitor, house, watch, deliveries)
