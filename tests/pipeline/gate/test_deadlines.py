"""What could not be answered in time is not sent: here time passes only when somebody answers."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from api.core.domain import FetchPlan, Question
from api.core.items import Batch, Gathered, Item
from api.core.ports import Judgement
from api.services.product import Ask, analyze
from tests.services.fakes import FakeJudge, FakeSource, gathered, ids, items
from tests.services.kit import kit, posts


class Clockwork(asyncio.SelectorEventLoop):
    """A loop whose time passes when it is told to."""

    now = 0.0

    def time(self) -> float:
        return self.now


@dataclass
class Slow(FakeSource):
    """Takes so many seconds for each answer."""

    seconds: Mapping[int, float] = field(default_factory=dict)
    """Of the n-th search."""

    async def fetch(self, plan: FetchPlan) -> Batch:
        batch = await super().fetch(plan)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Clockwork)
        loop.now += self.seconds[len(self.plans) - 1]
        return batch


class Pondering(FakeJudge):
    """Takes three seconds over the second batch."""

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Clockwork)
        loop.now += 3 * len(self.asked)
        return await super().judge(question, items, source)


def heard(source: Slow, relevant: Collection[str], until: float = 8) -> Gathered:
    """One source through the loop, eight seconds for all."""
    with asyncio.Runner(loop_factory=Clockwork) as runner:
        return runner.run(gathered(source, Pondering(relevant), until=until))


def test_a_refetch_that_could_not_come_in_time_is_not_sent() -> None:
    """
    Of 8 s the first page took 3: the 2.5 s that a refetch may have are too few, comments have 5.
    """
    source = Slow(items(30), seconds={0: 3})

    found = heard(source, ["1"])

    assert [plan.limit for plan in source.plans] == [5]
    assert source.commented == [["1"]]
    assert (ids(found), found.refetched, found.upstream_calls) == (["1"], False, 2)
    assert found.notes[0] == "refetch not sent (no_time): 2.5 s were left, an answer took 3.0 s"


def test_comments_that_could_not_come_in_time_are_not_read() -> None:
    """
    Of 8 s the page took 5: 3 are left, and nobody is asked for comments.
    """
    source = Slow(items(30), seconds={0: 5})

    found = heard(source, ["0", "1", "2"])

    assert (source.commented, found.upstream_calls) == ([], 1)
    note = "request for comments not sent (no_time): 3.0 s were left, an answer took 5.0 s"
    assert (found.notes, found.outcome) == ((note,), "ok")


def test_the_slowest_answer_counts() -> None:
    """
    The refetch took 4 s and its judging 3: of 10 there are 2 left, too few for comments.
    """
    source = Slow(items(30), seconds={0: 1, 1: 4})

    found = heard(source, ["1"], until=10)

    assert ([plan.limit for plan in source.plans], source.commented) == ([5, 10], [])
    assert found.notes[-1].endswith("(no_time): 2.0 s were left, an answer took 4.0 s")


@pytest.mark.parametrize(("took", "searches"), [(2.6, 2), (2.7, 1)])
def test_what_fits_is_sent(took: float, searches: int) -> None:
    """
    The edge: a third of all the time for the first page leaves as much for a refetch.
    """
    source = Slow(items(30), seconds={0: took, 1: 0})

    heard(source, ["1"])

    assert len(source.plans) == searches


def test_a_report_says_what_was_not_asked_for_want_of_time() -> None:
    """
    Of 30 s the page took 16: the reader is told first, under the name of the place.
    """
    product = kit(Slow(posts(4), seconds={0: 16}))

    with asyncio.Runner(loop_factory=Clockwork) as runner:
        report = runner.run(analyze(product, Ask("ember mug")))

    note = "request for comments not sent (no_time): 14.0 s were left, an answer took 16.0 s"
    assert report.sources["reddit"].notes == (note,)
    assert f"Reddit: {note}" in report.quality_notes
