"""What all sources that are searched over a network have in common."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import ClassVar

from api.core.display_names import OUTCOME_REASONS
from api.core.domain import Batch, Commented, FetchPlan, Item, Outcome
from api.core.ports import Probe
from api.core.work import translated
from api.errors import (
    Blocked,
    Broken,
    QuotaExhausted,
    RateLimited,
    Refused,
    SourceError,
    TimedOut,
    Unreachable,
)
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources.paging import Page, PagedSearch, phrase_first

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

    def __init__(
        self, settings: SourceSettings, memory: SourceMemory | None, server: str, page_size: int = 0
    ) -> None:
        """`server` tells its stored pages from those of others; `page_size` as in `PagedSearch`."""
        self._max_comments = settings.comments_per_item
        upstream = f"{self.name} {server}"
        self._paged = PagedSearch(self._search, settings.page_ttl, memory, upstream, page_size)

    async def fetch(self, plan: FetchPlan) -> Batch:
        """Search, best match first.

        A quoted query that matches nothing is asked once more without its quotes.
        """
        return replace(await phrase_first(self._paged, self._worded(plan)), plan=plan)

    async def comments(self, items: Sequence[Item]) -> Commented:
        """The items with their comments; one request per item."""
        if not self._max_comments:
            return Commented(tuple(items))
        return await read_each(
            items, self._commented, parallel=self.parallel_items, stops=self.stops
        )

    async def with_best_comments(self, item: Item) -> Item | None:
        """The item with its best comments; None when none are to be read."""
        return await self._commented(item) if self._max_comments else None

    async def probe(self) -> Probe:
        """Whether it answers, and what is left of its limit; costs a request or a few."""
        try:
            return await self._probed()
        except SourceError as error:
            return Probe(error.code, error.detail)

    def _worded(self, plan: FetchPlan) -> FetchPlan:
        """The plan with the query as this source is asked."""
        return plan

    @abstractmethod
    async def aclose(self) -> None:
        """Close connections and threads."""

    @abstractmethod
    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        """One page of results."""

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
    """Every item through `read`, `parallel` at a time, in order; a failed one stays as it was.

    Nothing more is asked after an error in `stops`, or after `parallel` of those in `doubts`
    without an answer in between. `what` is what the notes call it.

    Raises:
        SourceError: what stopped the reading, when nothing had been read before.
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
    return Commented(tuple(read_items), notes)


def with_note(item: Item, note: str) -> Item:
    """The item with one more note."""
    return replace(item, notes=(*item.notes, note))


def status_failure(
    name: str, status: int, detail: str = "", retry_at: datetime | None = None
) -> SourceError:
    """What an HTTP status means, where an answer says nothing else."""
    detail = detail or f"HTTP {status}"
    if status == 429:
        return RateLimited(name, detail, retry_at=retry_at)
    if status == 402:
        return QuotaExhausted(name, detail, retry_at=retry_at)
    if status in {401, 403}:
        return Refused(name, detail)
    return (Unreachable if status == 408 or status >= 500 else Broken)(name, detail)
