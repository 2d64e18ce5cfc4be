"""Limits: reserved before, settled after, and given back by one rule."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from api.bootstrap.estimates import UNKNOWN_TURN_USD, turn_usd
from api.core.context import count_requests
from api.errors import LimitReached, StoreUnavailable
from api.features.analyses.api_keys import LOCAL, Tenant
from api.features.analyses.limits import Limits, utc_now
from api.settings import ModelSettings, load
from tests.services.shelf import NOW, Shelf

ANN, BEN = Tenant("ann", "store"), Tenant("ben", "environment")
DAY = NOW.date()


def at(moment: datetime) -> Callable[[], datetime]:
    """A clock that stands still."""
    return lambda: moment


def limits(shelf: Shelf, minute: int = 0, day: int = 0, usd: float = 0.0) -> Limits:
    """Limits at twelve o'clock and twenty seconds."""
    return Limits(shelf.store, minute, day, usd, at(NOW))


async def test_requests_of_a_minute_are_counted_per_key() -> None:
    """The third of two waits for the next minute; another key does not."""
    limited = limits(Shelf(), minute=2)
    await limited.admit(ANN)
    await limited.admit(ANN)

    with pytest.raises(LimitReached) as caught:
        await limited.admit(ANN)
    await limited.admit(BEN)
    assert caught.value.retry_after == 40


async def test_looks_are_counted_apart() -> None:
    """Ten for each request, however many requests there were."""
    limited = limits(Shelf(), minute=1)
    await limited.admit(ANN)
    for _ in range(10):
        await limited.admit(ANN, looks=True)

    with pytest.raises(LimitReached, match="10 looks per minute"):
        await limited.admit(ANN, looks=True)
    with pytest.raises(LimitReached, match="1 requests per minute"):
        await limited.admit(ANN)


async def test_the_next_minute_starts_afresh() -> None:
    """Of every hour and every day."""
    shelf = Shelf()
    for moment in (NOW, NOW.replace(minute=1), NOW.replace(hour=13), NOW.replace(day=28)):
        await Limits(shelf.store, 1, clock=at(moment)).admit(ANN)

    with pytest.raises(LimitReached):
        await limits(shelf, minute=1).admit(ANN)


async def test_no_limit_and_no_key_count_nothing() -> None:
    """0 switches a limit off, and the machine's own person has none."""
    shelf = Shelf()
    await limits(shelf).admit(ANN)
    await limits(shelf, minute=1).admit(LOCAL)
    async with limits(shelf).spending(ANN, usd=1, analyses=1) as spent:
        spent.counts = True
    async with limits(shelf, 1, 1, 1).spending(LOCAL, usd=9, analyses=9) as spent:
        spent.counts = True

    assert not shelf.units


async def test_of_ten_in_parallel_one_gets_the_last_analysis() -> None:
    """Reserved before it is spent: nobody checks first and charges later."""
    shelf = Shelf()
    limited, go = limits(shelf, day=1), asyncio.Event()

    async def one() -> None:
        async with limited.spending(ANN, usd=0, analyses=1) as spent:
            await go.wait()
            spent.counts = True

    tasks = [asyncio.create_task(one()) for _ in range(10)]
    await asyncio.wait(tasks, timeout=0.01)
    go.set()
    ended = await asyncio.gather(*tasks, return_exceptions=True)

    assert sum(one is None for one in ended) == 1
    assert sum(isinstance(one, LimitReached) for one in ended) == 9
    assert shelf.units["key:ann:analyses", DAY] == 1


async def test_the_wait_ends_at_midnight() -> None:
    """In UTC, where the days of the ledger are."""
    limited = Limits(Shelf().store, 0, 1, 0, at(datetime(2026, 11, 27, 23, 59, 30, tzinfo=UTC)))
    async with limited.spending(ANN, usd=0, analyses=1) as spent:
        spent.counts = True

    with pytest.raises(LimitReached, match="1 analyses") as caught:
        async with limited.spending(ANN, usd=0, analyses=1):
            pass
    assert caught.value.retry_after == 30


async def test_an_estimate_becomes_the_real_cost() -> None:
    """More or less than was reserved; what is unknown stays at the estimate."""
    shelf = Shelf()
    limited = limits(shelf, usd=1.0)
    for real in (0.1, 0.5, None):
        async with limited.spending(ANN, usd=0.3) as spent:
            spent.counts, spent.usd = True, real

    assert shelf.units["key:ann:usd", DAY] == 900_000


async def test_a_hundred_turns_without_a_known_price_are_not_refused() -> None:
    """What is reserved for each is given back: tokens without a price use up no budget."""
    shelf = Shelf()
    limited = limits(shelf, usd=5.0)
    for _ in range(100):
        async with limited.spending(ANN, usd=0.2) as spent:
            spent.ended(1000, None)

    assert shelf.units["key:ann:usd", DAY] == 0


@pytest.mark.parametrize(
    ("url", "prices", "usd"),
    [
        ("http://127.0.0.1:8080/v1", None, 0.0),
        ("https://models.example/v1", None, UNKNOWN_TURN_USD),
        ("https://models.example/v1", "*=0/0", 0.0),
        ("https://models.example/v1", "some-7b=1/10", 0.114),
    ],
)
def test_a_turn_reserves_what_its_model_may_cost(url: str, prices: str | None, usd: float) -> None:
    """Nothing on this machine, the stated price, or a sum that is given back."""
    models = ModelSettings(openai_base_url=url, model_prices=prices, agent_model="some-7b")

    assert turn_usd(replace(load(), models=models)) == pytest.approx(usd)


async def test_a_price_is_rounded_up_to_a_millionth_but_not_for_what_only_computers_see() -> None:
    """Thousandths of a millionth count; the 1e-19 by which 0.1 + 0.2 is more than 0.3 does not."""
    shelf = Shelf()
    limited = limits(shelf, usd=1.0)
    for real in (1.004e-6, 1.0000004e-6):
        async with limited.spending(ANN, usd=0.3) as spent:
            spent.counts, spent.usd = True, real

    assert shelf.units["key:ann:usd", DAY] == 2 + 1


async def test_usd_that_do_not_suffice_give_the_analysis_back() -> None:
    """Nothing is half reserved."""
    shelf = Shelf()
    with pytest.raises(LimitReached, match=r"0\.2 USD"):
        async with limits(shelf, day=5, usd=0.2).spending(ANN, usd=0.3, analyses=1):
            pass

    assert +shelf.units == {}


async def test_what_asked_nobody_costs_nothing() -> None:
    """Also when it failed: everything is given back."""
    shelf = Shelf()
    limited = limits(shelf, day=5, usd=1)
    async with limited.spending(ANN, usd=0.3, analyses=1):
        pass
    with pytest.raises(ValueError, match="before"):
        async with limited.spending(ANN, usd=0.3, analyses=1):
            raise ValueError("before anything")

    assert +shelf.units == {}


async def test_what_failed_after_it_asked_counts() -> None:
    """A request to a source is seen without being told."""
    shelf = Shelf()

    async def work() -> None:
        async with limits(shelf, day=5, usd=1).spending(ANN, usd=0.3, analyses=1):
            count_requests()
            raise ValueError("later")

    with pytest.raises(ValueError, match="later"):
        await work()

    assert shelf.units == {("key:ann:analyses", DAY): 1, ("key:ann:usd", DAY): 300_000}


async def test_a_broken_ledger_waives_no_limit(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing begins without it, and what was reserved stays reserved."""
    shelf = Shelf()
    limited = limits(shelf, minute=1, day=1, usd=1)
    async with limited.spending(ANN, usd=0.3, analyses=1):
        shelf.broken = {"take", "give_back"}

    assert shelf.units["key:ann:analyses", DAY] == 1
    assert "could not be settled" in caplog.text
    with pytest.raises(StoreUnavailable):
        await limited.admit(ANN)
    with pytest.raises(StoreUnavailable):
        async with limited.spending(ANN, usd=0.3, analyses=1):
            pass


def test_days_are_counted_in_utc() -> None:
    """Wherever the server stands."""
    assert utc_now().tzinfo is UTC


@pytest.mark.parametrize(("seconds", "words"), [(7, "7 s"), (119, "119 s"), (121, "3 min"), (63_350, "18 h")])
def test_the_wait_is_in_units_of_people(seconds: int, words: str) -> None:
    """Rounded up, so that whoever waits as long is let in."""
    reached = LimitReached("used up", seconds)
    assert str(reached) == f"used up; try again in {words}"
    assert reached.retry_after == seconds
