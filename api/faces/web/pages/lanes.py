"""An analysis as it happens: a lane for each place, with what it found and why it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from api.faces import captions, outline
from api.services.keeping.analysis_flight import AnalysisFlight
from api.services.progress import (
    Event,
    SourceFetched,
    SourceGathered,
    SourceJudged,
    SourceLookedAgain,
    SourceRefetching,
    SourceStarted,
)
from api.services.schemas import Outcome
from api.sources import chosen
from api.wiring.serving import House

_OF_A_QUERY = (
    SourceStarted, SourceFetched, SourceJudged, SourceRefetching, SourceLookedAgain,
)  # fmt: skip
_LONGEST_QUERY = 40
"""Characters of a query that is told from others of its place."""
LaneState = Literal["waiting", "busy", "again", "done", "trouble"]


@dataclass(frozen=True, slots=True)
class Catch:
    """What is known of one query, or of all once they have ended."""

    fetched: int | None = None
    about: int | None = None
    """Posts that were judged to be about the question."""


@dataclass(frozen=True, slots=True)
class Lane:
    """How far one place is. Its queries find the same posts, so their counts are never added up."""

    source: str
    state: LaneState = "waiting"
    wanted: int = 0
    """Posts that it was asked for, by the widest query."""
    words: str = "waiting"
    why: str = ""
    """Why it was asked once more, if it was."""
    catches: Mapping[str, Catch] = field(default_factory=dict)
    """By query; of all together by the one that leads."""

    @property
    def title(self) -> str:
        """The place as a person knows it."""
        return outline.source_title(self.source)

    @property
    def counts(self) -> list[tuple[str, int]]:
        """How many it was asked for, found, and were about it; each post once.

        Until all queries have ended those of the query with the most.
        """
        fetched = [catch.fetched for catch in self.catches.values() if catch.fetched is not None]
        about = [catch.about for catch in self.catches.values() if catch.about is not None]
        known = (
            ("asked for", [self.wanted] if self.wanted else []),
            (captions.FETCHED, fetched),
            (captions.ABOUT_IT, about),
        )
        return [(name, max(counts)) for name, counts in known if counts]

    def after(self, event: Event) -> Lane:
        """The lane once this has happened to it."""
        words = outline.progress(event)
        if words and isinstance(event, _OF_A_QUERY) and self.catches.keys() - {event.query}:
            words = f"“{outline.shortened(event.query, _LONGEST_QUERY)}”: {words}"
        lane = replace(self, words=words or self.words)
        match event:
            case SourceStarted():
                wanted = max(self.wanted, event.limit)
                lane = replace(lane, state="busy", wanted=wanted)
                return lane._with(event.query, self._catch(event.query))
            case SourceFetched():
                catch = self._catch(event.query)
                # asked once more, wider, a place gives what it gave before and more
                fetched = max(catch.fetched or 0, event.fetched)
                return lane._with(event.query, replace(catch, fetched=fetched))
            case SourceJudged() | SourceLookedAgain() if event.relevant or event.status == "ok":
                catch = self._catch(event.query)
                return lane._with(
                    event.query, replace(catch, about=(catch.about or 0) + event.relevant)
                )
            case SourceRefetching():
                catch, wanted = self._catch(event.query), max(self.wanted, event.limit)
                counted = f"{catch.about or 0} of {catch.fetched or 0} found"
                why = f"about it: only {counted}, so it is asked again"
                return replace(lane, state="again", wanted=wanted, why=why)
            case SourceGathered():
                state: LaneState = "done" if Outcome(event.outcome).answered else "trouble"
                about = None if event.yield_ratio is None else event.kept
                catch = Catch(event.fetched, about) if state == "done" else Catch()
                return replace(lane, state=state, catches={event.query: catch})
        return lane

    def _catch(self, query: str) -> Catch:
        return self.catches.get(query, Catch())

    def _with(self, query: str, catch: Catch) -> Lane:
        return replace(self, catches={**self.catches, query: catch})


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
