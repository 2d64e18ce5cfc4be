"""How far one place is, after each of its moments."""

from __future__ import annotations

from api.faces.web.pages.lanes import Lane
from api.services.progress import (
    SourceFetched,
    SourceJudged,
    SourceRefetching,
    SourceStarted,
)


def test_what_came_twice_is_found_once() -> None:
    """A place that is asked again, wider, gives the first ones once more."""
    lane = Lane("reddit")
    for event in (
        SourceStarted(query="mug", limit=10),
        SourceFetched(fetched=10),
        SourceJudged(judged=10, relevant=3, status="ok"),
        SourceRefetching(limit=20),
        SourceFetched(fetched=20),
        SourceJudged(judged=10, relevant=2, status="ok"),
    ):
        lane = lane.after(event)

    assert lane.counts == [("asked for", 20), ("found", 20), ("kept", 5)]
    assert lane.why == "of 10 found only 3 were about it: asked again"
