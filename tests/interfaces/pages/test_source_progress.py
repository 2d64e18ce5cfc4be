"""How far one place is, after each of its moments."""

from __future__ import annotations

from dataclasses import replace

from api.core.domain import Outcome
from api.core.progress import (
    Event,
    ItemGraded,
    SourceFetched,
    SourceGathered,
    SourceJudged,
    SourceKept,
    SourceLookedAgain,
    SourceRefetching,
    SourceStarted,
    Writing,
)
from api.interfaces.pages.analysis_page import Lane, Lanes


def after(*events: Event) -> Lane:
    """A lane to which these happened."""
    lane = Lane("reddit")
    for event in events:
        lane = lane.after(event)
    return lane


def asked(query: str, fetched: int, about: int) -> tuple[Event, ...]:
    """One query from its start to its end."""
    return (
        SourceStarted(query=query, limit=10),
        SourceFetched(query=query, fetched=fetched),
        SourceJudged(query=query, judged=fetched, relevant=about, status="ok"),
        SourceKept(
            query=query, outcome=Outcome.OK, fetched=fetched, kept=about, yield_ratio=0.5,
            refetched=False, status="ok", reason=None,
        ),
    )  # fmt: skip


WHOLE = SourceGathered(
    query="plaud.ai", outcome=Outcome.OK, fetched=6, kept=5, yield_ratio=0.8, refetched=False,
    status="ok", reason=None,
)  # fmt: skip


def test_what_came_twice_is_found_once() -> None:
    """A place that is asked again, wider, gives the first ones once more."""
    lane = after(
        SourceStarted(query="mug", limit=10),
        SourceFetched(query="mug", fetched=10),
        SourceJudged(query="mug", judged=10, relevant=3, status="ok"),
        SourceRefetching(query="mug", limit=20),
        SourceFetched(query="mug", fetched=20),
        SourceJudged(query="mug", judged=10, relevant=2, status="ok"),
        SourceLookedAgain(query="mug", relevant=1, status="ok"),
    )

    assert lane.counts == [("asked for", 20), ("found", 20), ("about it", 6)]
    assert lane.why == "about it: only 3 of 10 found, so it is asked again"


def test_queries_of_a_place_find_the_same_posts() -> None:
    """None takes away what another found, none is counted on top, and the end counts each once."""
    queries = (*asked("plaud.ai", 6, 5), *asked("plaud review", 0, 0), *asked("plaud", 5, 5))

    lane = after(*queries)

    assert lane.counts == [("asked for", 10), ("found", 6), ("about it", 5)]
    assert (lane.state, lane.words) == ("busy", "“plaud”: 5 of 5 judged are about it")
    lane = lane.after(WHOLE)
    assert lane.counts == [("asked for", 10), ("found", 6), ("about it", 5)]
    assert (lane.state, lane.words) == ("done", "5 of 6 results were about it")


def test_a_place_that_is_asked_further_goes_on() -> None:
    """It keeps what it has found, and is done again when it is told so."""
    lane = after(*asked("plaud", 6, 5), WHOLE, *asked("plaud battery", 2, 1))

    assert (lane.state, lane.counts[1:]) == ("busy", [("found", 6), ("about it", 5)])
    assert lane.after(replace(WHOLE, fetched=7)).state == "done"


def test_what_nobody_judged_is_not_about_it() -> None:
    """What passed a gate that failed is found, and not known to be about it."""
    lane = after(
        SourceStarted(query="mug", limit=10),
        SourceFetched(query="mug", fetched=4),
        SourceJudged(query="mug", judged=4, relevant=0, status="degraded"),
        replace(WHOLE, query="mug", fetched=4, kept=4, yield_ratio=None, status="degraded"),
    )

    assert lane.counts == [("asked for", 10), ("found", 4)]


def test_a_place_without_an_answer_is_trouble() -> None:
    """It says why, and counts nothing that it was never asked for."""
    lane = after(replace(WHOLE, outcome=Outcome.NOT_CONFIGURED, fetched=0, kept=0, reason="no key"))

    assert (lane.state, lane.words) == ("trouble", "not configured: no key")


def test_first_kept_posts_are_shown_as_they_come() -> None:
    """Of the first query that kept some, then of the place as a whole."""
    first, *_, kept = asked("plaud", 6, 5)
    assert isinstance(kept, SourceKept)
    lane = after(first, replace(kept, titles=("It broke",)), replace(kept, titles=("It lasts",)))

    assert lane.titles == ("It broke",)
    assert lane.after(replace(WHOLE, titles=("It lasts", "It broke"))).titles == ("It lasts", "It broke")


def test_one_phase_is_always_under_way() -> None:
    """From asking to writing; a place without an answer holds up none."""
    lanes = Lanes({name: Lane(name) for name in ("reddit", "youtube")})
    graded = ItemGraded(
        source="reddit", number=1, place=None, score=4, cutoff=3, defaulted=False, explanation="it says so"
    )

    def now(*events: Event) -> list[tuple[str, str]]:
        for event in events:
            lanes.hear(event)
        return [(phase.name, phase.count) for phase in lanes.phases if phase.state == "now"]

    started = [replace(event, source="reddit") for event in asked("plaud", 6, 5)]
    assert now() == [("Asking", "0 of 2 places")]
    assert now(*started) == [("Asking", "1 of 2 places")]
    assert now(SourceFetched(source="youtube", query="plaud", fetched=2)) == [("Judging", "0 of 2 places")]
    assert now(replace(WHOLE, source="reddit"), replace(WHOLE, source="youtube")) == [("Grading", "")]
    assert now(graded) == [("Grading", "1 post")]
    assert now(Writing(exhibits=5)) == [("Writing and checking", "")]
    assert Lanes({}, "It waits for its turn").phases == []
