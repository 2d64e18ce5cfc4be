"""A report's figures as pictures of a page, each with its table behind it.

Widths are parts of the page's, so words keep their size on a telephone; heights are pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from api.faces import captions
from api.faces.svg import brief, element, part, percent, shortened, title, words
from api.services.evidence.figures import AspectCount, Feeling, Period
from api.services.reporting.report import Report
from api.services.text import clean

ASPECTS, PERIODS = 10, 60
"""Rows of a picture, and bars of a timeline, at most."""
_COLOURS = {"positive": "good", "neutral": "plain", "negative": "bad"}
_STEPS = ("found", "about the question", "left in the report", "cited")
_UNJUDGED = "not judged"
_SPREAD = (
    "Bars are shares of these items; the line on a bar is the range in which the share of all that "
    "people write is likely to lie (95 % interval)."
)
_WAY = (
    "About it: judged to be about the question. In the report: what is left after grading and "
    "after copies were merged. Cited: by a finding or a quote."
)

_AGAIN = (
    "Where too little of a full first search was about it, the place is asked for more; of the "
    "second search those count that were new."
)


def charts(report: Report) -> list[str]:
    """What there is to show: a picture, or the sentence that says why there is none."""
    caption, feelings = captions.sentiment(report)
    parts = [_figure(caption, _SPREAD, *_sentiment(feelings)) if feelings else _sentence(caption)]
    caption, periods = captions.timeline(report, PERIODS)
    parts.append(_figure(caption, "", *_timeline(periods)) if periods else _sentence(caption))
    caption, aspects = captions.aspects(report, ASPECTS)
    if aspects:
        drawn = _aspects if any(map(captions.sides, aspects)) else _counts
        parts.append(_figure(caption, "", *drawn(aspects)))
    caption, rows = captions.funnel(report)
    if rows:
        parts.append(_figure(caption, _WAY, *_funnel(rows)))
    caption, again = captions.passes(report)
    if again:
        parts.append(_figure(caption, _AGAIN, *_passes(again)))
    return [part for part in parts if part]


Drawn = tuple[int, list[str], Sequence[str], list[Sequence[object]]]
"""Height, shapes, and the head and rows of the table."""


def _sentence(caption: str) -> str:
    return f"<p>{escape(caption)}.</p>" if caption else ""


def _figure(
    caption: str,
    note: str,
    height: int,
    shapes: Iterable[str],
    head: Sequence[str],
    rows: Iterable[Iterable[object]],
) -> str:
    drawn = element(
        "svg", *shapes, class_="chart", role="img", aria_label=caption, width="100%", height=height
    )
    below = f"<small>{escape(note)}</small>" if note else ""
    return (
        f"<figure><figcaption>{escape(caption)}{below}</figcaption>{drawn}"
        f'<details class="data"><summary>As a table</summary>{_table(head, rows)}</details>'
        "</figure>"
    )


def _table(head: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(clean(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{heads}</tr>{lines}</table>"


def _bar(left: float, y: float, width: float, height: float, kind: str) -> str:
    return element("rect", x=percent(left), y=y, width=percent(width), height=height, class_=kind)


def _rule(x1: float, y1: float, x2: float, y2: float, kind: str = "") -> str:
    ends: dict[str, float | str] = {"x1": percent(x1), "y1": y1, "x2": percent(x2), "y2": y2}
    return element("line", **ends | ({"class_": kind} if kind else {}))


def _sentiment(feelings: Sequence[Feeling]) -> Drawn:
    """A bar for each share, and the interval on it."""
    left, width, row = 0.2, 0.52, 26
    n = sum(feeling.count for feeling in feelings)
    bottom = row * len(feelings)
    shapes, table = [], list[Sequence[object]]()
    for mark in (0, 0.5, 1):
        x = left + mark * width
        shapes.append(_rule(x, 0, x, bottom + 2))
        shapes.append(
            words(percent(x), bottom + 16, f"{mark:.0%}", class_="dim", text_anchor="middle")
        )
    for at, feeling in enumerate(feelings):
        middle = at * row + row / 2
        share = part(feeling.count, n)
        low, high = feeling.interval or (share, share)
        ends = [left + width * part(end, 1) for end in (low, high)]
        shapes += [
            words(0, middle + 4, feeling.name),
            _bar(left, middle - 8, width * share, 16, _COLOURS[feeling.name]),
            _rule(ends[0], middle, ends[1], middle, "ends"),
            *(_rule(end, middle - 4, end, middle + 4, "ends") for end in ends),
            words("100%", middle + 4, f"{brief(feeling.count)} of {brief(n)}", text_anchor="end"),
        ]
        table.append(
            (
                feeling.name,
                feeling.count,
                f"{share:.0%}",
                f"{part(low, 1):.0%} to {part(high, 1):.0%}",
            )
        )
    return bottom + 20, shapes, ("sentiment", f"of {n} items", "share", "95 % interval"), table


def _timeline(periods: Sequence[Period]) -> Drawn:
    """A bar for each period; those without an item are gaps on the line."""
    top, floor = 16, 96
    most = max(period.count for period in periods)
    slot = 1 / len(periods)
    width = min(slot * 0.8, 0.08)
    shapes = [
        words(0, top - 5, f"{brief(most)} item{'' if most == 1 else 's'}", class_="dim"),
        _rule(0, top, 1, top),
    ]
    for at, period in enumerate(periods):
        height = (floor - top) * part(period.count, most)
        x = at * slot + (slot - width) / 2
        label = title(f"{period.start.isoformat()}: {period.count}")
        shapes.append(
            element(
                "rect", label, x=percent(x), y=floor - height, width=percent(width),
                height=height, class_="plain",
            )
        )  # fmt: skip
    shapes.append(_rule(0, floor, 1, floor))
    marks = {0: "start", len(periods) - 1: "end"} | (
        {len(periods) // 2: "middle"} if len(periods) > 4 else {}
    )
    for at, anchor in marks.items():
        x = {"start": 0.0, "end": 1.0}.get(anchor, (at + 0.5) * slot)
        day = periods[at].start.isoformat()
        shapes.append(words(percent(x), floor + 16, day, class_="dim", text_anchor=anchor))
    rows = [(period.start.isoformat(), period.count) for period in periods]
    return floor + 20, shapes, ("from", "items"), list[Sequence[object]](rows)


def _aspects(aspects: Sequence[AspectCount]) -> Drawn:
    """Complaint to the left of the middle, praise to the right."""
    row, top, half = 40, 24, 0.4
    most = max(max(aspect.positive, aspect.negative) for aspect in aspects)
    bottom = top + row * len(aspects)
    shapes = [
        words(percent(0.49), 12, "complaint", class_="bad", text_anchor="end"),
        words(percent(0.51), 12, "praise", class_="good"),
        words("100%", 12, "items", class_="dim", text_anchor="end"),
    ]
    for at, aspect in enumerate(aspects):
        y = top + at * row
        praise, complaint = (
            half * part(count, most) for count in (aspect.positive, aspect.negative)
        )
        shapes += [
            element("g", title(aspect.aspect), words(0, y + 11, shortened(aspect.aspect, 32))),
            words("100%", y + 11, brief(aspect.count), text_anchor="end"),
            _bar(0.5 - complaint, y + 17, complaint, 12, "bad"),
            _bar(0.5, y + 17, praise, 12, "good"),
        ]
        if captions.sides(aspect):
            shapes += [
                _beside(0.5 - complaint, y + 27, aspect.negative, -4),
                _beside(0.5 + praise, y + 27, aspect.positive, 4),
            ]
    shapes.append(_rule(0.5, top + 14, 0.5, bottom))
    rows: list[Sequence[object]] = [
        (aspect.aspect, aspect.count, aspect.positive, aspect.negative)
        if captions.sides(aspect)
        else (aspect.aspect, aspect.count, "", "")
        for aspect in aspects
    ]
    return bottom, shapes, ("subject", "items", "praise", "complaint"), rows


def _counts(aspects: Sequence[AspectCount]) -> Drawn:
    """Where no side is known: how many speak of each."""
    row, most, shapes = 40, max(aspect.count for aspect in aspects), list[str]()
    for at, aspect in enumerate(aspects):
        y, width = at * row, 0.8 * part(aspect.count, most)
        shapes += [
            element("g", title(aspect.aspect), words(0, y + 11, shortened(aspect.aspect, 32))),
            _bar(0, y + 17, width, 12, "plain"),
            _beside(width, y + 27, aspect.count, 4),
        ]
    rows: list[Sequence[object]] = [(aspect.aspect, aspect.count) for aspect in aspects]
    return row * len(aspects), shapes, ("subject", "items"), rows


def _beside(x: float, y: float, count: int, gap: int) -> str:
    anchor = "start" if gap > 0 else "end"
    return words(percent(x), y, brief(count), dx=gap, text_anchor=anchor)


def _funnel(rows: Sequence[captions.FunnelRow]) -> Drawn:
    """A row for each source, a bar for each step, all on one scale."""
    row, top, column = 44, 24, 1 / len(_STEPS)
    most = max(line.counts[0] for line in rows)
    heads = ("found", "→ about it", "→ in report", "→ cited")
    shapes = [words(percent(at * column), 12, name, class_="dim") for at, name in enumerate(heads)]
    for at, line in enumerate(rows):
        y = top + at * row
        shapes.append(element("g", title(line.name), words(0, y + 11, shortened(line.name, 32))))
        for step, count in enumerate(line.counts):
            left = step * column
            if count is None:
                shapes.append(words(percent(left), y + 27, _UNJUDGED, class_="dim"))
                continue
            width = column * 0.6 * part(count, most)
            shapes += [
                _bar(left, y + 17, width, 12, "plain"),
                _beside(left + width, y + 27, count, 4),
            ]
    table: list[Sequence[object]] = [
        (line.name, *(_UNJUDGED if count is None else count for count in line.counts))
        for line in rows
    ]
    return top + row * len(rows), shapes, ("source", *_STEPS), table


def _passes(rows: Sequence[captions.PassRow]) -> Drawn:
    """For each source the first search above the second, as shares on one scale."""
    row, top, width = 48, 20, 0.75
    shapes = [
        words(0, 12, "first search", class_="dim"),
        words(percent(0.25), 12, "second search", class_="good"),
    ]
    table: list[Sequence[object]] = []
    for at, line in enumerate(rows):
        y = top + at * row
        shapes.append(element("g", title(line.name), words(0, y + 11, shortened(line.name, 32))))
        cells = []
        for step, (share, kind) in enumerate(((line.first, "plain"), (line.again, "good"))):
            middle = y + 17 + step * 13
            text = _UNJUDGED if share is None else f"{share[0]} of {share[1]}"
            length = 0.0 if share is None else width * part(*share)
            shapes += [
                _bar(0, middle, length, 10, kind),
                words(percent(length), middle + 9, text, dx=4),
            ]
            cells.append(text)
        table.append((line.name, *cells))
    return top + row * len(rows), shapes, ("source", "first search", "second search"), table
