"""`JsonSource`: what sources that answer in JSON and need no API key have in common."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any, ClassVar, TypeVar

from api.core.domain import FetchPlan
from api.core.items import Comment, Item
from api.core.shared_answers import SharedRun
from api.core.text import clean_query
from api.errors import Blocked, Broken, QuotaExhausted, RateLimited, Refused, SourceError
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources import SOURCES, setting_value
from api.sources.item_fields import as_dict
from api.sources.searched_source import LIMITS, Page, SearchedSource, status_failure
from api.sources.web_client import Limit, Pace, Reply, SharedPace, WebClient, pace_of

T = TypeVar("T")
Slots = tuple[Item | None, ...]
"""Entries of a page in order; None for an entry that is not an item."""


class JsonSource(SearchedSource):
    """A subclass says how its server is searched and what the answers mean.

    Belongs to one event loop; requests are paced over the whole process.
    """

    limits: tuple[Limit, ...]
    """How often the server lets one address search; other requests are not counted."""
    phrases: ClassVar[bool] = True
    """Whether its search knows quoted phrases."""
    rest: ClassVar[timedelta] = timedelta()
    """Pause after a rate limit that does not say how long it lasts."""
    stops = (*LIMITS, Refused)

    def __init__(
        self,
        settings: SourceSettings,
        memory: SourceMemory | None = None,
        *,
        roots: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        parts: Sequence[str] = (),
    ) -> None:
        """`roots`: its servers, by default that of its setting; `parts`: what is searched there."""
        address = SOURCES[self.name].address
        headers = {"User-Agent": settings.user_agent, **(headers or {})}
        roots = [root.rstrip("/") for root in roots or (setting_value(settings, address),)]
        self._servers = {
            root: WebClient(self.name, root, settings.source_timeout, address=address, headers=headers)
            for root in roots
        }
        self._roots = tuple(self._servers)
        self._memory = memory
        super().__init__(settings, memory, " ".join((*self._roots, *parts)))

    async def aclose(self) -> None:
        """Close the connections."""
        await asyncio.gather(*(server.aclose() for server in self._servers.values()))

    def heed(self, pace: Pace, reply: Reply, failure: SourceError | None) -> None:
        """Wait with the next request of this kind as long as an answer demands."""
        if isinstance(failure, RateLimited | QuotaExhausted):
            rest = datetime.now(UTC) + self.rest if self.rest else None
            pace.pause(failure.retry_at or rest, type(failure))

    def _failure(self, reply: Reply) -> SourceError | None:
        """The error that only this source's answers express; None for other answers."""
        return None

    def _worded(self, plan: FetchPlan) -> FetchPlan:
        if SOURCES[self.name].by_name:
            return name_alone(plan)
        return with_phrase(plan) if self.phrases else plan

    def _pace(self, root: str) -> Pace:
        return pace_of(self.name, root, *self.limits)

    async def _ask(
        self,
        path: str,
        params: Mapping[str, str | int] | None = None,
        root: str = "",
        *,
        search: bool = False,
        pace: Pace | None = None,
    ) -> Any:
        """The JSON at `path` of the server at `root` (default: the first).

        A search is paced; `pace` is that of another kind of requests. Raises `SourceError`.
        """
        server = self._servers[root or self._roots[0]]
        pace = self._pace(server.root) if search else pace
        shared = None if pace is None else self.shared_pace(pace)
        if pace is not None and shared is not None:
            await pace.turn()
            await shared.turn()
        reply = await server.get(path, params)
        failure = self._failure(reply) or reply_failure(self.name, reply)
        if pace is not None and shared is not None:
            self.heed(pace, reply, failure)
            if (end := pace.pause_end) is not None:
                await shared.pause(*end)
        if failure is not None:
            raise failure
        return reply.data

    def shared_pace(self, pace: Pace, tenant: str = "") -> SharedPace:
        """The pace of all processes, or the half of it that the scheduled runs of one tenant may take."""
        limits = pace.limits if pace.bound else ()
        scope = f"{self.name} {pace.server} {' '.join(f'{limit.requests}/{limit.seconds:g}' for limit in pace.limits)}"
        if tenant:
            limits = tuple(replace(limit, requests=(limit.requests + 1) // 2) for limit in limits)
            scope = f"{scope} of {tenant}"
        return SharedPace(self.name, self._memory, scope, limits)

    async def _admit(self, run: SharedRun) -> None:
        if run.tenant:
            await self.shared_pace(self._pace(self._roots[0]), run.tenant).turn()

    def _list(self, answer: Any, *fields: str) -> Sequence[Any]:
        lists = (as_dict(answer).get(field) for field in fields)
        entries = next((value for value in lists if isinstance(value, list)), None)
        if entries is None:
            raise Broken(self.name, f"an answer without {fields[0]}")
        return entries

    def _slots(self, entries: Sequence[Any], read: Callable[[Any], Item | None]) -> Slots:
        """The items of a page; not one among entries means that their fields have changed."""
        slots = tuple(map(read, entries))
        if slots and not any(slots):
            raise Broken(self.name, "results without the fields that are read")
        return slots

    def _complete(self, remarks: Iterable[Any], is_complete: Callable[[Any], bool]) -> list[Mapping[str, Any]]:
        """Comments with the fields that are read; not one means that the fields have changed."""
        remarks = list(map(as_dict, remarks))
        complete = [remark for remark in remarks if is_complete(remark)]
        if remarks and not complete:
            raise Broken(self.name, "a thread without comments' texts")
        return complete

    def _with_comments(self, item: Item, remarks: Iterable[Any], read: Callable[[Any], Comment | None]) -> Item:
        comments = [comment for comment in map(read, remarks) if comment is not None]
        return item.edited(comments=tuple(comments[: self._max_comments]))


async def ask_each(
    parts: Sequence[str], ask: Callable[[str], Awaitable[T]]
) -> tuple[dict[str, T], dict[str, SourceError]]:
    """The answers of a source's parts, and failures by part; raises the first when all fail."""
    results = await asyncio.gather(*map(ask, parts), return_exceptions=True)
    answers: dict[str, T] = {}
    failures: dict[str, SourceError] = {}
    for part, result in zip(parts, results, strict=True):
        if isinstance(result, SourceError):
            failures[part] = result
        elif isinstance(result, BaseException):
            raise result
        else:
            answers[part] = result
    if failures and not answers:
        raise failures[parts[0]]
    return answers, failures


async def page_of_parts(
    cursor: str | None,
    parts: Iterable[str],
    ask: Callable[[str, int], Awaitable[tuple[Slots, bool]]],
) -> Page:
    """A page of all parts that have it: `ask(part, number)` gives slots and whether more follow."""
    first, *further = cursor.split() if cursor else ("1", *parts)
    number = int(first)
    answers, failures = await ask_each(further, lambda part: ask(part, number))
    more = [part for part, (_, has_more) in answers.items() if has_more]
    following = " ".join((str(number + 1), *more)) if more else None
    return interleaved((slots for slots, _ in answers.values()), following, failures)


def interleaved(
    rankings: Iterable[Sequence[Item | None]],
    cursor: str | None,
    failures: Mapping[str, SourceError],
) -> Page:
    """The first of each ranking, then the second, and so on; raises a failure when nothing came."""
    placed = [entry for slots in rankings for entry in enumerate(slots)]
    if failures and not placed:
        raise failures[min(failures)]
    slots = tuple(slot for _, slot in sorted(placed, key=itemgetter(0)))
    return Page(slots, cursor, failure_notes(failures), partial=bool(failures))


def failure_notes(failures: Mapping[str, SourceError]) -> tuple[str, ...]:
    """A note on each part that failed."""
    return tuple(f"{part} not searched: {failures[part].detail}" for part in sorted(failures))


def reply_failure(name: str, reply: Reply) -> SourceError | None:
    """The error that a status and a body mean at every server; None for an answer in JSON."""
    status = reply.status
    if reply.html and status in {200, 202, 401, 403}:
        return Blocked(name, "a web page instead of data", retry_at=reply.wait)
    if status != 200:
        return status_failure(name, status, f"HTTP {status}{' page' if reply.html else ''}", reply.wait)
    return Broken(name, "an answer that is not JSON") if reply.data is None else None


def name_alone(plan: FetchPlan) -> FetchPlan:
    """The plan with the product's name as its query, without quotes."""
    return replace(plan, query=clean_query((plan.name or plan.query).replace('"', " ")))


def with_phrase(plan: FetchPlan) -> FetchPlan:
    """The plan with the product's name in quotes, unless it is one plain word or is quoted already.

    `Kindle Scribe battery` becomes `"Kindle Scribe" battery`, and `plaud.ai` becomes `"plaud.ai"`.
    """
    name = plan.name
    if not name or name.isalnum() or '"' in plan.query:
        return plan
    words = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.I)
    return replace(plan, query=words.sub(lambda match: f'"{match[0]}"', plan.query, count=1))
