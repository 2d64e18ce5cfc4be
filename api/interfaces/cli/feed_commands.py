"""`feeds`: follow feeds, list them with how they are, and remove them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from api.errors import UsageError
from api.interfaces.cli.output import Data, as_json, closing, say, tell

if TYPE_CHECKING:
    from api.features.analyses.store_ports import Store
    from api.interfaces.shared.listing_requests import FeedRequest, FeedView
    from api.settings import Settings


@asynccontextmanager
async def _opened() -> AsyncIterator[tuple[Settings, Store]]:
    from api import bootstrap
    from api.bootstrap.storage import open_store_of

    settings = bootstrap.load_settings()
    if bootstrap.mode_of(settings) == "sandbox":
        raise UsageError("the sandbox has feeds of its own; unset `LISTENPOST_MODE` to follow real ones")
    async with closing(await open_store_of(settings)) as store:
        yield settings, store


async def follow(request: FeedRequest) -> None:
    """Follow a feed; of a page, the one that it announces. It is read at once, and then once an hour at most."""
    from api.features.analyses.api_keys import LOCAL
    from api.features.watches.followed_feeds import follow_feed
    from api.interfaces.shared.listing_requests import FeedView
    from api.sources.feeds import FeedReader

    async with _opened() as (settings, store), closing(FeedReader(settings.sources, store)) as reader:
        view = FeedView.of(await follow_feed(store, reader, LOCAL.id, request.address, request.name))
    for line in _lines(view):
        say(line)
    tell("questions read it from now on; `listenpost feeds list` shows all")


async def list_feeds(form: Data = "text") -> None:
    """List every followed feed: how it is, when it was read and when it is next, its entries."""
    from api.features.analyses.api_keys import LOCAL
    from api.features.watches.followed_feeds import listed_feeds
    from api.interfaces.shared.listing_requests import FeedView
    from api.settings.value_types import feeds_in

    async with _opened() as (settings, store):
        listed = await listed_feeds(store, LOCAL.id, feeds_in(settings.sources.feeds))
    views = list(map(FeedView.of, listed))
    if form == "json":
        say(as_json([view.model_dump(mode="json") for view in views]))
        return
    for view in views:
        for line in _lines(view):
            say(line)
    if not views:
        tell("no feed is followed; `listenpost feeds add ADDRESS` follows one")


async def remove(
    feed: Annotated[str, typer.Argument(metavar="ADDRESS", help="Address, name or title of a feed.")],
) -> None:
    """Follow a feed no longer; what reports hold of it stays."""
    from api.features.analyses.api_keys import LOCAL
    from api.features.watches.followed_feeds import unfollow_feed

    async with _opened() as (_, store):
        removed = await unfollow_feed(store, LOCAL.id, feed)
    tell(f"{removed.address} is followed no longer")


def _lines(view: FeedView) -> list[str]:
    """Name and address, and below them how it is."""
    from api.interfaces.cli.terminal_text import shown

    named = "" if view.name == view.address else f"{shown(view.name)}  "
    return [f"{named}{view.address}", f"  {view.condition}"]
