"""One run: within it nothing is fetched, judged, graded or numbered twice."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from api.errors import SourceError
from api.services.adaptive import Policy, failed, gather
from api.services.dossier import Dossier
from api.services.gate import RunGate, Sieve
from api.services.ports import Event, Grader, Listener, Observer, Source, silent
from api.services.query import canonical, neutralise
from api.services.schemas import (
    Assessed,
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
    _gathered: dict[tuple[str, str, str, int], asyncio.Task[Gathered]] = field(default_factory=dict)
    _graded: dict[tuple[Question, str], Grade] = field(default_factory=dict)

    async def gather(self, question: Question, source: str, query: str, limit: int) -> Gathered:
        """Ask one source one query; the same again within the run costs nothing."""
        key = (question.text, source, canonical(query), limit)
        task = self._gathered.get(key)
        if task is None or task.cancelled():
            work = self._gather(question, source, query, limit)
            task = self._gathered[key] = asyncio.create_task(work)
        return await task

    async def _gather(self, question: Question, name: str, query: str, limit: int) -> Gathered:
        source = self.sources[name]
        asked = neutralise(query, name)
        if isinstance(source, SourceError):
            gathered = failed(name, asked, source)
            facts = {"outcome": str(gathered.outcome), "reason": gathered.reason}
            self.listener(Event("source.kept", name, {**facts, "fetched": 0, "kept": 0}))
            return gathered
        adaptive, until = self.bounds.adaptive, self._until()
        return await gather(
            source,
            FetchPlan(asked, limit, self.bounds.window),
            Sieve(self.gate, question),
            Policy(adaptive.min_yield, adaptive.refetch_factor, until),
            observer=self.observer,
            listener=self.listener,
        )

    def _until(self) -> float:
        return asyncio.get_running_loop().time() + self.bounds.seconds

    async def grade(self, question: Question, found: Sequence[Assessed]) -> tuple[Assessed, ...]:
        """The same items with their grades; without a grader they stay ungraded."""
        if self.grader is None or not found:
            return tuple(found)
        new = [one.item for one in found if (question, one.item.key) not in self._graded]
        if new:
            graded = await self.grader.grade(question, new)
            self.usage += graded.usage
            for item, grade in zip(new, graded.grades, strict=True):
                self._graded[question, item.key] = grade
                self._say(item, grade)
        return tuple(_with_grade(one, self._graded[question, one.item.key]) for one in found)

    def _say(self, item: Item, grade: Grade) -> None:
        number = sum(1 for _, key in self._graded if key.startswith(f"{item.source}:"))
        facts = {
            "number": number,
            "place": item.place,
            "score": grade.score,
            "explanation": grade.explanation,
        }
        self.listener(Event("graded.item", item.source, facts))

    def asked(self) -> list[Gathered]:
        """Everything gathered so far in this run."""
        finished = [task for task in self._gathered.values() if task.done()]
        return [task.result() for task in finished if not task.cancelled() and not task.exception()]


def _with_grade(one: Assessed, grade: Grade) -> Assessed:
    return replace(one, grade=grade, relevance=grade.relevance)
