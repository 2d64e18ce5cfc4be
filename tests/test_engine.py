"""The durable engine over its real library: kept steps, work gone on with, queued and cancelled."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE

import pytest

from api.core.domain import Usage
from api.core.progress import Event, SourceFetched
from api.core.work import WorkLease
from api.errors import ConfigurationError, Conflict, StoreUnavailable, UsageError
from api.store.durable_engine import DEATHS, DurableEngine, Share, open_engine
from tests.forked import Forked

KIND = "errand"


@dataclass
class Errand:
    """Two steps; the second waits until it may go."""

    taken: list[str] = field(default_factory=list)
    heard: list[Event] = field(default_factory=list)
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    result: Usage | None = None

    async def run(self, lease: WorkLease) -> Usage:
        """What both steps used."""
        tell = lease.recorded(self.heard.append)

        async def first() -> Usage:
            self.taken.append("first")
            tell(SourceFetched(source="reddit", fetched=7))
            return await lease.run_step("within", Usage, self.within)

        async def second() -> Usage:
            self.taken.append("second")
            self.entered.set()
            await self.go.wait()
            return Usage(2)

        used = await lease.run_step("first", Usage, first)
        self.result = used + await lease.run_step("second", Usage, second)
        self.ended.set()
        return self.result

    async def within(self) -> Usage:
        """A step within a step."""
        self.taken.append("within")
        return Usage(1, usd=0.5)

    async def resume(self, request: str, lease: WorkLease) -> None:
        """The same, by another process."""
        assert request == '{"errand": 1}'
        await self.run(lease)


@asynccontextmanager
async def engine(url: str, errand: Errand, executor: str = "first", version: str = "1") -> AsyncIterator[DurableEngine]:
    """The engine of a process."""
    opened = await open_engine(url, executor, version, Share(), {KIND: errand.resume})
    try:
        yield opened
    finally:
        await opened.aclose()


@pytest.fixture
def url(database_url: str, tmp_path: Path) -> str:
    """Of an empty database, as the engine wants it."""
    if database_url.startswith("sqlite"):
        return f"sqlite:///{tmp_path / 'work.db'}"
    return database_url.replace("postgresql://", "postgresql+psycopg://")


async def everybody(processes: Collection[str]) -> Collection[str]:
    """All other processes are gone."""
    return processes


async def never(kind: str, request: str) -> None:
    """Nothing is given up."""
    raise AssertionError((kind, request))


async def begun(opened: DurableEngine, errand: Errand) -> asyncio.Task[Usage]:
    """Work whose second step has begun."""
    running = asyncio.create_task(opened.run(KIND, "a.1", '{"errand": 1}', errand.run))
    await errand.entered.wait()
    return running


async def test_work_is_done_here_at_once(url: str) -> None:
    """A step within a step is no step of its own; what is done is dropped."""
    errand = Errand()
    errand.go.set()
    async with engine(url, errand) as opened:
        running = await begun(opened, errand)
        assert await running == Usage(3, usd=0.5)
        assert await opened.known(["a.1"]) == {"a.1"}
        while await opened.known(["a.1"]):  # its end is noted a moment after its result
            await opened.tend(everybody, never)
    assert errand.taken == ["first", "within", "second"]


async def test_another_process_goes_on_behind_the_kept_step(url: str) -> None:
    """What was heard in it is heard again; the step under way is taken anew."""
    errand, other = Errand(), Errand()
    async with engine(url, errand) as opened:
        running = await begun(opened, errand)
        running.cancel()
    other.go.set()
    async with engine(url, other, "second") as opened:
        await opened.tend(everybody, never)
        await other.ended.wait()
    assert (other.taken, other.result) == (["second"], Usage(3, usd=0.5))
    assert other.heard == errand.heard == [SourceFetched(source="reddit", fetched=7)]


async def test_work_of_a_living_process_or_of_another_version_is_left(url: str) -> None:
    """Until that is there again."""
    errand, other = Errand(), Errand()
    async with engine(url, errand) as opened:
        (await begun(opened, errand)).cancel()

    async def living(processes: Collection[str]) -> Collection[str]:
        assert set(processes) == {"first"}
        return ()

    async with engine(url, other, "second") as opened:
        await opened.tend(living, never)
        assert await opened.known(["a.1"])
    async with engine(url, other, "third", "2") as opened:
        await opened.tend(everybody, never)
        assert await opened.known(["a.1"])
    assert not other.taken


async def continue_work(url: str, executor: str) -> None:
    """Continue what others left, as a process that is killed in its second step."""
    errand = Errand()
    async with engine(url, errand, executor) as opened:
        await opened.tend(everybody, never)
        await errand.entered.wait()
        print("entered", flush=True)
        await asyncio.Event().wait()


def run_process() -> None:
    """Continue work in a process of its own: address of the database, and the name of the process."""
    asyncio.run(continue_work(*sys.argv[1:3]))


def die(url: str, executor: str) -> None:
    """Let a process continue the work, and kill it meanwhile (SIGKILL)."""
    with Forked[str](["tests.test_engine:run_process", url, executor], stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "entered\n"
        process.kill()


async def test_work_of_which_four_processes_died_is_given_up(url: str) -> None:
    """As soon as it is stored why; processes that stop in an orderly way are none of these, however many."""
    errand = Errand()
    async with engine(url, errand) as opened:
        (await begun(opened, errand)).cancel()
    given_up: list[tuple[str, str]] = []

    async def give_up(kind: str, request: str) -> None:
        given_up.append((kind, request))
        if len(given_up) == 1:
            raise StoreUnavailable("the database is busy")
        raise ValueError("no request that can be read, which nobody continues either")

    for number in range(DEATHS - 1):
        await asyncio.to_thread(die, url, f"dies {number}")
        other = Errand()
        async with engine(url, other, f"stops {number}") as opened:
            await opened.tend(everybody, never)
            await other.entered.wait()
    await asyncio.to_thread(die, url, "dies at last")
    last = Errand()
    async with engine(url, last, "gives up") as opened:
        with pytest.raises(StoreUnavailable):
            await opened.tend(everybody, give_up)
        assert await opened.known(["a.1"])
        await opened.tend(everybody, give_up)
        assert not await opened.known(["a.1"])

    assert DEATHS == 4
    assert given_up == [(KIND, '{"errand": 1}')] * 2
    assert not last.taken


async def test_who_waits_hears_that_the_process_stops(url: str) -> None:
    """And that the work goes on."""
    errand = Errand()

    async def broken_off(lease: WorkLease) -> Usage:
        await errand.run(lease)
        raise AssertionError

    async with engine(url, errand) as opened:
        running = asyncio.create_task(opened.run(KIND, "a.1", "{}", broken_off))
        await errand.entered.wait()
        working = next(task for task in asyncio.all_tasks() if "_workflow" in repr(task))
        working.cancel()
        with pytest.raises(Conflict, match="the next one goes on"):
            await running


async def test_an_error_is_raised_where_the_work_was_begun(url: str) -> None:
    """As it is."""

    async def failing(lease: WorkLease) -> Usage:
        raise UsageError("there is no such errand")

    async with engine(url, Errand()) as opened:
        with pytest.raises(UsageError, match="no such errand"):
            await opened.run(KIND, "a.1", "{}", failing)


async def test_what_is_cancelled_elsewhere_stops(url: str) -> None:
    """Within the step under way."""
    errand = Errand()
    async with engine(url, errand) as opened:
        running = await begun(opened, errand)
        await opened.cancel("a.")
        with pytest.raises(Conflict, match="cancelled"):
            await running
    assert not errand.ended.is_set()


async def test_what_is_queued_is_done_once(url: str) -> None:
    """However often it is left there."""
    errand = Errand()
    errand.go.set()
    async with engine(url, errand) as opened:
        for _ in range(3):
            await opened.enqueue(KIND, "b.1", '{"errand": 1}', "ann")
        await errand.ended.wait()
    assert errand.taken == ["first", "within", "second"]


async def test_one_of_a_process(url: str) -> None:
    """The library has no room for two."""
    async with engine(url, Errand()):
        with pytest.raises(ConfigurationError, match="engine already"):
            async with engine(url, Errand()):
                pass


async def test_an_engine_is_closed_twice(url: str) -> None:
    """By a server's app, and by who opened it; one that was opened meanwhile stays."""
    async with engine(url, Errand()) as first:
        await first.aclose()
    async with engine(url, Errand()) as second:
        await first.aclose()
        assert await second.known(["w1"]) == set()


async def test_a_database_that_cannot_be_used(tmp_path: Path) -> None:
    """Its name is not told: it may hold a password. The next attempt finds the process free."""
    for _ in range(2):
        with pytest.raises(StoreUnavailable) as refused:
            await open_engine("postgresql+psycopg://u:secret@127.0.0.1:9/none", "first", "1", Share(), {})
        assert "secret" not in str(refused.value)


async def test_work_that_cannot_be_noted_is_not_begun(tmp_path: Path) -> None:
    """The database's own words hold the statement: they are nobody's."""
    errand, file = Errand(), tmp_path / "work.db"
    async with engine(f"sqlite:///{file}", errand) as opened:
        file.rename(tmp_path / "moved.db")
        with pytest.raises(StoreUnavailable, match="work could not be noted") as caught:
            await opened.run(KIND, "a.1", '{"errand": 1}', errand.run)
        (tmp_path / "moved.db").rename(file)
    assert "INSERT" not in str(caught.value)
    assert errand.taken == []
