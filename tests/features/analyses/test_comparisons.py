"""Comparisons of a tenant: an analysis for each product, begun together."""

from __future__ import annotations

import asyncio

import pytest

from api.core.work import Failure
from api.errors import Conflict, LimitReached, ListenpostError, UsageError
from api.features.analyses.analysis_job import AnalysisTask
from api.features.analyses.limits import Limits
from api.features.analyses.runner import Comparisons, side_by_side
from api.features.analyses.store_ports import StoredAnalysis
from api.reports.report import Report
from api.services.product import Ask
from tests.features.analyses.desk import ANN, Desk
from tests.features.comparisons.made import PLACES, about, posts
from tests.services.fakes import SourceAnswer
from tests.services.shelf import NOW

MUG, CUP, JAR = Ask("mug"), Ask("cup"), Ask("jar")


def comparisons(desk: Desk, day: int = 0, minute: int = 0) -> Comparisons:
    """Over a desk's runner, with so many analyses a day and requests a minute."""
    limits = Limits(desk.shelf.store, minute, day, clock=lambda: NOW)
    return Comparisons(desk.runner(day), limits, desk.shelf.store)


async def test_each_product_is_an_analysis_that_is_kept(desk: Desk) -> None:
    """At once, in their order, and heard of by name."""
    desk.go.set()
    asking, heard = comparisons(desk), SourceAnswer()
    async with asking.begun(ANN, [MUG, CUP]) as tasks:
        answers = await asking.answers([MUG, CUP], tasks, heard)

    assert [answer.query for answer in answers if isinstance(answer, Report)] == ["mug", "cup"]
    assert desk.states == ["done", "done"]
    assert set(heard.kinds) == {"product"}


async def test_each_further_product_is_a_request_more(desk: Desk) -> None:
    """The door counts the first."""
    desk.go.set()
    asking = comparisons(desk, minute=2)
    with pytest.raises(LimitReached, match="2 requests per minute"):
        async with asking.begun(ANN, [MUG, CUP, JAR, Ask("bowl")]):
            pass
    assert desk.asked == []


async def test_where_there_is_no_room_for_all_none_begins(desk: Desk) -> None:
    """Two a day for three products; the two are left for others, and what is kept needs none."""
    desk.go.set()
    asking = comparisons(desk, day=2)
    with pytest.raises(LimitReached, match="the day's 2 analyses"):
        async with asking.begun(ANN, [MUG, CUP, JAR]):
            pass
    assert (desk.asked, desk.states) == ([], [])
    for _ in range(2):
        async with asking.begun(ANN, [MUG, CUP], "k") as tasks:
            await asking.answers([MUG, CUP], tasks)

    assert desk.states == ["done", "done"]


async def test_when_one_may_not_begin_none_goes_on(desk: Desk) -> None:
    """What was begun before it is cancelled."""
    asking = comparisons(desk)
    with pytest.raises(UsageError, match="no source `myspace`"):
        async with asking.begun(ANN, [MUG, Ask("cup", sources=("myspace",))]):
            pass
    await asking.runner.aclose()

    assert [kept.reason for kept in desk.shelf.analyses.values()] == ["cancelled"]


async def test_one_that_fails_leaves_the_others(desk: Desk) -> None:
    """It is a failure in its place; of what fails for want of a source nobody else suffers."""
    asking = comparisons(desk)
    async with asking.begun(ANN, [MUG, CUP]) as tasks:
        first, _ = tasks
        assert isinstance(first, AnalysisTask)
        working = asyncio.create_task(asking.answers([MUG, CUP], tasks))
        await desk.entered.wait()
        first.cancel()
        desk.go.set()
        answers = await working

    assert isinstance(answers[0], Failure)
    assert answers[0].code == "conflict"
    assert isinstance(answers[1], Report)


async def test_leaving_cancels_all(desk: Desk) -> None:
    """Whoever else waits for one keeps it."""
    asking = comparisons(desk)
    other = await asking.runner.join(ANN, CUP)
    assert isinstance(other, AnalysisTask)
    async with asking.begun(ANN, [MUG, CUP]):
        await desk.entered.wait()
    desk.go.set()
    assert (await other.result()).query == "cup"
    await asking.runner.aclose()

    reasons = {kept.query: kept.reason for kept in desk.shelf.analyses.values()}
    assert reasons["cup"] is None
    assert reasons["mug"] == "cancelled"


async def test_a_key_names_one_comparison(desk: Desk) -> None:
    """Asked again it is answered from what is kept; with another product it is refused."""
    desk.go.set()
    asking = comparisons(desk)
    both = [MUG, CUP]
    async with asking.begun(ANN, both, "k") as tasks:
        first = await asking.answers(both, tasks)
    async with asking.begun(ANN, both, "k") as tasks:
        assert all(isinstance(task, StoredAnalysis) for task in tasks)
        assert await asking.answers(both, tasks) == first
    for others in ([MUG, JAR], [CUP, MUG], [MUG, CUP, JAR]):
        with pytest.raises(Conflict, match="different request"):
            async with asking.begun(ANN, others, "k"):
                pass

    assert len(desk.asked) == 2


async def test_a_key_begins_again_what_failed(desk: Desk) -> None:
    """And nothing else."""
    desk.go.set()
    desk.trouble = ListenpostError("broken")
    asking = comparisons(desk)
    async with asking.begun(ANN, [MUG, CUP], "k") as tasks:
        answers = await asking.answers([MUG, CUP], tasks)
    assert all(isinstance(answer, Failure) for answer in answers)
    desk.trouble = None
    async with asking.begun(ANN, [MUG, CUP], "k") as tasks:
        answers = await asking.answers([MUG, CUP], tasks)

    assert all(isinstance(answer, Report) for answer in answers)


def test_what_is_kept_is_compared_later() -> None:
    """As it was asked; one that failed stands in its place, with the reason."""
    report = about("Ember", posts("Ember", "It is a mug."), since="week", depth="quick")
    kept = [
        StoredAnalysis("a", "ann", "done", NOW, "Ember", report),
        StoredAnalysis("b", "ann", "failed", NOW, "Ohom", None, "cancelled."),
        StoredAnalysis("c", "ann", "failed", NOW, "Yeti", None),
    ]
    comparison = side_by_side(kept, PLACES)

    assert [each.query for each in comparison.products] == ["Ember", "Ohom", "Yeti"]
    assert [each.reason for each in comparison.products] == [None, "cancelled", "failed"]
    assert (comparison.depth, comparison.since, comparison.sources) == (
        "quick",
        "week",
        ("reddit",),
    )
    assert comparison.unlike == ()
