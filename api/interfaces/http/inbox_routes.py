"""`/v1/inbox`: everything new of all watches, what people made of it, and the same as a feed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from api.choices import MAX_SITE_LENGTH, Show
from api.errors import UsageError
from api.features.analyses.inbox import (
    LONGEST_NAME,
    LONGEST_QUERY,
    MOST_COUNTED,
    EntryChange,
    change_entry,
    inbox_feed,
    mute,
    open_inbox_feed,
    read_all,
    remove_filter,
    save_filter,
    undo,
    unmute,
)
from api.interfaces.http.access import Looker, OpenContext
from api.interfaces.http.analysis_routes import COMMON
from api.interfaces.http.errors_json import WRONG_LIMIT, documented
from api.interfaces.http.event_stream import unless_kept
from api.interfaces.http.watch_routes import FeedAddress
from api.interfaces.shared.listing_requests import EntryPatch, InboxFilters, InboxRequest, ReadRequest
from api.interfaces.shared.requests import RequestBody
from api.interfaces.shared.watch_view import MEDIA_TYPE, EntryView, inbox_atom, inbox_json_feed
from api.sources import ALL_SOURCES

router = APIRouter(prefix="/v1/inbox", tags=["inbox"])
_COMMON = (422, *COMMON)


class InboxPage(BaseModel):
    """A page of the inbox, newest first."""

    entries: list[EntryView]
    unread: Annotated[int, Field(description=f"Unread entries of the filter; {MOST_COUNTED} where there are more.")]
    cursor: str | None
    """Cursor of the next page; None on the last."""


class SavedFilter(BaseModel):
    """A filter that was saved by name."""

    name: str
    query: str


class InboxState(BaseModel):
    """Muted sites, saved filters, and what `undo` would take back."""

    muted: list[str]
    filters: list[SavedFilter]
    last: str | None
    """The last change, in words; None when there is nothing to undo."""
    feed: bool
    """The inbox has a feed, whose address was shown once."""


class ReadCount(BaseModel):
    """Number of entries that became read."""

    changed: int


class Undone(BaseModel):
    """Words for the change that was undone."""

    undone: str


class FilterBody(RequestBody):
    """The query string of a filter: `show=all&complaints=true`."""

    query: Annotated[str, Field(max_length=LONGEST_QUERY)]


class FeedFilters(InboxFilters):
    """Filters of the entries in the feed."""

    token: str = ""
    show: Show = "all"


class MuteBody(RequestBody):
    """A site, as an entry has it."""

    site: Annotated[str, Field(min_length=1, max_length=MAX_SITE_LENGTH)]


@router.get("", responses=documented(*_COMMON, wrong=WRONG_LIMIT), summary="List the inbox")
async def list_inbox(tenant: Looker, app_context: OpenContext, query: Annotated[InboxRequest, Query()]) -> InboxPage:
    """List new posts of all your watches, each once for each watch; posts of muted sites are excluded."""
    store = app_context.store
    wanted = query.filters(await store.watches(tenant.id) if query.watch else ())
    entries = await store.inbox(tenant.id, wanted, query.limit + 1, query.cursor or "")
    shown = entries[: query.limit]
    unread = replace(wanted, show="unread")
    return InboxPage(
        entries=[EntryView.of(entry) for entry in shown],
        unread=await store.inbox_count(tenant.id, unread, MOST_COUNTED),
        cursor=shown[-1].id if len(entries) > len(shown) else None,
    )


@router.get("/settings", responses=documented(*_COMMON), summary="Read the settings of the inbox")
async def read_settings(tenant: Looker, app_context: OpenContext) -> InboxState:
    """Muted sites, saved filters and the last change."""
    settings = await app_context.store.inbox_settings(tenant.id)
    return InboxState(
        muted=list(settings.sites),
        filters=[SavedFilter(name=name, query=query) for name, query in settings.filters.items()],
        last=settings.last and settings.last.words,
        feed=settings.has_feed,
    )


@router.post("/read", responses=documented(*_COMMON), summary="Mark entries as read")
async def mark_read(
    request: Request, tenant: Looker, app_context: OpenContext, query: Annotated[ReadRequest, Query()]
) -> ReadCount:
    """Mark all unread entries of a filter as read, up to `newest`; the filter is the query string."""
    if await request.body():  # else what was to be a filter would mark everything
        raise UsageError("this request has no body; write the filter into the query string, such as `?watch=NAME`")
    watches = await app_context.store.watches(tenant.id) if query.watch else ()
    wanted = replace(query.filters(watches), newest=query.newest)
    return ReadCount(changed=await read_all(app_context.store, tenant.id, wanted))


@router.post("/undo", responses=documented(404, *_COMMON), summary="Take back the last change")
async def take_back(tenant: Looker, app_context: OpenContext) -> Undone:
    """Undo the last change once: of an entry, of many marked as read, or of a muted site."""
    return Undone(undone=(await undo(app_context.store, tenant.id)).words)


_Name = Annotated[str, Path(max_length=LONGEST_NAME)]


@router.put("/filters/{name}", status_code=204, responses=documented(413, *_COMMON), summary="Save a filter")
async def put_filter(name: _Name, body: FilterBody, tenant: Looker, app_context: OpenContext) -> None:
    """Save a filter in place of the one of the same name; at most 20."""
    await save_filter(app_context.store, tenant.id, name, body.query)


@router.delete("/filters/{name}", status_code=204, responses=documented(404, *_COMMON), summary="Remove a filter")
async def delete_filter(name: _Name, tenant: Looker, app_context: OpenContext) -> None:
    """The entries that it shows stay in the inbox."""
    await remove_filter(app_context.store, tenant.id, name)


@router.post("/muted", status_code=204, responses=documented(413, *_COMMON), summary="Mute a site")
async def mute_site(body: MuteBody, tenant: Looker, app_context: OpenContext) -> None:
    """Mute a site: no list, count or feed of the inbox has its entries; watches still read it. At most 50."""
    await mute(app_context.store, tenant.id, body.site)


@router.delete("/muted", status_code=204, responses=documented(*_COMMON), summary="Show a site again")
async def show_site(
    site: Annotated[str, Query(max_length=MAX_SITE_LENGTH, description="A muted site.")],
    tenant: Looker,
    app_context: OpenContext,
) -> None:
    """Unmute a site; its entries are listed again."""
    await unmute(app_context.store, tenant.id, site)


@router.post("/feed", status_code=201, responses=documented(*_COMMON), summary="Give the inbox a feed")
async def make_inbox_feed(tenant: Looker, app_context: OpenContext) -> FeedAddress:
    """Make a new address of the feed, which needs no key and reads only the inbox; it replaces the old one."""
    return FeedAddress(path=await open_inbox_feed(app_context.store, tenant.id))


@router.delete("/feed", status_code=204, responses=documented(*_COMMON), summary="Close the feed of the inbox")
async def close_inbox_feed(tenant: Looker, app_context: OpenContext) -> None:
    """Remove the feed's address."""
    await app_context.store.set_inbox_feed(tenant.id, None)


# a path of its own, which the document for clients leaves out: they ask for JSON
@router.get("/feed.{form}", include_in_schema=False)
async def read_inbox_feed(
    request: Request,
    form: Literal["atom", "json"],
    app_context: OpenContext,
    query: Annotated[FeedFilters, Query()],
) -> Response:
    """Atom or JSON Feed, by its token instead of a key: the newest 50 entries of a filter, else all."""
    entries, unread = await inbox_feed(
        app_context.store, app_context.keys, app_context.limits, query.token, query.filters(())
    )
    if form == "atom":
        feed = inbox_atom(entries, unread, ALL_SOURCES, request.url.query)
        return unless_kept(request, Response(feed, media_type=MEDIA_TYPE))
    body = json.dumps(inbox_json_feed(entries, unread, ALL_SOURCES))
    return unless_kept(request, Response(body, media_type="application/feed+json"))


@router.patch("/entries/{entry_id}", responses=documented(404, 413, *_COMMON), summary="Change an entry")
async def patch_entry(entry_id: str, body: EntryPatch, tenant: Looker, app_context: OpenContext) -> EntryView:
    """Change an entry: read, starred, note, assigned, or not about the product, from which the gate learns."""
    change = EntryChange(body.read, body.starred, body.note, body.assigned, body.not_about)
    return EntryView.of(await change_entry(app_context.store, tenant.id, entry_id, change))
