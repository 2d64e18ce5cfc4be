"""Whose turn it is: shares, alternation, and a queue that ends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from api.core.progress import Listener
from api.core.work import StepRunner
from api.errors import LimitReached
from api.features.analyses.api_keys import LOCAL, Tenant
from api.features.analyses.limits import FairQueue, Limits
from api.features.analyses.runner import Runner
from api.reports.composition import Origin, clarified
from api.reports.report import Report
from api.services.product import Ask
from tests.services.shelf import NOW, Shelf

A, B, C = (Tenant(name, "store") for name in "abc")


@dataclass
class Works:
    """Work that begins in some order and ends when it is told to."""

    turns: FairQueue
    begun: list[str] = field(default_factory=list)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    async def begin(self, tenant: Tenant, *names: str) -> None:
        """Line up under these names, and see who begins."""
        for name in names:
            self.gates[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._work(tenant, name))
        await settled()

    async def end(self, name: str) -> None:
        """Let one end, and see who begins."""
        self.gates[name].set()
        await self.tasks[name]
        await settled()

    async def _work(self, tenant: Tenant, name: str) -> None:
        with self.turns.joined(tenant) as seat:
            await seat.wait()
            self.begun.append(name)
            await self.gates[name].wait()

    async def cancel(self, *names: str) -> None:
        """Who waits or works leaves."""
        for name in names:
            self.tasks[name].cancel()
        await asyncio.wait([self.tasks[name] for name in names])
        assert all(self.tasks[name].cancelled() for name in names)
        await settled()


async def settled() -> None:
    """Every task has gone as far as it can."""
    for _ in range(10):
        ready = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(ready.set_result, None)
        await ready


async def test_another_tenant_does_not_wait_behind_sixty() -> None:
    """
    Of four places A has two, though it has sixty in line; B begins at once.
    """
    works = Works(FairQueue(4, 64))

    await works.begin(A, *(f"a{n}" for n in range(60)))
    await works.begin(B, "b0")

    assert works.begun == ["a0", "a1", "b0"]
    await works.cancel(*works.tasks)


async def test_tenants_alternate_where_all_places_are_taken() -> None:
    """
    Two of A and two of B run; what is freed goes to C, which has none, then to one after the other.
    """
    works = Works(FairQueue(4, 64))
    await works.begin(A, "a0", "a1", "a2", "a3")
    await works.begin(B, "b0", "b1", "b2", "b3")
    await works.begin(C, "c0", "c1")

    for name in ("a0", "b0", "a1", "b1"):
        await works.end(name)

    assert works.begun == ["a0", "a1", "b0", "b1", "a2", "b2", "c0", "a3"]
    await works.cancel("b2", "c0", "a3", "b3", "c1")


async def test_a_queue_that_is_full_says_when_to_come_back() -> None:
    """
    One runs, two wait: the fourth is refused with 429, and the next tenant is not.
    """
    works = Works(FairQueue(2, 2))
    await works.begin(A, "a0", "a1", "a2")

    with (
        pytest.raises(LimitReached, match="2 of your requests wait already") as caught,
        works.turns.joined(A),
    ):
        raise AssertionError("there was room")
    await works.begin(B, "b0")

    assert (caught.value.status, caught.value.retry_after) == (429, 2)
    assert works.begun == ["a0", "b0"]
    await works.end("a0")
    await works.begin(A, "a3")
    assert works.begun == ["a0", "b0", "a1"]
    await works.cancel("a1", "a2", "a3", "b0")


async def test_when_to_come_back_is_told_by_work_not_by_waiting() -> None:
    """
    The first works 80 s while the second waits; that one's own 8 s are what counts of it.
    """
    moments = [0.0]
    works = Works(FairQueue(2, 2, clock=lambda: moments[-1]))
    await works.begin(A, "a0", "a1", "a2")
    moments.append(80.0)
    await works.end("a0")
    moments.append(88.0)
    await works.end("a1")
    await works.begin(A, "a3", "a4")

    with pytest.raises(LimitReached) as caught, works.turns.joined(A):
        raise AssertionError("there was room")

    assert caught.value.retry_after == 22, "two times 10.5 s, the mean of 1, 80 and 8 by eighths"
    await works.cancel("a2", "a3", "a4")


async def test_who_leaves_the_queue_gives_its_turn_to_the_next() -> None:
    """
    And who is cancelled at work gives its place.
    """
    works = Works(FairQueue(2, 9))
    await works.begin(A, "a0", "a1", "a2")

    await works.cancel("a1")
    await works.cancel("a0")

    assert works.begun == ["a0", "a2"]
    await works.begin(A, "a3")
    assert works.begun == ["a0", "a2"], "one place, and it is taken"
    await works.end("a2")
    await works.end("a3")


async def test_alone_at_this_machine_all_places_are_there() -> None:
    """
    Without keys there is nobody to leave room for; without a limit nobody waits.
    """
    here, free = Works(FairQueue(2, 9)), Works(FairQueue())
    await here.begin(LOCAL, "1", "2", "3")
    await free.begin(A, "1", "2", "3")

    assert (here.begun, free.begun) == (["1", "2"], ["1", "2", "3"])
    await here.cancel("1", "2", "3")
    await free.cancel("1", "2", "3")


@dataclass
class Desk:
    """Answers when `go` is set."""

    go: asyncio.Event = field(default_factory=asyncio.Event)
    begun: list[str] = field(default_factory=list)

    async def analyze(self, tenant: Tenant, ask: Ask, listener: Listener, report_id: str, keep: StepRunner) -> Report:
        self.begun.append(ask.query)
        await self.go.wait()
        return clarified(ask.query, ask.question, ask.depth, "", Origin(report_id, False, None))

    async def most(self, ask: Ask) -> float:
        return 0.1


async def test_bs_quick_question_begins_before_as_sixty_are_done() -> None:
    """
    A's are all accepted, stored as running, and wait; B's begins at once and is answered first.
    """
    desk, shelf = Desk(), Shelf()
    limits = Limits(shelf.store, clock=lambda: NOW, queue=FairQueue(8, 64))
    runner = Runner(shelf.store, limits, desk.analyze, desk.most)
    tasks = [await runner.join(A, Ask(f"a{n}", "deep")) for n in range(60)]
    quick = asyncio.create_task(runner.run(B, Ask("b", "quick")))
    await settled()

    assert desk.begun == ["a0", "a1", "a2", "a3", "b"]
    assert [kept.state for kept in shelf.analyses.values()] == ["running"] * 61
    desk.go.set()
    await quick
    assert len(desk.begun) < 60
    await runner.aclose()
    assert len(tasks) == 60


async def test_an_analysis_too_many_is_refused_before_it_is_kept() -> None:
    """
    Nothing is stored, nothing reserved, nothing asked.
    """
    desk, shelf = Desk(), Shelf()
    limits = Limits(shelf.store, analyses_per_day=9, clock=lambda: NOW, queue=FairQueue(2, 1))
    runner = Runner(shelf.store, limits, desk.analyze, desk.most)
    await runner.join(A, Ask("one"))
    await runner.join(A, Ask("two"))

    with pytest.raises(LimitReached, match="try again in 1 s"):
        await runner.run(A, Ask("three"))

    assert [kept.query for kept in shelf.analyses.values()] == ["one", "two"]
    assert shelf.units["key:a:analyses", NOW.date()] == 2
    await runner.aclose()


async def test_what_waits_for_its_turn_can_be_cancelled() -> None:
    """
    It is failed and was never asked.
    """
    desk, shelf = Desk(), Shelf()
    runner = Runner(shelf.store, Limits(shelf.store, queue=FairQueue(1, 9)), desk.analyze, desk.most)
    await runner.join(A, Ask("one"))
    waiting = await runner.join(A, Ask("two"))

    assert await runner.delete(A, waiting.id)

    assert desk.begun == ["one"]
    await runner.aclose()
