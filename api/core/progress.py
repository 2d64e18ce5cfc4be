"""What a person may want to see while waiting: a class per moment, its fields as in HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar, Self

from api.core.domain import Decision, Gathered, Outcome, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One moment; `kind` is its name in the HTTP interface."""

    kind: ClassVar[str]
    source: str | None = None
    """Whom it concerns; None: the question as a whole."""

    @property
    def data(self) -> dict[str, Any]:
        """All it says beside the source, by field."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name != "source"
        }


Listener = Callable[[Event], None]


def ignore_event(event: Event) -> None:
    """The listener that ignores everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStarted(Event):
    """A source is asked."""

    kind = "source.started"
    query: str
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFetched(Event):
    """A batch came."""

    kind = "source.fetched"
    query: str = ""
    """Of which query; empty in what an older program has heard."""
    fetched: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceJudged(Event):
    """What is new in it was judged."""

    kind = "source.judged"
    query: str = ""
    judged: int
    relevant: int
    status: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRefetching(Event):
    """Too little was relevant: the source is asked again, wider."""

    kind = "source.refetching"
    query: str = ""
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLookedAgain(Event):
    """The comments of one dropped item were judged."""

    kind = "source.looked_again"
    query: str = ""
    relevant: int
    status: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class _SourceEnded(Event):
    """How asking went."""

    query: str = ""
    outcome: Outcome
    fetched: int
    kept: int
    yield_ratio: float | None
    refetched: bool
    status: Status
    reason: str | None

    @classmethod
    def of(cls, gathered: Gathered) -> Self:
        """From how it ended."""
        return cls(
            source=gathered.source,
            query=gathered.query,
            outcome=gathered.outcome,
            fetched=gathered.fetched,
            kept=len(gathered.kept),
            yield_ratio=gathered.yield_ratio,
            refetched=gathered.refetched,
            status=gathered.status,
            reason=gathered.reason or gathered.gate_reason,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKept(_SourceEnded):
    """One query of a source has ended, or the source could not be asked."""

    kind = "source.kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceGathered(_SourceEnded):
    """All queries of a source have ended: what they gave together, each item once.

    `query` is the one that leads. It comes again when the source is asked further queries.
    """

    kind = "source.gathered"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemGraded(Event):
    """One item has its grade; `number` counts those of its source from 1."""

    kind = "graded.item"
    number: int
    place: str | None
    score: int
    cutoff: int
    defaulted: bool
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsGraded(Event):
    """All items are graded, and ranked."""

    kind = "graded"
    scored: int
    survived: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing(Event):
    """The words are looked for."""

    kind = "writing"
    exhibits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported(Event):
    """There is an answer."""

    kind = "report"
    decision: Decision
    id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductEvent(Event):
    """A moment of one product's analysis, within a comparison."""

    kind = "product"
    product: str
    event: Event


EVENT_TYPES: Mapping[str, type[Event]] = MappingProxyType(
    {
        moment.kind: moment
        for moment in (
            SourceStarted, SourceFetched, SourceJudged, SourceRefetching, SourceLookedAgain,
            SourceKept, SourceGathered, ItemGraded, ItemsGraded, Writing, Reported,
        )
    }
)  # fmt: skip
"""Those of an analysis, by their kinds."""
