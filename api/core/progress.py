"""Progress events of an analysis; their fields are those of the HTTP events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from api.core.domain import Decision, Outcome, Status
from api.core.text import cut, one_line

if TYPE_CHECKING:
    from api.core.items import Gathered


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened; `kind` is its name in the HTTP interface."""

    kind: ClassVar[str]
    source: str | None = None
    """The source; None when the event concerns the whole question."""

    @property
    def data(self) -> dict[str, Any]:
        """The event's fields by name, without `source`."""
        names = (field.name for field in fields(self))
        return {name: getattr(self, name) for name in names if name != "source"}


# characters of a title in an event
_TITLE = 120
Listener = Callable[[Event], None]


def ignore_event(event: Event) -> None:
    """Ignore an event: the default listener."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStarted(Event):
    """The first request to a source begins."""

    kind = "source.started"
    query: str
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFetched(Event):
    """A batch of items was fetched."""

    kind = "source.fetched"
    query: str = ""
    """The query sent to the source; empty in events stored by older versions."""
    fetched: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceJudged(Event):
    """The new items of a batch were judged."""

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
    """Outcome, counts, yield and status of asking one source."""

    query: str = ""
    outcome: Outcome
    fetched: int
    kept: int
    yield_ratio: float | None
    refetched: bool
    status: Status
    reason: str | None
    titles: tuple[str, ...] = ()
    """Titles of the first items kept, at most three; () in events stored by older versions."""

    @classmethod
    def of(cls, gathered: Gathered) -> Self:
        return cls(
            source=gathered.source, query=gathered.query, outcome=gathered.outcome,
            fetched=gathered.fetched, kept=len(gathered.kept), yield_ratio=gathered.yield_ratio,
            refetched=gathered.refetched, status=gathered.status,
            reason=gathered.reason or gathered.gate_reason,
            titles=tuple(cut(one_line(entry.item.title), _TITLE) for entry in gathered.kept[:3] if entry.item.title),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKept(_SourceEnded):
    """The work on one query of a source has ended, with or without an error."""

    kind = "source.kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceGathered(_SourceEnded):
    """All queries of a source have ended, each item counts once; a second pass sends it again."""

    kind = "source.gathered"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemGraded(Event):
    """One item was graded; `number` counts those of its source from 1."""

    kind = "graded.item"
    number: int
    place: str | None
    score: int
    cutoff: int
    defaulted: bool
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemsGraded(Event):
    """All items were graded and ranked."""

    kind = "graded"
    scored: int
    survived: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing(Event):
    """The writer of the report has been asked."""

    kind = "writing"
    exhibits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported(Event):
    """The report is written and checked; the last event of an analysis."""

    kind = "report"
    decision: Decision
    id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductEvent(Event):
    """An event of one product's analysis within a comparison."""

    kind = "product"
    product: str
    event: Event


EVENT_TYPES: Mapping[str, type[Event]] = MappingProxyType(
    {
        event.kind: event
        for event in (
            SourceStarted, SourceFetched, SourceJudged, SourceRefetching, SourceLookedAgain,
            SourceKept, SourceGathered, ItemGraded, ItemsGraded, Writing, Reported,
        )
    }
)  # fmt: skip
"""The events of one analysis by their kinds."""
