"""What is counted of one answer: the definition of each figure that statistics and metrics show.

A tally is a report without its words and keys: the same fields, and what follows from them. Sums
and means over many are in `summing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from pydantic import ConfigDict

from api.core.domain import Attempt, Decision, Outcome, open_reason
from api.core.published import Published
from api.reports.report import Cost, GateState, Report, Share, SourceReport, SupportCheck

OWN = "items"
"""The name under which a person's own items are asked."""


class SourceTally(Published):
    """What is counted of how asking one source ended."""

    model_config = ConfigDict(extra="ignore")
    outcome: Outcome
    gate: GateState
    attempts: tuple[Attempt, ...]
    fetched: int
    fit: int | None = None
    kept: int
    yield_ratio: Share | None
    refetched: bool
    refetch_gain: int
    """Relevant items that only the second fetch brought."""
    upstream_calls: int

    @classmethod
    def of(cls, source: SourceReport) -> Self:
        """Of an answer that is here."""
        return cls.model_validate(source, from_attributes=True)

    @property
    def open_reason(self) -> str | None:
        """Why the gate failed open over some of its items; None when it did not."""
        return open_reason(self.attempts)

    @property
    def degraded(self) -> bool:
        """Its items passed unjudged, so that it says nothing about yields."""
        return self.outcome.answered and self.gate.status == "degraded"

    @property
    def judged(self) -> int:
        """Items with a sound verdict; 0 of a source that is degraded or did not answer."""
        if not self.outcome.answered or self.gate.status != "ok":
            return 0
        if self.fit is not None:
            return self.fit
        if self.kept and self.yield_ratio:
            return round(self.kept / self.yield_ratio)
        return 0 if self.yield_ratio else self.fetched  # a yield of 1 without items: none was fit

    @property
    def relevant(self) -> int:
        """Of the judged ones, those that are about the question."""
        return self.kept if self.judged else 0


class Tally(Published):
    """What is counted of a report."""

    model_config = ConfigDict(extra="ignore")
    decision: Decision
    sample: bool
    cost: Cost
    support: SupportCheck = SupportCheck()
    sources: Mapping[str, SourceTally]
    items: int
    """Those that the report kept in the end: past gate, grades and copies."""
    cited: int
    """Distinct items that its findings rest on."""

    @classmethod
    def of(cls, report: Report) -> Self:
        """Of a report that is here."""
        return cls(
            decision=report.decision,
            sample=report.sample,
            cost=report.cost,
            support=report.support,
            sources={name: SourceTally.of(source) for name, source in report.sources.items()},
            items=len(report.items),
            cited=report.cited,
        )

    @property
    def judged(self) -> int:
        """Items of all sources with a sound verdict."""
        return sum(source.judged for source in self.sources.values())

    @property
    def relevant(self) -> int:
        """Of these, those that are about the question."""
        return sum(source.relevant for source in self.sources.values())

    @property
    def degraded(self) -> bool:
        """A source of it passed unjudged."""
        return any(source.degraded for source in self.sources.values())

    @property
    def own_items(self) -> bool:
        """It was asked of a person's own items, which no source found."""
        return set(self.sources) == {OWN}

    @property
    def unanswered(self) -> bool:
        """Sources were asked, and none answered."""
        return bool(self.sources) and not any(
            source.outcome.answered for source in self.sources.values()
        )

    @property
    def comparable(self) -> bool:
        """It is in the means over analyses: a source of the world was asked, and one answered."""
        return bool(self.sources) and not (self.own_items or self.unanswered)

    @property
    def price(self) -> float | None:
        """USD; None where no source was asked, or a model's price is unknown."""
        return self.cost.usd if self.sources else None
