"""gather(): THE loop, once, for every source and every judge.

Fetch a small batch, judge it, and when a full batch held less than `min_yield` of relevant items,
fetch once more at twice the limit and judge only what is new. Never worse than the first pass.
Nothing is sent whose answer would come too late: upstream takes its price all the same.

A second look at a thin page: what is said under the likeliest of the items that were dropped.

One item, one request. It is kept when a comment names what was asked and the judge, shown that
comment, says yes; else, and when anything fails, everything stays as it was.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from api.core.context import request_counter
from api.core.domain import FetchPlan, Gated, Gathered, Question
from api.core.ports import Observer, Source
from api.core.progress import (
    Listener,
    SourceFetched,
    SourceJudged,
    SourceKept,
    SourceLookedAgain,
    SourceRefetching,
    SourceStarted,
    ignore_event,
)
from api.core.words import split_words
from api.core.work import translated
from api.errors import Broken, SourceError
from api.pipeline.gate.excerpt import COMMENT_PLACE
from api.pipeline.gate.name_matches import best, sightings
from api.pipeline.gate.name_spellings import NEARLY, Name, name_of
from api.pipeline.gate.source_items import SourceItems, merge_crossposts
from api.pipeline.gate.verdicts import Verdicts

# Seconds that must be left: a request and a judge's answer take a few.
_NEEDED = 5.0


async def look_again(
    basket: SourceItems,
    source: Source,
    question: Question,
    verdicts: Verdicts,
    until: float | None,
    listener: Listener,
) -> None:
    """Keep the likeliest dropped item if its comments speak for it; `until` is the loop's clock."""
    item = basket.likeliest
    if item is None:
        return
    if until is not None and until - asyncio.get_running_loop().time() < _NEEDED:
        basket.note("no second look: too little time was left")
        return
    try:
        async with asyncio.timeout_at(until):
            reading, defect = source.with_best_comments(item), partial(Broken, source.name)
            commented = await translated(reading, f"comments of {source.name}", defect)
            if commented is None:
                return
            name = name_of(question.text, question.about)
            comment = next((c for c in commented.comments if _is_named(name, c.body)), None)
            if comment is None:
                basket.note("second look: no comment names it")
                return
            # an item of its own: the item itself was judged before, and is remembered
            exhibit = replace(
                item, key=f"{item.key}#{comment.id}", id=comment.id, crosspost_parent=None,
                body=comment.body, place=COMMENT_PLACE, author=comment.author,
            )  # fmt: skip
            gated = await verdicts((exhibit,), source.name)
    except (SourceError, TimeoutError) as error:
        basket.second_look_failed(error)
        return
    others = tuple(other for other in commented.comments if other is not comment)
    basket.reconsider(replace(commented, comments=(comment, *others)), gated)
    listener(
        SourceLookedAgain(
            source=source.name, query=basket.query, relevant=gated.relevant, status=gated.status
        )
    )


def _is_named(name: Name, text: str) -> bool:
    return best(sightings(name, split_words(text), text)).strength >= NEARLY


@dataclass(frozen=True, slots=True)
class RefetchPolicy:
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
    policy: RefetchPolicy,
    *,
    observer: Observer,
    listener: Listener = ignore_event,
) -> Gathered:
    """Ask one source, gate what comes, refetch once if that promises more, read kept comments.

    Never raises `SourceError`: every failure is an outcome. Cancellation passes through, after the
    observer has seen the outcome `cancelled`.
    """
    basket = SourceItems(source.name, plan.query)
    with observer.gathering(source.name, plan.query) as span, request_counter() as calls:
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
    basket: SourceItems,
    source: Source,
    plan: FetchPlan,
    verdicts: Verdicts,
    policy: RefetchPolicy,
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
            with request_counter() as calls:
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
    basket: SourceItems,
    source: Source,
    plan: FetchPlan,
    verdicts: Verdicts,
    until: float | None,
    listener: Listener,
) -> bool:
    """One fetch and its verdicts, into the basket; whether the source may hold more."""
    clock = asyncio.get_running_loop().time
    with request_counter() as calls:
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
