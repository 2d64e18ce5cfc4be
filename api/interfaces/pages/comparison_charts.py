"""Chart of the share of posts about each aspect, for each product, with intervals.

Of two products it is the difference of their shares, of more a bar for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from math import ceil

from api.features.comparisons.comparison import ComparedFinding, Comparison, Side
from api.interfaces.pages.report_charts import NAME_COLUMN, NAME_COLUMNS, Drawing, bar, figure, rule
from api.interfaces.shared import comparison_table
from api.interfaces.shared.svg import element, part, percent, shortened, title, words
from api.pipeline.evidence.figures import share_difference, wilson

FEWEST = 2
"""Aspects below which a picture says no more than the sentence."""
_LINE = 30
"""Columns of a name that has a line to itself, on a telephone."""
_BOTH = 20
"""Letters of two names that fit beside each other above the bars, on a telephone."""
_DIFFERENCE = (
    "In percentage points of the posts about each. The line is where a difference lies with 95 % confidence, taken by "
    "itself."
)
_SHARES = "The line on a bar is where the share of all such posts lies with 95 % confidence."
_VOICES = "The line on a bar is where a share lies with 95 % confidence, each taken by itself."
_MARKED = " * marks differences that the posts support; all else may be chance."
_UNMARKED = " None is sure: among so many differences, chance alone makes some whose line does not reach zero."


def share_figure(comparison: Comparison) -> str:
    """The chart in HTML; empty when posts mention too few aspects."""
    shown = [(each, _counted(each)) for each in comparison.findings]
    shown = [(each, sides) for each, sides in shown if len(sides) >= 2]
    if len(shown) < FEWEST:
        return ""
    marked = _MARKED if any(each.marked for each, _ in shown) else _UNMARKED
    if all(len(sides) == 2 for _, sides in shown) and len({tuple(s.query for s in sides) for _, sides in shown}) == 1:
        return figure("Which is spoken of more", _DIFFERENCE + marked, _differences(shown))
    return figure("Share of the posts that speak of each aspect", _SHARES + marked, _shares(shown))


def voice_figure(comparison: Comparison) -> str:
    """Chart of the share of voice of each product, by source and recent weeks too; empty without any."""
    rows = [
        (
            ComparedFinding(aspect=name, text="", sides=(), marked=False),
            [
                Side(query=each.query, count=each.people, of=total, positive=0, negative=0, evidence=())
                for each in shares
            ],
        )
        for name, shares in comparison_table.voices(comparison)
        if (total := sum(each.people for each in shares))
    ]
    head = ("where or when", "product", "people", "95 % interval")
    return figure("Share of the people who speak of any of them", _VOICES, _shares(rows, head)) if rows else ""


Rows = Sequence[tuple[ComparedFinding, Sequence[Side]]]


def _counted(finding: ComparedFinding) -> list[Side]:
    return [side for side in finding.sides if side.of]


def _differences(rows: Rows) -> Drawing:
    """A row for each aspect: the difference as a dot, its interval as a line; zero in the middle."""
    row, top, left = 24, 56, NAME_COLUMN
    first, second = (side.query for side in rows[0][1])
    spans = [_span(*sides) for _, sides in rows]
    widest = min(1.0, max(0.1, ceil(10 * max(abs(end) for span in spans for end in span)) / 10))
    width, middle, bottom = 1 - left, left + (1 - left) / 2, top + row * len(rows)
    one_line = len(first) + len(second) <= _BOTH
    shapes = [
        words("100%", 28 if one_line else 12, f"{shortened(first, _LINE)} →", class_="dim", text_anchor="end"),
        words(percent(left), 28, f"← {shortened(second, _LINE)}", class_="dim"),
    ]
    for mark, anchor in ((-widest, "start"), (0.0, "middle"), (widest, "end")):
        x = middle + width / 2 * mark / widest
        shapes.append(words(percent(x), 46, _points(mark) if mark else "0", class_="dim", text_anchor=anchor))
        shapes.append(rule(x, top - 4, x, bottom))
    for at, ((finding, _), (low, estimate, high)) in enumerate(zip(rows, spans, strict=True)):
        y = top + at * row + row / 2
        begin, place, end = (middle + width / 2 * max(-1.0, min(1.0, each / widest)) for each in (low, estimate, high))
        shapes += [
            _row_name(finding, y + 4),
            rule(begin, y, end, y, "ends"),
            *(rule(x, y - 4, x, y + 4, "ends") for x in (begin, end)),
            element("circle", cx=percent(place), cy=y, r=5, class_="act" if finding.marked else "plain"),
        ]
    description = "; ".join(
        f"{_named(finding)}: {_points(estimate)} points, {_points(low)} to {_points(high)}"
        for (finding, _), (low, estimate, high) in zip(rows, spans, strict=True)
    )
    table = [
        (_named(finding), *(f"{side.count} of {side.of}" for side in sides), _points(estimate),
         f"{_points(low)} to {_points(high)}")
        for (finding, sides), (low, estimate, high) in zip(rows, spans, strict=True)
    ]  # fmt: skip
    return Drawing(bottom, shapes, f"{description}.", ("aspect", first, second, "points apart", "95 % interval"), table)


def _span(side: Side, other: Side) -> tuple[float, float, float]:
    """Low end, estimate and high end of the difference of two shares."""
    low, high = share_difference(side.count, side.of, other.count, other.of) or (0.0, 0.0)
    return low, side.count / side.of - other.count / other.of, high


def _shares(rows: Rows, head: Sequence[str] = ("aspect", "product", "posts", "95 % interval")) -> Drawing:
    """For each aspect one bar for each product below its name, all on one scale from 0 to the highest end."""
    row, left = 18, NAME_COLUMN
    most = max((high for _, sides in rows for side in sides for _, high in (_range(side),)), default=1.0)
    width, y, shapes = (1 - left) * 0.75, 0, list[str]()
    names = _short_names(rows)
    for finding, sides in rows:
        shapes.append(_row_name(finding, y + 14, _LINE))
        y += 20
        for side in sides:
            shapes += _bar(side, names[side.query], y, row, left, width / most)
            y += row
        y += 8
    table = list(_share_table(rows))
    description = "; ".join(f"{aspect}, {name}: {count}" for aspect, name, count, _ in table)
    return Drawing(y, shapes, f"{description}.", head, table)


def _short_names(rows: Rows) -> Mapping[str, str]:
    """Products' names without their common first words, so that few letters tell them apart."""
    split = {side.query: side.query.split() for _, sides in rows for side in sides}
    shared = takewhile(lambda each: len(set(each)) == 1, zip(*split.values(), strict=False))
    same = min(sum(1 for _ in shared), min(map(len, split.values())) - 1)
    return {query: " ".join(each[same:]) for query, each in split.items()}


def _bar(side: Side, name: str, y: float, row: float, left: float, scale: float) -> Iterator[str]:
    low, high = _range(side)
    middle = y + row / 2
    yield element("g", title(side.query), words(0, middle + 4, shortened(name, NAME_COLUMNS)))
    yield bar(left, middle - 6, scale * part(side.count, side.of), 12, "plain")
    ends = [left + scale * end for end in (low, high)]
    yield rule(ends[0], middle, ends[1], middle, "ends")
    yield from (rule(end, middle - 3, end, middle + 3, "ends") for end in ends)
    yield words("100%", middle + 4, f"{side.count} of {side.of}", text_anchor="end")


def _share_table(rows: Rows) -> Iterator[tuple[str, str, str, str]]:
    for finding, sides in rows:
        for side in sides:
            low, high = _range(side)
            yield _named(finding), side.query, f"{side.count} of {side.of}", f"{low:.0%} to {high:.0%}"


def _range(side: Side) -> tuple[float, float]:
    return wilson(side.count, side.of) or (0.0, 1.0)


def _points(share: float) -> str:
    """A difference of shares in percentage points; never `-0`."""
    return f"{round(100 * share):+d}"


def _row_name(finding: ComparedFinding, y: float, columns: int = NAME_COLUMNS) -> str:
    """Name of a row; a shortened one keeps its mark, so that colour is not the only sign."""
    mark = _named(finding).removeprefix(finding.aspect)
    name = shortened(finding.aspect, columns - len(mark)) + mark
    return element("g", title(_named(finding)), words(0, y, name))


def _named(finding: ComparedFinding) -> str:
    return comparison_table.aspect_name(finding)
