"""An analysis as it happens: a lane for each place, with what it found, kept and why it goes on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from api.faces import outline
from api.services.keeping.analysis_flight import AnalysisFlight
from api.services.progress import (
    Event,
    SourceFetched,
    SourceJudged,
    SourceKept,
    SourceLookedAgain,
    SourceRefetching,
    SourceStarted,
)
from api.services.schemas import Outcome
from api.sources import chosen
from api.wiring.serving import House

LaneState = Literal["waiting", "busy", "again", "done", "trouble"]


@dataclass(frozen=True, slots=True)
class Lane:
    """How far one place is."""

    source: str
    state: LaneState = "waiting"
    wanted: int = 0
    """Posts that it was asked for."""
    fetched: int | None = None
    kept: int | None = None
    words: str = "waiting"
    why: str = ""
    """Why it was asked once more, if it was."""

    @property
    def title(self) -> str:
        """The place as a person knows it."""
        return outline.source_title(self.source)

    @property
    def counts(self) -> list[tuple[str, int]]:
        """What is known by now: how many it was asked for, found and kept."""
        known = (("asked for", self.wanted or None), ("found", self.fetched), ("kept", self.kept))
        return [(name, count) for name, count in known if count is not None]

    def after(self, event: Event) -> Lane:
        """The lane once this has happened to it."""
        lane = replace(self, words=outline.progress(event) or self.words)
        match event:
            case SourceStarted():
                return replace(lane, state="busy", wanted=event.limit)
            case SourceFetched():
                # asked once more, wider, a place gives what it gave before and more
                return replace(lane, fetched=max(self.fetched or 0, event.fetched))
            case SourceJudged():
                return replace(lane, kept=(self.kept or 0) + event.relevant)
            case SourceRefetching():
                why = (
                    f"of {self.fetched or 0} found only {self.kept or 0} were about it: asked again"
                )
                return replace(lane, state="again", wanted=event.limit, why=why)
            case SourceLookedAgain():
                return replace(lane, kept=(self.kept or 0) + event.relevant)
            case SourceKept():
                state: LaneState = "done" if Outcome(event.outcome).answered else "trouble"
                return replace(lane, state=state, fetched=event.fetched, kept=event.kept)
        return lane


@dataclass(slots=True)
class Lanes:
    """All places of one analysis, in the order in which they were asked."""

    lanes: dict[str, Lane]
    step: str = ""
    """What happens to the question as a whole."""

    @classmethod
    def of(cls, house: House, flight: AnalysisFlight) -> Lanes:
        """Those that will be asked, before anything happens."""
        sources = flight.ask.sources or chosen(house.settings.sources)
        return cls({source: Lane(source) for source in sources})

    def hear(self, event: Event) -> None:
        """Show what has happened."""
        if event.source is None:
            self.step = outline.progress(event) or self.step
        else:
            lane = self.lanes.get(event.source, Lane(event.source))
            self.lanes[event.source] = lane.after(event)

    @property
    def values(self) -> dict[str, Any]:
        """What the template is given."""
        return {"lanes": list(self.lanes.values()), "step": self.step}
