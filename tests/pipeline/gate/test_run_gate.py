"""The gate of one run: each item is judged once, whoever asks and whatever happens to them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from api.core.domain import Question
from api.core.items import Gated, Item
from api.core.ports import Judgement
from api.errors import ModelError
from api.pipeline.gate.verdicts import Gate, RunGate
from tests.services.fakes import FakeJudge, item, items, passed

ASKED = Question("plaud.ai")


async def test_known_items_are_not_sent_again() -> None:
    """
    B26: a wider batch costs a call for its new items only, and earlier verdicts stay.
    """
    judge = FakeJudge(["1", "7"])
    gate = RunGate(Gate(judge))

    await gate.judge(ASKED, items(5), "reddit")
    wider = await gate.judge(ASKED, items(10), "reddit")
    again = await gate.judge(ASKED, items(10), "reddit")

    assert judge.asked == [["0", "1", "2", "3", "4"], ["5", "6", "7", "8", "9"]]
    assert [at for at, relevant in enumerate(passed(wider)) if relevant] == [1, 7]
    assert again == Gated(wider.verdicts, "ok", None, "fake-1")


async def test_spellings_of_a_name_are_one_question() -> None:
    """
    `plaud.ai` and `Plaud AI` share verdicts; another question or another `about` does not.
    """
    judge = FakeJudge()
    gate = RunGate(Gate(judge))

    for question in (ASKED, Question("Plaud AI"), Question("oura"), Question("plaud.ai", "app")):
        await gate.judge(question, items(1), "reddit")

    assert judge.questions == [ASKED, Question("oura"), Question("plaud.ai", "app")]


async def test_a_crosspost_shares_the_verdict_of_its_original() -> None:
    """
    B46: copies of one post, in one batch or two, are judged once.
    """
    judge = FakeJudge(["1"])
    gate = RunGate(Gate(judge))
    copy = item(2, crosspost_parent="reddit:1")

    both = await gate.judge(ASKED, [item(1), copy, item(1)], "reddit")
    later = await gate.judge(ASKED, [copy], "reddit")

    assert judge.asked == [["1"]]
    assert (passed(both), passed(later)) == ([True] * 3, [True])


async def test_what_passed_unjudged_may_be_judged_later() -> None:
    """
    B21: a degraded verdict is not remembered, a sound one beside it is.
    """
    judge = FakeJudge(["1"], {1: ModelError("timeout")})
    gate = RunGate(Gate(judge))
    await gate.judge(ASKED, [item(0)], "reddit")

    failed = await gate.judge(ASKED, items(3), "reddit")
    later = await gate.judge(ASKED, items(3), "reddit")

    assert (passed(failed), failed.status) == ([False, True, True], "degraded")
    assert (passed(later), later.status) == ([False, True, False], "ok")
    assert judge.asked == [["0"], ["1", "2"], ["1", "2"]]


@dataclass
class Two:
    """Two queries of one run that find the same item 1; the first one's call waits for `go`."""

    judge: FakeJudge
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def start(self, mine: list[Item]) -> tuple[asyncio.Task[Gated], asyncio.Task[Gated]]:
        self.judge.trouble = {0: self.go, **self.judge.trouble}
        gate = RunGate(Gate(self.judge))
        owner = asyncio.create_task(gate.judge(ASKED, items(2), "reddit"))
        waiter = asyncio.create_task(gate.judge(ASKED, mine, "reddit"))
        await self.judge.entered.wait()
        return owner, waiter


async def test_concurrent_queries_judge_a_shared_item_once() -> None:
    """
    The second query sends only what is its own and takes the rest from the call under way.
    """
    two = Two(FakeJudge(["1"]))

    owner, waiter = await two.start([item(1), item(2)])
    two.go.set()

    assert passed(await owner) == [False, True]
    assert passed(await waiter) == [True, False]
    assert two.judge.asked == [["0", "1"], ["2"]]


@pytest.mark.parametrize(
    ("mine", "passed_on"),
    [([item(1)], [True]), ([item(1), item(2)], [True, False])],
    ids=["shared", "own"],
)
async def test_who_waits_for_a_call_that_fails_is_told(mine: list[Item], passed_on: list[bool]) -> None:
    """
    A judge that is down is not asked once for each who waits; the next to come asks again.
    """

    class FailsFirst(FakeJudge):
        async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
            first = not self.asked
            judged = await super().judge(question, items, source)
            if first:
                raise ModelError("timeout")
            return judged

    two = Two(FailsFirst())

    owner, waiter = await two.start(mine)
    two.go.set()

    assert (await owner).status == "degraded"
    gated = await waiter
    assert (passed(gated), gated.status, gated.reason) == (passed_on, "degraded", "timeout")
    assert two.judge.asked == [["0", "1"], *([["2"]] if len(mine) > 1 else [])]
    assert gated.usage.input_tokens == 10 * (len(mine) - 1)


async def test_an_owner_that_is_cancelled_leaves_its_call_to_those_who_wait() -> None:
    """
    B86: the call that is paid for goes on, and the query that waited has its verdict.
    """
    two = Two(FakeJudge())

    owner, waiter = await two.start([item(1)])
    owner.cancel()
    await asyncio.wait([owner])
    two.go.set()

    async with asyncio.timeout(120):
        gated = await waiter
    assert (passed(gated), gated.status) == ([False], "ok")
    assert (owner.cancelled(), two.judge.asked) == (True, [["0", "1"]])


async def test_a_cancelled_waiter_leaves_the_owner_alone() -> None:
    """
    B86: one that stops waiting takes no verdict from the call it waited for.
    """
    two = Two(FakeJudge(["1"]))

    owner, waiter = await two.start([item(1)])
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    two.go.set()

    assert passed(await owner) == [False, True]


async def test_who_waits_and_fails_too_lets_all_pass() -> None:
    """
    B20: with its own call failed, what it waited for holds, and no third call is made.
    """
    judge = FakeJudge(trouble={1: ModelError("http_error")})
    two = Two(judge)

    owner, waiter = await two.start([item(1), item(2)])
    two.go.set()
    await owner

    gated = await waiter
    assert (passed(gated), gated.status) == ([False, True], "degraded")
    assert (gated.reason, judge.asked) == ("http_error", [["0", "1"], ["2"]])


async def test_a_global_limit_below_the_gate_holds_without_a_deadlock() -> None:
    """
    B107: three sources with ten chunks each keep to a limiter of three in the judge they share.
    """

    @dataclass
    class Limited(FakeJudge):
        room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(3))
        busy: int = 0
        most: int = 0

        async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
            async with self.room:
                self.busy += 1
                self.most = max(self.most, self.busy)
                turn = asyncio.get_running_loop().create_future()
                asyncio.get_running_loop().call_soon(turn.set_result, None)
                await turn
                self.busy -= 1
                return await super().judge(question, items, source)

    judge = Limited()
    gate = RunGate(Gate(judge))

    async with asyncio.timeout(120):
        await asyncio.gather(*(gate.judge(ASKED, items(500, name), name) for name in ("reddit", "youtube", "amazon")))

    assert (len(judge.asked), judge.most) == (30, 3)
