"""Reading the comments of many items: order, what ends it, and what is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from api.core.items import Comment, Item
from api.errors import Blocked, Broken, RateLimited, SourceError, TimedOut, Unreachable
from api.sources.searched_source import read_each

GOOD = None
SAID = (Comment(id="c", body="warm", url="https://example.org/c"),)
Outcomes = Sequence[type[Exception] | None]


def items(count: int) -> list[Item]:
    """Things without comments."""
    return [Item(key=f"reddit:{number}", id=str(number), source="reddit", title="t") for number in range(count)]


class Reader:
    """Answers item by item as it is told; notes who was asked, and how many at once."""

    def __init__(self, outcomes: Outcomes) -> None:
        self.outcomes, self.asked = outcomes, list[str]()
        self.busy = self.busiest = 0

    async def __call__(self, item: Item) -> Item:
        self.asked.append(item.id)
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        await asyncio.sleep(0)
        self.busy -= 1
        outcome = self.outcomes[int(item.id)]
        if outcome is not None:
            raise outcome("reddit", "why")
        return item.edited(comments=SAID)


async def test_items_keep_their_places_and_wait_their_turn() -> None:
    """Six items, two at a time; one that fails is noted where it stands, as is the whole."""
    reader = Reader([GOOD, GOOD, Broken, GOOD, Broken, GOOD])

    read = await read_each(items(6), reader, parallel=2, what="reviews")

    assert [item.id for item in read.items] == reader.asked == list("012345")
    assert [len(item.comments) for item in read.items] == [1, 1, 0, 1, 0, 1]
    assert read.items[2].notes == ("reviews could not be read: why",)
    assert read.notes == ("reviews: 2 of 6 failed (its answer was malformed)",)
    assert reader.busiest == 2


async def test_a_defect_costs_its_item_alone(caplog: pytest.LogCaptureFixture) -> None:
    """What nobody foresaw is one item's failure, with its traceback in the log."""
    read = await read_each(items(3), Reader([GOOD, OverflowError, GOOD]))

    assert [len(item.comments) for item in read.items] == [1, 0, 1]
    assert read.notes == ("comments: 1 of 3 failed (its answer was malformed)",)
    assert "internal error (OverflowError)" in read.items[1].notes[0]
    (record,) = caplog.records
    assert record.exc_info is not None


@pytest.mark.parametrize(
    ("outcomes", "asked"),
    [
        ([GOOD, RateLimited, GOOD, GOOD, GOOD], 2),
        ([GOOD, Blocked, GOOD, GOOD, GOOD], 2),
        ([GOOD, Broken, Broken, Broken, Broken, GOOD], 6),
        ([GOOD, TimedOut, Unreachable, GOOD, GOOD], 3),
        ([GOOD, TimedOut, GOOD, TimedOut, GOOD, TimedOut, TimedOut, GOOD, GOOD], 7),
        ([TimedOut, GOOD, TimedOut, GOOD], 4),
        ([GOOD, TimedOut, Broken, TimedOut, GOOD, GOOD], 4),
    ],
)
async def test_what_ends_the_reading(outcomes: Outcomes, asked: int) -> None:
    """A limit at once, silences when there are `width` of them without an answer in between."""
    reader = Reader(outcomes)

    read = await read_each(items(len(outcomes)), reader, parallel=2)

    assert asked <= len(reader.asked) <= asked + 1, "one more may have been under way"
    left = read.items[len(reader.asked) :]
    assert all(item.notes[0].startswith("comments not asked for: ") for item in left)


async def test_what_ends_it_before_the_first_answer_is_the_sources() -> None:
    """Without anything read, the error that ended the reading is raised."""
    with pytest.raises(RateLimited):
        await read_each(items(5), Reader([RateLimited] * 5), parallel=1)
    with pytest.raises(Unreachable):
        await read_each(items(5), Reader([Unreachable] * 5), parallel=2)


async def test_failures_that_end_nothing_are_no_error() -> None:
    """Every item may be broken without the source being so."""
    read = await read_each(items(5), Reader([Broken] * 5), parallel=2)

    assert read.notes == ("comments: 5 of 5 failed (its answer was malformed)",)


@pytest.mark.parametrize(("doubts", "asked"), [((TimedOut,), 5), ((Blocked,), 3)])
async def test_doubts_are_the_callers(doubts: tuple[type[SourceError], ...], asked: int) -> None:
    """A block page may be one item's, where the source says so."""
    reader = Reader([GOOD, Blocked, Blocked, GOOD, GOOD])

    await read_each(items(5), reader, parallel=2, stops=(RateLimited,), doubts=doubts)

    assert asked <= len(reader.asked) <= asked + 1
