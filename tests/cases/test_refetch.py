"""The second, wider fetch over real clients: what it costs, and what it leaves alone."""

from __future__ import annotations

import pytest

from api.core.display_names import OUTCOME_REASONS
from api.core.domain import Outcome
from tests.cases.conftest import World
from tests.loopback import Reply
from tests.sources.emulators import on, refusal


def off_topic(world: World, *, but: str = "nothing") -> None:
    """Let the model keep only texts with these words."""
    world.mind.relevant = lambda text: but in text


async def test_only_what_is_new_is_judged(world: World) -> None:
    """B26: the refetch is served from the page that was read, and page one is not judged again."""
    world.reddit.count = 220
    off_topic(world, but="Post 7")

    heard = await world.fetch("reddit")

    assert [one.item.title for one in heard.gathered.kept] == ["Post 7"]
    assert [len(texts) for texts in world.mind.judged] == [5, 5]
    assert not {*world.mind.judged[0]} & {*world.mind.judged[1]}
    assert len(world.reddit.searches) == 1
    assert heard.gathered.yield_ratio == 0.1


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        pytest.param(Reply(500, {}), "unreachable", id="B28"),
        pytest.param(refusal(403, "quotaExceeded"), "quota_exhausted", id="B37"),
    ],
)
async def test_a_second_search_that_fails_takes_nothing(world: World, reply: Reply, code: str) -> None:
    """B28, B37: thirty videos were judged before the second search failed; what was kept stays."""
    world.youtube.count = 220
    off_topic(world, but="Video 7")
    world.youtube.fault = on("'pageToken'", reply)

    heard = await world.fetch("youtube", limit=30)

    gathered = heard.gathered
    assert {one.item.title for one in gathered.kept} == {"Full v7"}
    assert (str(gathered.outcome), gathered.status, gathered.fetched) == ("ok", "ok", 30)
    assert [attempt.status for attempt in gathered.attempts] == ["ok", "degraded"]
    assert f"refetch failed ({OUTCOME_REASONS[Outcome(code)]}); the first pass stands" in heard.text
    assert (gathered.retry_at is not None) == (code == "quota_exhausted")


async def test_a_limit_beyond_the_page_is_two_pages(world: World) -> None:
    """B29: 30 and then 60 videos are pages of 50, never a request for more than the API allows."""
    world.youtube.count = 220
    off_topic(world)

    heard = await world.fetch("youtube", limit=30)

    assert [attempt.limit for attempt in heard.gathered.attempts] == [30, 60]
    assert heard.gathered.fetched == 60
    assert [asked.query["maxResults"] for asked in world.youtube.searches] == ["50", "50"]


async def test_the_edge_is_half(world: World) -> None:
    """B30: five of ten are enough, two of five are not."""
    world.reddit.count = 220
    world.mind.relevant = lambda text: text.startswith(("Post 0", "Post 1", "Post 2 ", "Post 3 "))

    enough = await world.fetch("reddit", limit=8)
    few = await world.fetch("reddit", "cup", limit=9)

    assert (len(enough.gathered.attempts), len(few.gathered.attempts)) == (1, 2)


async def test_a_short_page_is_the_end(world: World) -> None:
    """B31: four of the five that were asked for mean that there is no more."""
    off_topic(world)

    heard = await world.fetch("reddit")

    assert len(heard.gathered.attempts) == 1
    assert "not refetched: the source had no more" in heard.text


async def test_what_is_cached_is_refetched_and_judged_anew(world: World) -> None:
    """B33: a later run over known pages asks nothing, refetches and judges all the same."""
    world.reddit.count = 220
    off_topic(world)
    await world.fetch("reddit")
    searches, judged = len(world.reddit.searches), len(world.mind.judged)

    heard = await world.fetch("reddit")

    assert heard.gathered.refetched
    assert [attempt.requests for attempt in heard.gathered.attempts] == [0, 0]
    assert len(world.reddit.searches) == searches
    assert world.mind.judged[judged:] == world.mind.judged[:judged]


async def test_nothing_found_is_not_asked_again(world: World) -> None:
    """B38: an empty page costs no judge call and no second search."""
    heard = await world.fetch("reddit", "nothing")

    assert str(heard.gathered.outcome) == "empty"
    assert len(world.reddit.searches) == 1
    assert not world.mind.judged
