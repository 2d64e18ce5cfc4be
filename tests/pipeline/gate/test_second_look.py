"""The second look at a thin page: one dropped item, one request, and never worse than without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from api.core.domain import Outcome
from api.core.items import Comment, Gathered, Item
from api.errors import ModelError, RateLimited, SourceError
from tests.services.fakes import FakeJudge, FakeSource, SourceAnswer, gathered, ids, item, items

SAID = {"1": ["nice", "I use Plaud AI daily", "plaud.ai?"]}


def discussed(*counts: int | None) -> list[Item]:
    """Posts with so many comments each."""
    return [item(at, engagement={"comments": count}) for at, count in enumerate(counts)]


def comparable(found: Gathered) -> tuple[Any, ...]:
    """What a look that changes nothing must leave as it was."""
    return found.outcome, found.kept, found.dropped, found.attempts


async def test_an_item_is_kept_for_the_comment_that_names_it() -> None:
    """
    One request and one judge call more: the most discussed item, judged by its naming comment.
    """
    source, judge, heard = (
        FakeSource(discussed(3, 9, 5), remarks=SAID),
        FakeJudge(["c1"]),
        SourceAnswer(),
    )

    found = await gathered(source, judge, second_look=True, listener=heard)

    assert (source.looked, judge.asked) == (["1"], [["0", "1", "2"], ["c1"]])
    assert (ids(found), found.outcome, found.upstream_calls) == (["1"], Outcome.OK, 2)
    assert (found.usage.input_tokens, found.refetched, found.fetched) == (20, False, 3)
    kept = found.kept[0]
    assert [comment.id for comment in kept.item.comments] == ["c1", "c0", "c2"]
    assert kept.verdict.reason == "a comment names it"
    assert kept.item.notes == ("kept: a comment names it",)
    assert found.notes[-1] == "second look: one dropped item kept, a comment names it"
    assert heard.kinds[-2:] == ["source.looked_again", "source.kept"]
    assert heard.events[-2].data == {
        "query": found.query, "relevant": 1, "status": "ok",
    }  # fmt: skip


async def test_the_judge_sees_the_comment_under_its_title() -> None:
    """
    A comment as any other: its words, its place `comment`, its parent's title, a key of its own.
    """
    shown: list[Item] = []

    class Seeing(FakeJudge):
        async def judge(self, question: Any, items: Sequence[Item], source: str) -> Any:
            shown.extend(items)
            return await super().judge(question, items, source)

    copy = item(1, crosspost_parent="reddit:9", body="long ago")
    await gathered(FakeSource([copy], remarks=SAID), Seeing(), second_look=True)

    exhibit = shown[1]
    assert (exhibit.original, exhibit.title) == ("reddit:1#c1", "Post 1")
    assert (exhibit.body, exhibit.place) == ("I use Plaud AI daily", "comment")


@pytest.mark.parametrize(
    ("source", "judge", "note"),
    [
        (FakeSource(items(3), remarks={}), FakeJudge(), "second look: no comment names it"),
        (
            FakeSource(items(3)[1:], remarks=SAID),
            FakeJudge(),
            "second look: its comment does not speak for it",
        ),
        (
            FakeSource(items(3)[1:], remarks=SAID),
            FakeJudge(["c1"], trouble={1: ModelError("timeout")}),
            "second look could not be judged (no answer in time)",
        ),
        (
            FakeSource(items(3), remarks=SAID, silence={-1: RateLimited("reddit")}),
            FakeJudge(),
            "second look failed (rate limited)",
        ),
        (
            FakeSource(items(3), remarks=SAID, silence={-1: RecursionError()}),
            FakeJudge(),
            "second look failed (its answer was malformed)",
        ),
    ],
    ids=["nobody names it", "judged off topic", "not judged", "limited", "broken"],
)
async def test_else_everything_stays_with_a_note(source: FakeSource, judge: FakeJudge, note: str) -> None:
    """
    Same items, outcome and attempts as without the look.
    """
    plain = await gathered(FakeSource(source.slots), FakeJudge())

    found = await gathered(source, judge, second_look=True)

    assert comparable(found) == comparable(plain)
    assert found.notes == (*plain.notes, note)
    assert found.upstream_calls == plain.upstream_calls + 1


@pytest.mark.parametrize(
    ("source", "judge", "options"),
    [
        (FakeSource(items(4), remarks=SAID), FakeJudge(["2", "3"]), {}),
        (FakeSource(items(3), remarks=SAID), FakeJudge(), {"min_yield": 0}),
        (FakeSource([], remarks=SAID), FakeJudge(), {}),
        (FakeSource(discussed(0, 0), remarks=SAID), FakeJudge(), {}),
        (FakeSource(items(3), remarks=SAID), FakeJudge(trouble={0: ModelError("timeout")}), {}),
        (
            FakeSource(items(30), remarks=SAID, trouble={1: SourceError("reddit", "no")}),
            FakeJudge(),
            {},
        ),
        (
            FakeSource(items(3), remarks=SAID, silence={0: RateLimited("reddit")}),
            FakeJudge(["2"]),
            {},
        ),
        (FakeSource(items(3), remarks=SAID), FakeJudge(), {"second_look": False}),
    ],
    ids=["half", "no threshold", "nothing", "no comments", "unjudged", "refetch", "limit", "off"],
)
async def test_when_nobody_looks(source: FakeSource, judge: FakeJudge, options: dict[str, Any]) -> None:
    """
    Only a thin page, wholly judged, of a source that answers, gets a second look.
    """
    await gathered(source, judge, **{"second_look": True, **options})

    assert source.looked == []


async def test_a_source_without_remarks_is_left_alone() -> None:
    """
    Nothing is asked, judged, noted or told.
    """
    source, heard = FakeSource(items(3)), SourceAnswer()

    found = await gathered(source, FakeJudge(), second_look=True, listener=heard)

    assert (source.looked, found.upstream_calls) == (["0"], 1)
    assert found.notes == ("not refetched: the source had no more",)
    assert "source.looked_again" not in heard.kinds


async def test_no_request_shortly_before_the_deadline() -> None:
    """
    With less than five seconds left nobody is asked, and a note says so.
    """
    source = FakeSource(items(3), remarks=SAID)

    found = await gathered(source, FakeJudge(), second_look=True, until=4.9)

    assert source.looked == []
    assert found.notes[-1] == "no second look: too little time was left"


async def test_the_likeliest_comes_before_the_most_discussed() -> None:
    """
    Where the judge has probabilities they decide.
    """

    class Guessing(FakeJudge):
        async def judge(self, question: Any, items: Sequence[Item], source: str) -> Any:
            judged = await super().judge(question, items, source)
            chances = [0.1, 0.3, 0.2]
            pairs = zip(judged.verdicts, chances, strict=False)
            return replace(judged, verdicts=tuple(replace(one, probability=chance) for one, chance in pairs))

    source = FakeSource(discussed(50, None, 70), remarks=SAID)

    found = await gathered(source, Guessing(["c1"]), second_look=True, until=600)

    assert (source.looked, ids(found)) == (["1"], ["1"])
    assert isinstance(found.kept[0].item.comments[0], Comment)
