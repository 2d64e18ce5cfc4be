"""gather(): THE loop, once, for every source and every judge.

Fetch a small batch, judge it, and when a full batch held less than `min_yield` of relevant items,
fetch once more at twice the limit and judge only what is new. Never worse than the first pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from api.errors import SourceError
from api.services.metering import metered
from api.services.ports import Event, Listener, Observer, Source, silent
from api.services.schemas import (
    Assessed,
    Attempt,
    Batch,
    FetchPlan,
    Gathered,
    Item,
    Outcome,
    Sifted,
    Verdict,
)


class Sift(Protocol):
    """Verdicts for a batch; never raises for a failed judge."""

    async def sift(self, items: Sequence[Item], source: str) -> Sifted:
        """One verdict per item, in order."""
        ...


@dataclass(frozen=True, slots=True)
class Policy:
    """When to fetch again, how much wider, and until when (the loop's clock; None: no deadline)."""

    min_yield: float = 0.5
    factor: int = 2
    until: float | None = None


@dataclass(frozen=True, slots=True)
class _Pass:
    """One attempt: what came, what of it was new, and the verdicts on the new."""

    batch: Batch
    new: tuple[Item, ...]
    sifted: Sifted
    requests: int

    @property
    def attempt(self) -> Attempt:
        relevant = sum(verdict.relevant for verdict in self.sifted.verdicts)
        return Attempt(
            self.batch.plan.limit, len(merge_crossposts(self.batch.items)), len(self.new), relevant,
            self.requests, self.sifted.status, self.sifted.reason,
        )  # fmt: skip


async def gather(
    source: Source,
    plan: FetchPlan,
    sift: Sift,
    policy: Policy,
    *,
    observer: Observer,
    listener: Listener = silent,
) -> Gathered:
    """Ask one source, gate what comes, refetch once if that promises more, read kept comments.

    Never raises `SourceError`: every failure is an outcome. Cancellation passes through, after the
    observer has seen the outcome `cancelled`.
    """
    with observer.gathering(source.name, plan.query) as span, metered() as calls:
        listener(Event("source.started", source.name, {"query": plan.query, "limit": plan.limit}))
        try:
            gathered = await _gather(source, plan, sift, policy, listener)
        except SourceError as error:
            gathered = failed(source.name, plan.query, error)
        except TimeoutError:
            gathered = Gathered(
                source.name, plan.query, Outcome.TIMED_OUT, reason="the crawl's deadline passed"
            )
        except asyncio.CancelledError:
            span.record(Gathered(source.name, plan.query, Outcome.CANCELLED))
            raise
        gathered = replace(gathered, upstream_calls=calls.made)
        span.record(gathered)
    listener(Event("source.kept", source.name, _summary(gathered)))
    return gathered


def failed(source: str, query: str, error: SourceError) -> Gathered:
    """The outcome of a source that could not be asked."""
    return Gathered(source, query, Outcome(error.code), reason=str(error), retry_at=error.retry_at)


async def _gather(
    source: Source, plan: FetchPlan, sift: Sift, policy: Policy, listener: Listener
) -> Gathered:
    first = await _attempt(source, plan, sift, policy, listener)
    second: _Pass | None = None
    lost: Attempt | None = None
    notes = list(first.batch.notes)
    if wants_more(first.batch, first.sifted, policy):
        wider = plan.widened(policy.factor)
        listener(Event("source.refetching", source.name, {"limit": wider.limit}))
        with metered() as calls:
            try:
                second = await _attempt(source, wider, sift, policy, listener, first.new)
            except (SourceError, TimeoutError) as error:
                reason = error.code if isinstance(error, SourceError) else "timed_out"
                lost = Attempt(wider.limit, 0, 0, 0, calls.made, "degraded", reason)
                notes.append(f"refetch failed ({reason}); the first pass stands")
    gathered = _union(source.name, plan, first, second, lost, notes)
    return await _with_comments(source, gathered, policy)


async def _attempt(
    source: Source,
    plan: FetchPlan,
    sift: Sift,
    policy: Policy,
    listener: Listener,
    seen: tuple[Item, ...] = (),
) -> _Pass:
    with metered() as calls:
        async with asyncio.timeout_at(policy.until):
            batch = await source.fetch(plan)
    listener(Event("source.fetched", source.name, {"fetched": len(batch.items)}))
    known = {_root(item) for item in seen}
    new = tuple(item for item in merge_crossposts(batch.items) if _root(item) not in known)
    try:
        async with asyncio.timeout_at(policy.until):
            sifted = await sift.sift(new, source.name)
    except TimeoutError:
        sifted = Sifted(tuple(Verdict(True) for _ in new), "degraded", "timeout")
    relevant = sum(verdict.relevant for verdict in sifted.verdicts)
    facts = {"judged": len(new), "relevant": relevant, "status": sifted.status}
    listener(Event("source.judged", source.name, facts))
    return _Pass(batch, new, sifted, calls.made)


def wants_more(batch: Batch, sifted: Sifted, policy: Policy) -> bool:
    """Whether a wider fetch promises more: judged for sure, a full batch, too little relevant."""
    if sifted.status != "ok" or not batch.full:
        return False
    relevant = sum(verdict.relevant for verdict in sifted.verdicts)
    return relevant < policy.min_yield * len(sifted.verdicts)


def merge_crossposts(items: Sequence[Item]) -> tuple[Item, ...]:
    """One item per original post, in order of first sight; the places of its crossposts listed."""
    found: dict[str, Item] = {}
    for item in items:
        first = found.setdefault(_root(item), item)
        if first is not item:
            found[_root(item)] = replace(first, places=_places(first, item))
    return tuple(found.values())


def _places(first: Item, other: Item) -> tuple[str, ...]:
    named = [*(first.places or (first.place,)), *(other.places or (other.place,))]
    return tuple(dict.fromkeys(place for place in named if place))


def _root(item: Item) -> str:
    return item.crosspost_parent or item.key


def _union(
    name: str,
    plan: FetchPlan,
    first: _Pass,
    second: _Pass | None,
    lost: Attempt | None,
    notes: list[str],
) -> Gathered:
    passes = [first]
    attempts = [first.attempt]
    if second is not None:
        attempts.append(second.attempt)
        notes += [note for note in second.batch.notes if note not in notes]
        if second.sifted.status == "degraded":
            notes.append(
                f"refetch could not be judged ({second.sifted.reason}): "
                f"{len(second.new)} new items withheld, the first pass stands"
            )
        else:
            passes.append(second)
    elif lost is not None:
        attempts.append(lost)
    judged = [pair for one in passes for pair in zip(one.new, one.sifted.verdicts, strict=True)]
    if second is not None:
        judged = _with_places(judged, second.batch.items)
    kept = tuple(Assessed(item, verdict) for item, verdict in judged if verdict.relevant)
    dropped = tuple(
        Assessed(item, verdict, dropped_by="gate", reason="the gate judged it off topic")
        for item, verdict in judged
        if not verdict.relevant
    )
    outcome = Outcome.OK if kept else Outcome.IRRELEVANT if dropped else Outcome.EMPTY
    usage = first.sifted.usage if second is None else first.sifted.usage + second.sifted.usage
    return Gathered(
        name, plan.query, outcome, tuple(attempts), kept, dropped, first.sifted.status,
        None, first.sifted.model, first.sifted.reason, usage, notes=tuple(notes),
        refetched=len(attempts) > 1, refetch_gain=sum(a.relevant for a in attempts[1:])
        if len(passes) > 1 else 0,
    )  # fmt: skip


def _with_places(
    judged: list[tuple[Item, Verdict]], wider: Sequence[Item]
) -> list[tuple[Item, Verdict]]:
    """First-pass items learn the places of crossposts that only the wider batch showed."""
    merged = {_root(item): item for item in merge_crossposts(wider)}
    return [
        (replace(item, places=other.places), verdict)
        if (other := merged.get(_root(item))) is not None and other.places
        else (item, verdict)
        for item, verdict in judged
    ]


async def _with_comments(source: Source, gathered: Gathered, policy: Policy) -> Gathered:
    if not gathered.kept:
        return gathered
    try:
        async with asyncio.timeout_at(policy.until):
            read = await source.comments([assessed.item for assessed in gathered.kept])
    except (SourceError, TimeoutError) as error:
        reason = error.code if isinstance(error, SourceError) else "timed_out"
        return replace(gathered, notes=(*gathered.notes, f"comments could not be read ({reason})"))
    full = {item.key: item for item in read.items}
    kept = tuple(
        replace(assessed, item=_filled(assessed.item, full.get(assessed.item.key)))
        for assessed in gathered.kept
    )
    return replace(gathered, kept=kept, notes=(*gathered.notes, *read.notes))


def _filled(item: Item, read: Item | None) -> Item:
    return item if read is None else replace(read, places=item.places)


def _summary(gathered: Gathered) -> dict[str, object]:
    return {
        "outcome": str(gathered.outcome),
        "fetched": gathered.fetched,
        "kept": len(gathered.kept),
        "yield_ratio": gathered.yield_ratio,
        "refetched": gathered.refetched,
        "status": gathered.status,
        "reason": gathered.reason or gathered.gate_reason,
    }
