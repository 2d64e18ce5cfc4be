"""Work that several wait for: begun once, whoever leaves, and its failure is everybody's."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from api.core.domain import Outcome
from api.core.progress import Listener, SourceFetched, SourceStarted
from api.core.work import REMEMBERED, SharedTask, SharedTasks
from api.errors import Unreachable
from api.services.product import Ask
from tests.services.fakes import FakeJudge, FakeSource, SourceAnswer, items
from tests.services.kit import Grading, kit, posts


@dataclass
class Work:
    """Counts how often it was begun; waits for `go`."""

    go: asyncio.Event = field(default_factory=asyncio.Event)
    trouble: Exception | None = None
    begun: int = 0
    ended: list[str] = field(default_factory=list)
    entered: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, listener: Listener) -> int:
        self.begun += 1
        number = self.begun
        listener(SourceStarted(source="reddit", query="mug", limit=5))
        self.entered.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        if self.trouble is not None:
            raise self.trouble
        return number


async def test_twenty_at_once_are_one_and_all_hear_of_it() -> None:
    """
    Who comes late is told what was before; who comes after begins anew.
    """
    tasks, work, heard = SharedTasks[str, int](), Work(), [SourceAnswer() for _ in range(20)]
    sharing = [asyncio.create_task(tasks.share("mug", work, each)) for each in heard]
    await work.entered.wait()
    other = asyncio.create_task(tasks.share("cup", work))
    work.go.set()

    assert [await each for each in sharing] == [1] * 20
    assert {tuple(each.kinds) for each in heard} == {("source.started",)}
    assert (await other, await tasks.share("mug", work), work.begun) == (2, 3, 3)


async def test_the_oldest_events_are_forgotten() -> None:
    """
    Who comes late hears the last thousand, and how many he missed is known.
    """
    task, late = SharedTask[int](), list[int]()
    for number in range(REMEMBERED + 7):
        task.publish(SourceFetched(source="reddit", fetched=number))
    task.listen(lambda event: late.append(event.data["fetched"]))

    assert (task.event_count, task.lost_events) == (REMEMBERED + 7, 7)
    assert late == list(range(7, REMEMBERED + 7))


async def test_a_failure_is_shared_and_nobody_begins_again() -> None:
    """
    Source down: 20 waited, one asked; the next to come asks again.
    """
    tasks, work = SharedTasks[str, int](), Work(trouble=Unreachable("reddit"))
    sharing = [asyncio.create_task(tasks.share("mug", work)) for _ in range(20)]
    await work.entered.wait()
    work.go.set()

    ended = await asyncio.gather(*sharing, return_exceptions=True)

    assert (work.begun, {type(each) for each in ended}) == (1, {Unreachable})
    work.trouble = None
    assert await tasks.share("mug", work) == 2


@pytest.mark.parametrize("gone", [0, 1, 2])
async def test_who_leaves_takes_nothing_from_the_others(gone: int) -> None:
    """
    Whoever it is, the one who began it too.
    """
    tasks, work = SharedTasks[str, int](), Work()
    sharing = [asyncio.create_task(tasks.share("mug", work)) for _ in range(3)]
    await work.entered.wait()
    sharing[gone].cancel()
    await asyncio.wait([sharing[gone]])
    work.go.set()

    ended = await asyncio.gather(*sharing, return_exceptions=True)

    assert [each for each in ended if each == 1] == [1, 1]
    assert isinstance(ended[gone], asyncio.CancelledError)
    assert (work.begun, work.ended) == (1, [])


async def test_the_last_to_leave_ends_it() -> None:
    """
    It has ended when the last is gone, and who comes now begins anew.
    """
    tasks, work = SharedTasks[str, int](), Work()
    sharing = [asyncio.create_task(tasks.share("mug", work)) for _ in range(2)]
    await work.entered.wait()
    for each in sharing:
        each.cancel()
    await asyncio.wait(sharing)

    assert work.ended == ["cancelled"]
    work.go.set()
    assert await tasks.share("mug", work) == 2


async def test_agents_that_ask_the_same_at_once_ask_once() -> None:
    """
    Twenty runs of agents: one search, one judge call, one reading of comments; each has its text.
    """
    source, judge = FakeSource(items(5)), FakeJudge(["1", "2", "3"])
    product = kit(source, judge=judge)
    asked = [product.listen("reddit", Ask("mug", "quick"), f"run {n}", n) for n in range(20)]

    heard = await asyncio.gather(*asked)

    assert (len(source.plans), len(judge.asked), source.commented) == (1, 1, [["1", "2", "3"]])
    assert [each.gathered.upstream_calls for each in heard].count(0) == 19
    assert sum(each.usage.input_tokens for each in heard) == 10
    assert {each.fetched.outcome for each in heard} == {Outcome.OK}
    assert " E20 title>" in heard[19].text


async def test_a_source_that_is_down_is_asked_once_for_all_who_wait() -> None:
    """
    Twenty at once: one search, and its failure is everybody's.
    """
    source = FakeSource([], trouble=dict.fromkeys(range(20), Unreachable("reddit", "HTTP 503")))
    product = kit(source)

    heard = await asyncio.gather(*(product.listen("reddit", Ask("mug", "quick"), None) for _ in range(20)))

    assert len(source.plans) == 1
    assert {each.gathered.outcome for each in heard} == {Outcome.UNREACHABLE}


async def test_another_depth_is_another_question_upstream() -> None:
    """
    What differs in query, limit or source shares nothing.
    """
    source, other = FakeSource(posts(5)), FakeSource(posts(5, "youtube"), "youtube")
    product = kit(source, other, grader=Grading())

    await asyncio.gather(
        product.listen("reddit", Ask("mug", "quick"), None),
        product.listen("reddit", Ask("mug", "quick", limit=3), None),
        product.listen("youtube", Ask("mug", "quick"), None),
        product.listen("reddit", Ask("cup", "quick"), None),
    )

    assert (len(source.plans), len(other.plans)) == (3, 1)


async def test_a_listener_that_fails_is_counted_out() -> None:
    """
    Its own call fails, the others' does not; who left hears nothing any more.
    """
    tasks, work, heard, gone = SharedTasks[str, int](), Work(), SourceAnswer(), SourceAnswer()
    sharing = asyncio.create_task(tasks.share("mug", work, heard))
    await work.entered.wait()
    leaving = asyncio.create_task(tasks.share("mug", work, gone))
    await asyncio.wait([leaving], timeout=0)  # until it listens

    def failing(event: object) -> None:
        raise OSError("nobody reads")

    with pytest.raises(OSError, match="nobody reads"):
        await tasks.share("mug", work, failing)
    leaving.cancel()
    await asyncio.wait([leaving])
    tasks._tasks["mug"].publish(SourceStarted(source="youtube", query="mug", limit=5))
    work.go.set()

    assert (await sharing, work.begun) == (1, 1)
    assert (len(heard.kinds), len(gone.kinds)) == (2, 1)
