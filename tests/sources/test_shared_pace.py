"""How often all processes on one database ask a source, and what one tenant's watches may take of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta

import pytest

from api.core.domain import FetchPlan
from api.core.shared_answers import answers_as_of
from api.errors import QuotaExhausted, RateLimited, SourceError, StoreUnavailable
from api.features.analyses.store_ports import Store
from api.sources import SOURCES
from api.sources.hackernews import HackerNewsSource
from api.sources.web_client import Limit, SharedPace, pace_of
from api.store import open_store
from api.store.shared_repository import counted
from tests.sources.emulators import Emulator, RedditEmulator, YouTubeEmulator, on
from tests.sources.json_emulators import HackerNewsEmulator, LemmyEmulator

NOW = datetime(2026, 11, 30, 8, tzinfo=UTC)
TEN = [(10, 60.0)]


@pytest.fixture
async def stores(store_url: str) -> AsyncIterator[Sequence[Store]]:
    """One database as two processes open it."""
    async with AsyncExitStack() as closing:
        opened = [await open_store(store_url) for _ in range(2)]
        for store in opened:
            closing.push_async_callback(store.aclose)
        yield opened


def test_a_window_and_the_share_of_the_one_before_count() -> None:
    """Ten a minute: those of the last minute count by the share of it that lies in the last sixty seconds."""
    counts, wait = counted({}, TEN, 0.0)
    for _ in range(9):
        counts, wait = counted(counts, TEN, 30.0)
    assert (counts, wait) == ({"60": (0, 10, 0)}, 0.0)
    assert counted(counts, TEN, 45.0)[1] == 15.0
    assert counted(counts, TEN, 60.0)[1] == pytest.approx(6.0)
    later, wait = counted(counts, TEN, 67.0)
    assert (later, wait) == ({"60": (1, 1, 10)}, 0.0)
    assert counted(counts, TEN, 180.0)[0] == {"60": (3, 1, 0)}


async def test_processes_share_one_budget(stores: Sequence[Store]) -> None:
    """Of forty at once in two processes exactly ten are sent; who may not hears when."""
    turns = await asyncio.gather(*(store.take_turn("github", TEN, NOW) for store in stores for _ in range(20)))
    assert turns.count(None) == 10
    assert {turn for turn in turns if turn} == {(NOW + timedelta(seconds=60), False)}
    assert await stores[0].take_turn("lemmy", TEN, NOW) is None


async def test_every_limit_of_a_source_holds(stores: Sequence[Store]) -> None:
    """Two a second and three a minute."""
    limits = [(2, 1.0), (3, 60.0)]
    moments = [0, 0, 0, 1, 1, 2]
    turns = [await stores[0].take_turn("forum", limits, NOW + timedelta(seconds=second)) for second in moments]
    assert [turn is None for turn in turns] == [True, True, False, False, False, True]


async def test_what_one_process_is_told_the_others_heed(stores: Sequence[Store]) -> None:
    """A pause holds for all, the longer one of two, and ends."""
    end = NOW + timedelta(minutes=5)
    await stores[0].pause_source("reddit", end, False, NOW)
    await stores[1].pause_source("reddit", NOW + timedelta(minutes=1), True, NOW)
    assert await stores[1].take_turn("reddit", [], NOW) == (end, False)
    assert await stores[1].take_turn("reddit", [], end) is None


@pytest.mark.parametrize("emulator", [RedditEmulator, HackerNewsEmulator, LemmyEmulator], ids=lambda kind: kind.name)
async def test_another_process_does_not_ask_a_source_that_wants_a_pause(
    stores: Sequence[Store], emulator: type[Emulator]
) -> None:
    """The first is refused by the source, the second by us, with the same end."""
    with emulator() as upstream:
        refusals: list[SourceError] = []
        for store in stores:
            pace_of.cache_clear()  # what this process has learnt, another has not
            source = SOURCES[upstream.name].build(upstream.settings(), store)
            upstream.fault = on("search", upstream.limited({"retry-after": "60"}))
            with pytest.raises(RateLimited) as caught:
                await source.fetch(FetchPlan("mug", 5))
            refusals.append(caught.value)
            await source.aclose()
            asked = len(upstream.searches)
            if store is stores[0]:
                before = asked
    assert asked == before
    first, second = (refusal.retry_at for refusal in refusals)
    assert first is not None
    assert second is not None
    assert abs(second - first) < timedelta(seconds=2)
    assert refusals[1].detail == "its limit is reached, nothing sent"


async def test_who_waits_for_too_long_is_refused(stores: Sequence[Store]) -> None:
    """With the moment from which it may be asked; a short wait is waited."""
    pace = SharedPace("lemmy", stores[0], "a", (Limit(1, 3_600),))
    await pace.turn()
    with pytest.raises(RateLimited) as caught:
        await SharedPace("lemmy", stores[1], "a", (Limit(1, 3_600),)).turn()
    assert caught.value.retry_at is not None
    await SharedPace("lemmy", stores[0], "b").pause(datetime.now(UTC) + timedelta(hours=1), spent=True)
    with pytest.raises(QuotaExhausted):
        await SharedPace("lemmy", stores[1], "b").turn()
    brief = SharedPace("lemmy", stores[0], "c")
    await brief.pause(datetime.now(UTC) + timedelta(seconds=0.2))
    await brief.turn()


async def test_without_a_database_each_process_has_its_own_pace() -> None:
    """Nobody is refused for that; the database is tried each time."""
    tried: list[str] = []

    class Away:
        async def take_turn(self, *_: object) -> None:
            tried.append("turn")
            raise StoreUnavailable("away")

        async def pause_source(self, *_: object) -> None:
            tried.append("pause")
            raise StoreUnavailable("away")

    pace = SharedPace("lemmy", Away(), "a", (Limit(1, 3_600),))  # type: ignore[arg-type]
    for _ in range(3):
        await pace.turn()
    await pace.pause(NOW)

    assert tried == ["turn", "turn", "turn", "pause"]


async def test_the_watches_of_one_tenant_have_half_of_the_day(stores: Sequence[Store]) -> None:
    """Whether or not others asked the same; the rest is left to others, and to questions of people."""
    with YouTubeEmulator() as upstream:
        settings = upstream.settings(youtube_searches_per_day=4)
        source = SOURCES["youtube"].build(settings, stores[0])
        queries = ("mug", "cup", "jug")
        for tenant, expected in (("a", 2), ("b", 2)):
            answers = 0
            for query in queries:
                with answers_as_of(NOW, tenant), suppress(QuotaExhausted):
                    answers += bool(await source.fetch(FetchPlan(query, 5)))
            assert answers == expected
            with (
                answers_as_of(NOW, tenant),
                pytest.raises(QuotaExhausted, match="the 2 searches that your watches may"),
            ):
                await source.fetch(FetchPlan("jug", 5))
        assert len(upstream.searches) == 2  # the second tenant's are those of the first
        await source.fetch(FetchPlan("jug", 5))
        with answers_as_of(NOW):  # who has the machine alone
            await source.fetch(FetchPlan("pot", 5))
        await source.aclose()


async def test_the_watches_of_one_tenant_have_half_of_a_pace(stores: Sequence[Store]) -> None:
    """Of a server that is no loopback one."""
    with HackerNewsEmulator() as upstream:
        source = HackerNewsSource(upstream.settings(), stores[0])
        pace = pace_of("hackernews", "https://example.org", Limit(4, 3_600))
        half = source.shared_pace(pace, "a")
        for _ in range(2):
            await half.turn()
        with pytest.raises(RateLimited):
            await half.turn()
        await source.shared_pace(pace, "b").turn()
        await source.aclose()
