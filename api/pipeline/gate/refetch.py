"""`gather`: fetch from one source, judge, fetch once more if that promises more, read comments.

A small batch is judged; when less than `min_yield` of a full batch was relevant, a second fetch of
twice the limit follows, and only what is new is judged. The result is never worse than the first
pass. Nothing is sent whose answer would come too late, since the source counts it all the same.

The second look at a thin result reads the comments of one dropped item: one request. The item is
kept when a comment names what was asked and the judge, shown that comment, says yes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Protocol, TypeVar

from api.core.context import request_counter
from api.core.domain import Commented, FetchPlan, Gated, Gathered, Item, Outcome, Question
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
from api.pipeline.gate.name_spellings import NEARLY, name_of
from api.pipeline.gate.source_items import SourceItems, failed_source, merge_crossposts
from api.pipeline.gate.verdicts import Verdicts

T = TypeVar("T")
# seconds that a second look needs: a request and a judge's answer take a few
_SECOND_LOOK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RefetchPolicy:
    """When to fetch again, how much wider, and until when."""

    min_yield: float = 0.5
    """Share of relevant items below which a second fetch follows."""
    factor: int = 2
    """Limit of the second fetch, as a multiple of the first."""
    until: float | None = None
    """Deadline by the clock of the loop; None: no deadline."""
    second_look: Question | None = None
    """The question, when a thin result is to get a second look."""


class CommentReader(Protocol):
    """Reads comments under items; a `Source` does."""

    async def comments(self, items: Sequence[Item]) -> Commented:
        """See `Source.comments`."""

    async def with_best_comments(self, item: Item) -> Item | None:
        """See `Source.with_best_comments`."""


async def gather(
    source: Source,
    plan: FetchPlan,
    verdicts: Verdicts,
    policy: RefetchPolicy,
    *,
    observer: Observer,
    listener: Listener = ignore_event,
    reader: CommentReader | None = None,
) -> Gathered:
    """Ask one source and judge what it gives; see the module for the second fetch.

    Comments are read by `reader`, or by the source without one.

    Never raises `SourceError`: every failure is an outcome. Cancellation passes through, after the
    observer has seen the outcome `cancelled`.
    """
    name, query = source.name, plan.query
    with observer.gathering(name, query) as span, request_counter() as calls:
        listener(SourceStarted(source=name, query=query, limit=plan.limit))
        items = SourceItems(name, query)
        fetching = _Fetching(source, reader or source, plan, verdicts, policy, listener, items)
        try:
            await fetching.run()
            gathered = items.result(calls.made)
        except (SourceError, TimeoutError) as error:
            gathered = replace(failed_source(name, query, error), upstream_calls=calls.made)
        except asyncio.CancelledError:
            span.record(Gathered(name, query, Outcome.CANCELLED, upstream_calls=calls.made))
            raise
        span.record(gathered)
    listener(SourceKept.of(gathered))
    return gathered


@dataclass(slots=True)
class _Fetching:
    source: Source
    reader: CommentReader
    plan: FetchPlan
    verdicts: Verdicts
    policy: RefetchPolicy
    listener: Listener
    items: SourceItems

    @property
    def left(self) -> float:
        """Seconds until the deadline; negative when it has passed."""
        until = self.policy.until
        return inf if until is None else until - asyncio.get_running_loop().time()

    async def run(self) -> None:
        """First attempt, refetch if it promises more, comments of what is kept, second look."""
        items, policy = self.items, self.policy
        may_hold_more = await self.attempt(self.plan, policy.until)
        if items.first_yield_below(policy.min_yield):
            if may_hold_more:
                await self.refetch()
            else:
                items.note("not refetched: the source had no more")
        kept = items.kept
        if kept and self.left <= items.slowest_answer:
            items.note_too_late("request for comments", self.left)
            return
        if kept:
            try:
                async with asyncio.timeout_at(policy.until):
                    items.add_comments(await self.asked(self.reader.comments(kept), "comments of"))
            except (SourceError, TimeoutError) as error:
                items.note_failure("comments could not be read", error)
                return
        if policy.second_look is not None and items.yield_below(policy.min_yield):
            await self.second_look(policy.second_look)

    async def asked(self, answer: Awaitable[T], what: str) -> T:
        """What the source answers; a defect of its code is a `Broken` source."""
        name = self.source.name
        return await translated(answer, f"{what} {name}", partial(Broken, name))

    async def attempt(self, plan: FetchPlan, until: float | None) -> bool:
        """One fetch and its verdicts, added to the items; whether the source may hold more."""
        name, query, clock = self.source.name, plan.query, asyncio.get_running_loop().time
        with request_counter() as calls:
            began = clock()
            async with asyncio.timeout_at(until):
                batch = await self.asked(self.source.fetch(plan), "asking")
            self.items.slowest_answer = max(self.items.slowest_answer, clock() - began)
        distinct = len(merge_crossposts(batch.items))
        self.listener(SourceFetched(source=name, query=query, fetched=distinct))
        new = self.items.take_new(batch.items)
        try:
            async with asyncio.timeout_at(until):
                gated = await self.verdicts(new, name)
        except TimeoutError:
            gated = Gated.opened(new, "timeout")
        self.items.add_attempt(batch, distinct, new, gated, calls.made)
        relevant, status = gated.relevant, gated.status
        self.listener(
            SourceJudged(
                source=name, query=query, judged=len(new), relevant=relevant, status=status
            )
        )
        return batch.full

    async def refetch(self) -> None:
        # it may take half of the time that is left, so that comments can be read afterwards
        half = self.left / 2
        if half <= self.items.slowest_answer:
            self.items.note_too_late("refetch", half)
            return
        name, wider = self.source.name, self.plan.widened(self.policy.factor)
        self.listener(SourceRefetching(source=name, query=wider.query, limit=wider.limit))
        with request_counter() as calls:
            try:
                await self.attempt(wider, self.policy.until and self.policy.until - half)
            except (SourceError, TimeoutError) as error:
                self.items.add_failed_refetch(wider, calls.made, error)

    async def second_look(self, question: Question) -> None:
        item = self.items.likeliest_dropped
        if item is None:
            return
        if self.left < _SECOND_LOOK_SECONDS:
            self.items.note("no second look: too little time was left")
            return
        try:
            async with asyncio.timeout_at(self.policy.until):
                discussed = await self.asked(self.reader.with_best_comments(item), "comments of")
                if discussed is not None:
                    await self.judge_comments(question, item, discussed)
        except (SourceError, TimeoutError) as error:
            self.items.note_failure("second look failed", error)

    async def judge_comments(self, question: Question, item: Item, discussed: Item) -> None:
        """Judge the first comment that names what was asked, in the place of the item."""
        name = name_of(question.text, question.about)
        for comment in discussed.comments:
            words = split_words(comment.body)
            if best(sightings(name, words, comment.body)).strength >= NEARLY:
                break
        else:
            self.items.note("second look: no comment names it")
            return
        # an item of its own: the verdict on the item itself is remembered for this run
        as_item = replace(
            item, key=f"{item.key}#{comment.id}", id=comment.id, crosspost_parent=None,
            body=comment.body, place=COMMENT_PLACE, author=comment.author,
        )  # fmt: skip
        gated = await self.verdicts((as_item,), self.source.name)
        others = (other for other in discussed.comments if other is not comment)
        self.items.add_second_look(replace(discussed, comments=(comment, *others)), gated)
        self.listener(
            SourceLookedAgain(
                source=self.source.name, query=self.plan.query,
                relevant=gated.relevant, status=gated.status,
            )
        )  # fmt: skip
