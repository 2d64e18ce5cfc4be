"""Analyses that are followed, here or in another process, and connections that are lost."""

from __future__ import annotations

import asyncio

import pytest

from api.errors import Conflict
from api.features.analyses.analysis_job import AnalysisTask
from api.features.analyses.store_ports import StoredAnalysis
from api.reports.report import Report
from api.services.product import Ask
from tests.features.analyses.desk import ANN, ASK, BEN, Desk, joined
from tests.services.shelf import NOW


async def test_a_flight_is_followed_by_its_id(desk: Desk) -> None:
    """By its tenant alone, and whoever follows it keeps it alive."""
    runner = desk.runner()
    task = await joined(runner)
    followed = await runner.follow(ANN, task.id)
    runner.leave(task)
    desk.go.set()

    assert followed is task
    assert task.query == ASK.query
    assert await runner.follow(BEN, task.id) is None
    report = await task.result()
    kept = await runner.follow(ANN, task.id)
    assert isinstance(kept, StoredAnalysis)
    assert await runner.outcome(kept) is kept.report
    assert kept.report == report
    assert len(desk.asked) == 1


async def test_what_has_not_begun_is_not_followed(desk: Desk) -> None:
    """Nobody knows its id yet, and it may still be refused."""
    runner = desk.runner()
    desk.shelf.may_begin.clear()
    beginning = asyncio.create_task(joined(runner))
    await desk.shelf.beginning.wait()
    (analysis_id,) = runner._tasks

    assert await runner.follow(ANN, analysis_id) is None
    desk.shelf.may_begin.set()
    await beginning
    await runner.aclose()


async def test_a_lost_connection_has_time_to_come_back(desk: Desk) -> None:
    """Until the grace is over it runs as if somebody waited."""
    runner = desk.runner(grace=3600)
    task = await joined(runner)
    runner.leave(task, lost=True)
    again = await runner.follow(ANN, task.id)
    desk.go.set()

    assert again is task
    assert (await task.result()).id == task.id
    assert desk.cancelled == 0


async def test_who_does_not_come_back_has_left(desk: Desk) -> None:
    """When the grace is over, and at once where there is none."""
    for grace in (0.001, 0):
        runner = desk.runner(grace=grace)
        task = await joined(runner)
        await desk.entered.wait()
        runner.leave(task, lost=True)
        with pytest.raises(Conflict, match="cancelled"):
            await task.result()

    assert desk.states == ["failed", "failed"]


async def test_one_of_another_process_is_waited_for(desk: Desk) -> None:
    """Until it is done there, has failed there, or is deleted."""
    there, here, shelf = desk.runner(), desk.runner(), desk.shelf.analyses
    done, failed = await joined(there), await there.join(ANN, Ask("mug of old"))
    shelf["ann", "d"] = StoredAnalysis("d", "ann", "running", NOW, "mug of steel", None)
    kept = [await here.follow(ANN, each) for each in (done.id, failed.id, "d")]
    waiting = [asyncio.create_task(here.outcome(each)) for each in kept if isinstance(each, StoredAnalysis)]
    assert isinstance(failed, AnalysisTask)
    there.leave(failed)
    del shelf["ann", "d"]
    desk.go.set()
    report, *lost = await asyncio.gather(*waiting, return_exceptions=True)

    assert isinstance(report, Report)
    assert report.id == done.id
    assert all(isinstance(each, Conflict) for each in lost)
    assert [str(each).partition(": ")[2] for each in lost] == ["cancelled", "it was deleted"]
