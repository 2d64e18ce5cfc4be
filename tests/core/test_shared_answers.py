"""Answers that scheduled runs share, over real databases; what is asked is counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import TypeAdapter

from api.core.context import count_requests, request_counter
from api.core.items import Item
from api.core.shared_answers import SharedAnswers, answers_as_of, shared_run, window_of
from api.errors import RateLimited, SourceError, StoreUnavailable, Unreachable
from api.features.analyses.store_ports import Store
from api.store import open_store

NOW = datetime(2026, 11, 30, 8, tzinfo=UTC)
NUMBERS: TypeAdapter[list[int]] = TypeAdapter(list[int])
QUESTION = ("reddit", "mug", NOW.isoformat())
QUICK = (0.01,)


@dataclass
class Upstream:
    """Gives a list with as many requests as its `cost`, or fails; counts who asks."""

    cost: int = 2
    failure: SourceError | None = None
    asked: int = 0
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    free: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self) -> list[int]:
        self.asked += 1
        self.begun.set()
        await self.free.wait()
        count_requests(self.cost)
        if self.failure is not None:
            raise self.failure
        return [1, 2]


@pytest.fixture
async def stores(store_url: str) -> AsyncIterator[Sequence[Store]]:
    """One database as two processes open it."""
    async with AsyncExitStack() as closing:
        opened = [await open_store(store_url) for _ in range(2)]
        for store in opened:
            closing.push_async_callback(store.aclose)
        yield opened


@pytest.fixture
def upstream() -> Upstream:
    """It answers at once."""
    made = Upstream()
    made.free.set()
    return made


async def answer_of(answers: SharedAnswers, ask: Callable[[], Awaitable[list[int]]]) -> tuple[list[int], int]:
    """A scheduled run's answer, and the requests that it counts."""
    with answers_as_of(NOW), request_counter() as calls:
        return await answers.answer(QUESTION, NUMBERS, ask), calls.made


async def test_of_many_at_once_one_asks(stores: Sequence[Store]) -> None:
    """In two processes; each counts what asking alone would have cost."""
    upstream = Upstream()
    several = [SharedAnswers(store, pauses=QUICK) for store in stores for _ in range(4)]
    asking = [asyncio.ensure_future(answer_of(answers, upstream)) for answers in several]
    await upstream.begun.wait()
    upstream.free.set()
    assert await asyncio.gather(*asking) == [([1, 2], 2)] * 8
    assert upstream.asked == 1


async def test_an_answer_takes_its_time_again(stores: Sequence[Store], upstream: Upstream) -> None:
    """Who gets what another asked waits for as long as asking took."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def slow() -> list[int]:
        await asyncio.sleep(0.3)
        return await upstream()

    await answer_of(SharedAnswers(stores[0]), slow)
    await answer_of(SharedAnswers(stores[1], sleep=sleep), upstream)
    (pause,) = pauses
    assert pause > 0
    assert upstream.asked == 1


async def test_a_failure_is_shared_as_long_as_it_lasts(stores: Sequence[Store]) -> None:
    """With its words and its end."""
    upstream = Upstream(failure=RateLimited("reddit", "HTTP 429", retry_at=datetime.now(UTC) + timedelta(hours=1)))
    upstream.free.set()
    for store in stores:
        with pytest.raises(RateLimited) as caught:
            await answer_of(SharedAnswers(store), upstream)
        assert (caught.value.source, caught.value.detail) == ("reddit", "HTTP 429")
        assert upstream.failure is not None
        assert caught.value.retry_at == upstream.failure.retry_at
    assert upstream.asked == 1


async def test_after_a_failure_the_source_is_asked_again(stores: Sequence[Store]) -> None:
    """As soon as it is over, however often somebody was told of it."""
    upstream = Upstream(failure=RateLimited("reddit", "HTTP 429", retry_at=datetime.now(UTC) + timedelta(seconds=0.1)))
    upstream.free.set()
    with pytest.raises(RateLimited):
        await answer_of(SharedAnswers(stores[0]), upstream)
    upstream.failure = None
    while upstream.asked == 1:
        with suppress(RateLimited):
            await answer_of(SharedAnswers(stores[1]), upstream)


async def test_a_failure_without_an_end_is_shared_with_nobody(stores: Sequence[Store]) -> None:
    """Those who waited ask for themselves, all at once."""
    upstream = Upstream(failure=Unreachable("reddit"))
    asking = [asyncio.ensure_future(answer_of(SharedAnswers(store, pauses=QUICK), upstream)) for store in stores]
    await upstream.begun.wait()
    upstream.free.set()
    ended = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(each) for each in ended] == [Unreachable, Unreachable]
    assert upstream.asked == 2


async def test_what_serves_one_run_alone_is_not_shared(stores: Sequence[Store], upstream: Upstream) -> None:
    """As a page of which a part failed."""
    for store in stores:
        with answers_as_of(NOW):
            await SharedAnswers(store).answer(QUESTION, NUMBERS, upstream, lambda numbers: False)
    assert upstream.asked == 2


async def test_people_share_nothing(stores: Sequence[Store], upstream: Upstream) -> None:
    """Outside of a scheduled run nothing is taken or left."""
    assert shared_run() is None
    for store in stores:
        await SharedAnswers(store).answer(QUESTION, NUMBERS, upstream)
    await answer_of(SharedAnswers(stores[0]), upstream)
    await SharedAnswers(stores[0]).answer(QUESTION, NUMBERS, upstream)
    assert upstream.asked == 4


async def test_a_damaged_answer_is_asked_for_again(stores: Sequence[Store], upstream: Upstream) -> None:
    """Also one of another version of the program."""
    await answer_of(SharedAnswers(stores[0]), upstream)

    class Damaging:
        def __getattr__(self, name: str) -> object:
            return getattr(stores[0], name)

        async def page(self, key: str, ttl: float) -> str | None:
            return '{"requests": 1, "seconds": 0, "value": "text"}'

    assert await answer_of(SharedAnswers(Damaging()), upstream) == ([1, 2], 2)  # type: ignore[arg-type]
    assert upstream.asked == 2


@pytest.mark.parametrize("failing", ["page", "claim_answer", "keep_answer"])
async def test_without_a_database_each_asks(stores: Sequence[Store], upstream: Upstream, failing: str) -> None:
    """A disk that is full, or a database that is locked, costs the sharing alone."""

    async def unavailable(*_: object) -> None:
        raise StoreUnavailable("the disk is full")

    class Failing:
        def __getattr__(self, name: str) -> object:
            return unavailable if name == failing else getattr(stores[0], name)

    answers = SharedAnswers(Failing(), timedelta(seconds=0.2), QUICK)  # type: ignore[arg-type]
    assert await answer_of(answers, upstream) == ([1, 2], 2)
    assert (await answer_of(answers, upstream))[0] == [1, 2]


async def test_what_a_source_deletes_is_in_no_shared_answer(stores: Sequence[Store]) -> None:
    """The answer that holds it is asked for again."""
    asked = 0

    async def ask() -> Item:
        nonlocal asked
        asked += 1
        return Item(key="reddit:t3_1", id="t3_1", source="reddit", title="Mug")

    with answers_as_of(NOW):
        for _ in range(2):
            await SharedAnswers(stores[0]).answer(QUESTION, TypeAdapter(Item), ask)
        await stores[1].forget(["reddit:t3_1"])
        await SharedAnswers(stores[0]).answer(QUESTION, TypeAdapter(Item), ask)
    assert asked == 2


async def test_who_leaves_lets_others_ask(stores: Sequence[Store]) -> None:
    """A run that is cancelled while it asks gives its claim back."""
    upstream = Upstream()
    leaving = asyncio.ensure_future(answer_of(SharedAnswers(stores[0]), upstream))
    await upstream.begun.wait()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    upstream.free.set()
    assert (await answer_of(SharedAnswers(stores[1], pauses=QUICK), upstream))[0] == [1, 2]
    assert upstream.asked == 2


def test_windows_are_the_same_everywhere() -> None:
    """They begin at whole multiples of their length."""
    late = datetime(2026, 11, 30, 8, 14, 59, 999_999, tzinfo=UTC)
    assert window_of(late, 900) == NOW
    assert window_of(late + timedelta(seconds=1), 900) == NOW + timedelta(minutes=15)
    assert window_of(late, 86_400) == datetime(2026, 11, 30, tzinfo=UTC)


def test_what_was_written_after_the_window_began_is_in_no_answer() -> None:
    """What has no time is."""
    with answers_as_of(NOW):
        run = shared_run()
        assert run is not None
        assert [run.sees(moment) for moment in (None, NOW, NOW + timedelta(seconds=1))] == [True, True, False]
    assert shared_run() is None
