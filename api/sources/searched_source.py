"""`PagedSearch` and `SearchedSource`: paging, deadlines, cached answers and failures of searched sources."""

from __future__ import annotations

import asyncio
import json
import math
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import ClassVar
from weakref import WeakKeyDictionary

from pydantic import TypeAdapter, ValidationError

from api.choices import WINDOW_DAYS, Window
from api.core.display_names import OUTCOME_REASONS
from api.core.domain import FetchPlan, Outcome
from api.core.items import Batch, Commented, Item
from api.core.ports import Probe
from api.core.progress import Listener
from api.core.shared_answers import SharedAnswers, SharedRun, shared_run
from api.core.work import SharedTasks, translated
from api.errors import (
    Blocked,
    Broken,
    QuotaExhausted,
    RateLimited,
    Refused,
    SourceError,
    StoreUnavailable,
    TimedOut,
    Unreachable,
)
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings

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
    """One page of results, with its size as the source counts it."""

    slots: tuple[Item | None, ...]
    """Entries in the source's order; None for an entry that is not an item."""
    cursor: str | None = None
    """Cursor of the next page; None on the last."""
    notes: tuple[str, ...] = ()
    read_at: datetime | None = None
    """When an earlier run read it, aware UTC; None: it was read now."""
    partial: bool = False
    """Whether a part of the source failed, so that the page serves this fetch alone."""


_PAGE, _ITEM, _COMMENTED = TypeAdapter(Page), TypeAdapter(Item), TypeAdapter(Commented)


@dataclass(slots=True, eq=False)
class _QueryPages:
    """State of one query's pages."""

    opened: float
    """When the first page was read, on the monotonic clock."""
    slots: list[Item | None] = field(default_factory=list)
    cursor: str | None = None
    pages: int = 0
    size: int = _QUERY_SIZE
    """Size in characters, as `_MAX_SIZE` counts them."""
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


_Queries = OrderedDict[tuple[str, Window], _QueryPages]


class PagedSearch:
    """The pages that one source has read; belongs to one event loop."""

    def __init__(
        self,
        read: Callable[[FetchPlan, str | None], Awaitable[Page]],
        ttl: float,
        memory: SourceMemory | None = None,
        upstream: str = "",
        page_size: int = 0,
        admit: Callable[[SharedRun], Awaitable[None]] | None = None,
    ) -> None:
        """`read(plan, cursor)` asks for a page, good for `ttl` seconds, of the server `upstream`.

        `page_size` is given where a page is costly: where so many full pages would have held all entries, no further
        one is asked for a few that are missing. `admit` is called before each page of a scheduled run, also where
        another run asks for it.
        """
        self._read, self._ttl, self._page_size, self._admit = read, ttl, page_size, admit
        self._memory, self._upstream = memory, upstream
        self._queries = _Queries()
        # a scheduled run shares with others what is stored alone, so that it counts its requests like any other
        self._of_runs: WeakKeyDictionary[SharedRun, _Queries] = WeakKeyDictionary()
        self._reading: SharedTasks[_QueryPages, None] = SharedTasks()

    async def take(self, plan: FetchPlan) -> Batch:
        """The first `plan.limit` entries, asking for as few pages as that needs."""
        key, now, run = (plan.query, plan.window), time.monotonic(), shared_run()
        queries = self._queries if run is None else self._of_runs.setdefault(run, _Queries())
        query = queries.get(key)
        if query is None or now - query.opened > self._ttl:
            query = queries[key] = _QueryPages(now)
        queries.move_to_end(key)
        size = sum(held.size for held in queries.values())
        while size > _MAX_SIZE and len(queries) > 1:
            _, oldest = queries.popitem(last=False)
            size -= oldest.size

        async def read_next(listener: Listener) -> None:
            query.add(await self._page(plan, query.cursor))

        while query.needs_page(plan.limit, self._page_size):
            await self._reading.share(query, read_next)
        slots = query.slots[: plan.limit]
        items = tuple(
            item
            for item in slots
            if item and in_window(plan.window, item.created_at) and (run is None or run.sees(item.created_at))
        )
        more, notes = not query.exhausted or len(query.slots) > plan.limit, [*query.notes]
        if len(slots) < plan.limit and more:
            notes.append(f"{len(slots)} of {plan.limit} came; the rest is not worth another page")
        return Batch(plan, items, full=more, notes=tuple(notes))

    async def _page(self, plan: FetchPlan, cursor: str | None) -> Page:
        """The page from memory, or read now; a database that fails costs the memory alone."""
        if (run := shared_run()) is not None:
            if self._admit is not None:
                await self._admit(run)
            question = (self._upstream, plan.query, plan.window, cursor, run.as_of.isoformat())
            read = partial(self._read, plan, cursor)
            return await SharedAnswers(self._memory).answer(question, _PAGE, read, lambda page: not page.partial)
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
    """The earliest time inside the window, aware UTC; None for `all`.

    It ends now, or where answers of a scheduled run end.
    """
    days, run = WINDOW_DAYS.get(window), shared_run()
    end = now or (datetime.now(UTC) if run is None else run.as_of)
    return None if days is None else end - timedelta(days=days)


def in_window(window: Window, created: datetime | None, now: datetime | None = None) -> bool:
    """Whether a time lies in the window; undated items always do."""
    start = window_start(window, now)
    return start is None or created is None or created >= start


def page_to_json(page: Page, read_at: datetime) -> str:
    """A page as JSON, with the time of its reading."""
    return _PAGE.dump_json(replace(page, read_at=read_at)).decode()


def page_from_json(text: str) -> Page | None:
    """The page read back from JSON; None when another version of this program wrote it."""
    try:
        return _PAGE.validate_json(text)
    except ValidationError:
        return None


LIMITS = (RateLimited, QuotaExhausted, Blocked)
"""Failures that concern the whole source: the next item is not asked for."""
SILENCES = (TimedOut, Unreachable)
"""Failures that may concern one item; when they come in a row, they concern the source."""


class SearchedSource(ABC):
    """A source with pages of results, and comments that are read item by item; see `Source`."""

    name: ClassVar[str]
    parallel_items: ClassVar[int] = 4
    """Items whose comments are read at the same time."""
    stops: ClassVar[tuple[type[SourceError], ...]] = LIMITS
    """Failures after which no further item's comments are asked for."""

    def __init__(self, settings: SourceSettings, memory: SourceMemory | None, server: str, page_size: int = 0) -> None:
        """`server` tells its stored pages from those of others; `page_size` as in `PagedSearch`."""
        self._max_comments = settings.comments_per_item
        self._upstream, self._sharing = f"{self.name} {server}", SharedAnswers(memory)
        self._paged = PagedSearch(self._search, settings.page_ttl, memory, self._upstream, page_size, self._admit)

    async def fetch(self, plan: FetchPlan) -> Batch:
        """Search, best match first; a quoted query without results is asked without its quotes."""
        return replace(await phrase_first(self._paged, self._worded(plan)), plan=plan)

    async def comments(self, items: Sequence[Item]) -> Commented:
        """The items with their comments; see the source's page for the requests."""
        return await self._shared("comments", items, partial(self._comments, items))

    async def with_best_comments(self, item: Item) -> Item | None:
        """The item with its best comments; None when comments are not read."""
        if not self._max_comments:
            return None

        async def ask() -> Commented:
            return Commented((await self._commented(item),))

        return (await self._shared("one item's comments", [item], ask)).items[0]

    async def probe(self) -> Probe:
        """Whether it answers, and what is left of its limit; costs a request or a few."""
        try:
            return await self._probed()
        except SourceError as error:
            return Probe(error.code, error.detail)

    def _worded(self, plan: FetchPlan) -> FetchPlan:
        return plan

    async def _comments(self, items: Sequence[Item]) -> Commented:
        return await self._with_comments_of(items) if self._max_comments else Commented(tuple(items))

    async def _with_comments_of(self, items: Sequence[Item]) -> Commented:
        return await read_each(items, self._commented, parallel=self.parallel_items, stops=self.stops)

    async def _shared(self, what: str, items: Sequence[Item], ask: Callable[[], Awaitable[Commented]]) -> Commented:
        """The items with their comments; of scheduled runs that kept the same items, only the first requests them."""
        if (run := shared_run()) is None:
            return await ask()
        given = [_ITEM.dump_python(item, mode="json") for item in items]
        question = (self._upstream, what, self._max_comments, given, run.as_of.isoformat())
        commented = await self._sharing.answer(question, _COMMENTED, ask, lambda answer: not answer.partial)
        seen = (
            item.edited(comments=tuple(comment for comment in item.comments if run.sees(comment.created_at)))
            for item in commented.items
        )
        return replace(commented, items=tuple(seen))

    async def _admit(self, run: SharedRun) -> None:  # noqa: B027 - of most sources a tenant may have all
        """Take one search of what the run's tenant may have of the source."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close connections and threads."""

    @abstractmethod
    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        """One page of results from the cursor on; None requests the first page."""

    @abstractmethod
    async def _commented(self, item: Item) -> Item:
        """The item with its comments."""

    @abstractmethod
    async def _probed(self) -> Probe:
        """Ask for as little as shows that it answers."""


async def read_each(
    items: Sequence[Item],
    read: Callable[[Item], Awaitable[Item]],
    *,
    parallel: int = 4,
    stops: tuple[type[SourceError], ...] = LIMITS,
    doubts: tuple[type[SourceError], ...] = SILENCES,
    what: str = "comments",
) -> Commented:
    """Every item through `read`, `parallel` at a time, in order; a failed one gets a note.

    Nothing more is asked after an error in `stops`, or after `parallel` in a row of those in
    `doubts`; it is raised when nothing was read. `what` is what the notes call it.
    """
    slots = asyncio.Semaphore(parallel)
    failures: list[SourceError] = []
    stop: SourceError | None = None
    answers = in_a_row = 0

    async def attempt(item: Item) -> Item:
        nonlocal stop, answers, in_a_row
        async with slots:
            if stop is not None:
                failures.append(stop)
                return with_note(item, f"{what} not asked for: {stop.code.replace('_', ' ')}")
            try:
                defect = partial(Broken, item.source)  # of our own code, so that one item fails
                full = await translated(read(item), f"{what} of {item.key}", defect)
            except SourceError as error:
                failures.append(error)
                in_a_row += isinstance(error, doubts)
                if isinstance(error, stops) or in_a_row >= parallel:
                    stop = stop or error
                return with_note(item, f"{what} could not be read: {error.detail or error.code}")
            answers, in_a_row = answers + 1, 0
            return full

    read_items = await asyncio.gather(*map(attempt, items))
    if stop is not None and not answers:
        raise stop
    why = ", ".join(sorted({OUTCOME_REASONS[Outcome.of(error.code)] for error in failures}))
    notes = (f"{what}: {len(failures)} of {len(items)} failed ({why})",) if failures else ()
    return Commented(tuple(read_items), notes, partial=bool(failures))


def with_note(item: Item, note: str) -> Item:
    """The item with one more note."""
    return item.edited(notes=(*item.notes, note))


def status_failure(name: str, status: int, detail: str = "", retry_at: datetime | None = None) -> SourceError:
    """The error of an HTTP status whose answer names no other."""
    detail = detail or f"HTTP {status}"
    if status == 429:
        return RateLimited(name, detail, retry_at=retry_at)
    if status == 402:
        return QuotaExhausted(name, detail, retry_at=retry_at)
    if status in {401, 403}:
        return Refused(name, detail)
    return (Unreachable if status == 408 or status >= 500 else Broken)(name, detail)
