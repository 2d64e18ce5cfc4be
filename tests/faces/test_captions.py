"""What is said about figures: of how many, and why there is no picture."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import pytest

from api.faces import captions
from api.services.evidence.figures import AspectCount, Figures, Period, Timeline, Unit
from api.services.reporting.report import Report
from tests.faces.answers import plain_report, sentiment
from tests.services.kit import plain


@pytest.mark.parametrize(
    ("counts", "ungraded", "caption", "drawn"),
    [
        ((0, 0, 0), 3, "", False),
        ((1, 0, 0), 0, "Sentiment of 1 graded item: 1 positive, 0 neutral, 0 negative; "
         "too few to draw shares", False),
        ((2, 1, 1), 9, "Sentiment of 4 graded items: 2 positive, 1 neutral, 1 negative; "
         "too few to draw shares", False),
        ((2, 1, 2), 0, "Sentiment of 5 graded items", True),
        ((2, 1, 2), 1, "Sentiment of 5 graded items; 1 more was kept without one", True),
        ((2, 1, 9), 2, "Sentiment of 12 graded items; 2 more were kept without one", True),
    ],
)  # fmt: skip
def test_sentiment_of_a_handful_is_a_sentence(
    counts: tuple[int, int, int], ungraded: int, caption: str, drawn: bool
) -> None:
    """Fewer than five are counted, not drawn; of none nothing is said."""
    said, rows = captions.sentiment(Figures(sentiment=sentiment(*counts, ungraded=ungraded)))

    assert said == caption
    assert [feeling.count for feeling in rows] == (list(counts) if drawn else [])


def timeline(unit: Unit, counts: Sequence[int], undated: int = 0) -> Figures:
    """One period after the other from a Monday on."""
    points = tuple(
        Period(start=date(2026, 3, 2) + timedelta(7 * at), count=count)
        for at, count in enumerate(counts)
    )
    return Figures(timeline=Timeline(unit=unit, points=points, undated=undated))


@pytest.mark.parametrize(
    ("counts", "undated", "caption", "drawn"),
    [
        ([], 0, "", 0),
        ([], 2, "Too few dated items for a timeline: 0 of 2 kept", 0),
        ([4, 0, 5], 1, "Too few dated items for a timeline: 9 of 10 kept", 0),
        ([12], 1, "All dated items (12 of 13 kept) are of one week, 2026-03-02 (UTC)", 0),
        ([4, 0, 6], 0, "Items per week (from Monday, UTC), 10 of 10 kept have a date", 3),
        ([4, 0, 6, 0, 0, 1], 0, "Items per week (from Monday, UTC), 11 of 11 kept have a date; "
         "the latest 5 of 6 weeks", 5),
    ],
)  # fmt: skip
def test_a_timeline_needs_ten_dated_items(
    counts: list[int], undated: int, caption: str, drawn: int
) -> None:
    """And two periods; what is left out is said."""
    said, periods = captions.timeline(timeline("week", counts, undated), 5)

    assert said == caption
    assert [period.count for period in periods] == (counts[-drawn:] if drawn else [])


def test_the_unit_is_said() -> None:
    """
    Months and days are as they are in UTC.
    """
    caption, _ = captions.timeline(timeline("month", [5, 6]), 60)

    assert caption == "Items per month (UTC), 11 of 11 kept have a date"


async def told(summary: str, finding: str, **counts: int) -> Report:
    """A report with such words and aspects."""
    answer = plain(await plain_report())
    answer["summary"] = summary
    answer["findings"][0]["text"] = finding
    answer["figures"]["aspects"] = [
        {"aspect": name, "count": count, "positive": 0, "negative": 0, "cites": []}
        for name, count in counts.items()
    ]
    return Report.model_validate(answer)


async def test_aspects_stand_in_the_order_of_the_words() -> None:
    """
    Those that no word names come last; an aspect is a word of its own, in any script.
    """
    counts = {"price": 9, "app": 8, "lid": 7, "heat": 6, "电池": 5, "scale": 4}
    report = await told("Happy with the Heat, then 电池.", "The lid's price.", **counts)

    caption, rows = captions.aspects(report, 5)

    assert caption == "Aspects that the grader noted, by how many of 3 kept items"
    assert [row.aspect for row in rows] == ["heat", "电池", "lid", "price", "app"]


async def test_the_words_do_not_choose_what_is_shown() -> None:
    """
    The aspects named most often are there, whatever is written about.
    """
    caption, rows = captions.aspects(await told("scale", "scale", price=2, lid=2, scale=1), 2)

    assert caption
    assert [row.aspect for row in rows] == ["price", "lid"]
    assert captions.aspects(await told("", ""), 2) == ("", [])


def test_the_signs_have_a_legend() -> None:
    """
    By an example, with its own denominator.
    """
    eleven = AspectCount(aspect="lid", count=11, positive=6, negative=5, cites=())
    single = AspectCount(aspect="lid", count=1, positive=0, negative=1, cites=())

    assert captions.legend(eleven) == ("(+6 -5): praise, complaint among the 11 items that name it")
    assert captions.legend(single).endswith("among the 1 item that names it")


async def test_the_way_from_found_to_cited() -> None:
    """
    Each source that found something, in four counts.
    """
    answer: dict[str, Any] = plain(await plain_report())
    reddit = {"fetched": 9, "relevant": 4, "kept": 3, "yield_ratio": 4 / 9, "refetched": False}
    answer["figures"]["sources"] = {"reddit": reddit, "youtube": reddit | {"fetched": 0}}

    caption, rows = captions.funnel(Report.model_validate(answer))

    assert caption == "From found to cited: what became of 9 found items"
    assert [(row.name, row.counts) for row in rows] == [("Reddit", (9, 4, 3, 2))]
    answer["figures"]["sources"] = {"items": reddit}
    assert captions.funnel(Report.model_validate(answer))[1][0].counts == (9, 4, 3, 2)
    answer["figures"] = {}
    assert captions.funnel(Report.model_validate(answer)) == ("", [])
