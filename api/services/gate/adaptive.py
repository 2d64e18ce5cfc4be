"""gather(): THE loop, once, for every source and every judge.

Fetch a small batch, judge it, and when a full batch held less than `min_yield` of relevant items,
fetch once more at twice the limit and judge only what is new. Never worse than the first pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from api.errors import SourceError
from api.services.metering import metered
from api.services.ports import Event, Listener, Observer, silent
from api.services.schemas import (
    Assessed,
    Attempt,
    Batch,
    Commented,
    FetchPlan,
    Gated,
    Gathered,
    Item,
    Outcome,
    Usage,
    Verdict,
)


class Asked(Protocol):
    """The part of a `Source` that is used here."""

    @property
    def name(self) -> str:
        """See `Source.name`."""
        ...

    async def fetch(self, plan: FetchPlan) -> Batch:
        """See `Source.fetch`."""
        ...

    async def comments(self, items: Sequence[Item]) -> Commented:
        """See `Source.comments`."""
        ...


class Judging(Protocol):
    """Verdicts for a batch; never raises for a failed judge."""

    async def judge(self, items: Sequence[Item], source: str) -> Gated:
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
    gated: Gated
    requests: int

    @property
    def relevant(self) -> int:
        return sum(verdict.relevant for verdict in self.gated.verdicts)

    @property
    def attempt(self) -> Attempt:
        return Attempt(
            self.batch.plan.limit, len(merge_crossposts(self.batch.items)), len(self.new),
            self.relevant, self.requests, self.gated.status, self.gated.reason,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Second:
    """What became of the refetch: a pass that counts, or an attempt that leaves the first alone."""

    attempt: Attempt
    sound: _Pass | None = None
    batch: Batch | None = None
    usage: Usage = Usage()
    notes: tuple[str, ...] = ()
    retry_at: datetime | None = None


async def gather(
    source: Asked,
    plan: FetchPlan,
    judge: Judging,
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
            gathered = await _gather(source, plan, judge, policy, listener)
        except SourceError as error:
            gathered = failed(source.name, plan.query, error)
        except TimeoutError:
            gathered = Gathered(
                source.name, plan.query, Outcome.TIMED_OUT, reason="the crawl's deadline passed"
            )
        except asyncio.CancelledError:
            left = Gathered(source.name, plan.query, Outcome.CANCELLED, upstream_calls=calls.made)
            span.record(left)
            raise
        gathered = replace(gathered, upstream_calls=calls.made)
        span.record(gathered)
    listener(Event("source.kept", source.name, _summary(gathered)))
    return gathered


def failed(source: str, query: str, error: SourceError) -> Gathered:
    """The outcome of a source that could not be asked."""
    outcome = next((known for known in Outcome if known == error.code), Outcome.BROKEN)
    return Gathered(source, query, outcome, reason=str(error), retry_at=error.retry_at)


async def _gather(
    source: Asked, plan: FetchPlan, judge: Judging, policy: Policy, listener: Listener
) -> Gathered:
    first = await _attempt(source, plan, judge, policy, listener)
    second: _Second | None = None
    notes = list(first.batch.notes)
    if wants_more(first.batch, first.gated, policy):
        if _late(policy):
            notes.append("not refetched: the deadline passed")
        else:
            second = await _refetch(source, plan, judge, policy, listener, first.new)
    elif _thin(first.gated, policy):
        notes.append("not refetched: the source had no more")
    gathered = _union(source.name, plan, first, second, notes)
    return await _with_comments(source, gathered, policy)


async def _refetch(
    source: Asked,
    plan: FetchPlan,
    judge: Judging,
    policy: Policy,
    listener: Listener,
    seen: tuple[Item, ...],
) -> _Second:
    """The second, wider attempt; half of the time left, so that comments can still be read."""
    wider = plan.widened(policy.factor)
    listener(Event("source.refetching", source.name, {"limit": wider.limit}))
    with metered() as calls:
        try:
            done = await _attempt(source, wider, judge, _halved(policy), listener, seen)
        except (SourceError, TimeoutError) as error:
            return _Second(
                Attempt(wider.limit, 0, 0, 0, calls.made, "degraded", _code(error)),
                notes=(f"refetch failed ({_code(error)}); the first pass stands",),
                retry_at=error.retry_at if isinstance(error, SourceError) else None,
            )
    gated, notes = done.gated, done.batch.notes
    if gated.status != "degraded":
        return _Second(done.attempt, done, done.batch, gated.usage, notes)
    withheld = (
        f"refetch could not be judged ({gated.reason}): {len(done.new)} new items withheld, "
        "the first pass stands"
    )
    attempt = replace(done.attempt, relevant=0)
    return _Second(attempt, None, done.batch, gated.usage, (*notes, withheld))


async def _attempt(
    source: Asked,
    plan: FetchPlan,
    judge: Judging,
    policy: Policy,
    listener: Listener,
    seen: tuple[Item, ...] = (),
) -> _Pass:
    with metered() as calls:
        async with asyncio.timeout_at(policy.until):
            batch = await source.fetch(plan)
    listener(Event("source.fetched", source.name, {"fetched": len(batch.items)}))
    known = {item.original for item in seen}
    new = tuple(item for item in merge_crossposts(batch.items) if item.original not in known)
    try:
        async with asyncio.timeout_at(policy.until):
            gated = await judge.judge(new, source.name)
    except TimeoutError:
        gated = Gated(tuple(Verdict(True) for _ in new), "degraded", "timeout")
    done = _Pass(batch, new, gated, calls.made)
    facts = {"judged": len(new), "relevant": done.relevant, "status": gated.status}
    listener(Event("source.judged", source.name, facts))
    return done


def wants_more(batch: Batch, gated: Gated, policy: Policy) -> bool:
    """Whether a wider fetch promises more: judged for sure, a full batch, too little relevant."""
    return batch.full and _thin(gated, policy)


def _thin(gated: Gated, policy: Policy) -> bool:
    if gated.status != "ok" or not gated.verdicts:
        return False
    relevant = sum(verdict.relevant for verdict in gated.verdicts)
    return relevant / len(gated.verdicts) < policy.min_yield


def _late(policy: Policy) -> bool:
    return policy.until is not None and asyncio.get_running_loop().time() >= policy.until


def _halved(policy: Policy) -> Policy:
    if policy.until is None:
        return policy
    now = asyncio.get_running_loop().time()
    return replace(policy, until=now + (policy.until - now) / 2)


def merge_crossposts(items: Sequence[Item]) -> tuple[Item, ...]:
    """One item per original post, in order of first sight; the places of its crossposts listed."""
    found: dict[str, Item] = {}
    for item in items:
        first = found.setdefault(item.original, item)
        if first.key != item.key or first.places != item.places:
            found[item.original] = replace(first, places=_places(first, item))
    return tuple(found.values())


def _places(first: Item, other: Item) -> tuple[str, ...]:
    named = [*(first.places or (first.place,)), *(other.places or (other.place,))]
    return tuple(dict.fromkeys(place for place in named if place))


def _union(
    name: str, plan: FetchPlan, first: _Pass, second: _Second | None, notes: list[str]
) -> Gathered:
    judged = list(zip(first.new, first.gated.verdicts, strict=True))
    attempts, usage, gain = [first.attempt], first.gated.usage, 0
    if second is not None:
        attempts.append(second.attempt)
        usage += second.usage
        notes += [note for note in second.notes if note not in notes]
        if second.sound is not None:
            judged += zip(second.sound.new, second.sound.gated.verdicts, strict=True)
            gain = second.sound.relevant
        if second.batch is not None:
            judged = _with_places(judged, second.batch.items)
    kept = tuple(Assessed(item, verdict) for item, verdict in judged if verdict.relevant)
    dropped = tuple(
        Assessed(item, verdict, dropped_by="gate", reason="the gate judged it off topic")
        for item, verdict in judged
        if not verdict.relevant
    )
    return Gathered(
        name, plan.query, Outcome.OK if kept else Outcome.IRRELEVANT if dropped else Outcome.EMPTY,
        tuple(attempts), kept, dropped, first.gated.status, None, first.gated.model,
        first.gated.reason, usage, 0, second.retry_at if second else None, tuple(notes),
        refetched=second is not None, refetch_gain=gain,
    )  # fmt: skip


def _with_places(
    judged: list[tuple[Item, Verdict]], wider: Sequence[Item]
) -> list[tuple[Item, Verdict]]:
    """First-pass items learn the places of crossposts that only the wider batch showed."""
    merged = {
        item.original: item for item in merge_crossposts([*(item for item, _ in judged), *wider])
    }
    return [(merged[item.original], verdict) for item, verdict in judged]


async def _with_comments(source: Asked, gathered: Gathered, policy: Policy) -> Gathered:
    if not gathered.kept:
        return gathered
    try:
        if _late(policy):
            raise TimeoutError
        async with asyncio.timeout_at(policy.until):
            read = await source.comments([assessed.item for assessed in gathered.kept])
    except (SourceError, TimeoutError) as error:
        note = f"comments could not be read ({_code(error)})"
        return replace(gathered, notes=(*gathered.notes, note))
    full = {item.key: item for item in read.items}
    kept = tuple(
        replace(assessed, item=_filled(assessed.item, full.get(assessed.item.key)))
        for assessed in gathered.kept
    )
    return replace(gathered, kept=kept, notes=(*gathered.notes, *read.notes))


def _code(error: SourceError | TimeoutError) -> str:
    return error.code if isinstance(error, SourceError) else "timed_out"


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
