"""Places over time: a bar for each week or day, and a broken line where nothing is known."""

from __future__ import annotations

from api.features.watches.watch_ports import KeptCounts
from api.interfaces.pages.history_charts import PERIODS, gate_figure, watch_figure
from tests.features.analyses.counted_runs import asked, run, stats
from tests.features.watches.made import of, week
from tests.interfaces.example_trends import FOUR, kept, trend, undated
from tests.interfaces.http.chart_markup import picture, place, table, texts


def rows(figure: str) -> list[tuple[list[float], list[tuple[float, float]]]]:
    """Of each row the heights of its bars, and from where to where its line goes, in order."""
    lines: dict[float, tuple[list[float], list[tuple[float, float]]]] = {}
    shapes = list(picture(figure).iter("rect"))
    for shape in shapes:
        floor = place(shape, "y") + (place(shape, "height") if shape.findtext("title") else 0)
        heights, known = lines.setdefault(floor, ([], []))
        if shape.findtext("title"):
            heights.append(place(shape, "height"))
        else:
            known.append((place(shape, "x"), place(shape, "x") + place(shape, "width")))
    return [lines[floor] for floor in sorted(lines)]


def fits(figure: str) -> bool:
    """Whether all of it is within the picture, letters and bars alike."""
    drawn = picture(figure)
    height = place(drawn, "height")
    tall = [place(shape, "y") + place(shape, "height") for shape in drawn.iter("rect")]
    right = [place(shape, "x") + place(shape, "width") for shape in drawn.iter("rect")]
    letters = [place(shape, "y") for shape in drawn.iter("text")]
    return max([*tall, *letters]) <= height and max(right) <= 100 and min(letters) >= 12


def test_a_week_that_was_not_heard_is_a_gap() -> None:
    """The line below is broken there; a week without posts has the line and no bar."""
    figure = watch_figure(trend(*FOUR).lines[0])
    lemmy, reddit = rows(figure)

    assert lemmy == ([26, 13], [(36, 48.5), (73.5, 86)])
    assert reddit == ([13, 26], [(36, 61), (73.5, 86)])
    assert texts(figure) == [
        "largest week", "Lemmy", "4", "Reddit", "16", "2 Nov", "23 Nov 2026",
    ]  # fmt: skip
    assert table(figure)[0] == ["week from", "Lemmy", "Reddit"]
    assert table(figure)[2:] == [
        ["9 Nov 2026", "no answer", "16"],
        ["16 Nov 2026", "no answer", "no answer"],
        ["23 Nov 2026", "2", "0"],
    ]
    assert fits(figure)


def test_a_note_is_a_mark_in_the_week_of_its_day() -> None:
    """With its words below, which are text; of weeks that are not drawn there is none."""
    notes = ("2026-11-18 Version <b>2</b>", "2026-11-01 Before", "2026-11-29 Sale", "2026-11-30 After")
    figure, plain = watch_figure(trend(*FOUR).lines[0], notes), watch_figure(trend(*FOUR).lines[0])
    assert figure.count('class="ends"') - plain.count('class="ends"') == 2
    assert "Marked by a line: 18 Nov 2026 Version &lt;b&gt;2&lt;/b&gt;; 29 Nov 2026 Sale." in figure
    assert "<title>18 Nov 2026: Version &lt;b&gt;2&lt;/b&gt;</title>" in figure
    assert fits(figure)


def test_a_place_without_dates_is_not_drawn_as_nothing() -> None:
    """Its posts are counted in words."""
    figure = watch_figure(trend(undated(3, amazon=0), kept(1, amazon=0)).lines[0])

    assert "3 without a date" in texts(figure)
    assert "3 posts without a date are in no week (Amazon 3)." in figure


def test_a_limit_that_was_reached_is_told() -> None:
    """Beside the row where it was in the largest week, and in the table."""
    capped = week(1, reddit=of(9, capped=True))
    runs = kept(0, reddit=4), KeptCounts("a", capped.until, capped)
    figure = watch_figure(trend(*runs).lines[0])

    assert "≥9" in texts(figure)
    assert table(figure)[1:] == [["2 Nov 2026", "4"], ["9 Nov 2026", "9 or more"]]


def test_two_weeks_have_a_date_each() -> None:
    """No date twice, and none outside."""
    figure = watch_figure(trend(kept(0, reddit=1), kept(1, reddit=2)).lines[0])

    dates = [shape for shape in picture(figure).iter("text") if shape.text and "Nov" in shape.text]
    assert [(date.text, place(date, "x")) for date in dates] == [
        ("2 Nov", 48.5),
        ("9 Nov 2026", 73.5),
    ]
    assert picture(figure).findtext("desc") == "Reddit: 2 in the largest week."


def test_years_are_told_apart() -> None:
    """The first date has its year where the last has another."""
    figure = watch_figure(trend(*(kept(number, reddit=1) for number in range(26))).lines[0])

    assert texts(figure)[-2:] == ["2 Nov 2026", "26 Apr 2027"]
    assert fits(figure)


def test_letters_are_never_scaled() -> None:
    """A picture in percent of the page keeps the page's letters on a telephone."""
    figure = watch_figure(trend(*FOUR).lines[0])
    assert "viewBox" not in figure
    assert picture(figure).attrib["width"] == "100%"


async def test_yields_over_time_have_gaps() -> None:
    """Where nothing was asked or judged; a yield of 0 has its line; 100 % is the whole height."""
    figure = gate_figure(
        await stats(
            run("r1", 3, sources={"reddit": asked(10, 5), "youtube": asked(4, 4)}),
            run("r2", 2, sources={"reddit": asked(10, 0)}),
            run("r3", 0, sources={"reddit": asked(10, 10)}),
        )
    )
    reddit, youtube = rows(figure)

    assert reddit == ([13, 26], [(36, 61), (73.5, 86)])
    assert youtube == ([26], [(36, 48.5)])
    assert texts(figure) == [
        "in all", "Reddit", "50%", "YouTube", "100%", "25 Nov", "28 Nov 2026",
    ]  # fmt: skip
    assert table(figure)[1:] == [
        ["2026-11-25", "1", "50 %", "100 %"],
        ["2026-11-26", "1", "0 %", "-"],
        ["2026-11-28", "1", "100 %", "-"],
    ]
    assert "5 of 10" in figure
    assert fits(figure)


async def test_a_long_time_is_drawn_to_its_end() -> None:
    """The latest weeks, and of how many."""
    years = [run("r1", 7 * 100, sources={"reddit": asked(4, 2)})]
    figure = gate_figure(await stats(*years, run("r2", 0, sources={"reddit": asked(4, 1)})))

    assert f"the latest {PERIODS} of 101 weeks" in figure
    assert [heights for heights, _ in rows(figure)] == [[6.5]]
