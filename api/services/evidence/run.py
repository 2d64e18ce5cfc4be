"""One run: within it nothing is fetched, judged, graded or numbered twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from api.errors import SourceError
from api.services.gate.adaptive import Policy, failed, gather
from api.services.gate.judging import RunGate, Sieve, identity
from api.services.gate.memory import Memory
from api.services.ports import Event, Grader, Listener, Observer, Source, silent
from api.services.question.query import canonical, neutralise
from api.services.reporting.dossier import Dossier
from api.services.schemas import (
    Assessed,
    Batch,
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


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far this run goes."""

    adaptive: AdaptiveSettings
    seconds: float
    """For all sources of one crawl, refetch and comments included."""
    window: Window = "all"


@dataclass(slots=True)
class Run:
    """The memory of one question, tool-using agent or chat turn."""

    sources: Sources
    gate: RunGate
    grader: Grader | None
    bounds: Bounds
    observer: Observer
    listener: Listener = silent
    dossier: Dossier = field(default_factory=Dossier)
    usage: Usage = Usage()
    """What grading used; judging is counted in each `Gathered`."""
    _gathered: Memory[tuple[str, ...], Gathered] = field(default_factory=Memory)
    _commented: Memory[str, Item] = field(default_factory=Memory)
    _graded: Memory[tuple[str, ...], Grade] = field(default_factory=Memory)
    _heard: list[Gathered] = field(default_factory=list)
    _numbers: Counter[str] = field(default_factory=Counter)

    async def gather(self, question: Question, source: str, query: str, limit: int) -> Gathered:
        """Ask one source one query; the same again within the run costs nothing.

        Spellings of one name are the same query. A query of search operators only is taken for the
        question. A failure is shared by those who wait for it, but not remembered.
        """
        asked = neutralise(query, source) or neutralise(question.text, source)
        key = (*identity(question), source, canonical(asked) or asked, str(limit))
        mine: list[Gathered] = []

        async def find(wanted: Mapping[tuple[str, ...], str]) -> dict[tuple[str, ...], Gathered]:
            mine.append(await self._gather(question, source, wanted[key], limit))
            return {key: mine[0]}

        known = await self._gathered.recall({key: asked}, find)
        if not mine:
            return replace(known[key], usage=Usage(), upstream_calls=0)
        self._heard.append(mine[0])
        if not mine[0].outcome.asked:
            self._gathered.forget(key)
        return mine[0]

    async def _gather(self, question: Question, name: str, asked: str, limit: int) -> Gathered:
        source = self.sources[name]
        if isinstance(source, SourceError):
            gathered = failed(name, asked, source)
            facts = {"outcome": str(gathered.outcome), "reason": gathered.reason}
            self.listener(Event("source.kept", name, {**facts, "fetched": 0, "kept": 0}))
            return gathered
        adaptive, until = self.bounds.adaptive, self._until()
        return await gather(
            _Remembered(source, self._commented),
            FetchPlan(asked, limit, self.bounds.window),
            Sieve(self.gate, question),
            Policy(adaptive.min_yield, adaptive.refetch_factor, until),
            observer=self.observer,
            listener=self.listener,
        )

    def _until(self) -> float:
        return asyncio.get_running_loop().time() + self.bounds.seconds

    async def grade(
        self, question: Question, found: Sequence[Assessed], cutoff: int = 3
    ) -> tuple[Assessed, ...]:
        """The same items with their grades, each asked for once; without a grader as they were.

        `cutoff` is what a grade must reach to stay; it is only told to the listener.
        """
        grader, asked = self.grader, identity(question)
        if grader is None or not found:
            return tuple(found)

        async def find(mine: Mapping[tuple[str, ...], Item]) -> dict[tuple[str, ...], Grade]:
            graded = await grader.grade(question, tuple(mine.values()))
            self.usage += graded.usage
            grades = dict(zip(mine, graded.grades, strict=True))
            for key, grade in grades.items():
                self._say(mine[key], grade, cutoff)
            return grades

        wanted: dict[tuple[str, ...], Item] = {(*asked, one.item.key): one.item for one in found}
        grades = await self._graded.recall(wanted, find)
        return tuple(_with_grade(one, grades[(*asked, one.item.key)]) for one in found)

    def _say(self, item: Item, grade: Grade, cutoff: int) -> None:
        self._numbers[item.source] += 1
        facts = {
            "number": self._numbers[item.source],
            "place": item.place,
            "score": grade.score,
            "cutoff": cutoff,
            "defaulted": grade.defaulted,
            "explanation": grade.explanation,
        }
        self.listener(Event("graded.item", item.source, facts))

    def asked(self) -> list[Gathered]:
        """Everything gathered so far in this run, failures included, each once."""
        return list(self._heard)


@dataclass(frozen=True, slots=True)
class _Remembered:
    """A source within one run: an item's comments are read once, whichever query found it."""

    source: Source
    read: Memory[str, Item]

    @property
    def name(self) -> str:
        return self.source.name

    async def fetch(self, plan: FetchPlan) -> Batch:
        return await self.source.fetch(plan)

    async def comments(self, items: Sequence[Item]) -> Commented:
        notes: list[str] = []

        async def find(mine: Mapping[str, Item]) -> dict[str, Item]:
            done = await self.source.comments(tuple(mine.values()))
            notes.extend(done.notes)
            return {item.key: item for item in done.items if item.key in mine}

        known = await self.read.recall({item.key: item for item in items}, find)
        return Commented(tuple(known.get(item.key, item) for item in items), tuple(notes))


def _with_grade(one: Assessed, grade: Grade) -> Assessed:
    return replace(one, grade=grade, relevance=grade.relevance)
