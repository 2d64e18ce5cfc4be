"""A desk that answers every question when it is told to, over a store in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from api.core.context import count_requests
from api.core.progress import ItemsGraded, Listener, SourceFetched, SourceStarted
from api.core.work import Engine, StepRunner
from api.errors import UsageError
from api.features.analyses.analysis_job import AnalysisTask
from api.features.analyses.api_keys import Tenant
from api.features.analyses.limits import FairQueue, Limits
from api.features.analyses.runner import Runner
from api.reports.composition import Origin, clarified
from api.reports.report import Cost, Report
from api.services.product import Ask
from tests.services.shelf import NOW, Shelf

ANN, BEN = Tenant("ann", "store"), Tenant("ben", "store")
ASK = Ask("mug")
DAY = NOW.date()


@dataclass
class Desk:
    """Answers every question when `go` is set; `trouble` is raised instead."""

    shelf: Shelf = field(default_factory=Shelf)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    trouble: BaseException | None = None
    most_trouble: Exception | None = None
    """Raised when it is asked what a question may cost."""
    tokens: int = 10
    usd: float | None = 0.2
    asks: bool = True
    """It fetches before it waits."""
    requests: int = 0
    """Sent to sources."""
    asked: list[Ask] = field(default_factory=list)
    cancelled: int = 0

    async def analyze(self, tenant: Tenant, ask: Ask, listener: Listener, report_id: str, keep: StepRunner) -> Report:
        self.asked.append(ask)
        count_requests(self.requests)
        listener(SourceStarted(source="reddit", query=ask.query, limit=5))
        if self.asks:
            listener(SourceFetched(source="reddit", fetched=5))
        self.entered.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.trouble is not None:
            raise self.trouble
        listener(ItemsGraded(scored=5, survived=5))
        report = clarified(ask.query, ask.question, ask.depth, "", Origin(report_id, False, None))
        cost = Cost(tokens=self.tokens, usd=self.usd, upstream_calls=0)
        return report.model_copy(update={"cost": cost})

    async def most(self, ask: Ask) -> float:
        if self.most_trouble is not None:
            raise self.most_trouble
        if ask.sources == ("myspace",):
            raise UsageError("there is no source `myspace`")
        return 0.5

    def runner(
        self,
        day: int = 0,
        grace: float = 0.0,
        engine: Engine | None = None,
        known: Sequence[Tenant] = (ANN, BEN),
        turns: FairQueue | None = None,
    ) -> Runner:
        async def tenants(tenant: str) -> Tenant | None:
            return next((each for each in known if each.id == tenant), None)

        turns = turns or FairQueue()
        limits = Limits(self.shelf.store, 0, day, 10.0 if day else 0.0, lambda: NOW, turns)
        return Runner(self.shelf.store, limits, self.analyze, self.most, grace, 0, engine, tenants)

    @property
    def states(self) -> list[str]:
        """What became of everything that was begun."""
        return [kept.state for kept in self.shelf.analyses.values()]


async def joined(runner: Runner, tenant: Tenant = ANN, key: str | None = None) -> AnalysisTask:
    """The flight of the usual question."""
    found = await runner.join(tenant, ASK, key)
    assert isinstance(found, AnalysisTask)
    return found
