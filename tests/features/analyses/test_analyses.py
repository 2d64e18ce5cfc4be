"""Analyses that are begun, shared, cancelled and kept: one flight, whoever waits."""

from __future__ import annotations

import asyncio
import logging

import pytest

from api.errors import Conflict, LimitReached, ListenpostError, StoreUnavailable, UsageError
from api.features.analyses.analysis_job import UNKEPT
from api.features.analyses.api_keys import Tenant
from api.features.analyses.store_ports import StoredAnalysis
from api.reports.report import Report
from api.services.product import Ask
from tests.features.analyses.desk import ANN, ASK, BEN, DAY, Desk, joined
from tests.services.fakes import SourceAnswer
from tests.services.shelf import Shelf


async def test_an_analysis_is_kept_and_told(desk: Desk) -> None:
    """Running while it runs, done afterwards, each ended one told once."""
    desk.go.set()
    runner, heard, ended = desk.runner(), SourceAnswer(), list[object]()
    runner.on_end(lambda report, reason: ended.append(report))
    report = await runner.run(ANN, ASK, heard)

    assert desk.states == ["done"]
    assert desk.shelf.analyses["ann", report.id].report == report
    assert ended == [report]
    assert heard.kinds == ["source.started", "source.fetched", "graded"]


async def test_identical_requests_share_one_flight(desk: Desk) -> None:
    """The late one hears everything from the start; both get one report."""
    runner, early, late = desk.runner(), SourceAnswer(), SourceAnswer()
    first = await joined(runner)
    first.listen(early)
    await desk.entered.wait()
    second = await joined(runner)
    second.listen(late)
    desk.go.set()

    assert await first.result() is await second.result()
    assert len(desk.asked) == 1
    assert early.kinds == late.kinds == ["source.started", "source.fetched", "graded"]


@pytest.mark.parametrize(("tenant", "ask"), [(BEN, ASK), (ANN, Ask("mug", about="cups"))])
async def test_what_is_not_identical_shares_nothing(desk: Desk, tenant: Tenant, ask: Ask) -> None:
    """Neither with another tenant nor with another question."""
    desk.go.set()
    runner = desk.runner()
    one, other = await asyncio.gather(runner.run(ANN, ASK), runner.run(tenant, ask))

    assert one.id != other.id
    assert len(desk.asked) == 2


async def test_the_last_to_leave_cancels(desk: Desk) -> None:
    """One of two who leaves stops nothing; what is cancelled is marked failed."""
    runner = desk.runner()
    first, second = await joined(runner), await joined(runner)
    runner.leave(first)
    await desk.entered.wait()
    assert desk.cancelled == 0
    runner.leave(second)
    with pytest.raises(Conflict, match="cancelled"):
        await second.result()

    assert desk.cancelled == 1
    assert [kept.reason for kept in desk.shelf.analyses.values()] == ["cancelled"]


async def test_a_caller_that_is_cancelled_leaves(desk: Desk) -> None:
    """Whatever it was waiting for at the time."""
    runner = desk.runner()
    caller = asyncio.create_task(runner.run(ANN, ASK))
    await desk.entered.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await runner.aclose()

    assert desk.states == ["failed"]


async def test_a_caller_that_leaves_before_it_begins(desk: Desk) -> None:
    """Then nothing is asked at all."""
    runner = desk.runner()
    desk.shelf.may_begin.clear()
    caller = asyncio.create_task(runner.run(ANN, ASK))
    await desk.shelf.beginning.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    desk.shelf.may_begin.set()
    await runner.aclose()

    assert desk.asked == []
    assert desk.states == ["failed"]


async def test_a_cancelled_flight_is_not_shared(desk: Desk) -> None:
    """Who comes while it ends begins anew."""
    runner = desk.runner()
    first = await joined(runner)
    runner.leave(first)
    desk.go.set()

    assert (await runner.run(ANN, ASK)).id != first.id


async def test_a_detached_flight_runs_on(desk: Desk) -> None:
    """Nobody waits, and it is done all the same."""
    runner, over = desk.runner(), asyncio.Event()
    task = await joined(runner)
    task.detached = True
    runner.leave(task)
    task.on_end(over.set)
    desk.go.set()
    await over.wait()

    assert desk.states == ["done"]


async def test_closing_marks_everything_failed(desk: Desk) -> None:
    """Detached ones too."""
    runner = desk.runner()
    (await joined(runner)).detached = True
    await joined(runner, BEN)
    await runner.aclose()

    assert desk.states == ["failed", "failed"]


async def test_deleting_cancels_first(desk: Desk) -> None:
    """Its own only: another tenant's running one goes on."""
    runner = desk.runner()
    task = await joined(runner)

    assert not await runner.delete(BEN, task.id)
    assert desk.cancelled == 0
    assert await runner.delete(ANN, task.id)
    assert not await runner.delete(ANN, task.id)
    assert desk.shelf.analyses == {}


async def test_cancelling_keeps_that_it_was(desk: Desk) -> None:
    """Its own only; one that has ended stays as it was."""
    runner = desk.runner()
    task = await joined(runner)
    await runner.cancel(BEN, task.id)
    assert desk.cancelled == 0
    await runner.cancel(ANN, task.id)
    await runner.cancel(ANN, task.id)

    assert desk.cancelled == 1
    assert desk.states == ["failed"]


async def test_a_key_names_one_analysis(desk: Desk) -> None:
    """While it runs, and when it is done."""
    runner = desk.runner()
    first, second = await asyncio.gather(joined(runner, key="k"), joined(runner, key="k"))
    desk.go.set()
    report = await first.result()
    again = await runner.run(ANN, ASK, key="k")

    assert first is second
    assert again == report
    assert len(desk.asked) == 1


async def test_a_key_joins_the_flight_that_is_under_way(desk: Desk) -> None:
    """It then names the flight's analysis."""
    runner = desk.runner()
    first = await joined(runner)
    second = await joined(runner, key="k")

    assert first is second
    await runner.aclose()


async def test_a_flight_that_ends_while_a_key_is_claimed(desk: Desk) -> None:
    """The key gets what is kept of it."""
    desk.go.set()
    runner = desk.runner()
    task = await joined(runner)
    desk.shelf.before_claim = task.result()
    kept = await runner.join(ANN, ASK, "k")

    assert isinstance(kept, StoredAnalysis)
    assert kept.id == task.id


async def test_a_key_of_another_request_is_a_conflict(desk: Desk) -> None:
    """And the first stays as it was; another tenant's key is another key."""
    runner = desk.runner()
    desk.go.set()
    await runner.run(ANN, ASK, key="k")

    with pytest.raises(Conflict, match="different request"):
        await runner.run(ANN, Ask("cup"), key="k")
    await runner.run(BEN, Ask("cup"), key="k")
    assert desk.asked == [ASK, Ask("cup")]


async def test_what_failed_is_begun_again_under_its_key(desk: Desk) -> None:
    """With the same id: who was cut off can ask again."""
    runner = desk.runner()
    first = await joined(runner, key="k")
    runner.leave(first)
    second = await joined(runner, key="k")
    desk.go.set()
    await second.result()

    assert first is not second
    assert first.id == second.id
    assert desk.states == ["done"]


async def test_a_key_of_another_process_is_not_begun_again(desk: Desk) -> None:
    """It runs there; here its end is waited for."""
    runner = desk.runner()
    task = await joined(runner, key="k")
    elsewhere = desk.runner()
    kept = await elsewhere.join(ANN, ASK, "k")

    assert isinstance(kept, StoredAnalysis)
    assert (kept.id, kept.state) == (task.id, "running")
    waiting = asyncio.create_task(elsewhere.run(ANN, ASK, key="k"))
    desk.go.set()
    report = await task.result()
    assert await waiting == report
    assert desk.asked == [ASK]


async def test_a_claim_that_never_began_is_free(desk: Desk) -> None:
    """A process may have died between the two."""
    runner = desk.runner()
    desk.trouble = UsageError("x")
    desk.go.set()
    with pytest.raises(UsageError):
        await runner.run(ANN, ASK, key="k")
    desk.shelf.analyses.clear()
    desk.trouble = None

    report = await runner.run(ANN, ASK, key="k")
    assert report.id == desk.shelf.claims["ann", "k"][0]


async def test_what_cannot_be_asked_is_not_begun(desk: Desk) -> None:
    """No record, no reservation."""
    with pytest.raises(UsageError, match="myspace"):
        await desk.runner(day=1).run(ANN, Ask("mug", sources=("myspace",)))

    assert desk.shelf.analyses == {}
    assert +desk.shelf.units == {}


async def test_of_ten_tenants_worth_of_requests_one_is_begun(desk: Desk) -> None:
    """Ten different questions, one analysis left."""
    runner = desk.runner(day=1)
    desk.go.set()
    runs = [runner.run(ANN, Ask(f"mug {number}")) for number in range(10)]
    ended = await asyncio.gather(*runs, return_exceptions=True)

    assert sum(isinstance(one, Report) for one in ended) == 1
    assert sum(isinstance(one, LimitReached) for one in ended) == 9
    assert len(desk.asked) == 1


async def test_shared_flights_are_paid_once(desk: Desk) -> None:
    """The real cost, not the estimate."""
    runner = desk.runner(day=5)
    desk.go.set()
    await asyncio.gather(runner.run(ANN, ASK), runner.run(ANN, ASK))

    assert desk.shelf.units == {("key:ann:analyses", DAY): 1, ("key:ann:usd", DAY): 200_000}


@pytest.mark.parametrize("requests", [0, 1])
async def test_who_asked_nobody_pays_nothing(desk: Desk, requests: int) -> None:
    """A request to a source counts even when no model was asked."""
    desk.tokens, desk.usd, desk.requests = 0, 0.0, requests
    desk.go.set()
    await desk.runner(day=5).run(ANN, ASK)

    assert desk.shelf.units["key:ann:analyses", DAY] == requests


@pytest.mark.parametrize(("asks", "counted"), [(False, 0), (True, 1)])
async def test_what_is_cancelled_counts_when_it_had_asked(desk: Desk, asks: bool, counted: int) -> None:
    """Also when pages came from a cache: then a model is asked about them."""
    desk.asks = asks
    runner = desk.runner(day=5)
    task = await joined(runner)
    await desk.entered.wait()
    runner.leave(task)
    await runner.aclose()

    assert desk.shelf.units["key:ann:analyses", DAY] == counted


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [(UsageError("ask less"), "ask less"), (ZeroDivisionError("secret"), "internal error")],
)
async def test_what_fails_says_why_but_tells_no_secret(
    desk: Desk, trouble: Exception, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A fault of ours is in the log, not in the answer."""
    caplog.set_level(logging.ERROR)
    desk.trouble = trouble
    desk.go.set()
    runner, told = desk.runner(), list[str]()
    runner.on_end(lambda report, why: told.append(why))
    with pytest.raises(ListenpostError, match=reason):
        await runner.run(ANN, ASK)

    assert told == [kept.reason for kept in desk.shelf.analyses.values()] == [reason]
    assert ("ZeroDivisionError" in caplog.text) == isinstance(trouble, ZeroDivisionError)


async def test_a_report_that_cannot_be_stored_is_still_answered(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """And says so; whoever waits for it by its id gets it until it is deleted."""
    desk.shelf.broken.add("finish")
    desk.go.set()
    runner = desk.runner()
    report = await runner.run(ANN, ASK, key="k")

    assert report.quality_notes == (UNKEPT,)
    assert "could not be stored" in caplog.text
    assert desk.states == ["running"]
    kept = await runner.follow(ANN, report.id)
    assert isinstance(kept, StoredAnalysis)
    assert await runner.outcome(kept) is await runner.run(ANN, ASK, key="k") is report
    assert await runner.kept("ben", report.id) is None
    assert await runner.delete(ANN, report.id)
    assert await runner.kept("ann", report.id) is None


async def test_what_could_not_be_stored_is_stored_later(desk: Desk) -> None:
    """
    Before another process takes it for lost, since its work has ended and no engine knows of it.
    """
    desk.shelf.broken |= {"finish", "fail"}
    desk.go.set()
    runner = desk.runner()
    report = await runner.run(ANN, ASK)
    desk.trouble = UsageError("ask less")
    with pytest.raises(UsageError):
        await runner.run(BEN, ASK)
    await runner.store_again()
    assert desk.states == ["running", "running"]
    desk.shelf.broken.clear()
    await runner.store_again()
    await runner.store_again()

    kept = desk.shelf.analyses["ann", report.id]
    assert desk.states == ["done", "failed"]
    assert kept.report is not None
    assert kept.report.quality_notes == ()
    assert [entry.reason for entry in desk.shelf.analyses.values()] == [None, "ask less"]
    assert await runner.kept("ann", report.id) is kept


async def test_what_was_deleted_meanwhile_is_not_stored_later() -> None:
    """Here while another is stored, or by another process at any time."""

    class Deleting(Shelf):
        """The second is deleted while the first is stored."""

        async def finish(self, tenant: str, report: Report, work_id: str | None = None) -> bool:
            stored = await super().finish(tenant, report, work_id)
            await runner.delete(BEN, second.id)
            return stored

    desk = Desk(Deleting({"finish"}))
    desk.go.set()
    runner = desk.runner()
    first, second, third = [await runner.run(*asked) for asked in ((ANN, ASK), (BEN, ASK), (ANN, Ask("cup")))]
    await desk.shelf.delete("ann", third.id)
    desk.shelf.broken.clear()
    await runner.store_again()

    assert list(desk.shelf.analyses) == [("ann", first.id)]
    assert await runner.kept("ben", second.id) is await runner.kept("ann", third.id) is None


async def test_what_was_begun_again_keeps_its_outcome(desk: Desk) -> None:
    """The failure of the earlier work says nothing about the later one."""
    desk.shelf.broken.add("fail")
    runner = desk.runner()
    task = await joined(runner, key="k")
    runner.leave(task)
    await task.ended()
    desk.shelf.broken.clear()
    await desk.shelf.begin("ann", task.id, "mug", f"{task.id}.2")
    await runner.store_again()

    assert desk.states == ["running"]
    assert await runner.kept("ann", task.id) is desk.shelf.analyses["ann", task.id]


async def test_a_failure_that_cannot_be_stored_is_logged(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """The next start finds it running and sweeps it; until then it is known here."""
    desk.shelf.broken.add("fail")
    runner = desk.runner()
    task = await joined(runner, key="k")
    runner.leave(task)
    await task.ended()
    kept = await runner.kept("ann", task.id)

    assert "could not be marked failed" in caplog.text
    assert desk.states == ["running"]
    assert kept is not None
    assert (kept.state, kept.reason) == ("failed", "cancelled")
    desk.go.set()
    report = await runner.run(ANN, ASK, key="k")
    again = await runner.kept("ann", task.id)
    assert again is not None
    assert again.report == report


async def test_nothing_begins_that_cannot_be_kept(desk: Desk) -> None:
    """No question is asked for it either."""
    desk.shelf.broken.add("begin")
    with pytest.raises(StoreUnavailable):
        await desk.runner(day=5).run(ANN, ASK)

    assert desk.asked == []
    assert +desk.shelf.units == {}
