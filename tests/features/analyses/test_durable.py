"""Analyses that outlive the process that began them: gone on with, charged once, found again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from api.core.work import ProcessStopping
from api.errors import Conflict, LimitReached, StoreUnavailable, UsageError
from api.features.analyses.analysis_job import CANCELLED, AnalysisTask, no_tenants
from api.features.analyses.limits import FairQueue
from api.features.analyses.runner import UNNOTED
from api.features.analyses.store_ports import StoredAnalysis
from tests.features.analyses.desk import ANN, ASK, BEN, DAY, Desk, joined
from tests.services.notebook import Notebook


@pytest.fixture
def notebook() -> Notebook:
    """An engine that every process of a test shares."""
    return Notebook()


async def interrupted(desk: Desk, notebook: Notebook, key: str | None = None) -> tuple[str, str]:
    """An analysis whose process stopped while sources were asked: the ids of it and its work."""
    runner = desk.runner(day=5, engine=notebook)
    task = await joined(runner, key=key)
    await desk.entered.wait()
    await runner.aclose()
    with pytest.raises(Conflict, match="stops"):
        await task.result()
    return task.id, next(iter(notebook.requests))


async def test_another_process_goes_on(desk: Desk, notebook: Notebook) -> None:
    """Under the same id, charged once."""
    analysis_id, work_id = await interrupted(desk, notebook)
    assert desk.states == ["running"]
    desk.go.set()
    await desk.runner(day=5, engine=notebook).resume(notebook.requests[work_id], notebook.lease(work_id))

    kept = desk.shelf.analyses["ann", analysis_id]
    assert (kept.state, desk.asked) == ("done", [ASK, ASK])
    assert desk.shelf.units["key:ann:analyses", DAY] == 1
    assert desk.shelf.units["key:ann:usd", DAY] == 200_000


async def test_a_process_that_stops_twice_leaves_it_again(desk: Desk, notebook: Notebook) -> None:
    """Running, for the third."""
    _, work_id = await interrupted(desk, notebook)
    desk.entered.clear()
    second = desk.runner(day=5, engine=notebook)
    going = asyncio.create_task(second.resume(notebook.requests[work_id], notebook.lease(work_id)))
    await desk.entered.wait()
    await second.aclose()
    with pytest.raises(asyncio.CancelledError):
        await going
    assert desk.states == ["running"]


async def test_what_is_over_the_limit_meanwhile_goes_on(desk: Desk, notebook: Notebook) -> None:
    """Its part was reserved when it was begun."""
    _, work_id = await interrupted(desk, notebook)
    desk.go.set()
    await desk.runner(day=1, engine=notebook).resume(notebook.requests[work_id], notebook.lease(work_id))
    assert desk.states == ["done"]


async def test_of_a_revoked_key_it_ends(desk: Desk, notebook: Notebook) -> None:
    """Nobody could read it."""
    analysis_id, work_id = await interrupted(desk, notebook)
    runner = desk.runner(engine=notebook, known=())
    await runner.resume(notebook.requests[work_id], notebook.lease(work_id))
    kept = desk.shelf.analyses["ann", analysis_id]
    assert (kept.state, kept.reason) == (
        "failed", "the API key that it belongs to is no longer valid",
    )  # fmt: skip


async def test_what_cannot_go_on_says_why(desk: Desk, notebook: Notebook) -> None:
    """The settings may be others by now."""
    analysis_id, work_id = await interrupted(desk, notebook)
    desk.trouble, desk.most_trouble = None, UsageError("there is no source `reddit` any more")
    await desk.runner(engine=notebook).resume(notebook.requests[work_id], notebook.lease(work_id))
    kept = desk.shelf.analyses["ann", analysis_id]
    assert (kept.state, kept.reason) == ("failed", "there is no source `reddit` any more")


async def test_who_waits_elsewhere_is_handed_the_flight(desk: Desk, notebook: Notebook) -> None:
    """When the work comes to the process that is asked for it."""
    analysis_id, work_id = await interrupted(desk, notebook)
    runner = desk.runner(engine=notebook)
    kept = await runner.follow(ANN, analysis_id)
    assert isinstance(kept, StoredAnalysis)
    waiting = asyncio.create_task(runner.outcome(kept))
    following = asyncio.create_task(runner.awaited(kept))
    going = asyncio.create_task(runner.resume(notebook.requests[work_id], notebook.lease(work_id)))
    task = await following
    assert isinstance(task, AnalysisTask)
    desk.go.set()
    assert await waiting == await task.result()
    runner.leave(task)
    await going


async def test_the_same_question_of_another_process_is_followed(desk: Desk, notebook: Notebook) -> None:
    """It is not asked again, nor paid; another tenant's is."""
    first, second = desk.runner(engine=notebook), desk.runner(engine=notebook)
    task = await joined(first)
    followed = await second.join(ANN, ASK)
    assert isinstance(followed, StoredAnalysis)
    assert followed.id == task.id
    other = await second.join(BEN, ASK)
    assert other.id != task.id
    desk.go.set()
    assert (await second.outcome(followed)).id == task.id
    await second.aclose()


async def test_who_asks_again_by_key_begins_nothing_that_is_noted(desk: Desk, notebook: Notebook) -> None:
    """A process may die when the engine knows of its work, and the store does not yet."""
    analysis_id, work_id = await interrupted(desk, notebook, key="k")
    del desk.shelf.analyses["ann", analysis_id]
    second = desk.runner(day=5, engine=notebook)
    kept = await second.join(ANN, ASK, "k")
    assert isinstance(kept, StoredAnalysis)
    assert (kept.id, kept.state, desk.states) == (analysis_id, "running", ["running"])
    desk.go.set()
    await second.resume(notebook.requests[work_id], notebook.lease(work_id))
    assert (await second.outcome(kept)).id == analysis_id
    assert (list(notebook.requests), desk.shelf.units["key:ann:analyses", DAY]) == ([work_id], 1)


async def test_deleted_here_it_is_cancelled_elsewhere(desk: Desk, notebook: Notebook) -> None:
    """With its next step; nothing of it comes back."""
    first, second = desk.runner(engine=notebook), desk.runner(engine=notebook)
    task = await joined(first)
    assert await second.delete(ANN, task.id)
    assert notebook.cancelled == [f"{task.id}."]
    desk.go.set()
    with pytest.raises(Conflict, match="cancelled"):
        await task.result()
    assert desk.states == []


async def test_cancellation_that_all_sources_hear_is_one(desk: Desk, notebook: Notebook) -> None:
    """And no defect."""
    desk.trouble = ExceptionGroup("tasks", [Conflict("it was cancelled"), Conflict("so it was")])
    desk.go.set()
    task = await joined(desk.runner(engine=notebook))
    with pytest.raises(Conflict, match="it was cancelled"):
        await task.result()
    assert desk.states == ["failed"]


async def test_what_another_process_has_taken_over_has_not_failed(desk: Desk, notebook: Notebook) -> None:
    """It runs, there; what it costs is settled there."""
    desk.trouble = ExceptionGroup("tasks", [ProcessStopping("it is another's")])
    desk.go.set()
    task = await joined(desk.runner(day=5, engine=notebook))
    with pytest.raises(Conflict, match="stops"):
        await task.result()
    assert (desk.states, desk.shelf.units["key:ann:usd", DAY]) == (["running"], 500_000)


async def test_cancelled_here_it_ends_elsewhere(desk: Desk, notebook: Notebook) -> None:
    """And stays, as one that was cancelled."""
    first, second = desk.runner(engine=notebook), desk.runner(engine=notebook)
    task = await joined(first)
    await second.cancel(ANN, task.id)
    assert notebook.cancelled == [f"{task.id}."]
    assert desk.states == ["failed"]
    await first.aclose()


async def test_what_was_cancelled_is_not_gone_on_with(desk: Desk, notebook: Notebook) -> None:
    """Though its process died before the engine heard of it."""
    analysis_id, work_id = await interrupted(desk, notebook)
    asked = len(desk.asked)
    await desk.shelf.store.fail("ann", analysis_id, CANCELLED)
    desk.go.set()
    await desk.runner(engine=notebook).resume(notebook.requests[work_id], notebook.lease(work_id))

    kept = desk.shelf.analyses["ann", analysis_id]
    assert (kept.state, kept.reason, len(desk.asked)) == ("failed", CANCELLED, asked)


async def test_what_nobody_waits_for_is_queued_when_it_would_wait(desk: Desk, notebook: Notebook) -> None:
    """Charged at once, so that a limit is said to whoever asks; the worker charges nothing."""
    turns = FairQueue(1, 9)
    runner = desk.runner(day=1, engine=notebook, turns=turns)
    first = await joined(desk.runner(engine=notebook, turns=turns), BEN)
    queued = await runner.join(ANN, ASK, detached=True)
    assert isinstance(queued, StoredAnalysis)
    (work_id,) = notebook.queued
    with pytest.raises(LimitReached):
        await runner.join(ANN, ASK, "k", detached=True)
    desk.go.set()
    await first.result()
    await desk.runner(day=1, engine=notebook).resume(notebook.requests[work_id], notebook.lease(work_id))
    assert desk.shelf.analyses["ann", queued.id].state == "done"
    assert desk.shelf.units["key:ann:analyses", DAY] == 1


async def test_without_an_engine_what_another_process_runs_is_marked_cancelled(desk: Desk) -> None:
    """It cannot be told to stop; whoever asks for it is told that it was cancelled."""
    await desk.shelf.begin(ANN.id, "a", "mug")

    await desk.runner(day=5).cancel(ANN, "a")

    assert [kept.reason for kept in desk.shelf.analyses.values()] == [CANCELLED]


async def test_a_process_that_stops_while_it_begins_leaves_it(desk: Desk, notebook: Notebook) -> None:
    """Noted, and gone on with."""
    runner = desk.runner(day=5, engine=notebook)
    desk.shelf.may_begin.clear()
    joining = asyncio.create_task(runner.join(ANN, ASK))
    await desk.shelf.beginning.wait()
    closing = asyncio.create_task(runner.aclose())
    await asyncio.sleep(0)
    desk.shelf.may_begin.set()
    await closing
    task = await joining
    assert isinstance(task, AnalysisTask)
    with pytest.raises(Conflict, match="stops"):
        await task.result()
    assert desk.states == ["running"]


async def test_what_need_not_wait_is_not_queued(desk: Desk, notebook: Notebook) -> None:
    """Nobody waits for it, but there is room; nor is what no_tenants is known for gone on with."""
    runner = desk.runner(engine=notebook)
    task = await runner.join(ANN, ASK, detached=True)
    assert isinstance(task, AnalysisTask)
    assert not notebook.queued
    assert await no_tenants("ann") is None
    await runner.aclose()


async def test_a_process_that_stops_begins_nothing(desk: Desk, notebook: Notebook) -> None:
    """What was about to be begun is not, and has not failed."""
    runner = desk.runner(engine=notebook)
    await runner.aclose()
    with pytest.raises(ProcessStopping):
        await runner.run(ANN, ASK, key="k")
    assert desk.states == []


async def test_what_nobody_waits_for_runs_on_though_its_caller_left(desk: Desk, notebook: Notebook) -> None:
    """Before it was begun."""
    runner = desk.runner(engine=notebook)
    desk.shelf.may_begin.clear()
    joining = asyncio.create_task(runner.join(ANN, ASK, detached=True))
    await desk.shelf.beginning.wait()
    joining.cancel()
    desk.shelf.may_begin.set()
    desk.go.set()
    await desk.entered.wait()
    (kept,) = desk.shelf.analyses.values()
    assert (await runner.outcome(kept)).id == kept.id
    assert desk.states == ["done"]


async def test_many_at_once_are_queued_instead_of_refused(desk: Desk, notebook: Notebook) -> None:
    """
    Room is counted with what is launched and not in the queue yet, so a burst fills no queue of this process.
    """
    runner = desk.runner(engine=notebook, turns=FairQueue(at_once=4, waiting=2))
    asks = [replace(ASK, query=f"mug number {number}") for number in range(20)]
    begun = await asyncio.gather(*(runner.join(ANN, ask, detached=True) for ask in asks))

    assert sum(isinstance(task, AnalysisTask) for task in begun) == 2
    assert len(notebook.queued) == 18
    assert desk.states == ["running"] * 20
    await runner.aclose()


async def test_what_has_joined_the_queue_is_counted_once(desk: Desk, notebook: Notebook) -> None:
    """While it is stored as begun, too: a second one still has room here."""
    runner = desk.runner(engine=notebook, turns=FairQueue(at_once=4, waiting=2))
    desk.shelf.may_begin.clear()
    first = asyncio.create_task(runner.join(ANN, ASK, detached=True))
    await desk.shelf.beginning.wait()
    second = asyncio.create_task(runner.join(ANN, replace(ASK, query="another mug"), detached=True))
    third = asyncio.create_task(runner.join(ANN, replace(ASK, query="a third mug"), detached=True))
    desk.shelf.may_begin.set()
    begun = await asyncio.gather(first, second, third)

    assert [isinstance(task, AnalysisTask) for task in begun] == [True, True, False]
    await runner.aclose()


async def test_work_that_cannot_be_noted_is_refused_at_once(desk: Desk) -> None:
    """It does not look as if it ran until another process takes it for lost."""

    class Full(Notebook):
        async def enqueue(self, kind: str, work_id: str, request: str, tenant: str) -> None:
            raise StoreUnavailable("the database does not answer")

    runner = desk.runner(engine=Full(), turns=FairQueue(at_once=2, waiting=2))
    first = await joined(runner)
    with pytest.raises(StoreUnavailable):
        await runner.join(ANN, replace(ASK, query="another mug"), detached=True)

    assert sorted((kept.state, kept.reason) for kept in desk.shelf.analyses.values()) == [
        ("failed", UNNOTED), ("running", None),
    ]  # fmt: skip
    assert isinstance(first, AnalysisTask)
    await runner.aclose()


@pytest.mark.parametrize("broken", ["enqueue", "begin", "release"])
async def test_refused_work_costs_nothing(desk: Desk, broken: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whichever database fails; what cannot be released stands, and the log says so."""

    class Full(Notebook):
        async def enqueue(self, kind: str, work_id: str, request: str, tenant: str) -> None:
            raise StoreUnavailable("the database does not answer")

    turns = FairQueue(at_once=1, waiting=2)
    runner = desk.runner(day=5, engine=Full(), turns=turns)
    with turns.joined(BEN):
        desk.shelf.broken.add(broken)
        with pytest.raises(StoreUnavailable):
            await runner.join(ANN, ASK, detached=True)

    stands = broken == "release"
    assert desk.shelf.units == {("key:ann:analyses", DAY): stands, ("key:ann:usd", DAY): stands * 500_000}
    assert ("could not be released" in caplog.text) == stands


async def test_work_waits_while_requests_are_accepted(desk: Desk, notebook: Notebook) -> None:
    """So that an answer of 202 waits for no work; afterwards it runs."""
    runner = desk.runner(engine=notebook, turns=FairQueue(at_once=9))
    desk.shelf.may_begin.clear()
    first = asyncio.create_task(runner.join(ANN, ASK, detached=True))
    await desk.shelf.beginning.wait()
    second = asyncio.create_task(runner.join(ANN, replace(ASK, query="another mug"), detached=True))
    desk.shelf.may_begin.set()
    task = await first
    asked = len(desk.asked)
    await second
    await desk.entered.wait()
    desk.go.set()

    assert asked == 0
    assert isinstance(task, AnalysisTask)
    assert (await task.result()).id == task.id
    await runner.aclose()


async def test_work_goes_on_once_the_store_can_be_used_again(desk: Desk, notebook: Notebook) -> None:
    """
    Another server may hold the file longer than a call waits; work that ended then would be lost.
    """

    class Twice(set[str]):
        """Breaks what it is asked about twice."""

        times = 0

        def __contains__(self, method: object) -> bool:
            self.times += method == "begin"
            return method == "begin" and self.times <= 2

    analysis_id, work_id = await interrupted(desk, notebook)
    desk.go.set()
    desk.shelf.broken = broken = Twice()
    await desk.runner(engine=notebook).resume(notebook.requests[work_id], notebook.lease(work_id))

    assert (desk.shelf.analyses["ann", analysis_id].state, broken.times) == ("done", 3)


@pytest.mark.parametrize("within", [False, True])
async def test_tries_end_and_cost_once(desk: Desk, notebook: Notebook, within: bool) -> None:
    """Whether the store fails while the work begins or within it, the last try alone is counted."""
    states: list[str] = []

    class First(set[str]):
        """Breaks the first `begin`, or has the work of the first fail."""

        def __contains__(self, method: object) -> bool:
            if method != "begin":
                return False
            states.extend(desk.states)
            desk.trouble = StoreUnavailable("the database does not answer") if within and len(states) == 1 else None
            return not within and len(states) == 1

    _, work_id = await interrupted(desk, notebook)
    desk.go.set()
    desk.shelf.broken = First()
    runner, reasons = desk.runner(day=5, engine=notebook), list[str]()
    runner.on_end(lambda report, reason: reasons.append(reason))
    await runner.resume(notebook.requests[work_id], notebook.lease(work_id))

    assert (states, desk.states, reasons) == (["running", "running"], ["done"], [""])
    assert desk.shelf.units == {("key:ann:analyses", DAY): 1, ("key:ann:usd", DAY): 200_000}


async def test_what_is_cancelled_while_the_store_fails_is_not_tried_again(desk: Desk, notebook: Notebook) -> None:
    """A step may meet that failure where the work should have been cancelled."""
    analysis_id, work_id = await interrupted(desk, notebook)
    runner = desk.runner(day=5, engine=notebook)
    desk.entered.clear()
    asked = len(desk.asked)
    desk.trouble = StoreUnavailable("the database does not answer")
    going = asyncio.create_task(runner.resume(notebook.requests[work_id], notebook.lease(work_id)))
    await desk.entered.wait()
    task = await runner.follow(ANN, analysis_id)
    assert isinstance(task, AnalysisTask)
    task.cancelled = True
    desk.go.set()
    await going

    kept = desk.shelf.analyses["ann", analysis_id]
    assert (kept.state, kept.reason, len(desk.asked)) == ("failed", CANCELLED, asked + 1)


async def test_what_never_can_be_stored_is_no_success(desk: Desk, notebook: Notebook) -> None:
    """The engine keeps it as failed work."""
    _, work_id = await interrupted(desk, notebook)
    desk.shelf.broken.add("begin")
    runner = desk.runner(engine=notebook)
    with pytest.raises(StoreUnavailable):
        await runner.resume(notebook.requests[work_id], notebook.lease(work_id))
