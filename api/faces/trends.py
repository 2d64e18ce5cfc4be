"""What every picture of a watch over time shows alike, and one as SVG: gaps stay gaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from api.faces.svg import brief, element, part, title, words
from api.services.watching.trend import SourceWeek, TrendLine

ASPECTS = 4
"""Of a picture, at most."""
UNHEARD = "not heard"
_WIDTH, _HEIGHT, _TOP, _LEFT = 640, 120, 16, 40


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


def volume_svg(line: TrendLine, source: str) -> str:
    """Posts of one source, a point a week; the line is broken where a week was not heard."""
    rates = [weekly(week.sources[source]) for week in line.weeks]
    most = max((rate for rate in rates if rate is not None), default=0.0)
    step = (_WIDTH - 2 * _LEFT) / max(len(rates) - 1, 1)
    points = [
        None if rate is None else (_LEFT + at * step, _TOP + _HEIGHT * (1 - part(rate, most)))
        for at, rate in enumerate(rates)
    ]
    shapes = [words(0, _TOP, brief(round(most)), class_="dim")]
    for stretch in _stretches(points):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in stretch)
        shapes.append(element("polyline", points=path, fill="none", class_="ends"))
    floor = _TOP + _HEIGHT
    for week, rate, point in zip(line.weeks, rates, points, strict=True):
        if rate is not None and point is not None:
            note = title(f"{week.week}: {rate:.0f}")
            shapes.append(element("circle", note, cx=point[0], cy=point[1], r=3, class_="plain"))
    for at, anchor in ((0, "start"), (len(rates) - 1, "end")):
        x = _LEFT + at * step
        shapes.append(words(x, floor + 16, line.weeks[at].week, class_="dim", text_anchor=anchor))
    return element(
        "svg", *shapes, class_="chart", role="img", viewBox=f"0 0 {_WIDTH} {floor + 20}",
        aria_label=f"Posts a week: {source}",
    )  # fmt: skip


def _stretches(
    points: Sequence[tuple[float, float] | None],
) -> Iterator[list[tuple[float, float]]]:
    """The points in a row that have no gap between them."""
    stretch: list[tuple[float, float]] = []
    for point in (*points, None):
        if point is not None:
            stretch.append(point)
        elif stretch:
            yield stretch
            stretch = []
