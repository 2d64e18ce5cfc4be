"""What is counted of one answer: the definition of each figure that statistics and metrics show.

A tally is a report without its words: the same fields, read from what is stored or from a report
that just ended, and what follows from them. Sums and means over many are in `stats`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict

from api.services.reporting.report import (
    Cost,
    GateState,
    Report,
    Share,
    SourceReport,
    SupportCheck,
    Timestamp,
)
from api.services.schemas import Attempt, Decision, Outcome, Published, open_reason


def _counted(listed: Any) -> Any:
    """A list that is stored as rows of its own leaves its length in the report."""
    return len(listed) if isinstance(listed, Sequence) else listed


class SourceTally(Published):
    """What is counted of how asking one source ended."""

    model_config = ConfigDict(extra="ignore")
    outcome: Outcome
    gate: GateState
    attempts: tuple[Attempt, ...]
    fetched: int
    fit: int | None = None
    kept: int
    yield_ratio: Share
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


class CitingTally(Published):
    """What a finding rests on."""

    model_config = ConfigDict(extra="ignore")
    cites: tuple[str, ...]


class Tally(Published):
    """What is counted of a report."""

    model_config = ConfigDict(extra="ignore")
    decision: Decision
    sample: bool
    cost: Cost
    support: SupportCheck = SupportCheck()
    findings: tuple[CitingTally, ...]
    sources: Mapping[str, SourceTally]
    items: Annotated[int, BeforeValidator(_counted)]
    """Those that the report kept in the end: past gate, grades and copies."""
    created_at: Timestamp

    @classmethod
    def of(cls, report: Report) -> Self:
        """Of a report that is here."""
        return cls.model_validate(report, from_attributes=True)

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
    def price(self) -> float | None:
        """USD; None where no source was asked, or a model's price is unknown."""
        return self.cost.usd if self.sources else None

    @property
    def cited(self) -> int:
        """Distinct items that the findings rest on."""
        return len({key for finding in self.findings for key in finding.cites})
