"""YouTube's searches of a day: counted before they are sent, shared, and given back by rule."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from api.core.domain import FetchPlan
from api.core.ports import Source
from api.errors import QuotaExhausted, SourceError, StoreUnavailable, Unreachable
from api.features.analyses.store_ports import SourceMemory, Store
from api.sources import SOURCES
from api.sources.youtube import YouTubeSource
from api.sources.youtube_answers import Searches, pacific_day
from api.store import open_store
from tests.loopback import HANG, Reply
from tests.sources.emulators import SECRET, YouTubeEmulator, on, refusal

PLAN = FetchPlan("mug", 5)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store in a file."""
    opened = await open_store(f"sqlite:///{tmp_path / 'a.db'}")
    yield opened
    await opened.aclose()


class Away:
    """A database that is away."""

    def __init__(self) -> None:
        self.given_back: list[int] = []

    async def page(self, key: str, ttl: float) -> str | None:
        raise StoreUnavailable("away")

    async def take(self, scope: str, day: date, units: int, limit: int) -> bool:
        raise StoreUnavailable("away")

    async def give_back(self, scope: str, day: date, units: int) -> None:
        self.given_back.append(units)
        raise StoreUnavailable("away")

    async def spent(self, scope: str, day: date) -> int:
        raise StoreUnavailable("away")


def asking(server: YouTubeEmulator, store: Store, limit: int = 100, **more: object) -> Source:
    """A source that counts its searches in the store."""
    settings = server.settings(youtube_searches_per_day=limit, **more)
    return SOURCES["youtube"].build(settings, store)


async def left(store: Store, limit: int = 100, key: str = SECRET) -> int | None:
    """What is left of the key's searches."""
    return await Searches(store, key, limit).left()


async def test_spent_bucket_survives_a_restart(youtube_server: YouTubeEmulator, store: Store) -> None:
    """Without a search left nothing is sent, and the outcome says until when."""
    first = asking(youtube_server, store, limit=1)
    await first.fetch(PLAN)
    await first.fetch(PLAN.widened(2))
    await first.aclose()
    second = asking(youtube_server, store, limit=1)

    with pytest.raises(QuotaExhausted, match="the day's 1 searches are used up") as caught:
        await second.fetch(FetchPlan("cup", 5))
    await second.aclose()

    assert len(youtube_server.searches) == 1
    wait = (caught.value.retry_at or datetime.min.replace(tzinfo=UTC)) - datetime.now(UTC)
    assert timedelta() < wait <= timedelta(hours=25)


async def test_parallel_questions_share_the_bucket(youtube_server: YouTubeEmulator, store: Store) -> None:
    """Of ten at once over two sources, with three searches left, three are sent (case B94)."""
    sources = [asking(youtube_server, store, limit=3) for _ in range(2)]

    outcomes = await asyncio.gather(
        *(sources[n % 2].fetch(FetchPlan(f"mug {n}", 5)) for n in range(10)),
        return_exceptions=True,
    )

    assert sum(isinstance(one, QuotaExhausted) for one in outcomes) == 7
    assert len(youtube_server.searches) == 3
    for source in sources:
        await source.aclose()


async def test_search_that_never_reached_google_is_given_back(youtube_server: YouTubeEmulator, store: Store) -> None:
    """A refused connection costs nothing."""
    source = asking(youtube_server, store, YOUTUBE_URL="http://127.0.0.1:1")

    with pytest.raises(Unreachable):
        await source.fetch(PLAN)
    await source.aclose()

    assert await left(store) == 100


async def test_a_search_over_a_connection_that_died_idle_costs_one(
    youtube_server: YouTubeEmulator, store: Store
) -> None:
    """What was sent on it was not processed: it is sent anew, answered, and counted once."""
    source = asking(youtube_server, store)
    youtube_server.fault = lambda asked: replace(youtube_server.reply(asked), manner="answer and reset")
    await source.fetch(PLAN)
    await asyncio.to_thread(youtube_server.server.resets.acquire, True, 60)
    youtube_server.fault = on("never", Reply())

    batch = await source.fetch(FetchPlan("cup", 5))
    await source.aclose()

    assert len(batch.items) == 5
    assert await left(store) == 98


@pytest.mark.parametrize(
    ("reply", "cost"),
    [
        (Reply(500, "oops"), 1),
        (refusal(403, "quotaExceeded"), 1),
        (HANG, 1),
        (Reply(200, "<p>hello</p>"), 1),
    ],
    ids=["500", "quota", "silent", "page"],
)
async def test_search_that_google_may_have_counted_stays_taken(
    youtube_server: YouTubeEmulator, store: Store, reply: Reply, cost: int
) -> None:
    """Whatever came of it, the request was sent."""
    youtube_server.fault = on("/search", reply)
    source = asking(youtube_server, store, source_timeout=0.3)

    with pytest.raises(SourceError):
        await source.fetch(PLAN)
    await source.aclose()

    assert await left(store) == 100 - cost


async def test_every_try_is_a_search(youtube_server: YouTubeEmulator, store: Store) -> None:
    """A burst limit and a restarted paging cost as many as were sent."""
    youtube_server.fault = on("/search", refusal(429, "rateLimitExceeded"), times=1)
    settings = youtube_server.settings()
    source = YouTubeSource(settings, store, pause=0)

    await source.fetch(FetchPlan("mug", 60))
    await source.aclose()

    assert len(youtube_server.searches) == 3
    assert await left(store) == 97


async def test_comments_and_probe_are_no_searches(youtube_server: YouTubeEmulator, store: Store) -> None:
    """Only the search bucket is counted, and the probe says what is left of it."""
    source = asking(youtube_server, store, limit=7)
    await source.comments((await source.fetch(PLAN)).items)

    assert (await source.probe()).quota_left == 6
    await source.aclose()


async def test_without_a_ledger_nothing_is_counted(youtube: YouTubeSource) -> None:
    """A source on its own does not know what is left."""
    await youtube.fetch(PLAN)

    assert (await youtube.probe()).quota_left is None


async def test_other_key_has_its_own_count(store: Store) -> None:
    """Another project's key is not held up, and the key itself is nowhere."""
    mine = Searches(store, "key-1", 1)
    assert await mine.take() is not None

    assert await left(store, 1, "key-1") == 0
    assert await left(store, 1, "key-2") == 1
    assert "key-1" not in mine.scope


async def test_lost_database_does_not_waive_the_limit(youtube_server: YouTubeEmulator) -> None:
    """When nobody can count, nothing is sent; the probe does not know what is left."""
    source = SOURCES["youtube"].build(youtube_server.settings(), cast(SourceMemory, Away()))

    with pytest.raises(Unreachable, match="searches cannot be counted"):
        await source.fetch(PLAN)

    assert youtube_server.searches == []
    assert (await source.probe()).quota_left is None
    await source.aclose()


async def test_giving_back_to_a_lost_database_is_no_error() -> None:
    """The search stays taken; the error that a caller sees is its own."""
    ledger = Away()

    await Searches(cast(SourceMemory, ledger), SECRET, 1).give_back(date(2026, 11, 27))

    assert ledger.given_back == [1]


@pytest.mark.parametrize(
    ("now", "day"),
    [("2026-11-27T07:59:00+00:00", "2026-11-26"), ("2026-11-27T08:00:00+00:00", "2026-11-27"),
     ("2026-07-01T07:00:00+00:00", "2026-07-01")],
)  # fmt: skip
def test_day_is_californias(now: str, day: str) -> None:
    """Google's day begins at midnight Pacific time."""
    assert pacific_day(datetime.fromisoformat(now)) == date.fromisoformat(day)
