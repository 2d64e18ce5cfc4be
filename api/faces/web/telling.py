"""`/v1/watches/{id}/...`: who is told of a watch, what did not arrive, and its feed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from api.faces.atom import MEDIA_TYPE, atom
from api.faces.watches import UndeliveredView, undelivered_views
from api.faces.web.access import Asker, Opened
from api.faces.web.analyses import COMMON
from api.faces.web.copies import unless_kept
from api.faces.web.errors import documented
from api.faces.web.events import GONE, unless_gone
from api.services.keeping.sharing import feed_of, open_feed
from api.services.watching.deliveries import run_to_tell, tell_again, trial, undelivered
from api.services.watching.run import Delivery
from api.services.watching.running import watch_of
from api.sources import EVERYWHERE
from api.wiring.watching import notifier_of

router = APIRouter(prefix="/v1/watches/{watch_id}", tags=["watches"])
feeds = APIRouter(prefix="/v1/feeds", tags=["watches"])
_COMMON = (404, 422, *COMMON)


class Deliveries(BaseModel):
    """What became of a message, for each who is to be told."""

    deliveries: list[Delivery]


class UndeliveredList(BaseModel):
    """What did not arrive, of the newest run first."""

    undelivered: list[UndeliveredView]


class FeedAddress(BaseModel):
    """Where a feed is, below the server's address: shown this once."""

    path: Annotated[str, Field(examples=["/v1/feeds/8c1f0d5e7b2a4963a1c4e8f7d2b60935?token=..."])]


@router.post(
    "/notify-test",
    responses=documented(*_COMMON),
    response_model=Deliveries,
    summary="Send a trial to everybody who is told",
)
async def try_notifying(
    request: Request, watch_id: str, tenant: Asker, house: Opened
) -> Deliveries | Response:
    """Three tries for each where that may help; what came back is said for each."""
    watch = await watch_of(house.store, tenant.id, watch_id)
    trying = trial(notifier_of(house.settings).send, watch)
    deliveries = await unless_gone(request.receive, trying)
    if deliveries is None:
        return Response(status_code=GONE)
    return Deliveries(deliveries=list(deliveries))


@router.get(
    "/undelivered", responses=documented(*_COMMON), summary="List what did not arrive of a watch"
)
async def list_undelivered(watch_id: str, tenant: Asker, house: Opened) -> UndeliveredList:
    """Of the last 100 runs that were worth telling, with the reason and the time."""
    watch = await watch_of(house.store, tenant.id, watch_id)
    return UndeliveredList(undelivered=undelivered_views(await undelivered(house.store, watch)))


@router.post(
    "/runs/{run_id}/notify-again",
    responses=documented(*_COMMON),
    response_model=Deliveries,
    summary="Tell of a run once more",
)
async def notify_again(
    request: Request, watch_id: str, run_id: str, tenant: Asker, house: Opened
) -> Deliveries | Response:
    """Those who were not reached, by the same id, so that a receiver sees one run."""
    watch = await watch_of(house.store, tenant.id, watch_id)
    run = await run_to_tell(house.store, watch, run_id)
    telling = tell_again(house.store, notifier_of(house.settings).send, EVERYWHERE, watch, run)
    run_now = await unless_gone(request.receive, telling)
    if run_now is None:
        return Response(status_code=GONE)
    return Deliveries(deliveries=list(run_now.deliveries))


@router.post(
    "/feed", status_code=201, responses=documented(*_COMMON), summary="Give a watch a feed"
)
async def make_feed(watch_id: str, tenant: Asker, house: Opened) -> FeedAddress:
    """A new address, which needs no key and reads this feed alone; the one before ends."""
    watch = await watch_of(house.store, tenant.id, watch_id)
    return FeedAddress(path=await open_feed(house.store, watch))


@router.delete(
    "/feed", status_code=204, responses=documented(*_COMMON), summary="Close the feed of a watch"
)
async def close_feed(watch_id: str, tenant: Asker, house: Opened) -> None:
    """Its address reads nothing from now on; the watch stays."""
    watch = await watch_of(house.store, tenant.id, watch_id)
    await house.store.set_feed(watch, None)


# a path of its own, which the document for clients leaves out: they ask for JSON
@feeds.get("/{watch_id}", include_in_schema=False)
async def read_feed(
    request: Request,
    watch_id: str,
    house: Opened,
    token: str = "",
) -> Response:
    """Atom, by its token instead of a key: the last 50 runs that were worth telling."""
    watch, runs = await feed_of(house.store, house.keys, house.limits, watch_id, token)
    body = atom(watch, runs, EVERYWHERE)
    return unless_kept(request, Response(body, media_type=MEDIA_TYPE))
