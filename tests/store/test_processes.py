"""More than one process on one database, and processes that are killed."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from api.core.shared_answers import SharedAnswers, answers_as_of
from api.features.analyses.store_ports import Filters
from api.store import open_store
from api.store.running_repository import STOPPED
from tests.store.made import counted, report, typed
from tests.store.process import AS_OF, CLAIM, DAY, ROUNDS, big, doing, go, line


async def test_of_two_processes_exactly_one_gets_the_last_unit(store_url: str, root: Path) -> None:
    """Forty races for one unit each, between two real processes (case B94)."""
    store = await open_store(store_url)
    with doing("take", store_url, root) as first, doing("take", store_url, root) as second:
        go(first, second)
        wins = [(int(line(first)), int(line(second))) for _ in range(ROUNDS)]

    assert [sum(pair) for pair in wins] == [1] * ROUNDS
    assert [await store.spent(f"race:{n}", DAY) for n in range(ROUNDS)] == [1] * ROUNDS
    await store.aclose()


async def test_many_processes_may_open_a_new_database_at_once(database_url: str, root: Path) -> None:
    """One of them makes the tables; all can work."""
    with ExitStack() as stack:
        many = [stack.enter_context(doing("open", database_url, root)) for _ in range(5)]
        go(*many)
        said = [line(process) for process in many]

    assert said == ["opened"] * 5
    store = await open_store(database_url)
    assert await store.spent("opened", DAY) == 5
    assert await counted(database_url, "schema_version") == [1]
    await store.aclose()


async def test_kill_leaves_nothing_half_written(store_url: str, root: Path) -> None:
    """After kill -9 amid writing each report is whole or not there, and no item lies about."""
    with doing("work", store_url, root) as process:
        for _ in range(5):
            line(process)
        process.kill()
        process.wait()
    store = await open_store(store_url)
    swept = await store.sweep()

    analyses = (await store.listing("a", Filters(), 100)).analyses
    done = [kept.id for kept in analyses if kept.state == "done"]
    lost = [kept for kept in analyses if kept.state != "done"]
    assert len(done) >= 5
    assert len(lost) == swept <= 1
    assert all((kept.state, kept.reason) == ("failed", STOPPED) for kept in lost)
    for id_ in done:
        kept = await store.get("a", id_)
        assert kept is not None
        assert kept.report == big(int(id_[1:]))
    assert await counted(store_url, "items", "verdicts") == [20 + 20 * len(done), 40 * len(done)]
    await store.aclose()


async def test_sweep_fails_what_a_dead_process_ran(store_url: str, root: Path) -> None:
    """Only of the dead: what this process and another living one run goes on."""
    store = await open_store(store_url)
    await store.begin("a", "mine", "mug")
    with doing("begin", store_url, root) as process:
        while_alive = await store.sweep()
        process.kill()
        process.wait()
    once_dead, again = await store.sweep(), await store.sweep()

    theirs, mine = await store.get("a", "theirs"), await store.get("a", "mine")
    assert (while_alive, once_dead, again) == (0, 1, 0)
    assert theirs is not None
    assert mine is not None
    assert (theirs.state, theirs.reason) == ("failed", "the process that ran it stopped")
    assert mine.state == "running"
    await store.aclose()


async def test_what_a_killed_process_asked_for_another_asks_for(store_url: str, root: Path) -> None:
    """Once its claim is over; exactly one of two who wait."""
    stores = [await open_store(store_url) for _ in range(2)]
    asked: list[int] = []

    async def ask() -> int:
        asked.append(1)
        return 7

    with doing("ask", store_url, root) as process:
        process.kill()
        process.wait()
    with answers_as_of(AS_OF):
        asking = (SharedAnswers(store, CLAIM).answer(("a question",), TypeAdapter(int), ask) for store in stores)
        assert await asyncio.gather(*asking) == [7, 7]
    assert asked == [1]
    for store in stores:
        await store.aclose()


async def test_close_fails_what_still_runs(store_url: str) -> None:
    """A store that is closed in the middle leaves no analysis running for ever."""
    store = await open_store(store_url)
    await store.begin("a", "r1", "mug")
    await store.finish("a", typed(report("r2")))
    await store.aclose()

    again = await open_store(store_url)
    lost, done = await again.get("a", "r1"), await again.get("a", "r2")
    assert lost is not None
    assert done is not None
    assert (lost.state, lost.reason, done.state) == ("failed", STOPPED, "done")
    await again.aclose()


async def test_caller_that_leaves_breaks_nothing_off(store_url: str) -> None:
    """Calls cancelled at any point end whole or not at all, and no lock outlives them."""
    store = await open_store(store_url)
    for round_ in range(6):
        calls = [asyncio.ensure_future(store.finish("a", big(round_ * 3 + n))) for n in range(3)]
        if round_:
            await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        for _ in range(round_ * 53 % 300):
            await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        assert await store.take("after", DAY, 1, 100)

    analyses = (await store.listing("a", Filters(), 100)).analyses
    assert 5 <= len(analyses) <= 18
    for listed in analyses:
        kept = await store.get("a", listed.id)
        assert kept is not None
        assert kept.report == big(int(listed.id[1:]))
    await store.aclose()


@pytest.mark.parametrize("turns", [1, 2, 3, 5, 8])
async def test_call_that_began_ends_although_its_caller_left(store_url: str, turns: int) -> None:
    """Whatever point it had reached, the report is there and the unit is taken."""
    store = await open_store(store_url)
    calls = [
        asyncio.ensure_future(store.finish("a", big(1))),
        asyncio.ensure_future(store.take("s", DAY, 1, 1)),
    ]
    for _ in range(turns):
        await asyncio.sleep(0)
    for call in calls:
        call.cancel()
    left = await asyncio.gather(*calls, return_exceptions=True)

    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in left)
    kept = await store.get("a", "r1")
    assert kept is not None
    assert kept.report == big(1)
    assert await store.spent("s", DAY) == 1
    await store.aclose()
