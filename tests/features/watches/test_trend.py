"""A watch over time: weeks that are summed, and gaps that stay gaps."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from api.features.watches.trend import TrendLine, trend_lines
from api.features.watches.watch_ports import KeptCounts
from api.features.watches.watch_run import RunCounts, SourceCount
from tests.features.watches.made import MONDAY, WEEK, of, week

BERLIN = ZoneInfo("Europe/Berlin")
DAY = timedelta(days=1)


def kept(counts: RunCounts, rule: str = "a") -> KeptCounts:
    """A run that heard something."""
    return KeptCounts(rule, counts.until, counts)


def failed(moment: datetime) -> KeptCounts:
    """A run that did not."""
    return KeptCounts("a", moment, None)


def day(number: int, **sources: SourceCount) -> RunCounts:
    """A run of one day; 0 ends on that Monday."""
    until = MONDAY + number * DAY
    return RunCounts(since=until - DAY, until=until, sources=sources)


def lines(runs: Sequence[KeptCounts], first: date = date.min) -> list[TrendLine]:
    """Of runs in the order of time."""
    return list(trend_lines(runs[::-1], BERLIN, first))


def test_run_on_monday_is_of_the_week_before() -> None:
    """Its posts are."""
    (line,) = lines([kept(week(0, reddit=of(8))), kept(week(1, reddit=of(9)))])
    assert [(each.week, each.monday) for each in line.weeks] == [
        ("2026-W45", date(2026, 11, 2)),
        ("2026-W46", date(2026, 11, 9)),
    ]
    sources = [each.sources["reddit"] for each in line.weeks]
    assert [source and (source.posts, source.days, source.heard) for source in sources] == [
        (8, 7, 1),
        (9, 7, 1),
    ]
    assert (line.since, line.until) == (MONDAY + WEEK, MONDAY + 2 * WEEK)


def test_run_at_thursday_noon_is_of_one_week_each() -> None:
    """Through both changes of the clocks, none has two and none is left out."""
    for begin in (datetime(2026, 3, 5, 11, tzinfo=UTC), datetime(2026, 10, 1, 10, tzinfo=UTC)):
        local = [begin.astimezone(BERLIN) + at * WEEK for at in range(8)]
        noons = [moment.replace(hour=12).astimezone(UTC) for moment in local]
        runs = [
            kept(RunCounts(since=since, until=until, sources={"reddit": of(1)}))
            for since, until in itertools.pairwise(noons)
        ]
        (line,) = lines(runs)
        assert [each.runs for each in line.weeks] == [1] * 7


def test_daily_runs_are_summed() -> None:
    """Seven make a week; of a source that was down for three, four say so."""
    runs = [
        kept(day(number, reddit=of(2), **({} if number % 7 in {2, 3, 4} else {"lemmy": of(1)})))
        for number in range(1, 15)
    ]
    first, second = lines(runs)[0].weeks
    reddit, lemmy = first.sources["reddit"], second.sources["lemmy"]
    assert reddit is not None
    assert (first.runs, first.heard, reddit.posts, reddit.days) == (7, 7, 14, 7)
    assert lemmy is not None
    assert (lemmy.posts, lemmy.heard, lemmy.days) == (4, 4, 4)


def test_gap_is_a_hole() -> None:
    """A source in a week, a week whose run failed, and one without a run."""
    battery = {"mentions:battery": 1, "complaint:battery": 1}
    runs = [
        kept(week(0, reddit=of(8, battery), lemmy=of(4))),
        kept(week(1, reddit=of(8))),
        failed(MONDAY + 3 * WEEK),
        kept(week(4, reddit=of(8), lemmy=of(4))),
    ]
    (line,) = lines(runs)
    assert line.sources == ("lemmy", "reddit")
    whole, partial, failing, missing, last = line.weeks
    assert partial.sources["lemmy"] is None
    assert partial.aspects is not None
    assert partial.aspects["battery"].mentions == 0
    for hole, number in ((failing, 1), (missing, 0)):
        assert (hole.runs, hole.heard) == (number, 0)
        assert dict(hole.sources) == {"lemmy": None, "reddit": None}
        assert (hole.fresh, hole.positive, hole.aspects) == (None, None, None)
    assert whole.fresh == last.fresh == 12


def test_first_run_that_failed_stands_where_it_ran() -> None:
    """It was to hear of nobody knows how long."""
    (line,) = lines([failed(MONDAY)])
    assert [each.week for each in line.weeks] == ["2026-W45"]
    assert line.sources == ()


def test_posts_without_a_date_are_summed_where_all_runs_count_them() -> None:
    """One that does not leaves the week's number unknown."""
    counts = of(8).model_copy(update={"undated": 2})
    for runs, expected in (([counts, counts], 4), ([counts, of(8)], None)):
        (line,) = lines([kept(day(at + 2, reddit=each)) for at, each in enumerate(runs)])
        source = line.weeks[0].sources["reddit"]
        assert source is not None
        assert (source.posts, source.undated) == (16, expected)


def test_made_up_run_says_how_long_its_time_is() -> None:
    """And stands in the middle of it."""
    long = RunCounts(since=MONDAY, until=MONDAY + 3 * WEEK, sources={"reddit": of(24, capped=True)})
    (line,) = lines([kept(long)])
    source = line.weeks[0].sources["reddit"]
    assert line.weeks[0].week == "2026-W46"
    assert source is not None
    assert (source.posts, source.days, source.capped) == (24, 21, True)


def test_shares_have_their_intervals() -> None:
    """Of the graded posts and of the new ones."""
    tallies = {"sounds_negative:": 3, "mentions:price": 5, "praise:price": 2}
    line = lines([kept(week(0, reddit=of(10, tallies, graded=6), lemmy=of(2)))])[0]
    (only,) = line.weeks
    assert only.negative is not None
    assert (only.negative.count, only.negative.of) == (3, 6)
    assert [round(end, 2) for end in only.negative.interval] == [0.19, 0.81]
    assert only.positive is not None
    assert only.positive.count == 0
    assert only.aspects is not None
    price = only.aspects["price"]
    assert (price.mentions, price.praise, price.complaint, only.fresh) == (5, 2, 0, 12)
    assert lines([kept(week(0, reddit=of(10)))])[0].weeks[0].negative is None


def test_another_question_begins_another_line() -> None:
    """And so does the first one again."""
    rules = ("a", "a", "b", "a")
    runs = [kept(week(number, reddit=of(1)), rule) for number, rule in enumerate(rules)]
    assert [(line.rule, len(line.weeks)) for line in lines(runs)] == [("a", 2), ("b", 1), ("a", 1)]


def test_earlier_weeks_are_left_out_whole() -> None:
    """Since only some of their runs may be there."""
    runs = [kept(day(number, reddit=of(1))) for number in range(1, 10)]
    (line,) = lines(runs, date(2026, 11, 9))
    assert [(each.week, each.runs) for each in line.weeks] == [("2026-W46", 2)]
    assert lines(runs, date(2027, 1, 4)) == lines([]) == []
