"""One run: within it nothing is fetched, judged, graded or read twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from api.errors import SourceError
from api.services.containment import Failure, contained
from api.services.durable import Keep, unkept
from api.services.flights import Flights
from api.services.gate.adaptive import Policy, gather
from api.services.gate.basket import failed
from api.services.gate.judging import RunGate, identity
from api.services.gate.memory import Memory
from api.services.places import Places, title_of
from api.services.ports import UNGRADED, Grader, Grades, Observer, Source, WrappedSource
from api.services.progress import ItemGraded, Listener, SourceKept, silent
from api.services.question.naming import name_of, named
from api.services.question.query import canonical, neutralise
from api.services.schemas import (
    Assessed,
    Commented,
    FetchPlan,
    Gathered,
    Grade,
    Item,
    Question,
    Usage,
)
from api.settings import AdaptiveSettings, Window

Sources = Mapping[str, Source | SourceError]
"""Every source by name; one that cannot be built is the error that says why."""
Searches = Flights[tuple[Hashable, ...], Gathered]
"""Sources being asked, by question, source and plan: runs that ask the same at once ask once."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far this run goes."""

    adaptive: AdaptiveSettings
    seconds: float
    """For all sources of one crawl, refetch and comments included."""
    window: Window = "all"


@dataclass(slots=True)
class Run:
    """The memory of one question, tool-using agent or chat session."""

    sources: Sources
    gate: RunGate
    grader: Grader | None
    bounds: Bounds
    observer: Observer
    listener: Listener = silent
    places: Places = field(default_factory=dict)
    keep: Keep = unkept
    """Takes what asks places and models, and what another process need not ask again."""
    under_way: Searches = field(default_factory=Flights)
    """What other runs ask at this moment."""
    searches: list[Gathered] = field(default_factory=list)
    """Everything that was searched in this run, failures included, each once."""
    _gathered: Memory[tuple[str, ...], Gathered] = field(default_factory=Memory)
    _commented: Memory[str, Item] = field(default_factory=Memory)
    _graded: Memory[tuple[str, ...], Grade] = field(default_factory=Memory)
    _numbers: Counter[str] = field(default_factory=Counter)

    async def search(self, question: Question, source: str, query: str, limit: int) -> Gathered:
        """Ask one source one query; the same again within the run costs nothing.

        Spellings of one name are the same query. A query of search operators only is taken for the
        question. A failure is shared by those who wait for it, but not remembered.
        """
        plain = neutralise(query, source) or neutralise(question.text, source)
        key = (*identity(question), source, canonical(plain) or plain, str(limit))
        fresh: list[Gathered] = []

        async def find(wanted: Mapping[tuple[str, ...], str]) -> dict[tuple[str, ...], Gathered]:
            name = name_of(named(question.text))
            plan = FetchPlan(wanted[key], limit, self.bounds.window, name)
            step = f"ask {source} for {limit}: {plan.query}"
            gathered = await self.keep(step, Gathered, lambda: self._gather(question, source, plan))
            fresh.append(replace(gathered, title=title_of(self.places, source)))
            return {key: fresh[0]}

        known = await self._gathered.recall({key: plain}, find)
        if not fresh:
            return replace(known[key], usage=Usage(), upstream_calls=0)
        self.searches.append(fresh[0])
        if not fresh[0].outcome.answered:
            self._gathered.forget(key)
        return fresh[0]

    async def _gather(self, question: Question, name: str, plan: FetchPlan) -> Gathered:
        """Through the loop, until the crawl's deadline; one that could not be built says so.

        What another run asks at this moment is not asked again, and costs this one nothing.
        """
        source = self.sources[name]
        if isinstance(source, SourceError):
            gathered = failed(name, plan.query, source)
            self.listener(SourceKept.of(gathered))
            return gathered
        adaptive = self.bounds.adaptive
        until = asyncio.get_running_loop().time() + self.bounds.seconds
        second_look = question if adaptive.second_look else None
        own: list[Gathered] = []

        async def gathering(listener: Listener) -> Gathered:
            gathered = await gather(
                _CommentsOnce(source, self._commented),
                plan,
                partial(self.gate.judge, question),
                Policy(adaptive.min_yield, adaptive.refetch_factor, until, second_look),
                observer=self.observer,
                listener=listener,
            )
            own.append(gathered)
            return gathered

        key = (*identity(question), name, plan)
        gathered = await self.under_way.share(key, gathering, self.listener)
        return gathered if own else replace(gathered, usage=Usage(), upstream_calls=0)

    async def grade(
        self, question: Question, kept: Sequence[Assessed], cutoff: int
    ) -> tuple[tuple[Assessed, ...], Usage]:
        """The same items with their grades, and what grading them used; without a grader as is.

        Each is asked for once. `cutoff` is what a grade must reach to stay; it is only told to the
        listener.
        """
        grader, identified = self.grader, identity(question)
        if grader is None or not kept:
            return tuple(kept), Usage()
        spent = [Usage()]

        async def find(mine: Mapping[tuple[str, ...], Item]) -> dict[tuple[str, ...], Grade]:
            async def grading() -> Grades:
                graded = await contained(grader.grade(question, tuple(mine.values())), "the grader")
                return Grades((UNGRADED,) * len(mine)) if isinstance(graded, Failure) else graded

            graded = await self.keep(f"grade {len(mine)}", Grades, grading)
            spent.append(graded.usage)
            grades = dict(zip(mine, graded.grades, strict=True))
            for key, grade in grades.items():
                item = mine[key]
                self._numbers[item.source] += 1
                self.listener(
                    ItemGraded(
                        source=item.source,
                        number=self._numbers[item.source],
                        place=item.place,
                        score=grade.score,
                        cutoff=cutoff,
                        defaulted=grade.defaulted,
                        explanation=grade.explanation,
                    )
                )
            return grades

        keys: dict[str, tuple[str, ...]] = {
            entry.item.key: (*identified, entry.item.key) for entry in kept
        }
        wanted = {keys[entry.item.key]: entry.item for entry in kept}
        grades = await self._graded.recall(wanted, find)
        graded = (replace(entry, grade=grades[keys[entry.item.key]]) for entry in kept)
        return tuple(graded), sum(spent, Usage())


@dataclass(frozen=True, slots=True)
class _CommentsOnce(WrappedSource):
    """A source within one run: an item's comments are read once, whichever query found it."""

    read: Memory[str, Item]

    async def comments(self, items: Sequence[Item]) -> Commented:
        """Only those that this run has not read yet."""
        notes: list[str] = []

        async def find(mine: Mapping[str, Item]) -> dict[str, Item]:
            commented = await self.inner.comments(tuple(mine.values()))
            notes.extend(commented.notes)
            return {item.key: item for item in commented.items if item.key in mine}

        known = await self.read.recall({item.key: item for item in items}, find)
        return Commented(tuple(known.get(item.key, item) for item in items), tuple(notes))

    async def remarked(self, item: Item) -> Item | None:
        """Once, whichever queries dropped the item."""

        async def find(mine: Mapping[str, Item]) -> dict[str, Item]:
            remarked = await self.inner.remarked(item)
            return dict.fromkeys(mine, remarked) if remarked else {}

        key = f"remarks under {item.key}"
        return (await self.read.recall({key: item}, find)).get(key)
