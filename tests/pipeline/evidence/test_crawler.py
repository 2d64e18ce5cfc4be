"""All sources at once, and several queries of one source as one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from api.core.display_names import OUTCOME_REASONS
from api.core.domain import Attempt, Outcome, Usage, Verdict
from api.core.items import Assessed, Gathered, Item
from api.core.progress import Event, SourceGathered
from api.pipeline.evidence.crawl import Crawl, combine, crawl
from tests.services.fakes import item

RESET = datetime(2025, 3, 10, 8, tzinfo=UTC)


def heard(kept: list[Item], dropped: list[Item] | None = None, **fields: Any) -> Gathered:
    """What one query of one source gave."""
    sure = [Assessed(one, Verdict(True)) for one in kept]
    off = [Assessed(one, Verdict(False), dropped_by="gate") for one in dropped or []]
    attempt = Attempt(5, len(sure) + len(off), len(sure) + len(off), len(sure), 1, "ok")
    told = {"status": "ok", "model": "fake-1", "attempts": (attempt,), "usage": Usage(10, 1, 0.5)}
    query = fields.pop("query", "plaud")
    outcome = Outcome.OK if kept else Outcome.IRRELEVANT if dropped else Outcome.EMPTY
    facts: dict[str, Any] = {"outcome": outcome, "upstream_calls": 2, **told, **fields}
    return Gathered("reddit", query, kept=tuple(sure), dropped=tuple(off), **facts)


def failed(outcome: Outcome, **fields: Any) -> Gathered:
    """A query that could not be asked."""
    return Gathered("reddit", "plaud", outcome, reason=str(outcome), upstream_calls=1, **fields)


def keys(found: tuple[Assessed, ...]) -> list[str]:
    """Which items, in order."""
    return [one.item.id for one in found]


async def test_every_source_is_asked_every_query_at_once() -> None:
    """
    Six askings wait for each other; the result is one entry per source in the order asked for.
    """
    together = asyncio.Barrier(6)

    async def gather(source: str, query: str) -> Gathered:
        await together.wait()
        return Gathered(source, query, Outcome.EMPTY, upstream_calls=1)

    async with asyncio.timeout(120):
        found = await crawl(gather, ("youtube", "reddit", "amazon"), ("a", "b"))

    assert [one.source for one in found.sources] == ["youtube", "reddit", "amazon"]
    assert (found.queries, found.upstream_calls, found.answered) == (("a", "b"), 6, 3)


async def test_a_source_that_searches_by_name_gets_one_query() -> None:
    """The first alone, and none when it was asked before; where no source heeds more, the crawl says so."""
    sent: list[tuple[str, str]] = []

    async def gather(source: str, query: str) -> Gathered:
        sent.append((source, query))
        return Gathered(source, query, Outcome.EMPTY)

    first = await crawl(gather, ("steam", "reddit"), ("a", "b"), by_name=("steam",))
    await crawl(gather, ("steam", "reddit"), ("c",), earlier=first.sources, by_name=("steam",))
    alone = await crawl(gather, ("steam",), ("a",), by_name=("steam", "news"))

    assert sorted(sent) == [("reddit", "a"), ("reddit", "b"), ("reddit", "c"), ("steam", "a"), ("steam", "a")]
    assert (first.by_name, alone.by_name) == (False, True)


async def test_a_crawl_adds_up_its_sources() -> None:
    """
    Kept and dropped stand in the order of sources, and only who answered counts as asked.
    """
    found = Crawl((heard([item(1)], [item(2)]), failed(Outcome.BLOCKED), heard([item(3)])), ("plaud",))

    assert (keys(found.kept), keys(found.dropped)) == (["1", "3"], ["2"])
    assert (found.answered, found.upstream_calls, found.usage) == (2, 5, Usage(20, 2, 1.0))


def test_the_first_query_leads_and_items_are_distinct() -> None:
    """
    Merged variants keep the first query's order, then what only the others found; sums add up.
    """
    both = combine(
        [
            heard([item(3), item(1)], [item(2)], notes=("a",), refetched=True),
            heard([item(4), item(3)], [item(5), item(2)], notes=("a", "b")),
        ]
    )

    assert (keys(both.kept), keys(both.dropped)) == (["3", "1", "4"], ["2", "5"])
    assert (both.fetched, both.upstream_calls, both.usage) == (5, 4, Usage(20, 2, 1.0))
    assert (both.notes, both.refetched) == (("a", "b"), True)
    assert (both.outcome, both.status, len(both.attempts)) == (Outcome.OK, "ok", 2)


def test_one_query_is_itself() -> None:
    """
    Nothing is rebuilt where there is nothing to merge.
    """
    only = heard([item(1)])

    assert combine([only]) is only


def test_what_one_query_kept_no_other_drops() -> None:
    """
    An item that passed is not counted among the dropped as well.
    """
    both = combine([heard([], [item(1), item(2)]), heard([item(2)])])

    assert (keys(both.kept), keys(both.dropped), both.fetched) == (["2"], ["1"], 2)


def test_crossposts_found_by_two_queries_are_one_item() -> None:
    """
    B46: the post and its copy count once, all their places are listed.
    """
    copy = item(2, place="r/b", crosspost_parent="reddit:1")

    both = combine([heard([copy]), heard([item(1)], [item(3)])])
    dropped = combine([heard([item(1)]), heard([], [copy])])

    assert (keys(both.kept), both.kept[0].item.places) == (["2"], ("r/b", "r/a"))
    assert (both.fetched, dropped.fetched, keys(dropped.dropped)) == (2, 1, [])


def test_what_the_memory_served_again_counts_once() -> None:
    """
    B39: a repeated query adds no attempt, no cost and no call.
    """
    first = heard([item(1)], refetched=True)

    assert combine([first, first]) is first
    assert combine([first, heard([item(2)]), first]).upstream_calls == 4
    assert len(combine([first, heard([item(2)]), first]).attempts) == 2


def test_one_degraded_query_degrades_the_source() -> None:
    """
    B20: the failed gate of any variant stays visible, whichever variant led.
    """
    lost = heard([item(2)], status="degraded", gate_reason="timeout", model=None)

    both = combine([heard([item(1)]), lost])

    assert (both.status, both.gate_reason, both.model) == ("degraded", "timeout", None)


def test_an_empty_query_does_not_hide_the_gate_of_another() -> None:
    """
    Status and model are those of a query whose items were judged.
    """
    nothing = heard([], status="skipped", model=None)

    assert combine([nothing, heard([item(1)])]).model == "fake-1"
    assert combine([nothing, heard([], status="skipped", model=None)]).status == "skipped"


@pytest.mark.parametrize(
    ("parts", "outcome"),
    [
        ([heard([]), heard([], [item(1)])], Outcome.IRRELEVANT),
        ([heard([], [item(1)]), heard([item(2)])], Outcome.OK),
        ([failed(Outcome.TIMED_OUT), heard([])], Outcome.EMPTY),
        ([failed(Outcome.TIMED_OUT), heard([item(1)])], Outcome.OK),
        ([failed(Outcome.TIMED_OUT), failed(Outcome.BLOCKED)], Outcome.TIMED_OUT),
    ],
)
def test_the_best_outcome_of_all_queries_stands(parts: list[Gathered], outcome: Outcome) -> None:
    """
    A source that answered any query was asked; only when none was answered it failed.
    """
    assert combine(parts).outcome is outcome


def test_a_query_that_failed_beside_others_is_a_note() -> None:
    """
    B50: the reason and reset time of the source are those of a failure only when all failed.
    """
    limited = failed(Outcome.RATE_LIMITED, retry_at=RESET)

    some = combine([limited, heard([item(1)])])
    none = combine([limited, failed(Outcome.BLOCKED)])

    assert (some.reason, some.retry_at, some.notes) == (
        None, None, ("one query failed: rate limited",),
    )  # fmt: skip
    assert (none.reason, none.retry_at) == ("rate_limited", RESET)
    assert (none.notes, none.upstream_calls) == (
        (f"one query failed: {OUTCOME_REASONS[Outcome.BLOCKED]}",),
        2,
    )


async def test_what_was_given_before_leads() -> None:
    """
    A source that is asked further queries keeps what it gave, and says what it gave in all.
    """
    events: list[Event] = []

    async def gather(source: str, query: str) -> Gathered:
        return heard([item(1), item(2)], [item(3)], query=query)

    both = await crawl(gather, ("reddit",), ("b",), earlier=[heard([item(1)], query="a")], listener=events.append)

    assert keys(both.kept) == ["1", "2"]
    whole = SourceGathered.of(both.sources[0])
    assert (whole.query, whole.fetched, whole.kept) == ("a", 3, 2)
    assert events == [whole]


async def test_a_source_is_done_when_its_last_query_is() -> None:
    """
    Queries that are known later are asked of all, and each source is told once, by its own end.
    """
    events: list[Event] = []
    slow, rewritten = asyncio.Event(), asyncio.Event()

    async def gather(source: str, query: str) -> Gathered:
        if (source, query) == ("reddit", "plaud"):
            await slow.wait()
        return replace(heard([item(1), item(len(query))], query=query), source=source)

    async def rewriting() -> list[str]:
        await rewritten.wait()
        return ["plaud review", "plaud"]

    def hear(event: Event) -> None:
        events.append(event)
        slow.set()

    more = asyncio.create_task(rewriting())
    crawling = asyncio.create_task(crawl(gather, ("reddit", "github"), ("plaud.ai",), more, listener=hear))
    await asyncio.sleep(0)
    assert not events
    rewritten.set()
    async with asyncio.timeout(120):
        whole = await crawling

    assert whole.queries == ("plaud.ai", "plaud review", "plaud")
    assert events == [SourceGathered.of(gathered) for gathered in reversed(whole.sources)]
    assert [gathered.fetched for gathered in whole.sources] == [4, 4]


def test_what_any_first_search_brought_no_wider_one_did() -> None:
    """
    A post that a wider search of one query and the first of another found was found at first.
    """
    wide, only = item(2), item(3)
    first = heard([item(1), wide, only], [item(5)], refetched=True)
    first = replace(
        first,
        kept=tuple(replace(entry, wider=entry.item in (wide, only)) for entry in first.kept),
        dropped=tuple(replace(entry, wider=True) for entry in first.dropped),
    )

    both = combine([first, heard([wide], [item(4)])])

    assert [(entry.item.id, entry.wider) for entry in (*both.kept, *both.dropped)] == [
        ("1", False), ("2", False), ("3", True), ("5", True), ("4", False),
    ]  # fmt: skip
    assert both.refetch_gain == 1
    assert combine([both, heard([], [item(5)])]).dropped[0].wider is False


def test_an_unknown_price_makes_the_sum_unknown() -> None:
    """
    B101: tokens add up all the same, and unknown is not zero.
    """
    unknown = heard([item(2)], usage=Usage(10, 1, None))

    assert combine([heard([item(1)]), unknown]).usage == Usage(20, 2, None)
    assert combine([unknown, heard([item(1)])]).usage == Usage(20, 2, None)


@pytest.mark.parametrize(
    ("second", "whole"),
    [
        (heard([item(2)]), False),
        (heard([item(2)], capped=True), True),
        (failed(Outcome.BLOCKED), True),
    ],
)
def test_one_full_page_leaves_more_behind(second: Gathered, whole: bool) -> None:
    """Of one query at least; what one that failed would have brought, nobody knows."""
    assert combine([heard([item(1)]), second]).capped is whole
