"""The state of paging is an object, so the economy around it is written once.

A `PagedSearch` keeps, per query and window, what the source's pages held so far and the cursor of
the next. A wider plan is served from the surplus first, then from the next page; page one is never
asked twice. Between runs a `SourceMemory` keeps the pages as JSON.
Concurrent callers of the same query wait for the one flight under way, and share its failure.
Failures are not kept, nor pages of which a part failed.
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

LOST = "pages are not remembered, since the database cannot be used"
# Characters that a shelf holds; the query that was not asked for longest goes first.
_MOST = 32_000_000
# What an entry, and a query, count besides their texts.
_ENTRY, _QUERY = 1_000, 10_000
HOLLOW = "two pages in a row without anything new promised more; no further one was asked"
# Pages of one query, and how many more, one for so many wanted entries: however little they hold,
# a place whose requests are counted is not asked for ever.
_PAGES, _SCANT = 5, 10
# The share of the wanted entries that short pages may lack before a dear one is asked for.
_SLACK = 0.1
_UNQUOTED = str.maketrans(dict.fromkeys('"\u201c\u201d\u201e\u00ab\u00bb', " "))


@dataclass(frozen=True, slots=True)
class Page:
    """One page as the source counted it."""

    slots: tuple[Item | None, ...]
    """One per entry the source returned, in its order; None where nothing usable was left."""
    cursor: str | None = None
    """What asks for the next page; None after the last."""
    notes: tuple[str, ...] = ()
    read_at: datetime | None = None
    """When the source gave it, aware UTC, if that was before; None: just now."""
    partial: bool = False
    """A part of the source could not be asked: good for this fetch alone."""


@dataclass(slots=True, eq=False)
class _Stream:
    """What one query gave so far."""

    opened: float
    slots: list[Item | None] = field(default_factory=list)
    cursor: str | None = None
    pages: int = 0
    size: int = _QUERY
    """In characters, as `_MOST` counts them."""
    hollow: bool = False
    """The last page gave nothing new; after a second one in a row nothing more is asked."""
    notes: list[str] = field(default_factory=list)

    @property
    def exhausted(self) -> bool:
        return self.pages > 0 and self.cursor is None

    def add(self, page: Page) -> None:
        seen, hollow = {item.key for item in self.slots if item is not None}, True
        for item in page.slots:
            fresh = item is not None and item.key not in seen
            self.slots.append(item if fresh else None)
            hollow = hollow and not fresh
            self.size += _ENTRY
            if item is not None:
                seen.add(item.key)
                self.size += len(item.title) + len(item.body)
        self.notes += [note for note in page.notes if note not in self.notes]
        if page.read_at is not None:
            age = (datetime.now(UTC) - page.read_at).total_seconds()
            self.opened = min(self.opened, time.monotonic() - age)
        if page.partial:
            self.opened = -math.inf
        ends = self.hollow and hollow
        if ends and page.cursor is not None:
            self.notes.append(HOLLOW)
        self.cursor = None if ends else page.cursor
        self.hollow, self.pages = hollow, self.pages + 1

    def lacks(self, limit: int, size: int) -> bool:
        """Whether another page should be asked for so many entries; `size` as in `PagedSearch`.

        When as many pages were read as would do if all were full, few missing entries are let go.
        """
        missing = limit - len(self.slots)
        enough = size and self.pages * size >= limit and missing <= _SLACK * limit
        scant = self.pages >= _PAGES + limit // _SCANT
        return missing > 0 and not enough and not scant and not self.exhausted


Read = Callable[[FetchPlan, str | None], Awaitable[Page]]


class PagedSearch:
    """The pages one source has read; belongs to one event loop."""

    def __init__(
        self,
        read: Read,
        ttl: float,
        memory: SourceMemory | None = None,
        upstream: str = "",
        size: int = 0,
    ) -> None:
        """`read(plan, cursor)` asks for one page, good for `ttl` seconds.

        `memory` holds pages between runs, under the name and root of the `upstream`. `size` is what
        a full page holds, where pages are too dear to ask one more for what a short one lacks.
        """
        self._read, self._ttl, self._size = read, ttl, size
        self._memory, self._upstream = memory, upstream
        self._streams: OrderedDict[tuple[str, Window], _Stream] = OrderedDict()
        self._turning: SharedTasks[_Stream, None] = SharedTasks()

    async def take(self, plan: FetchPlan) -> Batch:
        """The first `plan.limit` entries, asking for as few pages as that needs."""
        key, now = (plan.query, plan.window), time.monotonic()
        stream = self._streams.get(key)
        if stream is None or now - stream.opened > self._ttl:
            stream = self._streams[key] = _Stream(now)
        self._streams.move_to_end(key)
        held = sum(stream.size for stream in self._streams.values())
        while held > _MOST and len(self._streams) > 1:
            _, oldest = self._streams.popitem(last=False)
            held -= oldest.size

        async def turned(listener: Listener) -> None:
            stream.add(await self._page(plan, stream.cursor))

        while stream.lacks(plan.limit, self._size):
            await self._turning.share(stream, turned)
        slots = stream.slots[: plan.limit]
        items = tuple(item for item in slots if item and in_window(plan.window, item.created_at))
        more, notes = not stream.exhausted or len(stream.slots) > plan.limit, [*stream.notes]
        if len(slots) < plan.limit and more:
            notes.append(f"{len(slots)} of {plan.limit} came; the rest is not worth another page")
        return Batch(plan, items, full=more, notes=tuple(notes))

    async def _page(self, plan: FetchPlan, cursor: str | None) -> Page:
        """The page as it was read in another run, or read now and kept for the next.

        Only whole pages are kept, never a failure. A database that cannot be used costs the memory,
        not the answer.
        """
        if self._memory is None:
            return await self._read(plan, cursor)
        key, lost = json.dumps([self._upstream, plan.query, plan.window, cursor]), False
        try:
            text = await self._memory.page(key, self._ttl)
        except StoreUnavailable:
            text, lost = None, True
        page = None if text is None else page_of(text)
        if page is not None:
            return page
        page = await self._read(plan, cursor)
        if not lost and not page.partial:
            try:
                await self._memory.keep_page(key, text_of(page, datetime.now(UTC)))
            except StoreUnavailable:
                lost = True
        return replace(page, notes=(*page.notes, LOST)) if lost else page


async def phrase_first(shelf: PagedSearch, plan: FetchPlan) -> Batch:
    """The batch; when a quoted query gives nothing, the one without its quotes, and both noted."""
    batch = await shelf.take(plan)
    bare = " ".join(plan.query.translate(_UNQUOTED).split())
    if batch.items or not bare or bare == " ".join(plan.query.split()):
        return batch
    wider = await shelf.take(replace(plan, query=bare))
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


def text_of(page: Page, read_at: datetime) -> str:
    """A page as JSON."""
    fields = asdict(replace(page, read_at=read_at))
    return json.dumps(fields, default=datetime.isoformat)


def page_of(text: str) -> Page | None:
    """The page again; None when another version of this program wrote it."""
    try:
        fields = json.loads(text)
        return Page(
            tuple(None if slot is None else _item(slot) for slot in fields["slots"]),
            fields["cursor"],
            tuple(fields["notes"]),
            _moment(fields["read_at"]),
        )
    except (ValueError, TypeError, LookupError, AttributeError):
        return None


def _item(fields: Mapping[str, Any]) -> Item:
    comments = (
        Comment(**{**comment, "created_at": _moment(comment["created_at"])})
        for comment in fields["comments"]
    )
    return Item(
        **{
            **fields,
            "created_at": _moment(fields["created_at"]),
            "comments": tuple(comments),
            "places": tuple(fields["places"]),
            "notes": tuple(fields["notes"]),
        }
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
