"""`/v1/watches`: add, change, run, list and remove; with runs, notifications, trend and feed of each."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from api.bootstrap.background_work import keep_watch, notifier_of
from api.bootstrap.background_work import run_watch as ran_now
from api.core.published import IF_SET
from api.features.analyses.share_links import feed_of, open_feed
from api.features.watches.trend import Trend, read_trend
from api.features.watches.watch_run import Delivery, WatchRun
from api.features.watches.watch_service import (
    changed_watch,
    find_watch,
    resend,
    run_to_resend,
    send_trial,
    undelivered_runs,
    utc_now,
)
from api.interfaces.http.access import Asker, OpenContext
from api.interfaces.http.analysis_routes import COMMON
from api.interfaces.http.errors_json import WRONG_LIMIT, documented
from api.interfaces.http.event_stream import GONE, unless_gone, unless_kept
from api.interfaces.shared.listing_requests import RunsRequest, TrendRequest
from api.interfaces.shared.watch_requests import WatchPatch, WatchRequest
from api.interfaces.shared.watch_view import (
    MEDIA_TYPE,
    UndeliveredView,
    WatchList,
    WatchView,
    atom,
    meaning_note,
    requested_watch,
    undelivered_views,
    watch_fields,
    watch_view,
)
from api.sources import ALL_SOURCES

router = APIRouter(prefix="/v1/watches", tags=["watches"])
_COMMON = (422, *COMMON)


class NewWatch(WatchView):
    """A watch that was added, with the secret that signs its webhooks: shown this once."""

    secret: str
    note: Annotated[str, IF_SET] = ""
    """The sense that the watch uses, when the request named none and the name has several."""


class RunList(BaseModel):
    """Runs of one watch, newest first."""

    runs: list[WatchRun]


@router.post("", status_code=201, responses=documented(413, *_COMMON), summary="Watch a product")
async def add_watch(body: WatchRequest, tenant: Asker, app_context: OpenContext) -> NewWatch:
    """Add a watch, which is due at once; later runs are compared with its first one."""
    requested = requested_watch(body, tenant.id)
    watch = await keep_watch(app_context.store, requested, new=True)
    return NewWatch(**dict(watch_view(watch)), secret=watch.secret, note=meaning_note(requested, watch))


@router.get("", responses=documented(*_COMMON), summary="List watches")
async def list_watches(tenant: Asker, app_context: OpenContext) -> WatchList:
    """Watches of the key that asks, oldest first."""
    return WatchList(watches=list(map(watch_view, await app_context.store.watches(tenant.id))))


@router.get("/{watch_id}", responses=documented(404, *_COMMON), summary="Read a watch")
async def read_watch(watch_id: str, tenant: Asker, app_context: OpenContext) -> WatchView:
    """Settings and state of one watch, by its whole id or its name."""
    return watch_view(await find_watch(app_context.store, tenant.id, watch_id))


@router.patch("/{watch_id}", responses=documented(404, 413, *_COMMON), summary="Change a watch")
async def change_watch(watch_id: str, body: WatchPatch, tenant: Asker, app_context: OpenContext) -> WatchView:
    """Pause it, let it go on, or ask otherwise from the next run on.

    What was dropped by another `query`, `about` or `sources` is judged anew.
    """
    watch = await find_watch(app_context.store, tenant.id, watch_id)
    new = changed_watch(watch, watch_fields(body))
    await keep_watch(app_context.store, new, new=False)
    return watch_view(new)


@router.delete("/{watch_id}", status_code=204, responses=documented(404, *_COMMON), summary="Remove a watch")
async def remove_watch(watch_id: str, tenant: Asker, app_context: OpenContext) -> None:
    """Remove a watch with its runs and what it has seen; its reports stay."""
    watch = await find_watch(app_context.store, tenant.id, watch_id)
    await app_context.store.drop_watch(tenant.id, watch.id)


@router.post(
    "/{watch_id}/run",
    responses=documented(404, 409, *_COMMON),
    response_model=WatchRun,
    summary="Run a watch now",
)
async def run_watch(request: Request, watch_id: str, tenant: Asker, app_context: OpenContext) -> WatchRun | Response:
    """Run a watch now, within your limits like any analysis; its receivers are notified."""
    watch = await find_watch(app_context.store, tenant.id, watch_id)
    running = ran_now(app_context, watch)
    return await unless_gone(request.receive, running) or Response(status_code=GONE)


@router.get(
    "/{watch_id}/runs",
    responses=documented(404, *_COMMON, wrong=WRONG_LIMIT),
    summary="List the runs of a watch",
)
async def list_runs(
    watch_id: str, tenant: Asker, app_context: OpenContext, query: Annotated[RunsRequest, Query()]
) -> RunList:
    """Each with what changed, and whether receivers could be reached."""
    watch = await find_watch(app_context.store, tenant.id, watch_id)
    runs = await app_context.store.watch_runs(tenant.id, watch.id, query.limit)
    return RunList(runs=list(runs))


notification_router = APIRouter(prefix="/v1/watches/{watch_id}", tags=["watches"])
feeds = APIRouter(prefix="/v1/feeds", tags=["watches"])
_NOTIFICATION_ERRORS = (404, 422, *COMMON)


class DeliveryList(BaseModel):
    """Result of a message for each receiver."""

    deliveries: list[Delivery]


class UndeliveredList(BaseModel):
    """Failed deliveries, those of the newest run first."""

    undelivered: list[UndeliveredView]


class FeedAddress(BaseModel):
    """Address of a feed, below the server's address; it is shown only once."""

    path: Annotated[str, Field(examples=["/v1/feeds/8c1f0d5e7b2a4963a1c4e8f7d2b60935?token=..."])]


@notification_router.post(
    "/notify-test",
    responses=documented(*_NOTIFICATION_ERRORS),
    response_model=DeliveryList,
    summary="Send a trial to every receiver",
)
async def try_notifying(
    request: Request, watch_id: str, tenant: Asker, app_context: OpenContext
) -> DeliveryList | Response:
    """Send a trial to each receiver, up to three times where that may help; returns what came back from each."""
    watch = await find_watch(app_context.store, tenant.id, watch_id)
    trying = send_trial(notifier_of(app_context.settings).send, watch)
    deliveries = await unless_gone(request.receive, trying)
    if deliveries is None:
        return Response(status_code=GONE)
    return DeliveryList(deliveries=list(deliveries))


@notification_router.get(
    "/undelivered",
    responses=documented(*_NOTIFICATION_ERRORS),
    summary="List what did not arrive of a watch",
)
async def list_undelivered(watch_id: str, tenant: Asker, app_context: OpenContext) -> UndeliveredList:
    """List what did not arrive of the last 100 runs that are news, with reason and time."""
    watch = await find_watch(app_context.store, tenant.id, watch_id)
    return UndeliveredList(undelivered=undelivered_views(await undelivered_runs(app_context.store, watch)))


@notification_router.post(
    "/runs/{run_id}/notify-again",
    responses=documented(*_NOTIFICATION_ERRORS),
    response_model=DeliveryList,
    summary="Tell of a run once more",
)
async def notify_again(
    request: Request, watch_id: str, run_id: str, tenant: Asker, app_context: OpenContext
) -> DeliveryList | Response:
    """Send a run again to the receivers that it did not reach, with the same id, so that each sees one run."""
    watch = await find_watch(app_context.store, tenant.id, watch_id)
    run = await run_to_resend(app_context.store, watch, run_id)
    telling = resend(app_context.store, notifier_of(app_context.settings).send, ALL_SOURCES, watch, run)
    run_now = await unless_gone(request.receive, telling)
    if run_now is None:
        return Response(status_code=GONE)
    return DeliveryList(deliveries=list(run_now.deliveries))


@notification_router.post(
    "/feed",
    status_code=201,
    responses=documented(*_NOTIFICATION_ERRORS),
    summary="Give a watch a feed",
)
async def make_feed(watch_id: str, tenant: Asker, app_context: OpenContext) -> FeedAddress:
    """Make a new address of the feed, which needs no key and reads only this feed; it replaces the old one."""
    watch = await find_watch(app_context.store, tenant.id, watch_id)
    return FeedAddress(path=await open_feed(app_context.store, watch))


@notification_router.delete(
    "/feed",
    status_code=204,
    responses=documented(*_NOTIFICATION_ERRORS),
    summary="Close the feed of a watch",
)
async def close_feed(watch_id: str, tenant: Asker, app_context: OpenContext) -> None:
    """Remove the feed's address; the watch stays."""
    watch = await find_watch(app_context.store, tenant.id, watch_id)
    await app_context.store.set_feed(watch, None)


# a path of its own, which the document for clients leaves out: they ask for JSON
@feeds.get("/{watch_id}", include_in_schema=False)
async def read_feed(
    request: Request,
    watch_id: str,
    app_context: OpenContext,
    token: str = "",
) -> Response:
    """Atom, by its token instead of a key: the last 50 runs that are news."""
    watch, runs = await feed_of(app_context.store, app_context.keys, app_context.limits, watch_id, token)
    body = atom(watch, runs, ALL_SOURCES)
    return unless_kept(request, Response(body, media_type=MEDIA_TYPE))


trend_router = APIRouter(prefix="/v1/watches", tags=["watches"])


_WRONG_WEEKS = "`weeks` must be a whole number from 1 to 260, not `0`"


@trend_router.get(
    "/{watch_id}/trend",
    responses=documented(404, 422, *COMMON, wrong=_WRONG_WEEKS),
    summary="Read a watch over time",
)
async def read_watch_trend(
    watch_id: str, tenant: Asker, app_context: OpenContext, query: Annotated[TrendRequest, Query()]
) -> Trend:
    """Volume, sentiment and aspects by week; what is not known is `null`, never 0.

    When the question is changed another line begins.
    """
    watch = await find_watch(app_context.store, tenant.id, watch_id)
    return await read_trend(app_context.store, watch, utc_now(), query.weeks)
