"""A report's figures as SVG pictures, each with a caption, a description and its table.

Widths are parts of the page's, so words keep their size on a telephone; heights are pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from html import escape

from api.core.text import clean, quantity
from api.interfaces.shared import chart_data
from api.interfaces.shared.svg import brief, element, part, percent, shortened, title, words
from api.pipeline.evidence.figures import Feeling, Period
from api.reports.report import Finding, Report

NAME_COLUMN, NAME_COLUMNS = 0.36, 15
"""Start of the bars beside a name as a share of the width, and letters of a name that fit on a telephone."""
# A part of a picture in which a date has room on a telephone.
_ROOMY = 0.25
# A part of the page's width that a bar takes, from which a date below its middle stays within the picture.
_WIDE = 0.12


@dataclass(frozen=True, slots=True)
class Drawing:
    """Shapes, a description for screen readers, and the table that holds all numbers."""

    height: int
    shapes: Sequence[str]
    description: str
    head: Sequence[str]
    rows: Sequence[Sequence[object]]


def figure(caption: str, note: str, drawing: Drawing) -> str:
    """The figure in HTML; `note` below the caption says how the picture is read."""
    drawn = element(
        "svg", title(caption), element("desc", escape(clean(drawing.description))), *drawing.shapes,
        class_="chart", role="img", width="100%", height=drawing.height,
    )  # fmt: skip
    below = f"<small>{escape(note)}</small>" if note else ""
    return (
        f"<figure><figcaption>{escape(caption)}{below}</figcaption>{drawn}"
        f'<details class="data"><summary>As a table</summary>'
        f'<div class="wide" role="region" tabindex="0" aria-label="{escape(caption)}">'
        f"{_table(drawing.head, drawing.rows)}</div></details></figure>"
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = "".join(
        f'<tr><th scope="row">{escape(clean(first))}</th>'
        + "".join(f"<td>{escape(clean(cell))}</td>" for cell in cells)
        + "</tr>"
        for first, *cells in rows
    )
    return f"<table><tr>{heads}</tr>{lines}</table>"


def bar(left: float, y: float, width: float, height: float, kind: str, note: str = "") -> str:
    """A bar; `note` is its tooltip."""
    return element(
        "rect", title(note) if note else "", x=percent(left), y=y, width=percent(width),
        height=height, class_=kind,
    )  # fmt: skip


def rule(x1: float, y1: float, x2: float, y2: float, kind: str = "") -> str:
    """A line from one point to another."""
    ends: dict[str, float | str] = {"x1": percent(x1), "y1": y1, "x2": percent(x2), "y2": y2}
    return element("line", **ends | ({"class_": kind} if kind else {}))


def beside(x: float, y: float, count: int) -> str:
    """A count at the right end of a bar."""
    return words(percent(x), y, brief(count), dx=4)


def name_of_row(name: str, y: float, columns: int = NAME_COLUMNS) -> str:
    """Name of a row, cut to `columns`; the tooltip has the whole name."""
    return element("g", title(name), words(0, y, shortened(name, columns)))


def day_name(day: date) -> str:
    """A date as `23 Nov 2026`."""
    return f"{day.day} {day:%b} {day.year}"


def dates(days: Sequence[date], left: float, width: float, y: float) -> list[str]:
    """Dates below bars that stand side by side: of each where there is room, else of the ends.

    In the middle, too, below a picture as wide as the page. The last has its year, and any before
    another year.
    """
    slot, last = width / len(days), len(days) - 1
    if slot >= _ROOMY:
        places = {at: (left + (at + 0.5) * slot, "middle") for at in range(len(days))}
    else:
        # below few and wide bars a date stands under its bar, else at the ends of the picture
        ends = (left, "start"), (left + width, "end")
        if width == 1 and slot >= _WIDE:
            ends = (left + slot / 2, "middle"), (left + width - slot / 2, "middle")
        places = {0: ends[0], last: ends[1]}
        if width == 1:
            middle = len(days) // 2
            places = {0: places[0], middle: ((middle + 0.5) * slot, "middle"), last: places[last]}
    years = [days[at].year for at in (*places, last)][1:]
    shapes = []
    for (at, (x, anchor)), following in zip(places.items(), years, strict=True):
        name = day_name(days[at])
        if at != last and days[at].year == following:
            name = name.removesuffix(f" {following}")
        shapes.append(words(percent(x), y, name, class_="dim", text_anchor=anchor))
    return shapes


PERIODS = 60
"""Bars of a timeline at most."""
_COLOURS = {"positive": "good", "neutral": "plain", "negative": "bad"}
_STEPS = ("found", "about the question", "left in the report", "cited")
_UNJUDGED = "not judged"
_SPREAD = (
    "Bars are shares of these posts; the line on a bar is the range in which the share of all "
    f"{chart_data.TONED} is likely to lie (95 % interval)."
)
_WAY = (
    "About it: judged to be about the question. In the report: what is left after grading and "
    "after copies were merged. Cited: by a finding or a quote."
)
_AGAIN = (
    "Where too little of a full first search was about it, the place is asked for more; of the "
    "second search those count that were new."
)
# Columns of a name that has a line to itself.
_LINE = 32


def charts(report: Report) -> list[str]:
    """Tone and time, each a picture or a sentence."""
    caption, feelings = chart_data.sentiment(report)
    parts = [figure(caption, _SPREAD, _sentiment(feelings)) if feelings else _sentence(caption)]
    caption, periods = chart_data.timeline(report, PERIODS)
    parts.append(figure(caption, "", _timeline(periods)) if periods else _sentence(caption))
    return [part for part in parts if part]


def process_charts(report: Report) -> list[str]:
    """What became of what each place found, and of a second search: how the report was made."""
    caption, rows = chart_data.funnel(report)
    parts = [figure(caption, _WAY, _funnel(rows))] if rows else []
    caption, again = chart_data.passes(report)
    return [*parts, figure(caption, _AGAIN, _passes(again))] if again else parts


# Width of a month in a claim's line, and its height, in pixels.
_MONTH, _LINE_HEIGHT = 7, 16


def claim_line(finding: Finding) -> str:
    """Small chart of the people behind a claim over time, with a table for screen readers; empty without data."""
    named, periods = chart_data.claim_line(finding)
    if not periods:
        return ""
    most = max(period.count for period in periods)
    shapes = []
    for at, period in enumerate(periods):
        height = max((_LINE_HEIGHT - 2) * part(period.count, most), 1)  # a month without anybody is a thin line
        y = _LINE_HEIGHT - height
        shapes.append(element("rect", x=at * _MONTH, y=y, width=_MONTH - 2, height=height, class_="plain"))
    first, last = periods[0].start, periods[-1].start
    caption = f"People {named}, {first:%B %Y} to {last:%B %Y}: {quantity(most, 'person', 'people')} at most"
    scale = f"{named}, up to {most}"
    drawn = element(
        "svg", title(caption), *shapes, class_="chart line", role="img",
        width=_MONTH * len(periods), height=_LINE_HEIGHT,
    )  # fmt: skip
    rows = [(f"{period.start:%Y-%m}", period.count) for period in periods]
    return f'<span class="spark">{scale} {drawn}</span><div class="unseen">{_table(("month", "people"), rows)}</div>'


def _sentence(caption: str) -> str:
    return f"<p>{escape(caption)}.</p>" if caption else ""


def _sentiment(feelings: Sequence[Feeling]) -> Drawing:
    """A bar for each share, and the interval on it."""
    left, width, row = 0.2, 0.52, 26
    n = sum(feeling.count for feeling in feelings)
    bottom = row * len(feelings)
    shapes, table = [], list[Sequence[object]]()
    for mark in (0, 0.5, 1):
        x = left + mark * width
        shapes.append(rule(x, 0, x, bottom + 2))
        shapes.append(words(percent(x), bottom + 16, f"{mark:.0%}", class_="dim", text_anchor="middle"))
    for at, feeling in enumerate(feelings):
        middle = at * row + row / 2
        share = part(feeling.count, n)
        low, high = feeling.interval or (share, share)
        ends = [left + width * part(end, 1) for end in (low, high)]
        shapes += [
            words(0, middle + 4, feeling.name),
            bar(left, middle - 8, width * share, 16, _COLOURS[feeling.name]),
            rule(ends[0], middle, ends[1], middle, "ends"),
            *(rule(end, middle - 4, end, middle + 4, "ends") for end in ends),
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
    description = ", ".join(f"{feeling.count} of {n} {feeling.name}" for feeling in feelings)
    head = ("sentiment", f"of {quantity(n, 'post')}", "share", "95 % interval")
    return Drawing(bottom + 20, shapes, f"{description}.", head, table)


def _timeline(periods: Sequence[Period]) -> Drawing:
    """One bar for each period; periods without a post are gaps."""
    top, baseline = 16, 96
    most = max(period.count for period in periods)
    slot = 1 / len(periods)
    width = min(slot * 0.8, 0.08)
    posts = f"{brief(most)} post{'' if most == 1 else 's'}"
    shapes = [words(0, top - 5, posts, class_="dim"), rule(0, top, 1, top)]
    for at, period in enumerate(periods):
        height = (baseline - top) * part(period.count, most)
        x = at * slot + (slot - width) / 2
        note = f"{day_name(period.start)}: {period.count}"
        shapes.append(bar(x, baseline - height, width, height, "plain", note))
    days = [period.start for period in periods]
    shapes += [rule(0, baseline, 1, baseline), *dates(days, 0, 1, baseline + 16)]
    fullest = max(periods, key=lambda period: period.count)
    description = (
        f"From {day_name(days[0])} to {day_name(days[-1])}: {quantity(most, 'post')} at most, "
        f"from {day_name(fullest.start)} on."
    )
    rows = [(period.start.isoformat(), period.count) for period in periods]
    return Drawing(baseline + 20, shapes, description, ("from", "posts"), rows)


def _funnel(rows: Sequence[chart_data.FunnelRow]) -> Drawing:
    """A row for each source, a bar for each step, all on one scale."""
    row, top, column = 44, 24, 1 / len(_STEPS)
    most = max(line.counts[0] for line in rows)
    heads = ("found", "→ about it", "→ in report", "→ cited")
    shapes = [words(percent(at * column), 12, name, class_="dim") for at, name in enumerate(heads)]
    for at, line in enumerate(rows):
        y = top + at * row
        shapes.append(name_of_row(line.name, y + 11, _LINE))
        for step, count in enumerate(line.counts):
            left = step * column
            if count is None:
                shapes.append(words(percent(left), y + 27, _UNJUDGED, class_="dim"))
                continue
            width = column * 0.5 * part(count, most)
            shapes += [
                bar(left, y + 17, width, 12, "plain"),
                beside(left + width, y + 27, count),
            ]
    table: list[Sequence[object]] = [
        (line.name, *(_UNJUDGED if count is None else count for count in line.counts)) for line in rows
    ]
    description = ", ".join(f"{line.name} {line.counts[0]} found and {line.counts[-1]} cited" for line in rows)
    return Drawing(top + row * len(rows), shapes, f"{description}.", ("source", *_STEPS), table)


def _passes(rows: Sequence[chart_data.PassRow]) -> Drawing:
    """First and second search of each source, as shares on one scale."""
    row, top, width = 48, 20, 0.75
    shapes = [
        words(0, 12, "first search", class_="dim"),
        words(percent(0.25), 12, "second search", class_="good"),
    ]
    table: list[Sequence[object]] = []
    for at, line in enumerate(rows):
        y = top + at * row
        shapes.append(name_of_row(line.name, y + 11, _LINE))
        cells = []
        for step, (share, kind) in enumerate(((line.first, "plain"), (line.again, "good"))):
            middle = y + 17 + step * 13
            text = _UNJUDGED if share is None else f"{share[0]} of {share[1]}"
            length = 0.0 if share is None else width * part(*share)
            shapes += [
                bar(0, middle, length, 10, kind),
                words(percent(length), middle + 9, text, dx=4),
            ]
            cells.append(text)
        table.append((line.name, *cells))
    description = ", ".join(f"{name} at first {first}, then {again}" for name, first, again in table)
    head = ("source", "first search", "second search")
    return Drawing(top + row * len(rows), shapes, f"{description}.", head, table)
