"""The pictures of a page: what they show, that nothing breaks them, and their tables."""

from __future__ import annotations

import re
from typing import Any

import pytest

from api.interfaces.pages.report_charts import charts, process_charts
from api.interfaces.pages.report_values import report_html
from api.reports.report import Report
from tests.interfaces.answers import plain_report, sentiment
from tests.interfaces.http.chart_markup import picture, table, texts
from tests.services.kit import plain


async def report(**figures: Any) -> Report:
    """A report with these figures and no others."""
    answer = plain(await plain_report())
    answer["figures"] = figures
    return Report.model_validate(answer)


def felt(positive: int, neutral: int, negative: int) -> dict[str, Any]:
    """The JSON of a sentiment."""
    return sentiment(positive, neutral, negative).model_dump(mode="json")


def bars(figure: str, kind: str) -> list[float]:
    """The widths of the bars of one kind, in percent of the picture."""
    return [
        float(bar.attrib["width"].removesuffix("%"))
        for bar in picture(figure).iter("rect")
        if bar.attrib["class"] == kind
    ]


@pytest.mark.parametrize(
    ("counts", "widths"),
    [((20, 0, 0), (52, 0, 0)), ((20, 12, 8), (26, 15.6, 10.4)), ((10**9, 0, 10**9), (26, 0, 26))],
)
async def test_sentiment_is_bars_with_intervals(
    counts: tuple[int, int, int], widths: tuple[float, float, float]
) -> None:
    """None and all are drawn; half the scale is half the width, the interval is around it."""
    (figure,) = charts(await report(sentiment=felt(*counts)))
    kinds = ("good", "plain", "bad")

    assert tuple(bars(figure, kind)[0] for kind in kinds) == pytest.approx(widths, abs=0.01)
    ends = [line for line in picture(figure).iter("line") if line.attrib.get("class") == "ends"]
    assert len(ends) == 9
    low, high = (float(ends[0].attrib[end].removesuffix("%")) for end in ("x1", "x2"))
    assert low <= 20 + widths[0] <= high + 0.01
    assert "95 % interval" in table(figure)[0]


async def test_the_table_holds_what_the_picture_shows() -> None:
    """
    For who hears the page, and for exact counts.
    """
    (figure,) = charts(await report(sentiment=felt(1, 2, 9_999_997)))

    drawn = picture(figure)
    assert drawn.attrib["role"] == "img"
    assert [each.tag for each in drawn][:2] == ["title", "desc"]
    assert drawn[0].text == "How 10000000 of 10000000 kept posts sound"
    assert drawn[1].text == "1 of 10000000 positive, 2 of 10000000 neutral, 9999997 of 10000000 negative."
    assert "1 of 10M" in texts(figure)
    assert table(figure)[1:3] == [
        ["positive", "1", "0%", "0% to 0%"], ["neutral", "2", "0%", "0% to 0%"],
    ]  # fmt: skip


async def test_too_little_is_a_sentence() -> None:
    """
    No picture of four items with a tone or nine dated ones; nothing at all of nothing.
    """
    points = [{"start": "2026-03-02", "count": 9}]
    few = await report(sentiment=felt(2, 1, 1), timeline={"unit": "day", "points": points, "undated": 0})
    sentences = charts(few)

    assert [text.startswith("<p>") for text in sentences] == [True, True]
    assert "The tone of 4 of 4 kept posts can be told" in sentences[0]
    assert "9 of 9 kept posts have a date, on 2 March 2026." in sentences[1]
    empty = await report()
    assert (charts(empty), process_charts(empty)) == ([], [])


async def test_weeks_without_items_are_gaps() -> None:
    """
    A bar without height, with its date and count where a pointer rests; one scale for all.
    """
    counts = [4, 0, 8, 0, 3]
    points = [{"start": f"2026-03-{2 + 7 * at:02}", "count": count} for at, count in enumerate(counts)]
    timeline = {"unit": "week", "points": points, "undated": 1}
    (figure,) = charts(await report(timeline=timeline))
    drawn = list(picture(figure).iter("rect"))

    assert [float(bar.attrib["height"]) for bar in drawn] == [40, 0, 80, 0, 30]
    assert [bar[0].text for bar in drawn][:2] == ["2 Mar 2026: 4", "9 Mar 2026: 0"]
    assert texts(figure) == ["8 posts", "2 Mar", "16 Mar", "30 Mar 2026"]
    assert table(figure)[2] == ["2026-03-09", "0"]


@pytest.mark.parametrize("count", [0, 10**12])
async def test_nothing_and_a_lot_stay_within_the_picture(count: int) -> None:
    """
    Neither a scale of zero nor one of billions breaks it.
    """
    source = {"fetched": max(count, 2), "relevant": count, "kept": 0, "yield_ratio": 1}
    (funnel,) = process_charts(await report(sources={"reddit": source | {"refetched": False}}))

    assert bars(funnel, "plain")[0] == 12.5
    assert max(len(text) for text in texts(funnel) if text.isdigit()) <= 5


async def test_the_way_of_each_source_is_drawn() -> None:
    """
    Four bars on one scale.
    """
    sources = {
        name: {
            "fetched": found, "relevant": 5, "kept": 5, "in_report": 4, "yield_ratio": 0.5,
            "refetched": False,
        }
        for name, found in (("youtube", 10), ("reddit", 20), ("amazon", 0))
    }  # fmt: skip
    (figure,) = process_charts(await report(sources=sources))

    assert bars(figure, "plain") == [6.25, 3.12, 2.5, 0, 12.5, 3.12, 2.5, 1.25]
    assert table(figure)[1:] == [["YouTube", "10", "5", "4", "0"], ["Reddit", "20", "5", "4", "2"]]


async def test_what_nobody_judged_is_drawn_as_that() -> None:
    """
    A word stands where the bar would be, also in the table; the other bars keep their scale.
    """
    opened = {"fetched": 20, "relevant": 0, "kept": 4, "in_report": 4, "yield_ratio": None, "refetched": False}
    (figure,) = process_charts(await report(sources={"reddit": opened}))

    assert bars(figure, "plain") == [12.5, 2.5, 1.25]
    assert "not judged" in texts(figure)
    assert table(figure)[1:] == [["Reddit", "20", "not judged", "4", "2"]]


def attempt(limit: int, new: int, relevant: int, status: str = "ok") -> dict[str, Any]:
    """The JSON of one."""
    return {
        "limit": limit, "fetched": new, "new": new, "relevant": relevant, "requests": 1,
        "status": status, "reason": None,
    }  # fmt: skip


async def test_a_second_search_stands_beside_the_first() -> None:
    """Of each place that was asked again; what nobody judged has no bar."""
    answer = plain(await plain_report())
    names = ("reddit", "youtube", "amazon")
    source = next(iter(answer["sources"].values()))
    tries = (
        [attempt(5, 5, 1), attempt(10, 5, 3)],
        [attempt(5, 5, 1), attempt(10, 4, 0, "degraded")],
        [attempt(5, 5, 4)],
    )
    counts = {"fetched": 9, "relevant": 4, "kept": 4, "yield_ratio": 0.4, "refetched": True}
    answer["sources"] = {
        name: {
            **source,
            "source": name,
            "attempts": each,
            "refetched": len(each) > 1,
            "first": None,
        }
        for name, each in zip(names, tries, strict=True)
    }
    answer["figures"] = {"sources": dict.fromkeys(names, counts)}
    _, figure = process_charts(Report.model_validate(answer))

    assert "2 places were asked a second time" in figure
    assert table(figure) == [
        ["source", "first search", "second search"],
        ["Reddit", "1 of 5", "3 of 5"],
        ["YouTube", "1 of 5", "not judged"],
    ]
    assert bars(figure, "plain") == pytest.approx([15, 15])
    assert bars(figure, "good") == pytest.approx([45, 0])


async def test_the_page_has_pictures_for_the_dark_and_for_paper() -> None:
    """
    By its one style: no attribute of a tag carries any, so the policy holds.
    """
    page = report_html(await report(sentiment=felt(15, 5, 5)))

    assert page.count("<figure>") == 1
    assert '<h2 id="figures">Figures</h2>\n<figure>' in page
    assert "prefers-color-scheme:dark" in page
    assert "@media print" in page
    assert not re.search(r"<[^>]*\sstyle=", page)
    assert "<h2>Figures" not in report_html(await report())
