"""The economy of paging, with a reader that counts."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from api.core.domain import FetchPlan
from api.core.items import Item
from api.errors import Unreachable
from api.sources.searched_source import NOTHING_NEW, Page, PagedSearch, in_window, phrase_first, window_start

PLAN = FetchPlan("mug", 5)


def item(number: int, age: timedelta | None = None) -> Item:
    """One thing, perhaps dated."""
    created = None if age is None else datetime.now(UTC) - age
    return Item(key=f"reddit:t3_{number}", id=str(number), source="reddit", title="t", created_at=created)


class Reader:
    """Pages of ten, numbered through; `fail` makes the next one fail."""

    def __init__(self, total: int = 25) -> None:
        self.total = total
        self.cursors: list[str | None] = []
        self.fail = False
        self.begun, self.gate = asyncio.Event(), asyncio.Event()
        self.gate.set()

    async def __call__(self, plan: FetchPlan, cursor: str | None) -> Page:
        self.cursors.append(cursor)
        self.begun.set()
        await self.gate.wait()
        if self.fail:
            self.fail = False
            raise Unreachable("reddit", "HTTP 503")
        start = int(cursor or 0)
        end = min(start + 10, self.total)
        return Page(tuple(map(item, range(start, end))), str(end) if end < self.total else None)


async def test_surplus_serves_the_refetch() -> None:
    """Twice the limit inside one page asks nothing, and begins with the same items."""
    read = Reader()
    shelf = PagedSearch(read, ttl=60)

    first = await shelf.take(PLAN)
    wider = await shelf.take(PLAN.widened(2))

    assert read.cursors == [None]
    assert wider.items[:5] == first.items
    assert (len(first.items), len(wider.items)) == (5, 10)
    assert first.full
    assert wider.full


async def test_next_page_continues_where_the_last_ended() -> None:
    """Past the first page the cursor is used and page one is not asked again."""
    read = Reader()
    shelf = PagedSearch(read, ttl=60)

    await shelf.take(PLAN)
    batch = await shelf.take(replace(PLAN, limit=20))
    short = await shelf.take(replace(PLAN, limit=99))

    assert read.cursors == [None, "10", "20"]
    assert len(batch.items) == 20
    assert len(short.items) == 25
    assert not short.full


async def test_identical_callers_share_one_flight() -> None:
    """Five callers of the same query wait for the same page; another query has its own."""
    read = Reader()
    shelf = PagedSearch(read, ttl=60)

    await asyncio.gather(*(shelf.take(PLAN) for _ in range(5)), shelf.take(FetchPlan("cup", 5)))

    assert read.cursors == [None, None]


async def test_failure_is_not_kept() -> None:
    """The caller after a failed page reaches the source again."""
    read = Reader()
    read.fail = True
    shelf = PagedSearch(read, ttl=60)

    with pytest.raises(Unreachable):
        await shelf.take(PLAN)

    assert len((await shelf.take(PLAN)).items) == 5


async def test_a_page_of_which_a_part_failed_is_not_kept() -> None:
    """It is the answer now; whoever asks next asks for all of it again."""
    pages = [Page((item(1),), "more", partial=True), Page((item(1), item(2)))]

    async def read(plan: FetchPlan, cursor: str | None) -> Page:
        assert cursor is None
        return pages.pop(0)

    shelf = PagedSearch(read, ttl=60)

    assert len((await shelf.take(replace(PLAN, limit=1))).items) == 1
    assert len((await shelf.take(PLAN)).items) == 2
    assert len((await shelf.take(PLAN)).items) == 2


async def test_a_failure_is_everybodys_who_waited() -> None:
    """Of twenty, with limits of their own, one asks a source that is down; the next asks again."""
    read = Reader()
    read.fail = True
    shelf = PagedSearch(read, ttl=60)

    waiting = [shelf.take(replace(PLAN, limit=limit)) for limit in range(1, 21)]
    ended = await asyncio.gather(*waiting, return_exceptions=True)

    assert read.cursors == [None]
    assert {type(each) for each in ended} == {Unreachable}
    assert (await shelf.take(PLAN)).items


async def test_waiting_caller_survives_the_first_ones_cancellation() -> None:
    """When the first of two callers leaves, the second asks for itself."""
    read = Reader()
    read.gate.clear()
    shelf = PagedSearch(read, ttl=60)
    leaving, staying = (asyncio.ensure_future(shelf.take(PLAN)) for _ in range(2))
    await read.begun.wait()
    leaving.cancel()
    read.gate.set()

    assert len((await staying).items) == 5
    assert leaving.cancelled()


async def test_two_empty_pages_are_the_end() -> None:
    """A source that gives nothing but promises more is asked once more, and not for ever."""
    cursors: list[str | None] = []

    async def read(plan: FetchPlan, cursor: str | None) -> Page:
        cursors.append(cursor)
        assert len(cursors) < 4
        return Page((item(1), item(2)), "2") if cursor is None else Page((), "3")

    shelf = PagedSearch(read, ttl=60)
    batch = await shelf.take(PLAN)
    again = await shelf.take(PLAN.widened(2))

    assert cursors == [None, "2", "3"]
    assert len(batch.items) == len(again.items) == 2
    assert not batch.full
    assert again.notes == (NOTHING_NEW,)


@pytest.mark.parametrize(("step", "pages", "items"), [(0, 3, 1), (1, 15, 15)])
async def test_a_place_is_not_asked_for_ever(step: int, pages: int, items: int) -> None:
    """One that repeats itself ends after two such pages, one with an entry a page after some."""
    read = 0

    async def endless(plan: FetchPlan, cursor: str | None) -> Page:
        nonlocal read
        read += 1
        return Page((item(read * step),), f"cursor {read}")

    batch = await PagedSearch(endless, ttl=60).take(replace(PLAN, limit=100))

    assert (read, len(batch.items)) == (pages, items)
    assert len(batch.notes) == 1


async def test_one_empty_page_is_passed() -> None:
    """What stands behind an empty page with a token is found, with nothing to note."""
    pages = {None: Page((), "2"), "2": Page((item(1), item(2)), "3"), "3": Page((item(3),))}

    async def read(plan: FetchPlan, cursor: str | None) -> Page:
        return pages[cursor]

    batch = await PagedSearch(read, ttl=60).take(PLAN)

    assert [found.id for found in batch.items] == ["1", "2", "3"]
    assert (batch.full, batch.notes) == (False, ())


@pytest.mark.parametrize(("total", "more"), [(5, False), (6, True), (10, True), (30, True)])
async def test_exactly_as_many_as_wanted_is_not_more(total: int, more: bool) -> None:
    """A last page that holds just what was asked for promises nothing to a refetch."""
    batch = await PagedSearch(Reader(total), ttl=60).take(PLAN)

    assert len(batch.items) == 5
    assert batch.full is more


@pytest.mark.parametrize(("limit", "pages"), [(9, 1), (10, 1), (11, 1), (12, 2), (20, 2), (22, 2), (24, 3), (25, 3)])
async def test_a_short_page_may_be_enough(limit: int, pages: int) -> None:
    """Of dear pages no further one is asked for the tenth that short ones lack."""
    read = Reader(35)

    batch = await PagedSearch(read, ttl=60, page_size=12).take(replace(PLAN, limit=limit))

    assert len(read.cursors) == pages
    assert batch.full
    assert bool(batch.notes) == (limit in {11, 22})


async def test_full_pages_leave_no_rest_undone() -> None:
    """Where a page holds what it can, one entry more is worth another page."""
    read = Reader()

    batch = await PagedSearch(read, ttl=60, page_size=10).take(replace(PLAN, limit=11))

    assert (len(batch.items), len(read.cursors), batch.notes) == (11, 2, ())


@pytest.mark.parametrize(("body", "kept"), [(4_000_000, 8), (400_000, 76)])
async def test_a_shelf_is_bounded_by_its_texts(body: int, kept: int) -> None:
    """Of long texts fewer queries are kept; the one not asked for longest is asked for again."""
    asked: list[str] = []

    async def read(plan: FetchPlan, cursor: str | None) -> Page:
        asked.append(plan.query)
        return Page((item(1).edited(body="x" * body),))

    shelf, plans = PagedSearch(read, ttl=60), [FetchPlan(f"mug {n}", 5) for n in range(kept + 2)]
    for plan in (*plans[:kept], plans[0], plans[kept], plans[kept + 1]):
        await shelf.take(plan)
    assert asked == [plan.query for plan in plans], "all of them are kept until then"

    await shelf.take(plans[0])
    await shelf.take(plans[1])

    assert asked[kept + 2 :] == [plans[1].query]


async def test_page_expires_after_its_time() -> None:
    """A page older than its time to live is asked again."""
    read = Reader()
    shelf = PagedSearch(read, ttl=-1)

    await shelf.take(PLAN)
    await shelf.take(PLAN)

    assert read.cursors == [None, None]


async def test_full_counts_entries_before_cleaning() -> None:
    """Entries without anything usable, and repeated ones, count towards a full batch."""

    async def read(plan: FetchPlan, cursor: str | None) -> Page:
        return Page((item(1), None, item(1), item(2), None), "2", ("a note",))

    batch = await PagedSearch(read, ttl=60).take(PLAN)

    assert [found.id for found in batch.items] == ["1", "2"]
    assert batch.full
    assert batch.notes == ("a note",)


async def test_window_is_applied_on_our_side() -> None:
    """A day holds what is 20 minutes old and what has no date, not what is 25 hours old."""

    async def read(plan: FetchPlan, cursor: str | None) -> Page:
        return Page((item(1, timedelta(minutes=20)), item(2, timedelta(hours=25)), item(3)))

    batch = await PagedSearch(read, ttl=60).take(replace(PLAN, limit=3, window="day"))

    assert [found.id for found in batch.items] == ["1", "3"]


def test_window_ignores_the_zone_of_a_time() -> None:
    """The same instant is inside or outside in whichever zone it is written."""
    now = datetime(2026, 11, 27, 0, 10, tzinfo=UTC)
    evening = datetime.fromisoformat("2026-11-27T08:50:00+09:00")

    assert in_window("day", evening, now)
    assert not in_window("day", evening - timedelta(days=1), now)
    assert window_start("all", now) is None


async def test_quoted_query_is_asked_once_more_without_quotes() -> None:
    """An exact phrase that gives nothing is widened, and the batch says so."""
    asked: list[str] = []

    async def read(plan: FetchPlan, cursor: str | None) -> Page:
        asked.append(plan.query)
        return Page(() if '"' in plan.query else (item(1),))

    shelf = PagedSearch(read, ttl=60)
    batch = await phrase_first(shelf, FetchPlan('"plaud note  pro"', 5))
    again = await phrase_first(shelf, FetchPlan('"plaud note  pro"', 10))

    assert asked == ['"plaud note  pro"', "plaud note pro"]
    assert len(batch.items) == len(again.items) == 1
    assert "exact phrase" in batch.notes[0]
    assert "without quotes: 1 found" in batch.notes[0]


@pytest.mark.parametrize("query", ["plain  words", '""'])
async def test_query_without_words_in_quotes_is_asked_once(query: str) -> None:
    """Nothing found without quotes, or with nothing inside them, is simply nothing."""
    read = Reader(total=0)

    batch = await phrase_first(PagedSearch(read, ttl=60), FetchPlan(query, 5))

    assert (batch.items, batch.full, batch.notes) == ((), False, ())
    assert len(read.cursors) == 1
