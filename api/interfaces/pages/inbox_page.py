"""The inbox: everything new of all watches, read, starred, corrected and muted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from api.bootstrap.app_context import AppContext
from api.choices import MAX_ASSIGNED_LENGTH, MAX_NOTE_LENGTH
from api.errors import Conflict, ListenpostError, NotFound, UsageError
from api.features.analyses.inbox import (
    LONGEST_NAME,
    MOST_COUNTED,
    EntryChange,
    change_entry,
    mute,
    open_inbox_feed,
    read_all,
    remove_filter,
    save_filter,
    switch_keys,
    undo,
    unmute,
)
from api.features.analyses.store_ports import Store
from api.features.watches.watch_ports import InboxEntry, InboxFilter
from api.interfaces.http.access import OpenContext
from api.interfaces.pages.forms import faults, validated
from api.interfaces.pages.screen import Ending, Guest, PageRoute, Visitor, page, server_of
from api.interfaces.shared import presentation
from api.interfaces.shared.listing_requests import InboxRequest
from api.interfaces.shared.watch_view import entry_title
from api.sources import ITEM_SOURCES

router = APIRouter(prefix="/inbox", include_in_schema=False, route_class=PageRoute)
SHOWN = 30
"""Entries on a page."""
_SHOWS = {"unread": "Unread", "starred": "Starred", "read": "Read", "all": "All"}
# What a button does to an entry, by the first word of its value.
_CHANGES = {
    "read": EntryChange(read=True), "unread": EntryChange(read=False),
    "star": EntryChange(starred=True), "unstar": EntryChange(starred=False),
    "not_about": EntryChange(not_about=True), "about": EntryChange(not_about=False),
}  # fmt: skip
# Actions on the whole inbox, whose value is behind the first word.
_ACTIONS: Mapping[str, Callable[[Store, str, str], Awaitable[Any]]] = {
    "mute": mute,
    "unmute": unmute,
    "remove_filter": remove_filter,
    "undo": lambda store, tenant, _: undo(store, tenant),
    "keys": lambda store, tenant, value: switch_keys(store, tenant, on=value == "on"),
}


@router.get("")
async def inbox_page(request: Request, visitor: Guest, app_context: OpenContext) -> Response:
    """The newest first, unread ones unless the address says otherwise."""
    return await _shown(request, visitor, app_context, request.url.query)


@router.post("")
async def act(request: Request, form: Ending, app_context: OpenContext) -> Response:
    """Take a button's value, such as `read ID`, `mute SITE`, `read_all` or `undo`; then the list, at that entry."""
    store, tenant, query = app_context.store, form.visitor.tenant.id, form.text("list")[:2_000]
    name, _, value = form.text("do").partition(" ")
    try:
        if name == "note":
            await change_entry(store, tenant, value, EntryChange(note=form.text("note")))
        elif name == "assign":
            await change_entry(store, tenant, value, EntryChange(assigned=form.text("assigned")))
        elif name in _CHANGES:
            await change_entry(store, tenant, value, _CHANGES[name])
        elif name in _ACTIONS:
            await _ACTIONS[name](store, tenant, value)
        elif name == "save_filter":
            chosen = [(key, text) for key, text in parse_qsl(query) if key != "cursor"]
            await save_filter(store, tenant, form.text("name"), urlencode(chosen))
        elif name == "read_all":  # up to the newest entry that the page showed
            await read_all(store, tenant, replace(_wanted(query).filters(()), newest=value))
        elif name == "close_feed":
            await store.set_inbox_feed(tenant, None)
        elif name == "make_feed":
            feed = server_of(request) + await open_inbox_feed(store, tenant)
            return await _shown(request, form.visitor, app_context, query, feed=feed)
        else:
            raise UsageError("this is no action of the inbox", field="do")
    except (UsageError, NotFound, Conflict) as error:
        return await _shown(request, form.visitor, app_context, query, error=error)
    anchor = ""
    if name in _CHANGES or name in {"note", "assign"}:
        at_entry = await store.inbox(
            tenant, _wanted(query).filters(()), 1, f"{value}g"
        )  # itself, else the next: ids are hexadecimal
        anchor = f"#entry-{at_entry[0].id}" if at_entry else ""
    return RedirectResponse(f"/inbox?{urlencode(parse_qsl(query))}{anchor}", 303)


def _wanted(query: str) -> InboxRequest:
    """The request in a query string; raises `UsageError`."""
    return validated(InboxRequest, {**dict(parse_qsl(query)), "limit": SHOWN})


async def _shown(
    request: Request,
    visitor: Visitor,
    app_context: AppContext,
    query: str,
    *,
    error: ListenpostError | None = None,
    feed: str = "",
) -> Response:
    store, tenant = app_context.store, visitor.tenant.id
    watches = await store.watches(tenant)
    entries: Sequence[InboxEntry]
    try:
        wanted = _wanted(query)
        entries = await store.inbox(tenant, wanted.filters(watches), SHOWN + 1, wanted.cursor or "")
    except UsageError as wrong:
        error, wanted = wrong, InboxRequest()
        entries = await store.inbox(tenant, wanted.filters(watches), SHOWN + 1)
    filters = wanted.filters(watches)
    chosen = {
        "show": wanted.show, "watch": filters.watch_id, "source": filters.source,
        "complaints": "true" if wanted.complaints else "", "text": wanted.text, "assigned": filters.assigned,
    }  # fmt: skip
    kept = {name: value for name, value in chosen.items() if value}
    settings = await store.inbox_settings(tenant)
    last = settings.last
    entry = await store.inbox_entry(tenant, last.entry_id) if last is not None and last.entry_id else None
    if last is not None and last.entry_id and entry is None:  # it went with its watch or post: nothing to take back
        settings = replace(settings, last=None)

    def address(**other: str) -> str:
        return "/inbox?" + urlencode({**kept, **other})

    names = {watch.id: watch.name for watch in watches}
    return page(
        request, visitor, "inbox.html", 200 if error is None else error.status,
        title="Inbox",
        entries=entries[:SHOWN],
        further=address(cursor=entries[SHOWN - 1].id) if len(entries) > SHOWN else "",
        begins_later=bool(wanted.cursor),
        first_page=address(),
        list=urlencode({**kept, **({"cursor": wanted.cursor} if wanted.cursor else {})}),
        chosen=chosen,
        shows=[(name, words, address(show=name)) for name, words in _SHOWS.items()],
        fitting=await store.inbox_count(tenant, filters, MOST_COUNTED) if wanted.show != "read" else 0,
        most=MOST_COUNTED,
        narrowed=_narrowed(filters, names),
        watches=list(names.items()),
        names=names,
        places=[(name, presentation.source_title(name)) for name in ITEM_SOURCES],
        settings=settings,
        last_title=entry_title(entry) if entry else "",
        entry_title=entry_title,
        wrong={} if error is None else faults(error, {*chosen, "note", "name"} - {"show"}),
        longest_note=MAX_NOTE_LENGTH, longest_name=LONGEST_NAME, longest_assigned=MAX_ASSIGNED_LENGTH,
        feed=feed,
    )  # fmt: skip


def _narrowed(filters: InboxFilter, names: Mapping[str, str]) -> list[str]:
    """What the list is narrowed to beside its state, in words."""
    words = (
        names.get(filters.watch_id, "a removed watch") if filters.watch_id else "",
        presentation.source_title(filters.source) if filters.source else "",
        "complaints" if filters.complaints else "",
        f"assigned to {filters.assigned}" if filters.assigned else "",
        f"“{filters.text}”" if filters.text else "",
    )
    return [each for each in words if each]
