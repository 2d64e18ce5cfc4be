"""`PagedSearch` reads the pages of a search, as few as a plan needs, and keeps what they held.

A wider plan is served from what is left of the pages that were read, then from the next page; page
one is never requested twice. Between runs a `SourceMemory` keeps pages as JSON. Concurrent callers
of the same query wait for one request, and share its failure. Failures are not kept, nor pages of
which a part failed.
"""

from __future__ import annotations

import json
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from api.choices import WINDOW_DAYS, Window
from api.core.domain import Batch, Comment, FetchPlan, Item
from api.core.progress import Listener
from api.core.work import SharedTasks
from api.errors import StoreUnavailable
from api.features.analyses.store_ports import SourceMemory

NOT_STORED = "pages are not remembered, since the database cannot be used"
NOTHING_NEW = "two pages in a row without anything new promised more; no further one was asked"
# characters that are kept in memory; the query that was not asked for longest goes first
_MAX_SIZE = 32_000_000
# what an entry and a query count in memory beside their texts
_ENTRY_SIZE, _QUERY_SIZE = 1_000, 10_000
# pages of one query at most, plus one for so many wanted entries: a source whose pages hold little
# and whose requests are counted must not be asked for ever
_MAX_PAGES, _ENTRIES_PER_PAGE = 5, 10
# the share of the wanted entries that short pages may lack before a costly page is asked for
_MAX_MISSING = 0.1
# straight and typographic quotes of a phrase
_UNQUOTED = str.maketrans(dict.fromkeys('"\u201c\u201d\u201e\u00ab\u00bb', " "))


@dataclass(frozen=True, slots=True)
class Page:
    """One page as the source counted it."""

    slots: tuple[Item | None, ...]
    """One per entry of the source, in its order; None for one that is no item."""
    cursor: str | None = None
    """What asks for the next page; None after the last."""
    notes: tuple[str, ...] = ()
    read_at: datetime | None = None
    """When an earlier run read it, aware UTC; None: just now."""
    partial: bool = False
    """A part of the source failed: the page serves this fetch alone."""


@dataclass(slots=True, eq=False)
class _QueryPages:
    """What the pages of one query held so far."""

    opened: float
    """When the first page was read, on the monotonic clock."""
    slots: list[Item | None] = field(default_factory=list)
    cursor: str | None = None
    pages: int = 0
    size: int = _QUERY_SIZE
    """In characters, as `_MAX_SIZE` counts them."""
    nothing_new: bool = False
    """Whether the last page held no new item; after two of them nothing more is asked."""
    notes: list[str] = field(default_factory=list)

    @property
    def exhausted(self) -> bool:
        return self.pages > 0 and self.cursor is None

    def add(self, page: Page) -> None:
        known, nothing_new = {item.key for item in self.slots if item is not None}, True
        for item in page.slots:
            is_new = item is not None and item.key not in known
            self.slots.append(item if is_new else None)
            nothing_new = nothing_new and not is_new
            self.size += _ENTRY_SIZE
            if item is not None:
                known.add(item.key)
                self.size += len(item.title) + len(item.body)
        self.notes += [note for note in page.notes if note not in self.notes]
        if page.read_at is not None:
            age = (datetime.now(UTC) - page.read_at).total_seconds()
            self.opened = min(self.opened, time.monotonic() - age)
        if page.partial:
            self.opened = -math.inf
        ends = self.nothing_new and nothing_new
        if ends and page.cursor is not None:
            self.notes.append(NOTHING_NEW)
        self.cursor = None if ends else page.cursor
        self.nothing_new, self.pages = nothing_new, self.pages + 1

    def needs_page(self, limit: int, page_size: int) -> bool:
        """Whether another page is to be asked for so many entries; see `PagedSearch`."""
        missing = limit - len(self.slots)
        # so many pages would do if all were full: a few missing entries are not worth another one
        enough = page_size and self.pages * page_size >= limit and missing <= _MAX_MISSING * limit
        too_many = self.pages >= _MAX_PAGES + limit // _ENTRIES_PER_PAGE
        return missing > 0 and not enough and not too_many and not self.exhausted


class PagedSearch:
    """The pages that one source has read; belongs to one event loop."""

    def __init__(
        self,
        read: Callable[[FetchPlan, str | None], Awaitable[Page]],
        ttl: float,
        memory: SourceMemory | None = None,
        upstream: str = "",
        page_size: int = 0,
    ) -> None:
        """`read(plan, cursor)` asks for one page, good for `ttl` seconds.

        `memory` holds pages between runs, under the name and server of the `upstream`. `page_size`
        is given where a page is too costly to ask for another when full ones would have done.
        """
        self._read, self._ttl, self._page_size = read, ttl, page_size
        self._memory, self._upstream = memory, upstream
        self._queries: OrderedDict[tuple[str, Window], _QueryPages] = OrderedDict()
        self._reading: SharedTasks[_QueryPages, None] = SharedTasks()

    async def take(self, plan: FetchPlan) -> Batch:
        """The first `plan.limit` entries, asking for as few pages as that needs."""
        key, now = (plan.query, plan.window), time.monotonic()
        query = self._queries.get(key)
        if query is None or now - query.opened > self._ttl:
            query = self._queries[key] = _QueryPages(now)
        self._queries.move_to_end(key)
        size = sum(held.size for held in self._queries.values())
        while size > _MAX_SIZE and len(self._queries) > 1:
            _, oldest = self._queries.popitem(last=False)
            size -= oldest.size

        async def read_next(listener: Listener) -> None:
            query.add(await self._page(plan, query.cursor))

        while query.needs_page(plan.limit, self._page_size):
            await self._reading.share(query, read_next)
        slots = query.slots[: plan.limit]
        items = tuple(item for item in slots if item and in_window(plan.window, item.created_at))
        more, notes = not query.exhausted or len(query.slots) > plan.limit, [*query.notes]
        if len(slots) < plan.limit and more:
            notes.append(f"{len(slots)} of {plan.limit} came; the rest is not worth another page")
        return Batch(plan, items, full=more, notes=tuple(notes))

    async def _page(self, plan: FetchPlan, cursor: str | None) -> Page:
        """The page from the memory, or read now and kept there, unless a part of it failed.

        A database that cannot be used costs the memory, not the answer.
        """
        if self._memory is None:
            return await self._read(plan, cursor)
        key, lost = json.dumps([self._upstream, plan.query, plan.window, cursor]), False
        try:
            text = await self._memory.page(key, self._ttl)
        except StoreUnavailable:
            text, lost = None, True
        page = None if text is None else page_from_json(text)
        if page is not None:
            return page
        page = await self._read(plan, cursor)
        if not lost and not page.partial:
            try:
                await self._memory.keep_page(key, page_to_json(page, datetime.now(UTC)))
            except StoreUnavailable:
                lost = True
        return replace(page, notes=(*page.notes, NOT_STORED)) if lost else page


async def phrase_first(search: PagedSearch, plan: FetchPlan) -> Batch:
    """The batch of a plan; a quoted query without results is asked again without its quotes."""
    batch = await search.take(plan)
    bare = " ".join(plan.query.translate(_UNQUOTED).split())
    if batch.items or not bare or bare == " ".join(plan.query.split()):
        return batch
    wider = await search.take(replace(plan, query=bare))
    note = f"nothing for the exact phrase; asked once more without quotes: {len(wider.items)} found"
    return Batch(plan, wider.items, wider.full, (*batch.notes, note, *wider.notes))


def window_start(window: Window, now: datetime | None = None) -> datetime | None:
    """The earliest time inside the window, aware UTC; None for `all`."""
    days = WINDOW_DAYS.get(window)
    return None if days is None else (now or datetime.now(UTC)) - timedelta(days=days)


def in_window(window: Window, created: datetime | None, now: datetime | None = None) -> bool:
    """Whether a time lies in the window; undated items always do."""
    start = window_start(window, now)
    return start is None or created is None or created >= start


def page_to_json(page: Page, read_at: datetime) -> str:
    """A page as JSON, with the time of its reading."""
    return json.dumps(asdict(replace(page, read_at=read_at)), default=datetime.isoformat)


def page_from_json(text: str) -> Page | None:
    """The page again; None when another version of this program wrote it."""
    try:
        fields = json.loads(text)
        slots = tuple(slot and _item(slot) for slot in fields["slots"])
        return Page(slots, fields["cursor"], tuple(fields["notes"]), _time(fields["read_at"]))
    except (ValueError, TypeError, LookupError, AttributeError):
        return None


def _item(fields: Mapping[str, Any]) -> Item:
    comments = tuple(
        Comment(**{**comment, "created_at": _time(comment["created_at"])})
        for comment in fields["comments"]
    )
    lists = {name: tuple(fields[name]) for name in ("places", "notes")}
    created_at = _time(fields["created_at"])
    return Item(**{**fields, **lists, "created_at": created_at, "comments": comments})


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
