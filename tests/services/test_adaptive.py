"""The loop: when it fetches again, what it costs, and that the first pass always stands."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.errors import (
    Broken,
    ModelError,
    QuotaExhausted,
    RateLimited,
    SourceError,
    TimedOut,
    Unreachable,
)
from api.services.adaptive import Policy, gather, wants_more
from api.services.gate import Gate, RunGate, Sieve
from api.services.metering import metered
from api.services.schemas import (
    Batch,
    FetchPlan,
    Gathered,
    Item,
    Outcome,
    Question,
    Sifted,
    Verdict,
)
from tests.services.fakes import NEVER, FakeJudge, FakeObserver, FakeSource, Heard, item, items

RESET = datetime(2025, 3, 10, 8, tzinfo=UTC)


async def gathered(
    source: FakeSource,
    judge: FakeJudge,
    limit: int = 5,
    *,
    until: float | None = None,
    min_yield: float = 0.5,
    **watchers: Any,
) -> Gathered:
    """One source through the loop; `until` in seconds from now."""
    if until is not None:
        until += asyncio.get_running_loop().time()
    watchers.setdefault("observer", FakeObserver())
    sieve = Sieve(RunGate(Gate(judge)), Question("plaud.ai"))
    return await gather(
        source, FetchPlan("plaud.ai", limit), sieve, Policy(min_yield, 2, until), **watchers
    )


def ids(found: Gathered) -> list[str]:
    """What was kept, in order."""
    return [one.item.id for one in found.kept]


async def test_a_poor_full_batch_is_fetched_again_at_twice_the_limit() -> None:
    """
    B26: only the five new items go to the judge, and the yield is over the ten distinct ones.
    """
    source, judge = FakeSource(items(30)), FakeJudge(["1", "6", "7", "20"])

    found = await gathered(source, judge)

    assert [plan.limit for plan in source.plans] == [5, 10]
    assert judge.asked == [["0", "1", "2", "3", "4"], ["5", "6", "7", "8", "9"]]
    assert (ids(found), found.fetched, found.yield_ratio) == (["1", "6", "7"], 10, 0.3)
    assert (found.refetched, found.refetch_gain, found.outcome) == (True, 2, Outcome.OK)
    assert [(a.limit, a.fetched, a.new, a.relevant, a.status) for a in found.attempts] == [
        (5, 5, 5, 1, "ok"),
        (10, 10, 5, 2, "ok"),
    ]
    assert found.usage.input_tokens == 20
    assert [one.dropped_by for one in found.dropped] == ["gate"] * 7


@pytest.mark.parametrize(
    ("limit", "relevant", "again"),
    [(10, 5, False), (5, 2, True), (10, 4, True), (1, 0, True), (1, 1, False), (2, 1, False)],
)
async def test_half_is_enough(limit: int, relevant: int, again: bool) -> None:
    """
    B30: a yield of exactly one half does not refetch, anything below does, at limit 1 too.
    """
    source = FakeSource(items(50))

    found = await gathered(source, FakeJudge([str(n) for n in range(relevant)]), limit)

    assert found.refetched is again
    assert len(source.plans) == 1 + again


@pytest.mark.parametrize("share", [n / 100 for n in range(1, 100)])
def test_the_edge_is_exact_at_every_share(share: float) -> None:
    """
    A yield equal to the setting does not refetch, one item less does.
    """
    batch = Batch(FetchPlan("x", 100), (), full=True)
    relevant = round(share * 100)

    def sifted(many: int) -> Sifted:
        return Sifted(tuple(Verdict(n < many) for n in range(100)), "ok")

    assert not wants_more(batch, sifted(relevant), Policy(share))
    assert wants_more(batch, sifted(relevant - 1), Policy(share))


async def test_a_minimum_yield_of_zero_never_fetches_again() -> None:
    """
    The off switch holds for a batch without anything relevant.
    """
    found = await gathered(FakeSource(items(30)), FakeJudge(), min_yield=0)

    assert (found.refetched, found.outcome, found.notes) == (False, Outcome.IRRELEVANT, ())


async def test_a_short_batch_is_not_fetched_again() -> None:
    """
    B31: fewer entries than asked for mean that more does not exist, and a note says so.
    """
    found = await gathered(FakeSource(items(3)), FakeJudge())

    assert (found.refetched, found.outcome, found.yield_ratio) == (False, Outcome.IRRELEVANT, 0.0)
    assert found.notes == ("not refetched: the source had no more",)


async def test_a_batch_is_full_as_the_source_counted_it() -> None:
    """
    Two entries of five that held nothing usable do not make the batch short.
    """
    slots = [None, None, *items(20)]
    source, judge = FakeSource(slots), FakeJudge()

    found = await gathered(source, judge)

    assert found.refetched
    assert [len(batch) for batch in judge.asked] == [3, 5]
    assert [(a.limit, a.fetched, a.new) for a in found.attempts] == [(5, 3, 3), (10, 8, 5)]


@pytest.mark.parametrize("slots", [[], [None] * 5], ids=["nothing", "nothing usable"])
async def test_nothing_found_costs_nothing_more(slots: Sequence[Item | None]) -> None:
    """
    B38: an empty batch leads to no judge call, no refetch and no comments.
    """
    source, judge = FakeSource(slots), FakeJudge()

    found = await gathered(source, judge)

    assert (found.outcome, found.status, found.yield_ratio) == (Outcome.EMPTY, "skipped", 1.0)
    assert (len(source.plans), judge.asked, source.commented) == (1, [], [])


async def test_a_degraded_gate_keeps_all_and_does_not_fetch_again() -> None:
    """
    B20, B21: an unknown yield is no reason for a refetch, and the failure is visible.
    """
    source = FakeSource(items(30))

    found = await gathered(source, FakeJudge(trouble={0: ModelError("refused")}))

    assert (len(source.plans), ids(found)) == (1, ["0", "1", "2", "3", "4"])
    assert (found.status, found.gate_reason, found.reason) == ("degraded", "refused", None)
    assert (found.fail_open, found.yield_ratio, found.outcome) == (True, 1.0, Outcome.OK)


async def test_a_second_judge_that_fails_leaves_the_first_pass() -> None:
    """
    B27: new items are withheld, the gate's status stays ok, and note and attempt tell the failure.
    """
    source = FakeSource(items(30))

    found = await gathered(source, FakeJudge(["1"], {1: ModelError("timeout")}))

    assert (ids(found), found.fetched, found.status) == (["1"], 5, "ok")
    assert (found.refetched, found.refetch_gain, found.fail_open) == (True, 0, True)
    second = found.attempts[1]
    assert (second.fetched, second.relevant, second.status, second.reason) == (
        10, 0, "degraded", "timeout",
    )  # fmt: skip
    assert found.notes[0] == (
        "refetch could not be judged (timeout): 5 new items withheld, the first pass stands"
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
async def test_a_second_fetch_that_fails_leaves_the_first_pass(
    error: SourceError, reason: str
) -> None:
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
    assert found.notes[0] == f"refetch failed ({reason}); the first pass stands"
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

    found = await gathered(source, FakeJudge(["1"]), until=0.2)

    assert (ids(found), found.attempts[1].reason) == (["1"], "timed_out")
    assert source.commented == [["1"]]
    assert found.kept[0].item.comments


async def test_a_slow_second_judge_leaves_the_first_pass() -> None:
    """
    B27: verdicts that do not come in time withhold the new items only.
    """
    found = await gathered(FakeSource(items(30)), FakeJudge(["1"], {1: NEVER}), until=0.2)

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
    assert (source.commented, found.notes) == ([], ("comments could not be read (timed_out)",))


async def test_a_deadline_during_the_comments_keeps_the_items() -> None:
    """
    Comments that do not come in time are a note.
    """
    source = FakeSource(items(5), silence={0: NEVER})

    found = await gathered(source, FakeJudge(["1", "2", "3"]), until=0.02)

    assert (ids(found), found.status) == (["1", "2", "3"], "ok")
    assert found.notes == ("comments could not be read (timed_out)",)


async def test_no_time_left_is_no_refetch() -> None:
    """
    After the deadline nothing is fetched again, and a note says so.
    """

    class Instant:
        async def sift(self, items: Sequence[Item], source: str) -> Sifted:
            return Sifted(tuple(Verdict(False) for _ in items), "ok")

    source, passed = FakeSource(items(30)), Policy(until=asyncio.get_running_loop().time() - 1)

    found = await gather(source, FetchPlan("x", 5), Instant(), passed, observer=FakeObserver())

    assert (found.refetched, len(source.plans)) == (False, 1)
    assert found.notes == ("not refetched: the deadline passed",)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (RateLimited("reddit", retry_at=RESET), Outcome.RATE_LIMITED),
        (Broken("reddit"), Outcome.BROKEN),
        (SourceError("reddit", "something new"), Outcome.BROKEN),
    ],
)
async def test_a_source_that_fails_is_an_outcome(error: SourceError, outcome: Outcome) -> None:
    """
    Every source error ends in the closed set, with message, reset time and the calls made.
    """
    heard, observer = Heard(), FakeObserver()
    source = FakeSource([], trouble={0: error})

    found = await gathered(source, FakeJudge(), listener=heard, observer=observer)

    assert (found.outcome, found.reason, found.retry_at) == (outcome, str(error), error.retry_at)
    assert (found.upstream_calls, observer.recorded) == (1, [found])
    assert heard.kinds == ["source.started", "source.kept"]


async def test_comments_are_read_for_kept_items_only() -> None:
    """
    B105: one request per kept item after the gate, and what failed among them is a detail.
    """
    source = FakeSource(items(30))

    found = await gathered(source, FakeJudge(["1", "7"]))

    assert source.commented == [["1", "7"]]
    assert [comment.body for comment in found.kept[0].item.comments] == ["good"]
    assert not any(one.item.comments for one in found.dropped)
    assert (found.outcome, found.notes) == (Outcome.OK, ("1 failed",))


async def test_comments_that_fail_are_a_note() -> None:
    """
    B105: a source that stops answering keeps its items and its outcome.
    """
    source = FakeSource(items(3), silence={0: RateLimited("reddit")})

    found = await gathered(source, FakeJudge(["1", "2"]))

    assert (ids(found), found.outcome) == (["1", "2"], Outcome.OK)
    assert found.notes == ("comments could not be read (rate_limited)",)
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


async def test_events_come_in_order() -> None:
    """
    A person sees each step as it happens, with the wider limit and the result.
    """
    heard = Heard()

    await gathered(FakeSource(items(30)), FakeJudge(["1"]), listener=heard)

    assert heard.kinds == [
        "source.started", "source.fetched", "source.judged", "source.refetching",
        "source.fetched", "source.judged", "source.kept",
    ]  # fmt: skip
    assert heard.events[3].data == {"limit": 10}
    assert heard.events[5].data == {"judged": 5, "relevant": 0, "status": "ok"}
    assert heard.events[6].data == {
        "outcome": "ok", "fetched": 10, "kept": 1, "yield_ratio": 0.1, "refetched": True,
        "status": "ok", "reason": None,
    }  # fmt: skip


async def test_calls_are_counted_over_attempts_and_comments() -> None:
    """
    Two searches and two comment reads are four calls, and whoever counts outside sees them too.
    """
    with metered() as outer:
        found = await gathered(FakeSource(items(30)), FakeJudge(["1", "7"]))

    assert (found.upstream_calls, outer.made) == (4, 4)
    assert [attempt.requests for attempt in found.attempts] == [1, 1]


async def test_cached_pages_do_not_forbid_the_refetch() -> None:
    """
    B29, B33: a refetch that costs no request is made all the same; the source's notes go along.
    """
    source = FakeSource(items(30), cached=True, notes=("capped at 50",))

    found = await gathered(source, FakeJudge())

    assert (found.refetched, found.upstream_calls) == (True, 0)
    assert found.notes == ("capped at 50",)


async def test_crossposts_are_one_item_with_all_places() -> None:
    """
    B46: the same post in three places is judged, counted and kept once.
    """
    copies = [
        item(1, place="r/b", crosspost_parent="reddit:0"),
        item(2, place="r/c", crosspost_parent="reddit:0"),
    ]
    judge = FakeJudge(["0"])

    found = await gathered(FakeSource([item(0), *copies]), judge)

    assert (judge.asked, found.fetched, found.yield_ratio) == ([["0"]], 1, 1.0)
    assert found.kept[0].item.places == ("r/a", "r/b", "r/c")
    assert found.attempts[0].fetched == 1


@pytest.mark.parametrize("judged", [["0"], []], ids=["kept", "dropped"])
async def test_a_refetch_that_brings_a_crosspost_brings_a_place(judged: list[str]) -> None:
    """
    B46: a copy that only the wider batch shows is not judged again, its place is listed.
    """
    first = [item(0, place="r/a"), item(1, place="r/z", crosspost_parent="reddit:0"), *items(5)[2:]]
    copy = item(9, place="r/b", crosspost_parent="reddit:0")
    judge = FakeJudge(judged)

    found = await gathered(FakeSource([*first, copy, *items(40)[20:]]), judge)

    everything = [one.item for one in (*found.kept, *found.dropped)]
    assert next(one for one in everything if one.id == "0").places == ("r/a", "r/z", "r/b")
    assert all(one.places == () for one in everything if one.id != "0")
    assert judge.asked == [["0", "2", "3", "4"], ["20", "21", "22", "23"]]


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

    assert [(one.outcome, one.upstream_calls) for one in observer.recorded] == [
        (Outcome.CANCELLED, 1)
    ]
    assert (observer.open, source.commented) == (0, [])


@given(
    relevant=st.sets(st.integers(0, 24)),
    slots=st.lists(st.booleans(), max_size=25),
    limit=st.integers(1, 12),
    fault=st.sampled_from(["none", "fetch", "judge"]),
)
def test_a_refetch_never_loses_what_the_first_pass_kept(
    relevant: Collection[int], slots: list[bool], limit: int, fault: str
) -> None:
    """
    B27, B28: the union begins with the first pass, keeps the source's order, and adds up.
    """
    served = [item(at) if there else None for at, there in enumerate(slots)]
    names = {str(number) for number in relevant}
    error = {1: Unreachable("reddit")} if fault == "fetch" else {}
    lost = {1: ModelError("timeout")} if fault == "judge" else {}

    once = asyncio.run(gathered(FakeSource(served), FakeJudge(names), limit, min_yield=0))
    twice = asyncio.run(gathered(FakeSource(served, trouble=error), FakeJudge(names, lost), limit))

    assert ids(twice)[: len(once.kept)] == ids(once)
    assert ids(twice) == [one.id for one in served if one and one.id in ids(twice)]
    assert sum(attempt.relevant for attempt in twice.attempts) == len(twice.kept)
    assert twice.fetched == len({one.item.key for one in (*twice.kept, *twice.dropped)})
    assert len(twice.attempts) == 1 + twice.refetched <= 2
