"""`/v1/feeds`: follow feeds, list and remove them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from api.errors import UsageError
from api.features.watches.followed_feeds import follow_feed, listed_feeds, unfollow_feed
from api.interfaces.http.access import Asker, OpenContext
from api.interfaces.http.analysis_routes import COMMON
from api.interfaces.http.errors_json import documented
from api.interfaces.shared.listing_requests import FeedRequest, FeedView
from api.settings.value_types import feeds_in

router = APIRouter(prefix="/v1/feeds", tags=["feeds"])


class FeedList(BaseModel):
    """Feeds that are read for questions of the key that asks: its own, oldest first, then those of the settings."""

    feeds: list[FeedView]


@router.post("", status_code=201, responses=documented(413, 422, *COMMON), summary="Follow a feed")
async def add_feed(body: FeedRequest, tenant: Asker, app_context: OpenContext) -> FeedView:
    """Follow a feed, or the feed that a page announces. It is read at once; what cannot be read is not followed."""
    if app_context.sample:
        raise UsageError("the sandbox has feeds of its own; ask them with `feeds` in `sources`")
    await app_context.product()  # its libraries are loaded then
    async with app_context.limits.queue.slot(tenant):
        followed = await follow_feed(app_context.store, app_context.feeds, tenant.id, body.address, body.name)
    return FeedView.of(followed)


@router.get("", responses=documented(422, *COMMON), summary="List followed feeds")
async def list_feeds(tenant: Asker, app_context: OpenContext) -> FeedList:
    """List the followed feeds, each with its state and its last and next read; sends no request."""
    settings = app_context.settings.sources
    listed = await listed_feeds(app_context.store, tenant.id, feeds_in(settings.feeds))
    return FeedList(feeds=list(map(FeedView.of, listed)))


@router.delete("", status_code=204, responses=documented(404, 422, *COMMON), summary="Remove a feed")
async def remove_feed(
    address: Annotated[str, Query(max_length=1_000, description="Its address, your name for it, or its title.")],
    tenant: Asker,
    app_context: OpenContext,
) -> None:
    """Stop following a feed; reports keep its items."""
    await unfollow_feed(app_context.store, tenant.id, address)
