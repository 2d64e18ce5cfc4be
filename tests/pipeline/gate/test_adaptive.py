"""The loop: when it fetches again, what it costs, and that the first pass always stands."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.core.context import request_counter
from api.core.domain import FetchPlan, Outcome, Verdict
from api.core.items import Batch, Commented, Gated, Item
from api.errors import ModelError, Unreachable
from api.pipeline.gate.refetch import SourceItems
from tests.services.fakes import FakeJudge, FakeSource, SourceAnswer, gathered, ids, item, items

RESET = datetime(2025, 3, 10, 8, tzinfo=UTC)


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
    assert found.capped
    assert [(a.limit, a.fetched, a.new, a.relevant, a.status) for a in found.attempts] == [
        (5, 5, 5, 1, "ok"),
        (10, 10, 5, 2, "ok"),
    ]
    assert found.usage.input_tokens == 20
    assert [one.dropped_by for one in found.dropped] == ["gate"] * 7
    assert [one.item.id for one in (*found.kept, *found.dropped) if one.wider] == [
        "6", "7", "5", "8", "9",
    ]  # fmt: skip


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
    relevant = round(share * 100)

    def thin(many: int) -> bool:
        gathered_items, posts = SourceItems("reddit", "x"), items(100)
        gated = Gated(tuple(Verdict(n < many) for n in range(100)), "ok")
        gathered_items.add_attempt(Batch(FetchPlan("x", 100), tuple(posts), full=True), len(posts), posts, gated, 1)
        return gathered_items.first_yield_below(share)

    assert not thin(relevant)
    assert thin(relevant - 1)


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        (Verdict(False, "m"), "judged off topic by m"),
        (Verdict(False), "judged off topic by the gate"),
        (Verdict(False, "local-3", 0.066, reason="names no plaud"), "names no plaud (7 % likely)"),
    ],
)
def test_a_dropped_item_says_what_decided(verdict: Verdict, reason: str) -> None:
    """
    The judge's own words and its probability, where it has them.
    """
    gathered_items = SourceItems("reddit", "plaud")
    plan = FetchPlan("plaud", 1)
    gathered_items.add_attempt(Batch(plan, tuple(items(1)), full=False), 1, items(1), Gated((verdict,), "ok"), 1)

    assert [entry.reason for entry in gathered_items.result(1).dropped] == [reason]


async def test_comments_of_what_was_not_asked_for_are_left_out() -> None:
    """
    A source that answers for other items changes none of those that are kept.
    """

    class Confused(FakeSource):
        async def comments(self, items: Sequence[Item]) -> Commented:
            return Commented((item(77), items[0].edited(body="read")))

    found = await gathered(Confused(items(2)), FakeJudge(["0", "1"]))

    assert [(entry.item.id, entry.item.body) for entry in found.kept] == [("0", "read"), ("1", "")]


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


async def test_what_is_unfit_is_listed_and_never_judged() -> None:
    """
    A removed post is dropped with its reason; it costs no verdict and does not thin the yield.
    """
    removed = item(0, title="", unfit="title and text were removed")
    judge = FakeJudge(["1"])

    found = await gathered(FakeSource([removed, item(1), *[None] * 8]), judge)
    only = await gathered(FakeSource([removed]), FakeJudge())

    assert judge.asked == [["1"]]
    assert (ids(found), found.yield_ratio, found.refetched) == (["1"], 1.0, False)
    assert [(entry.item.id, entry.dropped_by, entry.reason) for entry in found.dropped] == [
        ("0", "unfit", "title and text were removed")
    ]
    assert (only.outcome, only.status, only.fetched) == (Outcome.IRRELEVANT, "skipped", 1)


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


async def test_events_come_in_order() -> None:
    """
    A person sees each step as it happens, with the wider limit and the result.
    """
    heard = SourceAnswer()

    await gathered(FakeSource(items(30)), FakeJudge(["1"]), listener=heard)

    assert heard.kinds == [
        "source.started", "source.fetched", "source.judged", "source.refetching",
        "source.fetched", "source.judged", "source.kept",
    ]  # fmt: skip
    query = heard.events[0].data["query"]
    assert {event.data["query"] for event in heard.events} == {query}
    assert heard.events[3].data == {"query": query, "limit": 10}
    assert heard.events[5].data == {"query": query, "judged": 5, "relevant": 0, "status": "ok"}
    assert heard.events[6].data == {
        "query": query, "outcome": "ok", "fetched": 10, "kept": 1, "yield_ratio": 0.1,
        "refetched": True, "status": "ok", "reason": None, "titles": ("Post 1",),
    }  # fmt: skip


async def test_calls_are_counted_over_attempts_and_comments() -> None:
    """
    Two searches and two comment reads are four calls, and whoever counts outside sees them too.
    """
    with request_counter() as outer:
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


@pytest.mark.parametrize(("held", "relevant", "capped"), [(4, "0123", False), (5, "01234", True), (9, "0", False)])
async def test_it_is_known_whether_a_source_may_hold_more(held: int, relevant: str, capped: bool) -> None:
    """By its last, widest fetch: a page of five, or of ten where little of that was relevant."""
    found = await gathered(FakeSource(items(held)), FakeJudge(relevant))
    assert found.capped is capped
