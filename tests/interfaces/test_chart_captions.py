"""What is said about figures: of how many, and why there is no picture."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import pytest

from api.interfaces.shared import chart_data
from api.pipeline.evidence.figures import Figures, Period, Timeline, Unit
from api.reports.report import Report
from tests.interfaces.answers import plain_report, sentiment
from tests.services.kit import plain


@pytest.mark.parametrize(
    ("counts", "ungraded", "repeated", "caption", "drawn"),
    [
        ((0, 0, 0), 3, 0, "", False),
        ((1, 0, 0), 0, 0, "The tone of 1 of 1 kept post can be told: 1 positive", False),
        ((2, 1, 2), 9, 0, "The tone of 5 of 14 kept posts can be told: 2 positive, 1 neutral, 2 negative", False),
        ((9, 1, 9), 0, 5, "The tone of 24 of 24 kept posts can be told, each person once: "
         "9 positive, 1 neutral, 9 negative", False),
        ((9, 1, 20), 31, 0, "The tone of 30 of 61 kept posts can be told: 9 positive, 1 neutral, 20 negative", False),
        ((9, 1, 20), 30, 0, "How 30 of 60 kept posts sound", True),
        ((9, 1, 20), 0, 3, "How 33 of 33 kept posts sound, each person once", True),
    ],
)  # fmt: skip
async def test_shares_are_drawn_of_enough_alone(
    counts: tuple[int, int, int], ungraded: int, repeated: int, caption: str, drawn: bool
) -> None:
    """Of few, or of fewer than half, a sentence counts them; of none nothing is said."""
    felt = Figures(sentiment=sentiment(*counts, ungraded=ungraded).model_copy(update={"repeated": repeated}))
    report = (await plain_report()).model_copy(update={"figures": felt})
    said, rows = chart_data.sentiment(report)

    assert said == caption
    assert [feeling.count for feeling in rows] == (list(counts) if drawn else [])


async def test_no_shares_over_what_the_judge_is_unsure_of() -> None:
    """
    Their number is said instead.
    """
    report = await plain_report()
    unsure = [report.items[0].model_copy(update={"probability": 0.5, "key": f"reddit:{at}"}) for at in range(10)]
    figures = Figures(sentiment=sentiment(12, 0, 12))
    report = report.model_copy(update={"figures": figures, "items": tuple(unsure)})

    assert chart_data.sentiment(report) == (
        "The tone of 24 of 24 kept posts can be told: 12 positive, 12 negative; "
        "10 posts were judged with low confidence, so no shares are drawn",
        (),
    )


async def dated(unit: Unit, counts: Sequence[int], undated: int = 0) -> Report:
    """A report with so many items in each period, the first of which is 2 March 2026."""
    steps = {"day": 1, "week": 7, "month": 31}[unit]
    points = tuple(
        Period(start=date(2026, 3, 2) + timedelta(steps * at), count=count) for at, count in enumerate(counts)
    )
    figures = Figures(timeline=Timeline(unit=unit, points=points, undated=undated))
    return (await plain_report()).model_copy(update={"figures": figures})


@pytest.mark.parametrize(
    ("unit", "counts", "undated", "caption", "drawn"),
    [
        ("week", [], 0, "", 0),
        ("week", [], 2, "None of the kept posts has a date", 0),
        ("week", [4, 0, 5], 1, "9 of 10 kept posts have a date, between 2 March and 16 March 2026",
         0),
        ("week", [12], 1, "12 of 13 kept posts have a date, on 2 March 2026", 0),
        ("week", [4, 0, 6], 0, "Posts per week (from Monday, UTC); 10 of 10 kept posts have a date",
         3),
        ("week", [9, 1, 6, 3, 3, 1], 0, "Posts per week (from Monday, UTC); "
         "23 of 23 kept posts have a date; the latest 5 of 6 weeks", 5),
        ("week", [1, 0, 1, 0, 0, 7, 2], 0, "11 of 11 kept posts have a date, "
         "between 2 March and 13 April 2026, most in April (9)", 0),
        ("month", [1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3], 0,
         "13 of 13 kept posts have a date, between 2 March 2026 and 9 March 2027, "
         "most in May 2026 (9)", 0),
    ],
)  # fmt: skip
async def test_a_timeline_needs_full_periods(
    unit: Unit, counts: list[int], undated: int, caption: str, drawn: int
) -> None:
    """Three of three items each, else a sentence; what is left out is said."""
    said, periods = chart_data.timeline(await dated(unit, counts, undated), 5)

    assert said == caption
    assert [period.count for period in periods] == (counts[-drawn:] if drawn else [])


async def test_sparse_weeks_are_counted_by_month() -> None:
    """
    Ten weeks of nearly nothing are three months of something.
    """
    caption, periods = chart_data.timeline(await dated("week", [1, 2, 1, 0, 3, 0, 1, 0, 2, 1]), 60)

    assert caption == "Posts per month (UTC); 11 of 11 kept posts have a date"
    assert [period.count for period in periods] == [7, 3, 1]


async def test_the_days_are_those_of_the_items() -> None:
    """
    A period would only tell its first day.
    """
    report = await plain_report()
    days = sorted(item.created_at.day for item in report.items if item.created_at)
    caption, _ = chart_data.timeline(report, 60)

    assert caption == (f"2 of 3 kept posts have a date, between {days[0]} September and {days[1]} September 2026")


async def test_the_way_from_found_to_cited() -> None:
    """
    Each source that found something, in four counts.
    """
    answer: dict[str, Any] = plain(await plain_report())
    reddit = {"fetched": 9, "relevant": 4, "kept": 4, "in_report": 3, "yield_ratio": 4 / 9, "refetched": False}
    answer["figures"]["sources"] = {"reddit": reddit, "youtube": reddit | {"fetched": 0}}

    caption, rows = chart_data.funnel(Report.model_validate(answer))

    assert caption == "From found to cited: what became of 9 found posts"
    assert [(row.name, row.counts) for row in rows] == [("Reddit", (9, 4, 3, 2))]
    answer["figures"]["sources"] = {"items": reddit}
    assert chart_data.funnel(Report.model_validate(answer))[1][0].counts == (9, 4, 3, 2)
    answer["figures"]["sources"] = {"reddit": reddit | {"relevant": 0, "yield_ratio": None}}
    assert chart_data.funnel(Report.model_validate(answer))[1][0].counts == (9, None, 3, 2)
    answer["figures"] = {}
    assert chart_data.funnel(Report.model_validate(answer)) == ("", [])


async def test_of_several_queries_a_post_counts_once() -> None:
    """Both searches together are what the place's own figures say, however many queries it had."""
    first = {"fetched": 25, "kept": 6}
    report = await asked_again([5, 9, 10, 5], first)

    caption, rows = chart_data.passes(report)

    assert caption == "1 place was asked a second time: how much was about it"
    assert rows == [chart_data.PassRow("Reddit", (6, 25), (0, 2))]


async def test_what_an_older_program_counted_several_times_is_not_drawn() -> None:
    """Its attempts count a post once for each query; of a single query they are right."""
    several = await asked_again([5, 10, 5], None)
    single = await asked_again([5, 10], None)

    assert chart_data.passes(several) == ("", [])
    assert chart_data.passes(single)[1] == [chart_data.PassRow("Reddit", (2, 5), (2, 5))]


async def asked_again(limits: Sequence[int], first: dict[str, int] | None) -> Report:
    """A report on one place, of 6 in 27 posts, that was asked with these limits."""
    answer = plain(await plain_report())
    attempts = [
        {"limit": limit, "fetched": limit, "new": 5, "relevant": 2, "requests": 1, "status": "ok",
         "reason": None}
        for limit in limits
    ]  # fmt: skip
    source = {**answer["sources"]["reddit"], "attempts": attempts, "fetched": 27, "kept": 6}
    source |= {"refetched": True, "first": first}
    counts = {"fetched": 27, "relevant": 6, "kept": 6, "yield_ratio": 0.2, "refetched": True}
    answer["sources"], answer["figures"] = {"reddit": source}, {"sources": {"reddit": counts}}
    return Report.model_validate(answer)
