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
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from math import inf
from operator import itemgetter
from typing import Protocol, TypeVar

from api.core.context import request_counter
from api.core.display_names import OUTCOME_REASONS, reason_in_words
from api.core.domain import EXCLUDED, Agreement, Attempt, FetchPlan, Outcome, Question, Usage, Verdict, drop_reason
from api.core.items import Assessed, Batch, Commented, Gated, Gathered, Item, sum_of_agreements
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
from api.pipeline.gate.name_matches import NEARLY, best, name_of, sightings
from api.pipeline.gate.verdicts import Verdicts

Failure = SourceError | TimeoutError
NO_TIME = "no_time"
"""Part of the note on a request that was not sent, since its answer would have come too late."""
UNJUDGED_REFETCH = "refetch could not be judged"
"""Beginning of the note on a refetch whose items are withheld."""


@dataclass(slots=True)
class SourceItems:
    """Distinct items with their verdicts, in order of first sight; a crosspost is its original."""

    source: str
    query: str
    slowest_answer: float = 0.0
    """Seconds of the slowest answer of this source so far."""
    _items: dict[str, Item] = field(default_factory=dict)
    _verdicts: dict[str, Verdict] = field(default_factory=dict)
    _unfit: dict[str, Item] = field(default_factory=dict)
    # keys, or originals, of items that only the second fetch brought
    _wider: set[str] = field(default_factory=set)
    _attempts: list[Attempt] = field(default_factory=list)
    _notes: dict[str, None] = field(default_factory=dict)
    # of the first attempt: a failed second one only leaves a note
    _gate: Gated = field(default_factory=lambda: Gated((), "skipped"))
    _usage: Usage = Usage()
    _agreements: list[Agreement | None] = field(default_factory=list)
    # the source may hold more than the widest fetch of which items are here
    _capped: bool = False
    _retry_at: datetime | None = None

    def take_new(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """The items to judge: neither judged before nor unfit; crossposts only add their places."""
        unfit = {item.key: item for item in items if item.unfit}
        self._wider |= unfit.keys() - self._unfit.keys() if self._attempts else set()
        self._unfit |= unfit
        known, fit = set(self._items), [item for item in items if not item.unfit]
        merged = merge_crossposts([*self._items.values(), *fit])
        self._items = {item.original: item for item in merged if item.original in known}
        return tuple(item for item in merged if item.original not in known)

    def add_attempt(self, batch: Batch, distinct: int, new: Sequence[Item], gated: Gated, requests: int) -> None:
        """Add an attempt; new items of an unjudged second one are withheld."""
        first, relevant = not self._attempts, gated.relevant
        if first:
            self._gate = gated
        else:
            self._wider |= {item.original for item in new}
        self._usage += gated.usage
        self._agreements.append(gated.agreement)
        self.note(*batch.notes)
        if first or gated.status != "degraded":
            self._capped = batch.full
            self._items |= {item.original: item for item in new}
            judged = zip(new, gated.verdicts, strict=True)
            self._verdicts |= {item.original: verdict for item, verdict in judged}
        else:
            relevant = 0
            self.note(
                f"{UNJUDGED_REFETCH} ({reason_in_words(gated.reason)}): "
                f"{len(new)} new items withheld, the first pass stands"
            )
        limit, status = batch.plan.limit, gated.status
        self._attempts.append(Attempt(limit, distinct, len(new), relevant, requests, status, gated.reason))

    def add_failed_refetch(self, plan: FetchPlan, requests: int, error: Failure) -> None:
        """Add a second attempt that gave nothing."""
        outcome = _outcome(error)
        self._attempts.append(Attempt(plan.limit, 0, 0, 0, requests, "degraded", outcome))
        self._retry_at = getattr(error, "retry_at", None)
        self.note(f"refetch failed ({OUTCOME_REASONS[outcome]}); the first pass stands")

    def add_comments(self, commented: Commented) -> None:
        """Replace kept items by those with comments; an item that is not among them stays unchanged."""
        for item in commented.items:
            held = self._items.get(item.original)
            if held is not None and held.key == item.key:
                self._items[item.original] = item.edited(places=held.places)
        self.note(*commented.notes)

    def add_second_look(self, item: Item, gated: Gated) -> None:
        """Keep the dropped item if the second look found it relevant."""
        self._usage += gated.usage
        self._agreements.append(gated.agreement)
        verdict = gated.verdicts[0]
        if gated.status == "degraded":
            self.note(f"second look could not be judged ({reason_in_words(gated.reason)})")
        elif verdict.relevant:
            why = "a comment names it"
            self._items[item.original] = item.edited(notes=(*item.notes, f"kept: {why}"))
            self._verdicts[item.original] = replace(verdict, reason=why)
            self.note(f"second look: one dropped item kept, {why}")
        else:
            self.note("second look: its comment does not speak for it")

    def note(self, *notes: str) -> None:
        """Add notes that are not there yet, in order."""
        self._notes |= dict.fromkeys(notes)

    def note_failure(self, failed_step: str, error: Failure) -> None:
        """Note a step that failed, with its outcome; the items stay as they are."""
        self.note(f"{failed_step} ({OUTCOME_REASONS[_outcome(error)]})")

    def note_too_late(self, request: str, left: float) -> None:
        """Note a request that was not sent, since only `left` seconds were left."""
        self.note(
            f"{request} not sent ({NO_TIME}): {max(left, 0):.1f} s were left, "
            f"an answer took {self.slowest_answer:.1f} s"
        )

    @property
    def kept(self) -> list[Item]:
        """The relevant items, and those that passed unjudged."""
        return [item for key, item in self._items.items() if self._verdicts[key].relevant]

    @property
    def likeliest_dropped(self) -> Item | None:
        """The dropped item with comments that is most likely relevant; among equals, the most discussed."""
        dropped = [
            (verdict.probability or 0.0, discussed or 0, item)
            for key, verdict in self._verdicts.items()
            for item in [self._items[key]]
            for discussed in [item.engagement.get("comments")]
            if not verdict.relevant and discussed != 0
        ]
        return max(dropped, key=itemgetter(0, 1))[2] if dropped else None

    def first_yield_below(self, share: float) -> bool:
        """Whether a smaller share of the first attempt was relevant; False if it was unjudged."""
        judged = len(self._gate.verdicts)
        return self._gate.status == "ok" and judged > 0 and self._gate.relevant / judged < share

    def yield_below(self, share: float) -> bool:
        """Whether a smaller share of all items is kept; False if any attempt was unjudged."""
        sound = all(attempt.status != "degraded" for attempt in self._attempts)
        return sound and bool(self._items) and len(self.kept) / len(self._items) < share

    def result(self, calls: int) -> Gathered:
        """Everything so far; `calls` counts the requests that were sent."""
        assessed = [Assessed(item, self._verdicts[key], wider=key in self._wider) for key, item in self._items.items()]
        kept = tuple(entry for entry in assessed if entry.verdict.relevant)
        dropped = tuple(
            replace(entry, dropped_by="gate", reason=drop_reason(entry.verdict))
            for entry in assessed
            if not entry.verdict.relevant
        ) + tuple(
            Assessed(
                item, Verdict(False), dropped_by="excluded" if item.unfit.startswith(EXCLUDED) else "unfit",
                reason=item.unfit.removeprefix(EXCLUDED), wider=key in self._wider,
            )
            for key, item in self._unfit.items()
        )  # fmt: skip
        return Gathered(
            self.source, self.query,
            Outcome.OK if kept else Outcome.IRRELEVANT if dropped else Outcome.EMPTY,
            attempts=tuple(self._attempts), kept=kept, dropped=dropped, status=self._gate.status,
            model=self._gate.model, gate_reason=self._gate.reason, usage=self._usage,
            agreement=sum_of_agreements(self._agreements),
            upstream_calls=calls, retry_at=self._retry_at, notes=tuple(self._notes),
            refetched=len(self._attempts) > 1,
            refetch_gain=sum(attempt.relevant for attempt in self._attempts[1:]),
            capped=self._capped,
        )  # fmt: skip


def failed_source(source: str, query: str, error: Failure) -> Gathered:
    """The result of a source that could not be asked."""
    if isinstance(error, TimeoutError):
        return Gathered(source, query, Outcome.TIMED_OUT, reason="the crawl's deadline passed")
    return Gathered(source, query, _outcome(error), reason=error.reason, retry_at=error.retry_at)


def merge_crossposts(items: Sequence[Item]) -> tuple[Item, ...]:
    """One item per original post, in order of first sight, with the places of its crossposts."""
    merged: dict[str, Item] = {}
    for item in items:
        first = merged.setdefault(item.original, item)
        if first.key != item.key or first.places != item.places:
            both = [*(first.places or (first.place,)), *(item.places or (item.place,))]
            places = tuple(dict.fromkeys(place for place in both if place))
            merged[item.original] = first.edited(places=places)
    return tuple(merged.values())


def _outcome(error: Failure) -> Outcome:
    return Outcome.of(error.code) if isinstance(error, SourceError) else Outcome.TIMED_OUT


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
    """Deadline, by the event loop's clock; None: no deadline."""
    second_look: Question | None = None
    """The question for a second look at a thin result; None: no second look."""


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
    """Ask one source and judge what it gives; failures are outcomes, cancellation is recorded."""
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
        until = self.policy.until
        return inf if until is None else until - asyncio.get_running_loop().time()

    async def run(self) -> None:
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
                    items.add_comments(await self.answer_of(self.reader.comments(kept), "comments of"))
            except (SourceError, TimeoutError) as error:
                items.note_failure("comments could not be read", error)
                return
        if policy.second_look is not None and items.yield_below(policy.min_yield):
            await self.second_look(policy.second_look)

    async def answer_of(self, answer: Awaitable[T], what: str) -> T:
        """What the source answers; a defect of its code is a `Broken` source."""
        name = self.source.name
        return await translated(answer, f"{what} {name}", partial(Broken, name))

    async def attempt(self, plan: FetchPlan, until: float | None) -> bool:
        """Fetch once, judge, and add both to the items; return whether the source may hold more."""
        name, query, clock = self.source.name, plan.query, asyncio.get_running_loop().time
        with request_counter() as calls:
            began = clock()
            async with asyncio.timeout_at(until):
                batch = await self.answer_of(self.source.fetch(plan), "asking")
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
        self.listener(SourceJudged(source=name, query=query, judged=len(new), relevant=relevant, status=status))
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
                discussed = await self.answer_of(self.reader.with_best_comments(item), "comments of")
                if discussed is not None:
                    await self.judge_comments(question, item, discussed)
        except (SourceError, TimeoutError) as error:
            self.items.note_failure("second look failed", error)

    async def judge_comments(self, question: Question, item: Item, discussed: Item) -> None:
        name = name_of(question.text, question.about)
        for comment in discussed.comments:
            words = split_words(comment.body)
            if best(sightings(name, words, comment.body)).strength >= NEARLY:
                break
        else:
            self.items.note("second look: no comment names it")
            return
        # an item of its own: the verdict on the item itself is remembered for this run
        as_item = item.edited(
            key=f"{item.key}#{comment.id}", id=comment.id, crosspost_parent=None,
            body=comment.body, place=COMMENT_PLACE, author=comment.author,
        )  # fmt: skip
        gated = await self.verdicts((as_item,), self.source.name)
        others = (other for other in discussed.comments if other is not comment)
        self.items.add_second_look(discussed.edited(comments=(comment, *others)), gated)
        self.listener(
            SourceLookedAgain(
                source=self.source.name, query=self.plan.query,
                relevant=gated.relevant, status=gated.status,
            )
        )  # fmt: skip
