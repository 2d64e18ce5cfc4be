"""Within one run nothing is fetched, judged, graded or read twice."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from api.core.domain import FetchPlan, Outcome, Question, Usage, Verdict
from api.core.items import Assessed, Batch
from api.core.ports import UNGRADED, Grader, Source
from api.errors import NotConfigured, RateLimited, SourceError
from api.pipeline.evidence.crawl import Bounds, Run
from api.pipeline.gate.verdicts import Gate, RunGate
from api.settings import AdaptiveSettings
from tests.services.fakes import NEVER, FakeGrader, FakeJudge, FakeObserver, FakeSource, SourceAnswer, item, items

ASKED = Question("plaud.ai")


def started(
    sources: Mapping[str, Source | SourceError],
    judge: FakeJudge | None = None,
    grader: Grader | None = None,
    *,
    seconds: float = 30,
    second_look: bool = False,
    **watchers: Any,
) -> Run:
    """A run with an empty memory."""
    gate = RunGate(Gate(judge or FakeJudge()))
    bounds = Bounds(AdaptiveSettings(second_look=second_look), seconds)
    return Run(sources, gate, grader, bounds, FakeObserver(), **watchers)


def kept(*numbers: int) -> list[Assessed]:
    """Items that passed the gate."""
    return [Assessed(item(number), Verdict(True)) for number in numbers]


async def test_the_same_query_again_costs_nothing() -> None:
    """
    B39: a second call in any spelling is served from memory, with one refetch in all.
    """
    source, judge = FakeSource(items(30)), FakeJudge(["1"])
    run = started({"reddit": source}, judge)

    first = await run.search(ASKED, "reddit", "plaud.ai", 5)
    again = await run.search(Question("plaud ai"), "reddit", '"Plaud AI"', 5)

    assert [plan.limit for plan in source.plans] == [5, 10]
    assert len(judge.asked) == 2
    assert (first.upstream_calls, first.usage.input_tokens) == (3, 20)
    assert (again.upstream_calls, again.usage) == (0, Usage())
    assert (again.kept, again.attempts) == (first.kept, first.attempts)
    assert run.searches == [first]


async def test_what_differs_is_asked() -> None:
    """
    Another query, limit, source or `about` is another asking; a dropped `-word` is no spelling.
    """
    reddit, youtube = FakeSource([]), FakeSource([], name="youtube")
    run = started({"reddit": reddit, "youtube": youtube})

    await run.search(ASKED, "reddit", "apple watch", 5)
    await run.search(ASKED, "reddit", "apple -watch", 5)
    await run.search(ASKED, "reddit", "apple watch", 10)
    await run.search(Question("plaud.ai", "recorder"), "reddit", "apple watch", 5)
    await run.search(ASKED, "youtube", "apple watch", 5)

    assert [(plan.query, plan.limit) for plan in reddit.plans] == [
        ("apple watch", 5), ("apple", 5), ("apple watch", 10), ("apple watch", 5),
    ]  # fmt: skip
    assert len(youtube.plans) == 1


async def test_operators_alone_mean_the_question() -> None:
    """
    B62: a query that is nothing but operators asks what the person asked, and that once.
    """
    source = FakeSource([])
    run = started({"reddit": source})

    for query in ("site:evil.com author:me", "plaud site:evil.com", "plaud.ai"):
        await run.search(ASKED, "reddit", query, 5)

    assert [plan.query for plan in source.plans] == ["plaud.ai", "plaud"]


async def test_a_source_that_cannot_be_built_is_an_outcome() -> None:
    """
    Without its key a source is not configured, and a person is told.
    """
    heard = SourceAnswer()
    run = started({"reddit": NotConfigured("reddit", "no key")}, listener=heard)

    found = await run.search(ASKED, "reddit", "plaud", 5)

    assert (found.outcome, found.upstream_calls) == (Outcome.NOT_CONFIGURED, 0)
    assert heard.kinds == ["source.kept"]
    assert heard.events[0].data == {
        "query": "plaud", "outcome": "not_configured", "fetched": 0, "kept": 0, "yield_ratio": None,
        "refetched": False, "status": "skipped",
        "reason": "no key; set its variables, see `listenpost doctor`", "titles": (),
    }  # fmt: skip


async def test_the_run_has_a_deadline() -> None:
    """
    A source that does not answer within the bounds timed out.
    """
    run = started({"reddit": FakeSource([], trouble={0: NEVER})}, seconds=0.02)

    assert (await run.search(ASKED, "reddit", "plaud", 5)).outcome is Outcome.TIMED_OUT


async def test_a_failure_is_not_remembered() -> None:
    """
    B91: after a failed asking the next one reaches the source.
    """
    source = FakeSource(items(3), trouble={0: RateLimited("reddit")})
    run = started({"reddit": source}, FakeJudge(["1"]))

    first = await run.search(ASKED, "reddit", "plaud", 5)
    second = await run.search(ASKED, "reddit", "plaud", 5)

    assert (first.outcome, second.outcome) == (Outcome.RATE_LIMITED, Outcome.OK)
    assert run.searches == [first, second]


class Fails(FakeSource):
    """Answers, when it is let go, that it was asked too often."""

    async def fetch(self, plan: FetchPlan) -> Batch:
        await super().fetch(plan)
        raise RateLimited("reddit")


@pytest.mark.parametrize("kind", [FakeSource, Fails])
async def test_identical_concurrent_queries_share_one_flight(kind: type[FakeSource]) -> None:
    """
    Two at once are one search, and when it fails both are told without a second one.
    """
    go = asyncio.Event()
    source = kind(items(3), trouble={0: go})
    run = started({"reddit": source}, FakeJudge(["1", "2"]))
    tasks = [asyncio.create_task(run.search(ASKED, "reddit", "plaud", 5)) for _ in range(2)]
    await source.entered.wait()
    go.set()

    one, two = [await task for task in tasks]

    assert (len(source.plans), one.outcome) == (1, two.outcome)
    assert (one.upstream_calls > 0, two.upstream_calls) == (True, 0)


@pytest.mark.parametrize("first", [True, False], ids=["asks", "waits"])
async def test_cancelling_one_of_two_leaves_the_other(first: bool) -> None:
    """
    B86: whichever is cancelled, the other gets its answer, of the one search that was begun.
    """
    go = asyncio.Event()
    source = FakeSource(items(3), trouble={0: go})
    run = started({"reddit": source}, FakeJudge(["1"]))
    tasks = [asyncio.create_task(run.search(ASKED, "reddit", "plaud", 5)) for _ in range(2)]
    await source.entered.wait()

    gone, stays = tasks if first else reversed(tasks)
    gone.cancel()
    await asyncio.wait([gone])
    go.set()

    async with asyncio.timeout(120):
        assert (await stays).outcome is Outcome.OK
    assert (gone.cancelled(), len(source.plans)) == (True, 1)


async def test_a_follow_up_that_finds_known_items_costs_no_model_and_no_comments() -> None:
    """
    Another query over the same posts is one search; verdicts and comments are remembered.
    """
    source, judge = FakeSource(items(4)), FakeJudge(["1", "2"])
    run = started({"reddit": source}, judge)

    first = await run.search(ASKED, "reddit", "plaud", 5)
    second = await run.search(ASKED, "reddit", "plaud note", 5)

    assert (len(source.plans), len(judge.asked), source.commented) == (2, 1, [["1", "2"]])
    assert (second.kept, second.upstream_calls, second.usage) == (first.kept, 1, Usage())
    assert (second.status, second.model) == ("ok", "fake-1")
    assert (first.notes, second.notes) == (("1 failed",), ())


async def test_comments_that_could_not_be_read_are_tried_again() -> None:
    """
    Only what was read is remembered.
    """
    source = FakeSource(items(2), silence={0: RateLimited("reddit")})
    run = started({"reddit": source}, FakeJudge(["1"]))

    first = await run.search(ASKED, "reddit", "plaud", 5)
    second = await run.search(ASKED, "reddit", "plaud note", 5)

    assert (first.kept[0].item.comments, len(second.kept[0].item.comments)) == ((), 1)


@pytest.mark.parametrize("remarks", [{"0": ["plaud.ai!"]}, None], ids=["kept", "no comments"])
async def test_a_second_look_at_the_same_item_costs_one_request(
    remarks: Mapping[str, list[str]] | None,
) -> None:
    """
    Whichever query drops it: its comments are read and judged once, for the question.
    """
    source, judge = FakeSource(items(3), remarks=remarks), FakeJudge(["c0"])
    run = started({"reddit": source}, judge, second_look=True)

    first = await run.search(ASKED, "reddit", "plaud.ai", 5)
    second = await run.search(ASKED, "reddit", "recorder", 5)

    read = int(remarks is not None)
    assert [entry.item.id for entry in second.kept] == ["0"] * read
    assert (first.upstream_calls, second.upstream_calls) == (1 + read, 1)
    assert len(judge.asked) == 1 + read
    assert (len(source.looked), second.kept) == (2 - read, first.kept)


async def test_without_a_grader_items_stay_ungraded() -> None:
    """
    Grading that is off leaves the items as they were, and no items ask nobody.
    """
    grader = FakeGrader()

    assert await started({}).grade(ASKED, kept(1), 3) == (tuple(kept(1)), Usage())
    assert await started({}, grader=grader).grade(ASKED, [], 3) == ((), Usage())
    assert grader.asked == []


async def test_a_grader_that_stumbles_leaves_defaults() -> None:
    """
    Its defect is logged, and the items stay.
    """
    grader = FakeGrader(trouble={0: AttributeError("oops")})

    graded, usage = await started({}, grader=grader).grade(ASKED, kept(1, 2), 3)

    assert [entry.grade for entry in graded] == [UNGRADED, UNGRADED]
    assert usage == Usage()


async def test_an_item_is_graded_once() -> None:
    """
    A later pass pays for its new survivors only, in any spelling of the question.
    """
    grader = FakeGrader({"1": 5})
    run = started({}, grader=grader)

    _, first = await run.grade(ASKED, kept(1, 2), 3)
    found, second = await run.grade(Question("plaud ai"), kept(2, 3, 1), 3)

    assert grader.asked == [["1", "2"], ["3"]]
    assert [one.grade.score for one in found if one.grade] == [4, 4, 5]
    assert (first.input_tokens, second.input_tokens) == (10, 10)


async def test_an_item_is_graded_once_when_two_ask_at_the_same_time() -> None:
    """
    The second asks for its own items and waits for the grades under way.
    """
    go = asyncio.Event()
    grader = FakeGrader(trouble={0: go})
    run = started({}, grader=grader)
    first = asyncio.create_task(run.grade(ASKED, kept(1, 2), 3))
    second = asyncio.create_task(run.grade(ASKED, kept(2, 3), 3))
    await grader.entered.wait()
    go.set()

    assert all(one.grade for one in (*(await first)[0], *(await second)[0]))
    assert sorted(grader.asked) == [["1", "2"], ["3"]]


async def test_a_cancelled_grading_does_not_hang_those_who_wait() -> None:
    """
    B86: who waited has the grades, of the one call that was made.
    """
    go = asyncio.Event()
    grader = FakeGrader(trouble={0: go})
    run = started({}, grader=grader)
    first = asyncio.create_task(run.grade(ASKED, kept(1, 2), 3))
    second = asyncio.create_task(run.grade(ASKED, kept(2), 3))
    await grader.entered.wait()
    first.cancel()
    await asyncio.wait([first])
    go.set()

    async with asyncio.timeout(120):
        assert (await second)[0][0].grade is not None
    assert grader.asked == [["1", "2"]]


async def test_each_grade_is_told_with_a_number_per_source() -> None:
    """
    With `--verbose` a person can follow the scores of each source from 1.
    """
    heard = SourceAnswer()
    run = started({}, grader=FakeGrader({"2": 1}), listener=heard)
    other = Assessed(item(1, "youtube", place="channel"), Verdict(True))

    await run.grade(ASKED, [*kept(1), other, *kept(2)], 3)

    assert [(event.source, event.data["number"]) for event in heard.events] == [
        ("reddit", 1), ("youtube", 1), ("reddit", 2),
    ]  # fmt: skip
    assert heard.events[2].data == {
        "number": 2, "place": "r/a", "score": 1, "cutoff": 3, "defaulted": False,
        "explanation": "why",
    }  # fmt: skip
