"""Comparisons of a tenant: an analysis for each product, begun together and kept like any other."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass

from api.errors import Conflict, UsageError
from api.services.comparing.asking import analyze_each
from api.services.comparing.comparison import Comparison
from api.services.comparing.composing import comparison_of
from api.services.comparing.likeness import ask_of
from api.services.containment import Failure
from api.services.keeping.analyses import Runner
from api.services.keeping.analysis_flight import AnalysisFlight
from api.services.keeping.keys import Tenant
from api.services.keeping.limits import Limits
from api.services.keeping.purposes import COMPARISON
from api.services.keeping.storage import Idempotency, Kept
from api.services.listening import Ask
from api.services.places import Places
from api.services.progress import Listener, silent
from api.services.reporting.report import Report


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Begins them; the work is the runner's."""

    runner: Runner
    limits: Limits
    claims: Idempotency

    @asynccontextmanager
    async def begun(
        self, tenant: Tenant, asks: Sequence[Ask], key: str | None = None
    ) -> AsyncIterator[list[AnalysisFlight | Kept]]:
        """The analyses in the order of the questions; left at the end: who is last cancels.

        The caller's own request is counted already, so each further product is one more. When one
        may not begin, none goes on.

        Raises:
            Conflict: the idempotency key was used for another request.
            LimitReached: the tenant may not begin all of them now.
            StoreUnavailable: they could not be kept.
        """
        for _ in asks[1:]:
            await self.limits.admit(tenant)
        keys: list[str | None] = [None] * len(asks)
        fresh = True
        if key is not None:
            request = json.dumps([asdict(ask) for ask in asks], sort_keys=True)
            digest = hashlib.sha256(request.encode()).hexdigest()
            mark = uuid.uuid4().hex  # of this attempt; the first one owns the key
            try:
                _, fresh = await self.claims.claim(tenant.id, f"{COMPARISON}{key}", digest, mark)
            except UsageError as error:
                raise Conflict(str(error)) from None
            keys = [f"{COMPARISON}{number}:{key}" for number in range(len(asks))]
        if fresh:  # whatever fails later: the day's analyses suffice for all, or nothing begins
            async with self.limits.spending(tenant, usd=0.0, analyses=len(asks)):
                pass
        flights: list[AnalysisFlight | Kept] = []
        try:
            for ask, name in zip(asks, keys, strict=True):
                flights.append(await self.runner.join(tenant, ask, name))
            yield flights
        finally:
            for flight in flights:
                if isinstance(flight, AnalysisFlight):
                    self.runner.leave(flight)

    async def answers(
        self,
        asks: Sequence[Ask],
        flights: Sequence[AnalysisFlight | Kept],
        listener: Listener = silent,
    ) -> list[Report | Failure]:
        """The report of each question, or how its analysis failed."""
        begun = dict(zip(asks, flights, strict=True))

        async def landed(ask: Ask, hear: Listener) -> Report:
            flight = begun[ask]
            if isinstance(flight, Kept):
                return await self.runner.outcome(flight)
            flight.listen(hear)
            return await flight.result()

        return await analyze_each(landed, asks, listener)


def side_by_side(kept: Sequence[Kept], places: Places) -> Comparison:
    """Analyses that have ended, compared in this order; one without a report has failed."""
    asks = [ask_of(each.report) if each.report else Ask(each.query) for each in kept]
    answers = [
        each.report or Failure("failed", (each.reason or each.state).rstrip(".")) for each in kept
    ]
    return comparison_of(asks, answers, places)
