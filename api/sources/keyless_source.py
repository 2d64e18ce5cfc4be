"""What places that answer without a key have in common: `KeylessSource`, and their failures.

Reading the comments of many items at once, so that one bad item costs only itself.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Any, ClassVar, TypeVar

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
from api.sources.item_fields import record
from api.sources.paging import Page, PagedSearch, phrase_first
from api.sources.web_client import Limit, Pace, Reply, WebClient, pace_of

LIMITS = (RateLimited, QuotaExhausted, Blocked)
"""Failures that concern the whole source: the next item is not asked for."""
SILENCES = (TimedOut, Unreachable)
"""Failures that may be one item's; when they come in a row, they are the source's."""


async def read_each(
    items: Sequence[Item],
    read: Callable[[Item], Awaitable[Item]],
    *,
    width: int = 4,
    stops: tuple[type[SourceError], ...] = LIMITS,
    doubts: tuple[type[SourceError], ...] = SILENCES,
    what: str = "comments",
) -> Commented:
    """Every item through `read`, `width` at a time, in order; a failed one keeps its place.

    What nobody foresaw about one item is its failure, too.

    Nothing more is asked after an error in `stops`, or after `width` of those in `doubts` without
    an answer in between. `what` is what the notes call it.

    Raises:
        SourceError: what stopped the reading, when nothing had been read before.
    """
    room = asyncio.Semaphore(width)
    failures: list[SourceError] = []
    stop: SourceError | None = None
    answers = in_a_row = 0

    async def attempt(item: Item) -> Item:
        nonlocal stop, answers, in_a_row
        async with room:
            if stop is not None:
                failures.append(stop)
                return noted(item, f"{what} not asked for: {stop.code.replace('_', ' ')}")
            try:
                defect = partial(Broken, item.source)
                full = await translated(read(item), f"{what} of {item.key}", defect)
            except SourceError as error:
                failures.append(error)
                in_a_row += isinstance(error, doubts)
                if isinstance(error, stops) or in_a_row >= width:
                    stop = stop or error
                return noted(item, f"{what} could not be read: {error.detail or error.code}")
            answers, in_a_row = answers + 1, 0
            return full

    read_items = await asyncio.gather(*map(attempt, items))
    if stop is not None and not answers:
        raise stop
    why = ", ".join(sorted({OUTCOME_REASONS[Outcome.of(error.code)] for error in failures}))
    notes = (f"{what}: {len(failures)} of {len(items)} failed ({why})",) if failures else ()
    return Commented(tuple(read_items), notes)


def noted(item: Item, note: str) -> Item:
    """The item with one more note."""
    return replace(item, notes=(*item.notes, note))


T = TypeVar("T")


class KeylessSource(ABC):
    """One such place; a subclass says how it is searched and what its answers mean.

    Belongs to one event loop; requests are paced over the whole process.
    """

    name: ClassVar[str]
    address: ClassVar[str]
    """The setting that holds where it is."""
    limits: tuple[Limit, ...]
    """How often its owner lets one address search; other requests are not counted against it."""
    phrases: ClassVar[bool] = True
    """Its search knows quoted phrases."""
    rest: ClassVar[timedelta] = timedelta()
    """How long a server is left alone that has enough of us and does not say for how long."""
    width: ClassVar[int] = 4
    """Items whose comments are read at the same time."""

    def __init__(
        self,
        settings: SourceSettings,
        roots: Sequence[str],
        memory: SourceMemory | None = None,
        headers: Mapping[str, str] | None = None,
        within: Sequence[str] = (),
    ) -> None:
        """`roots` are the servers that are asked; the first is asked for what is not a search.

        `within` are the parts of them that are searched, where settings say so.
        """
        headers = {"User-Agent": settings.user_agent, **(headers or {})}
        self._most = settings.comments_per_item
        self._servers = {
            root: WebClient(
                self.name, root, settings.source_timeout, address=self.address, headers=headers
            )
            for root in (given.rstrip("/") for given in roots)
        }
        self._roots = tuple(self._servers)
        upstream = " ".join((self.name, *self._roots, *within))
        self._shelf = PagedSearch(self._search, settings.page_ttl, memory, upstream)

    async def fetch(self, plan: FetchPlan) -> Batch:
        """Search, best match first; the product's name is a phrase where there are phrases.

        A phrase that matches nothing is asked once more without its quotes.
        """
        return replace(await phrase_first(self._shelf, self._worded(plan)), plan=plan)

    async def comments(self, items: Sequence[Item]) -> Commented:
        """What was said about each item; one request per item."""
        if not self._most:
            return Commented(tuple(items))
        return await read_each(items, self._commented, width=self.width, stops=(*LIMITS, Refused))

    async def with_best_comments(self, item: Item) -> Item | None:
        """The item with its comments."""
        return await self._commented(item) if self._most else None

    async def probe(self) -> Probe:
        """Whether it answers, and what is left of its limit."""
        try:
            return await self._probed()
        except SourceError as error:
            return Probe(error.code, error.detail)

    async def aclose(self) -> None:
        """Close the connections."""
        await asyncio.gather(*(server.aclose() for server in self._servers.values()))

    @abstractmethod
    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        """One page of results."""

    @abstractmethod
    async def _commented(self, item: Item) -> Item:
        """The item with what was said about it."""

    @abstractmethod
    async def _probed(self) -> Probe:
        """Ask for as little as shows that it can be asked."""

    def _failure(self, reply: Reply) -> SourceError | None:
        """What an answer means that is special to this place; None where it is not."""
        return None

    def _worded(self, plan: FetchPlan) -> FetchPlan:
        return phrased(plan) if self.phrases else plan

    def _pace(self, root: str) -> Pace:
        return pace_of(self.name, root, *self.limits)

    def heed(self, pace: Pace, reply: Reply, failure: SourceError | None) -> None:
        """Obey what an answer says of the next request of its kind."""
        if isinstance(failure, RateLimited | QuotaExhausted):
            rest = datetime.now(UTC) + self.rest if self.rest else None
            pace.pause(failure.retry_at or rest, type(failure))

    async def _ask(
        self,
        path: str,
        params: Mapping[str, str | int] | None = None,
        root: str = "",
        *,
        search: bool = False,
        pace: Pace | None = None,
    ) -> Any:
        """The JSON at `path`, of the first server if no other is named; a search takes its turn.

        `pace` is that of another kind of requests, where the place counts it, too.

        Raises:
            SourceError: it was not sent, or what came is no answer.
        """
        server = self._servers[root or self._roots[0]]
        pace = self._pace(server.root) if search else pace
        if pace is not None:
            await pace.turn()
        reply = await server.get(path, params)
        failure = self._failure(reply) or failure_of(self.name, reply)
        if pace is not None:
            self.heed(pace, reply, failure)
        if failure is not None:
            raise failure
        return reply.data


async def of_each(
    parts: Sequence[str], ask: Callable[[str], Awaitable[T]]
) -> tuple[dict[str, T], dict[str, SourceError]]:
    """What the parts of a place answered that did, and the failures of the others; all at once.

    Raises:
        SourceError: none did; the first one's.
    """
    failures: dict[str, SourceError] = {}

    async def attempt(part: str) -> list[T]:
        try:
            return [await ask(part)]
        except SourceError as error:
            failures[part] = error
            return []

    answers = dict(zip(parts, await asyncio.gather(*map(attempt, parts)), strict=True))
    if parts and len(failures) == len(parts):
        raise failures[parts[0]]
    return {part: answer for part, got in answers.items() for answer in got}, failures


def joined(
    rankings: Iterable[Sequence[Item | None]],
    cursor: str | None,
    failures: Mapping[str, SourceError],
) -> Page:
    """One page of several parts' results: the first of each, then the second, and so on.

    Raises:
        SourceError: nothing came, and it may be for want of a part that failed.
    """
    placed = [entry for slots in rankings for entry in enumerate(slots)]
    if failures and not placed:
        raise failures[min(failures)]
    slots = tuple(slot for _, slot in sorted(placed, key=itemgetter(0)))
    return Page(slots, cursor, unsearched(failures), partial=bool(failures))


def unsearched(failures: Mapping[str, SourceError]) -> tuple[str, ...]:
    """A note on each part that failed."""
    return tuple(f"{part} not searched: {failures[part].detail}" for part in sorted(failures))


def failure_of(name: str, reply: Reply) -> SourceError | None:
    """What a status and the kind of a body mean everywhere; None for an answer in JSON."""
    what, status = f"HTTP {reply.status}{' page' if reply.html else ''}", reply.status
    if status == 429:
        return RateLimited(name, what, retry_at=reply.wait)
    if status == 402:
        return QuotaExhausted(name, what, retry_at=reply.wait)
    if status == 408 or status >= 500:
        return Unreachable(name, what)
    if reply.html and status in {200, 202, 401, 403}:
        return Blocked(name, "a web page instead of data", retry_at=reply.wait)
    if status in {401, 403}:
        return Refused(name, what)
    if status != 200:
        return Broken(name, what)
    if reply.data is None:
        return Broken(name, "an answer that is not JSON")
    return None


def phrased(plan: FetchPlan) -> FetchPlan:
    """The plan with the product's name in quotes, where that says more than its words alone.

    `Kindle Scribe battery` is `"Kindle Scribe" battery`, and `plaud.ai` is `"plaud.ai"`. A name of
    one plain word, and a query with quotes of its own, stay as they are.
    """
    name = plan.name
    if not name or name.isalnum() or '"' in plan.query:
        return plan
    words = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.I)
    return replace(plan, query=words.sub(lambda match: f'"{match[0]}"', plan.query, count=1))


def readable(
    name: str, entries: Sequence[Any], read: Callable[[Any], Item | None]
) -> tuple[Item | None, ...]:
    """The entries of a page as slots.

    Raises:
        Broken: there are entries, and none has the fields that are read.
    """
    slots = tuple(map(read, entries))
    if slots and not any(slots):
        raise Broken(name, "results without the fields that are read")
    return slots


def listed(name: str, answer: Any, *fields: str) -> Sequence[Any]:
    """The list that an answer holds under one of these names.

    Raises:
        Broken: it holds none.
    """
    lists = (record(answer).get(field) for field in fields)
    entries = next((value for value in lists if isinstance(value, list)), None)
    if entries is None:
        raise Broken(name, f"an answer without {fields[0]}")
    return entries


def whole_ones(
    name: str, remarks: Iterable[Any], is_whole: Callable[[Any], bool]
) -> list[Mapping[str, Any]]:
    """What was said under an item, without entries that lack the fields that are read.

    Raises:
        Broken: all lack them.
    """
    remarks = list(remarks)
    read = [record(remark) for remark in remarks if is_whole(record(remark))]
    if remarks and not read:
        raise Broken(name, "a thread without comments' texts")
    return read


def resumed(cursor: str | None, parts: Iterable[str]) -> tuple[int, list[str]]:
    """The number of a page, from 1, and the parts of the place that have one; see `continued`."""
    number, *further = cursor.split() if cursor else ("1", *parts)
    return int(number), further


def continued(number: int, further: Sequence[str]) -> str | None:
    """The cursor of the page after that number, which these parts have; None without any."""
    return " ".join((str(number + 1), *further)) if further else None
