"""gather(): THE loop, once, for every source and every judge.

Fetch a small batch, judge it, and when a full batch held less than `min_yield` of relevant items,
fetch once more at twice the limit and judge only what is new. Never worse than the first pass.
Nothing is sent whose answer would come too late: upstream takes its price all the same.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from math import inf

from api.errors import Broken, SourceError
from api.services.containment import translated
from api.services.gate.basket import Basket, merge_crossposts
from api.services.gate.judging import Verdicts
from api.services.gate.second_look import look_again
from api.services.metering import metered
from api.services.ports import Observer, Source
from api.services.progress import (
    Listener,
    SourceFetched,
    SourceJudged,
    SourceKept,
    SourceRefetching,
    SourceStarted,
    silent,
)
from api.services.schemas import FetchPlan, Gated, Gathered, Question


@dataclass(frozen=True, slots=True)
class Policy:
    """When to fetch again, how much wider, and until when (the loop's clock; None: no deadline)."""

    min_yield: float = 0.5
    factor: int = 2
    until: float | None = None
    second_look: Question | None = None
    """What was asked, when a thin page is to get a second look."""

    @property
    def left(self) -> float:
        """Seconds until the deadline; none are left when it has passed."""
        return inf if self.until is None else self.until - asyncio.get_running_loop().time()

    @property
    def halfway(self) -> float | None:
        """Until when a refetch may take: half of the time left, so that comments can be read."""
        return self.until and self.until - self.left / 2


async def gather(
    source: Source,
    plan: FetchPlan,
    verdicts: Verdicts,
    policy: Policy,
    *,
    observer: Observer,
    listener: Listener = silent,
) -> Gathered:
    """Ask one source, gate what comes, refetch once if that promises more, read kept comments.

    Never raises `SourceError`: every failure is an outcome. Cancellation passes through, after the
    observer has seen the outcome `cancelled`.
    """
    basket = Basket(source.name, plan.query)
    with observer.gathering(source.name, plan.query) as span, metered() as calls:
        listener(SourceStarted(source=source.name, query=plan.query, limit=plan.limit))
        try:
            await _fill(basket, source, plan, verdicts, policy, listener)
        except (SourceError, TimeoutError) as error:
            basket.fail(error)
        except asyncio.CancelledError:
            span.record(basket.cancelled(calls.made))
            raise
        gathered = basket.gathered(calls.made)
        span.record(gathered)
    listener(SourceKept.of(gathered))
    return gathered


async def _fill(
    basket: Basket,
    source: Source,
    plan: FetchPlan,
    verdicts: Verdicts,
    policy: Policy,
    listener: Listener,
) -> None:
    """First attempt, refetch if it promises more, comments of what is kept, second look."""
    full = await _attempt(basket, source, plan, verdicts, policy.until, listener)
    if basket.thin(policy.min_yield):
        if not full:
            basket.note("not refetched: the source had no more")
        elif policy.left / 2 <= basket.pace:
            basket.hurried("refetch", policy.left / 2)
        else:
            wider = plan.widened(policy.factor)
            listener(SourceRefetching(source=source.name, query=plan.query, limit=wider.limit))
            with metered() as calls:
                try:
                    await _attempt(basket, source, wider, verdicts, policy.halfway, listener)
                except (SourceError, TimeoutError) as error:
                    basket.refetch_failed(wider, calls.made, error)
    if basket.kept and policy.left <= basket.pace:
        basket.hurried("request for comments", policy.left)
        return
    if basket.kept:
        try:
            async with asyncio.timeout_at(policy.until):
                reading = source.comments(basket.kept)
                defect = partial(Broken, source.name)
                basket.read(await translated(reading, f"comments of {source.name}", defect))
        except (SourceError, TimeoutError) as error:
            basket.unread(error)
            return
    question = policy.second_look
    if question is not None and basket.poor(policy.min_yield):
        await look_again(basket, source, question, verdicts, policy.until, listener)


async def _attempt(
    basket: Basket,
    source: Source,
    plan: FetchPlan,
    verdicts: Verdicts,
    until: float | None,
    listener: Listener,
) -> bool:
    """One fetch and its verdicts, into the basket; whether the source may hold more."""
    clock = asyncio.get_running_loop().time
    with metered() as calls:
        began = clock()
        async with asyncio.timeout_at(until):
            batch = await translated(
                source.fetch(plan), f"asking {source.name}", partial(Broken, source.name)
            )
        basket.pace = max(basket.pace, clock() - began)
    name, query = source.name, plan.query
    distinct = len(merge_crossposts(batch.items))
    listener(SourceFetched(source=name, query=query, fetched=distinct))
    new = basket.unseen(batch.items)
    try:
        async with asyncio.timeout_at(until):
            gated = await verdicts(new, source.name)
    except TimeoutError:
        gated = Gated.opened(new, "timeout")
    basket.add(batch, distinct, new, gated, calls.made)
    listener(
        SourceJudged(
            source=name, query=query, judged=len(new), relevant=gated.relevant, status=gated.status
        )
    )
    return batch.full
