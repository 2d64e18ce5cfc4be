"""Sources, models and watchers of ten lines; they keep what they were asked."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from api.core.context import count_requests
from api.core.domain import FetchPlan, Grade, Question, Usage, Verdict
from api.core.items import Batch, Comment, Commented, Gated, Gathered, Item
from api.core.ports import Grades, Judgement, Probe, Recorder, Recording, Rewrites
from api.core.progress import Event
from api.core.published import Published
from api.pipeline.gate.refetch import RefetchPolicy, gather
from api.pipeline.gate.verdicts import Gate, RunGate

NEVER: Literal["never"] = "never"
Hitch = BaseException | asyncio.Event | asyncio.Barrier | Literal["never"]
Trouble = Mapping[int, Hitch]
"""What happens at the n-th call, from 0: an error is raised, an event or barrier waited for."""
PRICE = Usage(10, 1, 0.5)
"""Of every call to a fake model."""


def item(number: int, source: str = "reddit", **fields: Any) -> Item:
    """A post named by its number."""
    fields = {"title": f"Post {number}", "place": "r/a", **fields}
    return Item(key=f"{source}:{number}", id=str(number), source=source, **fields)


def items(count: int, source: str = "reddit") -> list[Item]:
    """Posts from 0."""
    return [item(number, source) for number in range(count)]


async def _meet(hitch: Hitch | None) -> None:
    if isinstance(hitch, BaseException):
        raise hitch
    if hitch == NEVER:
        await asyncio.get_running_loop().create_future()
    elif hitch is not None:
        await hitch.wait()


@dataclass
class FakeSource:
    """Serves its slots from the first; an empty slot is counted but holds nothing usable."""

    slots: Sequence[Item | None] = ()
    name: str = "reddit"
    by_query: Mapping[str, Sequence[Item | None]] = field(default_factory=dict)
    """Slots of some queries; the rest get `slots`."""
    trouble: Trouble = field(default_factory=dict)
    silence: Trouble = field(default_factory=dict)
    """Trouble with comments."""
    remarks: Mapping[str, Sequence[str]] | None = None
    """What is said under items, by id; None: nobody can be asked that."""
    looked: list[str] = field(default_factory=list)
    """Whose remarks were asked for."""
    cached: bool = False
    notes: tuple[str, ...] = ()
    plans: list[FetchPlan] = field(default_factory=list)
    commented: list[list[str]] = field(default_factory=list)
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False

    async def fetch(self, plan: FetchPlan) -> Batch:
        self.plans.append(plan)
        self.entered.set()
        count_requests(0 if self.cached else 1)
        await _meet(self.trouble.get(len(self.plans) - 1))
        slots = self.by_query.get(plan.query, self.slots)[: plan.limit]
        return Batch(plan, tuple(filter(None, slots)), len(slots) >= plan.limit, self.notes)

    async def comments(self, items: Sequence[Item]) -> Commented:
        self.commented.append([one.id for one in items])
        count_requests(len(items))
        await _meet(self.silence.get(len(self.commented) - 1))
        said = (Comment(id="c", body="good"),)
        return Commented(tuple(one.edited(comments=said) for one in items), ("1 failed",))

    async def with_best_comments(self, item: Item) -> Item | None:
        self.looked.append(item.id)
        if self.remarks is None:
            return None
        count_requests()
        await _meet(self.silence.get(-1))
        said = enumerate(self.remarks.get(item.id, ()))
        return item.edited(comments=tuple(Comment(id=f"c{at}", body=body) for at, body in said))

    async def probe(self) -> Probe:
        return Probe("ok")

    async def aclose(self) -> None:
        self.closed = True


@dataclass
class FakeJudge:
    """Lets the named ids pass; `extra` verdicts too many, or too few when negative."""

    relevant: Collection[str] = ()
    trouble: Trouble = field(default_factory=dict)
    name: str = "fake-1"
    extra: int = 0
    probability: float | None = None
    asked: list[list[str]] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: int = 0

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        number = len(self.asked)
        self.asked.append([one.id for one in items])
        self.questions.append(question)
        self.entered.set()
        try:
            await _meet(self.trouble.get(number))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        verdicts = [Verdict(one.id in self.relevant, self.name, self.probability) for one in items]
        spare = [Verdict(False)] * max(0, self.extra)
        kept = (verdicts + spare)[: len(items) + self.extra]
        return Judgement(tuple(kept), self.name, PRICE)


@dataclass
class FakeGrader:
    """Grades by id, 4 where nothing is said."""

    scores: Mapping[str, int] = field(default_factory=dict)
    trouble: Trouble = field(default_factory=dict)
    defaulted: bool = False
    asked: list[list[str]] = field(default_factory=list)
    entered: asyncio.Event = field(default_factory=asyncio.Event)

    async def grade(self, question: Question, items: Sequence[Item]) -> Grades:
        self.asked.append([one.id for one in items])
        self.entered.set()
        await _meet(self.trouble.get(len(self.asked) - 1))
        grades = [Grade(self.scores.get(one.id, 4), "why", self.defaulted) for one in items]
        return Grades(tuple(grades), PRICE, "fake-1")


@dataclass
class FakeRewriter:
    """Knows other words."""

    others: tuple[str, ...] = ()
    asked: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    gate: Hitch | None = None

    async def rewrite(self, question: Question, variants: int, gaps: Sequence[str] = ()) -> Rewrites:
        self.asked.append((variants, tuple(gaps)))
        await _meet(self.gate)
        return Rewrites((question.text, *self.others)[:variants], PRICE)


@dataclass
class FakeObserver:
    """Keeps what every source's span recorded, and how many spans are still open."""

    recorded: list[Gathered] = field(default_factory=list)
    open: int = 0
    trace_id: str | None = None
    observations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def record(self, facts: Gathered) -> None:
        self.recorded.append(facts)

    def analysis(self, name: str, question: Question, *tags: str) -> Recording:
        return nullcontext(Ignored())

    @contextmanager
    def gathering(self, source: str, query: str) -> Iterator[Recorder[Gathered]]:
        self.open += 1
        try:
            yield self
        finally:
            self.open -= 1

    def retrieving(self, query: str) -> AbstractContextManager[Recorder[Published]]:
        return nullcontext(Ignored())


class Ignored:
    """Records nothing."""

    def record(self, facts: object) -> None:
        """Ignore."""


@dataclass
class SourceAnswer:
    """A listener that keeps what it was told."""

    events: list[Event] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


async def gathered(
    source: FakeSource,
    judge: FakeJudge,
    limit: int = 5,
    *,
    until: float | None = None,
    min_yield: float = 0.5,
    second_look: bool = False,
    **watchers: Any,
) -> Gathered:
    """One source through the loop; `until` in seconds from now."""
    if until is not None:
        until += asyncio.get_running_loop().time()
    watchers.setdefault("observer", FakeObserver())
    question = Question("plaud.ai")
    verdicts = partial(RunGate(Gate(judge)).judge, question)
    policy = RefetchPolicy(min_yield, 2, until, question if second_look else None)
    return await gather(source, FetchPlan("plaud.ai", limit), verdicts, policy, **watchers)


def ids(found: Gathered) -> list[str]:
    """What was kept, in order."""
    return [one.item.id for one in found.kept]


def passed(gated: Gated) -> list[bool]:
    """Which items went through."""
    return [verdict.relevant for verdict in gated.verdicts]
