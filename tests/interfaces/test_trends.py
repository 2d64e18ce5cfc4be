"""A watch over time as a terminal and a picture show it."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from api.features.watches.trend import TrendLine
from api.features.watches.watch_ports import KeptCounts
from api.interfaces.cli.trend_text import trend_text
from api.interfaces.shared.chart_data import first_week, leading, weekly
from tests.features.watches.made import MONDAY, WEEK, of, week
from tests.interfaces.example_trends import FOUR, GAP, kept, trend, undated


def test_weeks_in_a_terminal() -> None:
    """What nobody heard is in words; 0 is a number."""
    lines = trend_text("Ember", trend(*FOUR), 100).splitlines()
    assert lines[0] == "Ember: 4 weeks by the clock of UTC"
    volumes = lines.index("          Lemmy          Reddit")
    assert lines[volumes + 1 : volumes + 5] == [
        "2026-W45  ████████    4  ████····    8",
        "2026-W46  no answer      ████████   16",
        "2026-W47  no answer      no answer",
        "2026-W48  ████····    2  ········    0",
    ]
    aspects = lines.index("          battery")
    assert lines[aspects + 1 : aspects + 5] == [
        "2026-W45  ████···· 6 of 12 +3 -3",
        "2026-W46  ████···· 8 of 16 +4 -4",
        "2026-W47  no answer",
        "2026-W48  ████···· 1 of 2 +0 -0",
    ]


def test_sentiment_with_its_interval() -> None:
    """Where a model graded."""
    counts = week(0, reddit=of(9, {"sounds_negative:": 3}, graded=4))
    ungraded, silent = kept(1, reddit=5), KeptCounts("a", MONDAY + 3 * WEEK, None)
    text = trend_text("Ember", trend(KeptCounts("a", counts.until, counts), ungraded, silent), 100)
    assert re.search(r"^ +positive +negative$", text, re.M)
    assert "2026-W45  ········ 0 of 4 (0-49 %)  ██████·· 3 of 4 (30-95 %)\n" in text
    assert "2026-W46  none graded               none graded\n" in text
    assert "2026-W47  no answer                 no answer" in text


def test_week_that_is_not_whole_says_so() -> None:
    """Heard by some runs, of a longer time, or at a limit."""
    monday, tuesday = week(0, reddit=of(3), lemmy=of(1)), week(0, reddit=of(2, capped=True))
    half = [
        counts.model_copy(
            update={
                "since": counts.since.replace(day=day),
                "until": counts.since.replace(day=day + 1),
            }
        )
        for counts, day in ((monday, 3), (tuesday, 4))
    ]
    long = week(2, reddit=of(30)).model_copy(update={"until": MONDAY + 5 * WEEK})
    text = trend_text("Ember", trend(*(KeptCounts("a", c.until, c) for c in (*half, long))), 100)
    assert "2026-W45  ████████    1 (1 of 2 runs)  ████····   ≥5\n" in text
    assert "2026-W48  no answer                    ████████   30 (21 days)" in text


def test_another_question_is_told_apart() -> None:
    """And so are runs that were too many."""
    both = trend_text("Ember", trend(kept(0, reddit=8), kept(1, "b", reddit=8), cut=True), 100)
    assert both.count("2026-W45") == both.count("2026-W46") == 2
    assert "From here on another question was asked" in both
    assert "Earlier runs are too many to be summed." in both
    nothing = trend_text("Ember", trend(GAP), 100)
    assert nothing.endswith("2026-W48  no answer")


@pytest.mark.parametrize("columns", [40, 60, 200])
def test_table_keeps_within_the_terminal(columns: int) -> None:
    """It goes on below."""
    many = {f"source{number}": number for number in range(6)}
    lines = trend_text("Ember", trend(kept(0, **many)), columns).splitlines()
    assert max(map(cell_len, lines)) <= columns


def line() -> TrendLine:
    """The four weeks."""
    return trend(*FOUR).lines[0]


def test_one_week_is_a_sentence() -> None:
    """Of which no week tells is said; of a run that did not count those nothing is."""
    (first,) = trend(undated(3, reddit=4, lemmy=0)).lines
    assert first_week(first) == (
        "One week so far, from 2 November 2026: 4 posts (Reddit 4). "
        "6 posts without a date are in no week (Lemmy 3, Reddit 3)."
    )
    (alone,) = trend(undated(1, amazon=0)).lines
    assert first_week(alone).endswith("0 posts. 1 post without a date is in no week (Amazon 1).")
    (unknown,) = trend(undated(None, reddit=1)).lines
    assert first_week(unknown) == ("One week so far, from 2 November 2026: 1 post (Reddit 1).")
    capped = week(0, reddit=of(5, capped=True))
    (least,) = trend(KeptCounts("a", capped.until, capped)).lines
    assert "2026: at least 5 posts" in first_week(least)


def test_posts_without_a_date_are_said_in_a_terminal() -> None:
    """Below the tables."""
    lines = trend_text("Ember", trend(undated(2, amazon=0)), 100).splitlines()
    assert "2 posts without a date are in no week (Amazon 2)." in lines


def test_time_made_up_at_once_is_no_peak() -> None:
    """Its posts are spread over its weeks; of nothing there is no rate."""
    long = week(0, reddit=of(30)).model_copy(update={"until": MONDAY + 3 * WEEK})
    (only,) = trend(KeptCounts("a", long.until, long)).lines[0].weeks
    assert weekly(only.sources["reddit"]) == 10
    assert weekly(None) is None
    assert leading(line()) == ["battery"]
