"""All sources at once; what several queries found of one source becomes one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from api.services.gate.basket import merge_crossposts
from api.services.progress import Listener, SourceGathered, silent
from api.services.reasons import WHY
from api.services.schemas import Assessed, Gathered, Outcome, Usage

Search = Callable[[str, str], Coroutine[Any, Any, Gathered]]
"""`search(source, query)`; never raises for a source that fails."""


@dataclass(frozen=True, slots=True)
class Crawl:
    """What all sources gave, one entry per source in the order asked for."""

    sources: tuple[Gathered, ...]
    queries: tuple[str, ...]

    @property
    def kept(self) -> tuple[Assessed, ...]:
        """Everything the gate let through."""
        return tuple(assessed for gathered in self.sources for assessed in gathered.kept)

    @property
    def dropped(self) -> tuple[Assessed, ...]:
        """Everything the gate stopped."""
        return tuple(assessed for gathered in self.sources for assessed in gathered.dropped)

    @property
    def answered(self) -> int:
        """How many sources answered."""
        return sum(gathered.outcome.answered for gathered in self.sources)

    @property
    def upstream_calls(self) -> int:
        """Requests sent to sources."""
        return sum(gathered.upstream_calls for gathered in self.sources)

    @property
    def usage(self) -> Usage:
        """What the judging used."""
        return sum((gathered.usage for gathered in self.sources), Usage())


async def crawl(
    search: Search,
    sources: Sequence[str],
    queries: Sequence[str],
    more: Awaitable[Sequence[str]] | None = None,
    *,
    earlier: Sequence[Gathered] = (),
    listener: Listener = silent,
) -> Crawl:
    """Ask every source every query, all at once.

    Args:
        search: asks one source one query.
        sources: their names.
        queries: asked at once; the first leads.
        more: a task that gives further queries, which are asked as soon as they are known.
        earlier: what the same sources gave before, which leads.
        listener: hears of each source when the last of its queries has ended.
    """
    before = {gathered.source: [gathered] for gathered in earlier}

    async def gather(source: str) -> Gathered:
        async with asyncio.TaskGroup() as group:
            asking = [group.create_task(search(source, query)) for query in queries]
            later = await more if more is not None else ()
            asking += [group.create_task(search(source, query)) for query in later]
        gathered = combine([*before.get(source, ()), *(task.result() for task in asking)])
        listener(SourceGathered.of(gathered))
        return gathered

    async with asyncio.TaskGroup() as group:
        gathering = [group.create_task(gather(source)) for source in sources]
    further = await more if more is not None else ()
    return Crawl(tuple(task.result() for task in gathering), (*queries, *further))


def combine(parts: Sequence[Gathered]) -> Gathered:
    """One source's results for several queries as one; the first leads, items are distinct."""
    # what a run's memory served a second time shares its very attempts, and counts once
    attempts: set[int] = set()
    fresh: list[Gathered] = []
    for part in parts:
        own = {id(attempt) for attempt in part.attempts}
        if not own or not own <= attempts:
            fresh.append(part)
        attempts |= own
    first, *others = parts = fresh
    if not others:
        return first
    entries = (entry for part in parts for entry in (*part.kept, *part.dropped))
    narrow = {entry.item.original for entry in entries if not entry.wider}
    kept = _distinct((entry for part in parts for entry in part.kept), narrow)
    known = {entry.item.original for entry in kept}
    dropped = tuple(
        entry
        for entry in _distinct((entry for part in parts for entry in part.dropped), narrow)
        if entry.item.original not in known
    )
    judged = [part for part in parts if part.status != "skipped"] or [first]
    worst = next((part for part in judged if part.status == "degraded"), judged[0])
    leading = next((part for part in parts if part.outcome.answered), first)
    notes: dict[str, None] = {}
    for part in parts:
        notes |= dict.fromkeys(part.notes)
        if part is not leading and not part.outcome.answered:
            notes[f"one query failed: {WHY[part.outcome]}"] = None
    combined = replace(
        leading,
        query=first.query,
        outcome=Outcome.OK if kept else Outcome.IRRELEVANT if dropped else leading.outcome,
        attempts=tuple(attempt for part in parts for attempt in part.attempts),
        kept=kept,
        dropped=dropped,
        status=worst.status,
        model=worst.model,
        gate_reason=worst.gate_reason,
        usage=sum((part.usage for part in parts), Usage()),
        upstream_calls=sum(part.upstream_calls for part in parts),
        notes=tuple(notes),
        refetched=any(part.refetched for part in parts),
        # what a query that failed would have brought, nobody knows
        capped=any(part.capped or not part.outcome.answered for part in parts),
    )
    return replace(combined, refetch_gain=sum(entry.wider for entry in combined.relevant))


def _distinct(assessed: Iterable[Assessed], narrow: Collection[str]) -> tuple[Assessed, ...]:
    """The first of each original post, with the places of all; `narrow`: a first search had it."""
    entries = list(assessed)
    items = {item.original: item for item in merge_crossposts([entry.item for entry in entries])}
    first: dict[str, Assessed] = {}
    for entry in entries:
        original = entry.item.original
        wider = original not in narrow
        first.setdefault(original, replace(entry, item=items[original], wider=wider))
    return tuple(first.values())
