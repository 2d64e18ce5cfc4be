"""A report's figures as pictures of a page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from api.faces import captions
from api.faces.svg import brief, element, part, percent, words
from api.faces.web.figures import (
    LINE,
    NAME_COLUMN,
    Drawing,
    bar,
    beside,
    dates,
    day_name,
    figure,
    name_in_lines,
    name_of_row,
    rule,
)
from api.services.evidence.figures import AspectCount, Feeling, Period
from api.services.reporting.report import Report
from api.services.text import many

ASPECTS, PERIODS = 10, 60
"""Rows of a picture, and bars of a timeline, at most."""
_COLOURS = {"positive": "good", "neutral": "plain", "negative": "bad"}
_STEPS = ("found", "about the question", "left in the report", "cited")
_UNJUDGED = "not judged"
_SPREAD = (
    "Bars are shares of these posts; the line on a bar is the range in which the share of all "
    f"{captions.TONED} is likely to lie (95 % interval)."
)
_WAY = (
    "About it: judged to be about the question. In the report: what is left after grading and "
    "after copies were merged. Cited: by a finding or a quote."
)
_AGAIN = (
    "Where too little of a full first search was about it, the place is asked for more; of the "
    "second search those count that were new."
)
_LINE = 32
"""Columns of a name that has a line to itself."""
_DIGIT = 0.03
"""A part of the picture in which one digit has room on a telephone."""


def tone(report: Report) -> str:
    """How posts sound: a picture, or the sentence that says why there is none."""
    caption, feelings = captions.sentiment(report)
    return figure(caption, _SPREAD, _sentiment(feelings)) if feelings else _sentence(caption)


def charts(report: Report) -> list[str]:
    """What else there is to show, as `tone` does."""
    caption, periods = captions.timeline(report, PERIODS)
    parts = [figure(caption, "", _timeline(periods)) if periods else _sentence(caption)]
    caption, aspects = captions.aspects(report, ASPECTS)
    if aspects:
        parts.append(figure(caption, captions.sides_note(report, aspects), _aspects(aspects)))
    caption, rows = captions.funnel(report)
    if rows:
        parts.append(figure(caption, _WAY, _funnel(rows)))
    caption, again = captions.passes(report)
    if again:
        parts.append(figure(caption, _AGAIN, _passes(again)))
    return [part for part in parts if part]


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
    spoken = ", ".join(f"{feeling.count} of {n} {feeling.name}" for feeling in feelings)
    head = ("sentiment", f"of {many(n, 'post')}", "share", "95 % interval")
    return Drawing(bottom + 20, shapes, f"{spoken}.", head, table)


def _timeline(periods: Sequence[Period]) -> Drawing:
    """A bar for each period; those without a post are gaps on the line."""
    top, floor = 16, 96
    most = max(period.count for period in periods)
    slot = 1 / len(periods)
    width = min(slot * 0.8, 0.08)
    posts = f"{brief(most)} post{'' if most == 1 else 's'}"
    shapes = [words(0, top - 5, posts, class_="dim"), rule(0, top, 1, top)]
    for at, period in enumerate(periods):
        height = (floor - top) * part(period.count, most)
        x = at * slot + (slot - width) / 2
        note = f"{day_name(period.start)}: {period.count}"
        shapes.append(bar(x, floor - height, width, height, "plain", note))
    days = [period.start for period in periods]
    shapes += [rule(0, floor, 1, floor), *dates(days, 0, 1, floor + 16)]
    fullest = max(periods, key=lambda period: period.count)
    spoken = (
        f"From {day_name(days[0])} to {day_name(days[-1])}: {many(most, 'post')} at most, "
        f"from {day_name(fullest.start)} on."
    )
    rows = [(period.start.isoformat(), period.count) for period in periods]
    return Drawing(floor + 20, shapes, spoken, ("from", "posts"), rows)


def _aspects(aspects: Sequence[AspectCount]) -> Drawing:
    """A bar as long as its posts: complaint on its left, praise on its right, the rest between.

    The middles of the rests stand below one another, so that a bar reaches to where it leans.
    """
    row, y, width = 26, 24, 0.52
    sided = any(map(captions.sides, aspects))
    rests = [max(0, each.count - each.positive - each.negative) for each in aspects]
    left = max(each.negative + rest / 2 for each, rest in zip(aspects, rests, strict=True))
    right = max(each.positive + rest / 2 for each, rest in zip(aspects, rests, strict=True))
    most = max(each.count for each in aspects) if not sided else left + right
    axis = NAME_COLUMN + width * part(left, most)
    kinds = (("complaint", "bad"), ("neither", "plain"), ("praise", "good"))
    shapes = [words("100%", 12, "posts", class_="dim", text_anchor="end")]
    if sided:
        named = (element("tspan", f"■ {name}", class_=kind) for name, kind in kinds)
        shapes.append(element("text", " &#160; ".join(named), x=0, y=12))
    table: list[Sequence[object]] = []
    for aspect, rest in zip(aspects, rests, strict=True):
        x = axis - width * part(aspect.negative + rest / 2, most) if sided else NAME_COLUMN
        counts = (aspect.negative, rest, aspect.positive)
        lines, name_shape = name_in_lines(aspect.aspect, y + 15)
        shapes.append(name_shape)
        for count, (name, kind) in zip(counts, kinds, strict=True):
            length = width * part(count, most)
            note = f"{name}: {count} of {many(aspect.count, 'post')}" if sided else ""
            if count:
                shapes.append(bar(x, y + 3, length, 16, kind, note))
            if count and kind != "plain" and length >= _DIGIT * len(brief(count)):
                middle = percent(x + length / 2)
                shapes.append(
                    words(middle, y + 15, brief(count), class_="inside", text_anchor="middle")
                )
            x += length
        shapes.append(words("100%", y + 15, brief(aspect.count), text_anchor="end"))
        table.append((aspect.aspect, aspect.count, *(counts if sided else ())))
        y += row + LINE * (lines - 1)
    if sided:
        shapes.append(rule(axis, 20, axis, y))
    spoken = ", ".join(
        f"{aspect.aspect} {aspect.count} {captions.sides(aspect)}".rstrip() for aspect in aspects
    )
    head = ("subject", "posts", *(name for name, _ in kinds if sided))
    return Drawing(y, shapes, f"{spoken}.", head, table)


def _funnel(rows: Sequence[captions.FunnelRow]) -> Drawing:
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
        (line.name, *(_UNJUDGED if count is None else count for count in line.counts))
        for line in rows
    ]
    spoken = ", ".join(
        f"{line.name} {line.counts[0]} found and {line.counts[-1]} cited" for line in rows
    )
    return Drawing(top + row * len(rows), shapes, f"{spoken}.", ("source", *_STEPS), table)


def _passes(rows: Sequence[captions.PassRow]) -> Drawing:
    """For each source the first search above the second, as shares on one scale."""
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
    spoken = ", ".join(f"{name} at first {first}, then {again}" for name, first, again in table)
    head = ("source", "first search", "second search")
    return Drawing(top + row * len(rows), shapes, f"{spoken}.", head, table)
