"""The loop when something fails, hangs or is cancelled: the first pass stands, and it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from api.core.display_names import OUTCOME_REASONS
from api.core.domain import FetchPlan, Outcome
from api.core.items import Batch, Item
from api.errors import Broken, ModelError, NotAsked, QuotaExhausted, RateLimited, SourceError, TimedOut, Unreachable
from tests.services.fakes import NEVER, FakeJudge, FakeObserver, FakeSource, SourceAnswer, gathered, ids, items

RESET = datetime(2025, 3, 10, 8, tzinfo=UTC)


async def test_a_degraded_gate_keeps_all_and_does_not_fetch_again() -> None:
    """
    B20, B21: an unknown yield is no reason for a refetch, and the failure is visible.
    """
    source = FakeSource(items(30))

    found = await gathered(source, FakeJudge(trouble={0: ModelError("refused")}))

    assert (len(source.plans), ids(found)) == (1, ["0", "1", "2", "3", "4"])
    assert (found.status, found.gate_reason, found.reason) == ("degraded", "refused", None)
    assert (found.unjudged, found.yield_ratio, found.outcome) == (True, None, Outcome.OK)
    assert (found.relevant, found.attempts[0].relevant) == ((), 0)


async def test_a_second_judge_that_fails_leaves_the_first_pass() -> None:
    """
    B27: new items are withheld, the gate's status stays ok, and note and attempt tell the failure.
    """
    source = FakeSource(items(30))

    found = await gathered(source, FakeJudge(["1"], {1: ModelError("timeout")}))

    assert (ids(found), found.fetched, found.status) == (["1"], 5, "ok")
    assert (found.refetched, found.refetch_gain, found.yield_ratio) == (True, 0, 0.2)
    assert found.capped
    second = found.attempts[1]
    assert (second.fetched, second.relevant, second.status, second.reason) == (
        10, 0, "degraded", "timeout",
    )  # fmt: skip
    assert found.notes[0] == (
        "refetch could not be judged (no answer in time): 5 new items withheld, the first pass stands"
    )


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Unreachable("reddit"), "unreachable"),
        (TimedOut("reddit"), "timed_out"),
        (RateLimited("reddit", retry_at=RESET), "rate_limited"),
        (QuotaExhausted("reddit", retry_at=RESET), "quota_exhausted"),
    ],
)
async def test_a_second_fetch_that_fails_leaves_the_first_pass(error: SourceError, reason: str) -> None:
    """
    B28, B37: what was kept stays, the refetch is marked failed with its cause and reset time.
    """
    source = FakeSource(items(30), trouble={1: error})

    found = await gathered(source, FakeJudge(["1"]))

    assert (ids(found), found.outcome, found.status) == (["1"], Outcome.OK, "ok")
    second = found.attempts[1]
    assert (second.limit, second.requests, second.status, second.reason) == (
        10, 1, "degraded", reason,
    )  # fmt: skip
    assert found.notes[0] == f"refetch failed ({OUTCOME_REASONS[Outcome(reason)]}); the first pass stands"
    assert found.retry_at == error.retry_at
    assert found.upstream_calls == 3


async def test_a_second_fetch_that_is_empty_leaves_the_first_pass() -> None:
    """
    B28: a source that gives nothing the second time takes nothing away, and nobody is asked.
    """

    class Forgets(FakeSource):
        async def fetch(self, plan: FetchPlan) -> Batch:
            batch = await super().fetch(plan)
            return batch if plan.limit == 5 else Batch(plan, (), full=False, notes=("odd",))

    judge = FakeJudge(["1"])
    found = await gathered(Forgets(items(30)), judge)

    assert (ids(found), found.yield_ratio, len(judge.asked)) == (["1"], 0.2, 1)
    assert [attempt.status for attempt in found.attempts] == ["ok", "skipped"]
    assert found.notes[0] == "odd"


async def test_a_slow_second_fetch_leaves_time_for_comments() -> None:
    """
    B28: a refetch that hangs gets half of the time left; the first pass stands, comments and all.
    """
    source = FakeSource(items(30), trouble={1: NEVER})

    found = await gathered(source, FakeJudge(["1"]), until=0.6)

    assert (ids(found), found.attempts[1].reason) == (["1"], "timed_out")
    assert source.commented == [["1"]]
    assert found.kept[0].item.comments


async def test_a_slow_second_judge_leaves_the_first_pass() -> None:
    """
    B27: verdicts that do not come in time withhold the new items only.
    """
    found = await gathered(FakeSource(items(30)), FakeJudge(["1"], {1: NEVER}), until=0.6)

    assert (ids(found), found.status, found.attempts[1].reason) == (["1"], "ok", "timeout")
    assert found.kept[0].item.comments


async def test_a_deadline_during_the_fetch_is_an_outcome() -> None:
    """
    A source that does not answer in time timed out; nobody is asked about it.
    """
    judge = FakeJudge()

    found = await gathered(FakeSource(items(5), trouble={0: NEVER}), judge, until=0.02)

    assert (found.outcome, found.reason) == (Outcome.TIMED_OUT, "the crawl's deadline passed")
    assert (judge.asked, found.upstream_calls) == ([], 1)


async def test_a_deadline_during_the_judging_opens_the_gate() -> None:
    """
    B20: items that could not be judged in time pass, and no request is sent after the deadline.
    """
    source = FakeSource(items(5))

    found = await gathered(source, FakeJudge(trouble={0: NEVER}), until=0.02)

    assert (found.status, found.gate_reason, len(found.kept)) == ("degraded", "timeout", 5)
    assert source.commented == []
    assert "request for comments not sent (no_time): 0.0 s were left" in found.notes[0]


async def test_a_deadline_during_the_comments_keeps_the_items() -> None:
    """
    Comments that do not come in time are a note.
    """
    source = FakeSource(items(5), silence={0: NEVER})

    found = await gathered(source, FakeJudge(["1", "2", "3"]), until=0.3)

    assert (ids(found), found.status) == (["1", "2", "3"], "ok")
    assert found.notes == ("comments could not be read (no answer in time)",)


async def test_a_defect_of_a_source_is_broken(caplog: pytest.LogCaptureFixture) -> None:
    """
    Whatever an adapter stumbles over is that source's outcome, with a traceback in the log.
    """
    source = FakeSource(items(3), trouble={0: OverflowError("secret")})

    found = await gathered(source, FakeJudge())

    assert (found.outcome, found.kept) == (Outcome.BROKEN, ())
    assert "OverflowError" in str(found.reason)
    assert "secret" not in str(found.reason)
    assert [record.getMessage() for record in caplog.records] == ["asking reddit failed"]


async def test_a_defect_while_reading_comments_costs_only_them() -> None:
    """
    The items stay as the search gave them, with a note.
    """
    source = FakeSource(items(2), silence={0: RecursionError()})

    found = await gathered(source, FakeJudge(["0", "1"]))

    assert (found.outcome, ids(found)) == (Outcome.OK, ["0", "1"])
    assert found.notes == ("comments could not be read (its answer was malformed)",)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (RateLimited("reddit", retry_at=RESET), Outcome.RATE_LIMITED),
        (Broken("reddit"), Outcome.BROKEN),
        (NotAsked("reddit", "no such word"), Outcome.NOT_ASKED),
        (SourceError("reddit", "something new"), Outcome.BROKEN),
    ],
)
async def test_a_source_that_fails_is_an_outcome(error: SourceError, outcome: Outcome) -> None:
    """
    Every source error ends in the closed set, with message, reset time and the calls made.
    """
    heard, observer = SourceAnswer(), FakeObserver()
    source = FakeSource([], trouble={0: error})

    found = await gathered(source, FakeJudge(), listener=heard, observer=observer)

    assert (found.outcome, found.reason, found.retry_at) == (outcome, error.reason, error.retry_at)
    assert "reddit" not in error.reason  # its name stands beside it
    assert (found.upstream_calls, observer.recorded) == (1, [found])
    assert heard.kinds == ["source.started", "source.kept"]


async def test_comments_that_fail_are_a_note() -> None:
    """
    B105: a source that stops answering keeps its items and its outcome.
    """
    source = FakeSource(items(3), silence={0: RateLimited("reddit")})

    found = await gathered(source, FakeJudge(["1", "2"]))

    assert (ids(found), found.outcome) == (["1", "2"], Outcome.OK)
    assert found.notes == ("comments could not be read (rate limited)",)
    assert found.upstream_calls == 3


async def test_an_item_the_source_leaves_out_of_its_comments_stays() -> None:
    """
    What does not come back from reading comments is kept as it was.
    """

    class Loses(FakeSource):
        async def comments(self, items: Sequence[Item]) -> Any:
            return await super().comments(items[:1])

    found = await gathered(Loses(items(3)), FakeJudge(["1", "2"]))

    assert ids(found) == ["1", "2"]
    assert [len(one.item.comments) for one in found.kept] == [1, 0]


async def test_cancelling_is_seen_and_passed_on() -> None:
    """
    B86: the observer sees `cancelled` with the calls made, the span is closed, no comment is read.
    """
    observer, source = FakeObserver(), FakeSource(items(5), trouble={0: NEVER})
    task = asyncio.create_task(gathered(source, FakeJudge(), observer=observer))
    await source.entered.wait()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert [(one.outcome, one.upstream_calls) for one in observer.recorded] == [(Outcome.CANCELLED, 1)]
    assert (observer.open, source.commented) == (0, [])
