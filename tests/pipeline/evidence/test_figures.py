"""Every number, recomputed."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.core.domain import Grade, Outcome, Verdict
from api.core.items import Assessed, Gathered, Item
from api.pipeline.evidence.figures import Figures, Unit, figures, periods, wilson

NOW = datetime(2025, 3, 12, 0, 10, tzinfo=UTC)


def one(key: str, grade: Grade | None = None, rank: int | None = None, **fields: Any) -> Assessed:
    """A kept item."""
    source, _, name = key.partition(":")
    item = Item(key=key, id=name, source=source, title=name, **fields)
    return Assessed(item, Verdict(True), grade, rank=rank)


def counted(*kept: Assessed, sources: tuple[Gathered, ...] = ()) -> dict[str, Any]:
    """The figures of these items."""
    return figures(sources, kept, now=NOW).model_dump(mode="json")


@pytest.fixture(params=["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The machine's time zone."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_own_items_count_under_the_source_that_brought_them() -> None:
    """
    A person's own line may say that it is from reddit; it was still the person's.
    """
    mine, other = one("reddit:a"), one("forum:b")
    sources = (Gathered("items", "x", Outcome.OK, kept=(mine, other)),)

    assert counted(mine, sources=sources)["sources"]["items"]["in_report"] == 1


def test_sources_count_distinct_items_over_all_queries() -> None:
    """
    Two queries that found the same item count it once; the yield is of what was fit to be judged.
    """
    a, b, c = (one(f"reddit:{name}") for name in "abc")
    sources = (
        Gathered("reddit", "x", Outcome.OK, kept=(a,), dropped=(b,), refetched=True),
        Gathered("reddit", "y", Outcome.OK, kept=(a, c), dropped=(b, replace(one("reddit:d"), dropped_by="unfit"))),
        Gathered("youtube", "x", Outcome.BLOCKED),
    )

    assert counted(a, sources=sources)["sources"] == {
        "reddit": {
            "fetched": 4, "relevant": 2, "kept": 2, "in_report": 1, "yield_ratio": 2 / 3, "refetched": True,
        },
        "youtube": {
            "fetched": 0, "relevant": 0, "kept": 0, "in_report": 0, "yield_ratio": None, "refetched": False,
        },
    }  # fmt: skip


def test_what_passed_unjudged_is_not_relevant() -> None:
    """
    What another query's judge said yes to still is; the share of a source like that is unknown.
    """
    judged = replace(one("reddit:a"), verdict=Verdict(True, "m"))
    passed = one("reddit:b")
    sources = (Gathered("reddit", "x", Outcome.OK, kept=(judged, passed), status="degraded"),)

    assert counted(judged, passed, sources=sources)["sources"]["reddit"] == {
        "fetched": 2, "relevant": 1, "kept": 2, "in_report": 2, "yield_ratio": None, "refetched": False,
    }  # fmt: skip


def test_sentiment_counts_only_what_was_graded() -> None:
    """
    Items without a sentiment are told apart, and shares come with n and an interval.
    """
    feelings = (1, 1, 1, -1, 0, None)
    graded = [one(f"a:{n}", Grade(4, sentiment=felt)) for n, felt in enumerate(feelings)]

    found = counted(*graded, one("a:raw"))["sentiment"]

    assert (found["n"], found["ungraded"]) == (5, 2)
    assert (found["positive"], found["neutral"], found["negative"]) == (3, 1, 1)
    assert found["shares"] == {"positive": 0.6, "neutral": 0.2, "negative": 0.2}
    assert found["wilson95"]["positive"] == pytest.approx([0.2307, 0.8824], abs=1e-4)


def test_a_person_counts_once() -> None:
    """
    As most of what they wrote sounds, in aspects too. An item without a known author has a tone, and is nobody's.
    """
    rants = [
        one(f"a:{n}", Grade(4, sentiment=felt, aspects=("lid",)), n + 1, author="ada")
        for n, felt in enumerate((1, -1, -1))
    ]
    tied = [one(f"a:b{n}", Grade(4, sentiment=felt), 9 - n, author="bo") for n, felt in enumerate((-1, 1))]
    found = counted(*rants, *tied, one("a:x", Grade(4, sentiment=1, aspects=("lid",))), one("a:y", author="cy"))

    felt = found["sentiment"]
    assert (felt["n"], felt["repeated"], felt["ungraded"]) == (3, 3, 1)
    assert (felt["positive"], felt["negative"]) == (2, 1)
    assert found["authors"] == {"people": 3, "most": 3, "unnamed": 1}
    assert counted(one("a:x"), one("a:y"))["authors"] == {"people": 0, "most": 0, "unnamed": 2}
    (lid,) = found["aspects"]
    assert (lid["count"], lid["positive"], lid["negative"], len(lid["cites"])) == (2, 2, 1, 4)
    assert "repeated" not in counted(one("a:x", Grade(4, sentiment=1)))["sentiment"]


def test_voices_are_people_by_source_and_week() -> None:
    """
    Who wrote six times is one, and one in each week in which they wrote; undated items are in none. Who is not known is
    none, and listings of a shop are nobody's.
    """
    monday, sunday = datetime(2026, 11, 2, tzinfo=UTC), datetime(2026, 11, 8, 23, tzinfo=UTC)
    later = datetime(2026, 11, 9, tzinfo=UTC)
    kept = [
        one(f"a:{n}", author="ada", created_at=moment) for n, moment in enumerate([monday] * 3 + [sunday] * 2 + [later])
    ]
    kept += [one("a:b", author="bo", created_at=sunday), one("a:c"), one("b:x", author="ada", created_at=monday)]
    kept += [one("d:x", created_at=monday), one("d:y")]
    sources = tuple(
        Gathered(name, "q", Outcome.OK, kept=tuple(each for each in kept if each.item.source == name))
        for name in "abcd"
    )
    found = counted(*kept, sources=sources)["voices"]

    assert found == {
        "a": {"people": 2, "weeks": {"2026-11-02": 2, "2026-11-09": 1}, "undated": 1},
        "b": {"people": 1, "weeks": {"2026-11-02": 1}, "undated": 0},
        "c": {"people": 0, "weeks": {}, "undated": 0},
    }


def test_stars_are_the_tone_of_a_review() -> None:
    """
    Where no grade says it; the average of a product is nobody's.
    """
    reviews = [one(f"a:{stars}", engagement={"stars": stars}) for stars in (1, 2.5, 3, 4, 5)]
    product = one("a:p", engagement={"stars": 4.5, "ratings": 1_290})
    graded = one("a:g", Grade(4, sentiment=-1), engagement={"stars": 5})

    felt = counted(*reviews, product, graded)["sentiment"]

    assert (felt["positive"], felt["neutral"], felt["negative"], felt["ungraded"]) == (2, 1, 3, 1)


def test_feelings_are_the_same_counts_best_first() -> None:
    """
    What a picture draws: name, count and interval; and how many of a timeline are dated.
    """
    kept = [one(f"a:{n}", Grade(4, sentiment=felt)) for n, felt in enumerate((1, 1, -1))]
    counts = figures((), [*kept, one("a:dated", created_at=NOW)], now=NOW)

    assert counts.sentiment is not None
    assert counts.timeline is not None
    assert [(each.name, each.count, each.interval) for each in counts.sentiment.feelings] == [
        ("positive", 2, wilson(2, 3)), ("neutral", 0, wilson(0, 3)), ("negative", 1, wilson(1, 3)),
    ]  # fmt: skip
    assert (counts.timeline.dated, counts.timeline.undated) == (1, 3)


def test_shares_of_nothing_are_unknown() -> None:
    """
    Without a sentiment there is no share, not a share of zero.
    """
    found = counted(one("a:x"))["sentiment"]

    assert found["shares"] == {"positive": None, "neutral": None, "negative": None}
    assert found["wilson95"] == {"positive": None, "neutral": None, "negative": None}


def test_the_interval_stays_within_its_bounds() -> None:
    """
    None and all of a handful give half-open knowledge, not certainty.
    """
    assert wilson(0, 4) == pytest.approx([0.0, 0.4899], abs=1e-4)
    assert wilson(4, 4) == pytest.approx([0.5101, 1.0], abs=1e-4)
    assert wilson(0, 0) is None


@pytest.mark.usefixtures("zone")
def test_days_are_utc_days_everywhere() -> None:
    """
    23:50 UTC yesterday is yesterday, also when the machine or the date lives elsewhere.
    """
    late = datetime(2025, 3, 11, 23, 50, tzinfo=UTC)
    found = counted(
        one("a:x", created_at=late),
        one("a:y", created_at=late.astimezone(timezone(timedelta(hours=9)))),
        one("a:z", created_at=NOW),
        one("a:undated"),
    )

    assert found["timeline"] == {
        "unit": "day",
        "points": [{"start": "2025-03-11", "count": 2}, {"start": "2025-03-12", "count": 1}],
        "undated": 1,
    }


def test_a_long_past_is_counted_by_week() -> None:
    """
    Beyond 31 days the points are Mondays; at 31 days they are days.
    """
    old = one("a:old", created_at=NOW - timedelta(days=32))
    younger = one("a:younger", created_at=NOW - timedelta(days=31))

    assert counted(old, younger)["timeline"] == {
        "unit": "week", "points": [{"start": "2025-02-03", "count": 2}], "undated": 0,
    }  # fmt: skip
    assert counted(younger)["timeline"]["unit"] == "day"
    assert counted()["timeline"] == {"unit": "day", "points": [], "undated": 0}


@pytest.mark.parametrize(
    ("days", "unit", "first", "last"),
    [
        (31, "day", "2025-02-09", "2025-03-12"), (32, "week", "2025-02-03", "2025-03-10"),
        (420, "week", "2024-01-15", "2025-03-10"), (421, "month", "2024-01-01", "2025-03-01"),
        (1837, "month", "2020-03-01", "2025-03-01"), (1838, "year", "2020-01-01", "2025-01-01"),
    ],
)  # fmt: skip
def test_a_longer_past_is_counted_in_longer_periods(days: int, unit: str, first: str, last: str) -> None:
    """Months beyond 60 weeks, years beyond 60 months, and never more than 61 points of a kind."""
    old, new = one("a:old", created_at=NOW - timedelta(days=days)), one("a:new", created_at=NOW)

    timeline = counted(old, new)["timeline"]
    starts = [point["start"] for point in timeline["points"]]

    assert (timeline["unit"], starts[0], starts[-1]) == (unit, first, last)
    assert len(starts) <= 61
    assert [point["count"] for point in timeline["points"]] == [1, *[0] * (len(starts) - 2), 1]


def test_empty_periods_are_counted_as_empty() -> None:
    """
    A day, a month and a year without items stand between those with some.
    """

    def starts(unit: Unit, *days: date) -> list[str]:
        points = periods(unit, Counter(days))
        return [f"{point.start}: {point.count}" for point in points]

    assert starts("day", date(2024, 2, 28), date(2024, 3, 1), date(2024, 3, 1)) == [
        "2024-02-28: 1", "2024-02-29: 0", "2024-03-01: 2",
    ]  # fmt: skip
    assert starts("month", date(2024, 1, 1), date(2024, 3, 1))[1] == "2024-02-01: 0"
    assert starts("year", date(1, 1, 1), date(9999, 1, 1))[-2:] == [
        "9998-01-01: 0",
        "9999-01-01: 1",
    ]
    assert starts("day", date(9999, 12, 29), date(9999, 12, 31))[1] == "9999-12-30: 0"
    assert starts("week") == []


def test_a_date_to_come_does_not_make_ten_thousand_days() -> None:
    """
    A person's own item may be dated as they like: the unit follows the whole span.
    """
    far = one("a:far", created_at=datetime(2031, 1, 1, tzinfo=UTC))

    timeline = counted(far, one("a:now", created_at=NOW))["timeline"]

    assert (timeline["unit"], len(timeline["points"])) == ("year", 7)


def test_aspects_name_their_items_once() -> None:
    """
    Spellings are folded, an item counts once per aspect, the best ranked is cited first.
    """
    found = counted(
        one("a:x", Grade(4, sentiment=1, aspects=("Lid ", "lid", " ")), rank=2),
        one("a:y", Grade(4, sentiment=-1, aspects=("lid", "heat")), rank=1),
        one("a:z", Grade(4, aspects=("lid",))),
        one("a:raw"),
    )

    assert found["aspects"] == [
        {"aspect": "lid", "count": 3, "positive": 1, "negative": 1, "cites": ["a:y", "a:x", "a:z"]},
        {"aspect": "heat", "count": 1, "positive": 0, "negative": 1, "cites": ["a:y"]},
    ]


def test_a_part_that_was_not_counted_has_no_default_in_the_schema() -> None:
    """It is missing in the JSON, so its schema offers neither null nor a default."""
    sentiment = Figures.model_json_schema()["properties"]["sentiment"]

    assert sentiment == {"$ref": "#/$defs/Sentiment"}


def test_places_and_engagement_stay_apart_by_source() -> None:
    """
    The same place name in two sources is two places; measures are summarised, never summed.
    """
    found = counted(
        one("reddit:x", place="mugs", engagement={"votes": 1, "views": None}),
        one("reddit:y", place="mugs", engagement={"votes": 4}, places=("mugs", "tea")),
        one("youtube:z", place="mugs", engagement={"views": 10}),
        one("amazon:w"),
    )

    assert found["places"] == [
        {"place": "mugs", "source": "reddit", "count": 2},
        {"place": "mugs", "source": "youtube", "count": 1},
    ]
    assert found["engagement"] == {
        "reddit": {"votes": {"n": 2, "median": 2.5, "max": 4}},
        "youtube": {"views": {"n": 1, "median": 10, "max": 10}},
    }


GRADES = st.builds(
    Grade, st.integers(1, 5), sentiment=st.none() | st.integers(-1, 1),
    aspects=st.lists(st.sampled_from(["Lid", "lid ", "heat", ""]), max_size=3).map(tuple),
)  # fmt: skip
ITEMS = st.builds(
    lambda n, source, grade, created, place, votes: one(
        f"{source}:{n}", grade, n + 1, created_at=created, place=place, engagement={"votes": votes}
    ),
    st.integers(0, 30), st.sampled_from(["a", "b"]), st.none() | GRADES,
    st.none() | st.integers(0, 400).map(lambda days: NOW - timedelta(days=days)),
    st.none() | st.sampled_from(["p", "q"]), st.none() | st.integers(0, 99),
)  # fmt: skip


@given(
    st.lists(ITEMS, max_size=15, unique_by=lambda one: one.item.key),
    st.randoms(use_true_random=False),
)
def test_counts_equal_items_in_any_order(kept: list[Assessed], random: Any) -> None:
    """Each part adds up to the items, shares to one, and the order of the input is nothing."""
    sources = (
        Gathered("a", "x", Outcome.OK, kept=tuple(kept[:5]), dropped=tuple(kept[5:8])),
        Gathered("a", "y", Outcome.OK, kept=tuple(kept[3:7])),
    )
    found = counted(*kept, sources=sources)
    shuffled = list(kept)
    random.shuffle(shuffled)

    assert counted(*shuffled, sources=sources[::-1]) == found
    assert json.loads(json.dumps(found)) == found
    felt, timeline = found["sentiment"], found["timeline"]
    assert felt["n"] + felt["ungraded"] == len(kept)
    if felt["n"]:
        assert sum(felt["shares"].values()) == pytest.approx(1)
        for name, (low, high) in felt["wilson95"].items():
            assert 0 <= low <= felt["shares"][name] + 1e-12
            assert felt["shares"][name] - 1e-12 <= high <= 1
    assert sum(point["count"] for point in timeline["points"]) + timeline["undated"] == len(kept)
    assert sum(place["count"] for place in found["places"]) == sum(each.item.place is not None for each in kept)
    for aspect in found["aspects"]:
        assert aspect["count"] == len(set(aspect["cites"]))
        assert aspect["positive"] + aspect["negative"] <= aspect["count"]
    authors = found.get("authors")
    assert authors is None or authors["people"] + authors["unnamed"] <= len(kept)
