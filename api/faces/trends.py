"""What every picture of a watch over time shows alike, and one as SVG: gaps stay gaps."""

from __future__ import annotations

from itertools import pairwise

from api.faces.outline import source_title
from api.faces.svg import brief, element, part, percent, title, words
from api.services.watching.trend import SourceWeek, TrendLine, TrendWeek

ASPECTS = 4
"""Of a picture, at most."""
UNHEARD = "not heard"
_HEIGHT, _TOP, _MARGIN = 120, 16, 0.06


def weekly(source: SourceWeek | None) -> float | None:
    """Posts in a week: of a longer time that was made up at once its share, of nothing None."""
    return None if source is None else source.posts * 7 / max(source.days, 7.0)


def leading(line: TrendLine) -> list[str]:
    """The aspects of a line, those that most posts speak of first."""
    counts: dict[str, int] = {}
    for week in line.weeks:
        for name, aspect in (week.aspects or {}).items():
            counts[name] = counts.get(name, 0) + aspect.mentions
    return sorted(counts, key=lambda name: (-counts[name], name))


def week_words(week: TrendWeek) -> str:
    """The Monday that a week begins with: `26 October 2026`."""
    return f"{week.monday.day} {week.monday:%B %Y}"


def volume_svg(line: TrendLine, source: str) -> str:
    """Posts of one source, a point a week; the line is broken where a week was not heard."""
    rates = [weekly(week.sources[source]) for week in line.weeks]
    most = max((rate for rate in rates if rate is not None), default=0.0)
    step = (1 - 2 * _MARGIN) / max(len(rates) - 1, 1)
    points = [
        None if rate is None else (_MARGIN + at * step, _TOP + _HEIGHT * (1 - part(rate, most)))
        for at, rate in enumerate(rates)
    ]
    shapes = [words(0, _TOP, brief(round(most)), class_="dim")]
    for before, after in pairwise(points):
        if before is not None and after is not None:
            (x1, y1), (x2, y2) = before, after
            shapes.append(
                element("line", x1=percent(x1), y1=y1, x2=percent(x2), y2=y2, class_="ends")
            )
    for week, rate, point in zip(line.weeks, rates, points, strict=True):
        if rate is not None and point is not None:
            note = title(f"week from {week_words(week)}: {rate:.0f}")
            shapes.append(
                element("circle", note, cx=percent(point[0]), cy=point[1], r=3, class_="plain")
            )
    floor = _TOP + _HEIGHT + 16
    for week, x, anchor in ((line.weeks[0], "0%", "start"), (line.weeks[-1], "100%", "end")):
        shapes.append(words(x, floor, week_words(week), class_="dim", text_anchor=anchor))
    return element(
        "svg", *shapes, class_="chart", role="img", width="100%", height=floor + 4,
        aria_label=f"Posts a week: {source_title(source)}",
    )  # fmt: skip
