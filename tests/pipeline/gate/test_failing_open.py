"""Verdicts, and failing open."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from api.core.domain import Correction, Question, Usage, Verdict
from api.core.items import Gated, Item
from api.core.model_batches import UnusableAnswer
from api.core.ports import Judgement
from api.errors import ModelError
from api.pipeline.gate.verdicts import CORRECTED, Gate, RunGate
from tests.services.fakes import NEVER, FakeJudge, items, passed

ASKED = Question("plaud.ai")


async def test_no_items_cost_nothing() -> None:
    """
    B24: an empty batch is skipped without a call.
    """
    judge = FakeJudge()

    assert await Gate(judge).judge(ASKED, [], "reddit") == Gated((), "skipped")
    assert await RunGate(Gate(judge)).judge(ASKED, [], "reddit") == Gated((), "skipped")
    assert judge.asked == []


async def test_all_false_is_an_answer() -> None:
    """
    B19: four valid noes are status ok, not a failure.
    """
    gated = await Gate(FakeJudge()).judge(ASKED, items(4), "reddit")

    assert (passed(gated), gated.status, gated.reason) == ([False] * 4, "ok", None)
    assert (gated.model, gated.usage) == ("fake-1", Usage(10, 1, 0.5))


@pytest.mark.parametrize("extra", [-2, -5, 1])
async def test_a_wrong_count_opens_the_gate(extra: int) -> None:
    """
    B04, B05: too few or too many verdicts of any judge are degraded, nothing is dropped.
    """
    gated = await Gate(FakeJudge(["0"], extra=extra)).judge(ASKED, items(5), "reddit")

    assert (passed(gated), gated.status) == ([True] * 5, "degraded")
    assert gated.reason == "count_mismatch"
    assert gated.usage == Usage(10, 1, 0.5)


async def test_a_useless_answer_is_paid_for_beside_who_stands_in() -> None:
    """What the judge and its stand-in used is one sum."""
    broken = FakeJudge(trouble={0: UnusableAnswer("truncated", "", Usage(3, 2, 0.25))})

    gated = await Gate(broken, fallback=FakeJudge(["1"])).judge(ASKED, items(2), "reddit")

    assert (passed(gated), gated.reason) == ([False, True], "truncated")
    assert gated.usage == Usage(13, 3, 0.75)


async def test_text_is_no_verdict() -> None:
    """
    B06: the word "false" in a verdict is malformed, neither true nor false.
    """

    class Wordy(FakeJudge):
        async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
            words = tuple(Verdict("false") for _ in items)  # type: ignore[arg-type]
            return Judgement(words, self.name)

    gated = await Gate(Wordy()).judge(ASKED, items(2), "reddit")

    assert (passed(gated), gated.status, gated.reason) == ([True] * 2, "degraded", "malformed")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ModelError("refused"), "refused"),
        (ModelError("filtered"), "filtered"),
        (ModelError("truncated"), "truncated"),
        (ModelError("unauthorized"), "unauthorized"),
        (ExceptionGroup("inner", [ModelError("quota")]), "quota"),
        (TimeoutError(), "timeout"),
        (ConnectionResetError(), "unreachable"),
    ],
)
async def test_any_failure_opens_the_gate_once_and_says_why(error: Exception, reason: str) -> None:
    """
    B13, B14, B20: a judge that fails is asked once, all items pass, status and reason tell it.
    """
    judge = FakeJudge(trouble={0: error})

    gated = await Gate(judge).judge(ASKED, items(3), "reddit")

    assert (passed(gated), gated.status, gated.reason) == ([True] * 3, "degraded", reason)
    assert (gated.model, len(judge.asked)) == (None, 1)


async def test_a_defect_of_a_judge_opens_the_gate_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """
    What nobody foresaw is the judge's failure alone: all pass, and the log has its traceback.
    """
    gated = await Gate(FakeJudge(trouble={0: KeyError("oops")})).judge(ASKED, items(1), "reddit")

    assert (passed(gated), gated.status, gated.reason) == ([True], "degraded", "defect")
    assert [record.getMessage() for record in caplog.records] == ["the judge fake-1 failed"]
    assert caplog.records[0].exc_info is not None


async def test_chunks_of_fifty_run_at_once() -> None:
    """
    120 items are three calls that wait for each other; verdicts keep the order, usage is the sum.
    """
    together = asyncio.Barrier(3)
    judge = FakeJudge(["0", "50", "119"], dict.fromkeys(range(3), together))

    async with asyncio.timeout(120):
        gated = await Gate(judge).judge(ASKED, items(120), "reddit")

    assert [len(chunk) for chunk in judge.asked] == [50, 50, 20]
    assert [at for at, relevant in enumerate(passed(gated)) if relevant] == [0, 50, 119]
    assert gated.usage == Usage(30, 3, 1.5)


async def test_one_failed_chunk_stops_the_rest_and_fails_the_whole() -> None:
    """
    The other chunks are cancelled, and their items pass as well.
    """
    judge = FakeJudge(trouble={0: NEVER, 1: ModelError("http_error"), 2: NEVER})

    gated = await Gate(judge).judge(ASKED, items(120), "reddit")

    assert (passed(gated), gated.status, gated.reason) == (
        [True] * 120,
        "degraded",
        "http_error",
    )
    assert judge.cancelled == 2


async def test_the_local_judge_may_stand_in() -> None:
    """
    B20: with `LISTENPOST_FAIL_OPEN=local` its verdicts count, and the status still says degraded.
    """
    broken = FakeJudge(trouble={0: ModelError("timeout"), 1: ModelError("timeout")})
    gate = Gate(broken, fallback=FakeJudge(["1"], name="local-1"))

    gated = await gate.judge(ASKED, items(2), "reddit")
    assert (passed(gated), gated.status, gated.reason) == ([False, True], "degraded", "timeout")
    assert gated.model == "local-1"

    both = Gate(broken, fallback=FakeJudge(trouble={0: ModelError("malformed")}))
    gated = await both.judge(ASKED, items(2), "reddit")
    assert (passed(gated), gated.reason, gated.model) == ([True, True], "timeout", None)


@pytest.mark.parametrize(
    ("probability", "disputed"),
    [(None, [False, False]), (0.1, [True, False]), (0.2, [False, False]), (0.8, [False, False]),
     (0.9, [False, True])],
)  # fmt: skip
async def test_a_second_judge_only_disputes(probability: float | None, disputed: list[bool]) -> None:
    """
    Only a checker that is sure of the opposite marks an item, and no verdict changes.
    """
    gate = Gate(FakeJudge(["0"]), checker=FakeJudge(probability=probability))

    gated = await gate.judge(ASKED, items(2), "reddit")

    assert passed(gated) == [True, False]
    assert [verdict.disputed for verdict in gated.verdicts] == disputed


async def test_the_second_judge_is_asked_while_the_first_one_is() -> None:
    """Its opinion is there when the verdicts come: nobody waits for it."""
    asked = asyncio.Event()

    class Second(FakeJudge):
        async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
            asked.set()
            return await super().judge(question, items, source)

    class First(FakeJudge):
        async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
            await asked.wait()
            return await super().judge(question, items, source)

    gate = Gate(First(["0"]), checker=Second(probability=0.9))
    gated = await gate.judge(ASKED, items(2), "reddit")

    assert [verdict.disputed for verdict in gated.verdicts] == [False, True]


async def test_a_checker_that_fails_changes_nothing() -> None:
    """
    The first judge's verdicts stand, undisputed and ok.
    """
    gate = Gate(FakeJudge(["0"]), checker=FakeJudge(trouble={0: ModelError("timeout")}))

    gated = await gate.judge(ASKED, items(2), "reddit")

    assert (passed(gated), gated.status) == ([True, False], "ok")


async def test_what_a_person_corrected_is_not_judged_again() -> None:
    """Its verdict is the person's, and the judge is asked about the others alone."""
    judge, page = FakeJudge(), items(3)
    corrections = (Correction(page[0].key, True, "kept"), Correction(page[1].key, False, "dropped"))

    gated = await Gate(judge).judge(Question("mug", corrections=corrections), page, "reddit")

    assert passed(gated) == [True, False, False]
    assert [verdict.judge for verdict in gated.verdicts] == [CORRECTED, CORRECTED, judge.name]
    assert judge.asked == [[page[2].id]]
    assert gated.status == "ok"


async def test_a_page_of_corrections_asks_nobody() -> None:
    """Neither the judge nor the second one."""
    judge, page = FakeJudge(), items(1)
    question = Question("mug", corrections=(Correction(page[0].key, False, "dropped"),))

    gated = await Gate(judge, checker=judge).judge(question, page, "reddit")

    assert (passed(gated), gated.status, gated.model, judge.asked) == ([False], "ok", CORRECTED, [])


async def test_another_sense_is_another_question() -> None:
    """A run that is asked about another sense has its items judged anew."""
    judge, page = FakeJudge(), items(1)
    gate = RunGate(Gate(judge))

    for question in (
        Question("arc"),
        Question("arc", not_about=("games",)),
        Question("arc", aim="mention"),
    ):
        await gate.judge(question, page, "reddit")

    assert len(judge.asked) == 3
