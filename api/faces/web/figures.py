"""A picture of a page with its caption, what it says in words, and the table behind it.

Widths are parts of the page's, so words keep their size on a telephone; heights are pixels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from html import escape
from textwrap import wrap

from api.faces.svg import brief, element, percent, shortened, title, words
from api.services.text import clean, one_line

NAME_COLUMN, NAME_COLUMNS = 0.36, 15
"""Where bars begin beside a name, and letters of a name that fit before it on a telephone."""
LINE = 14
"""From one line of a name to the next."""
_ROOMY = 0.25
"""A part of a picture in which a date has room on a telephone."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Shapes, the sentence for who hears the page, and the table that holds all numbers."""

    height: int
    shapes: Sequence[str]
    spoken: str
    head: Sequence[str]
    rows: Sequence[Sequence[object]]


def figure(caption: str, note: str, drawing: Drawing) -> str:
    """The whole of it; `note` says how the picture is read."""
    drawn = element(
        "svg", title(caption), element("desc", escape(clean(drawing.spoken))), *drawing.shapes,
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
    """A bar; `note` is shown where a pointer rests."""
    return element(
        "rect", title(note) if note else "", x=percent(left), y=y, width=percent(width),
        height=height, class_=kind,
    )  # fmt: skip


def rule(x1: float, y1: float, x2: float, y2: float, kind: str = "") -> str:
    """A line."""
    ends: dict[str, float | str] = {"x1": percent(x1), "y1": y1, "x2": percent(x2), "y2": y2}
    return element("line", **ends | ({"class_": kind} if kind else {}))


def beside(x: float, y: float, count: int) -> str:
    """A count at the right end of a bar."""
    return words(percent(x), y, brief(count), dx=4)


def name_of_row(name: str, y: float, columns: int = NAME_COLUMNS) -> str:
    """What a row is about, cut to its room; in full where a pointer rests."""
    return element("g", title(name), words(0, y, shortened(name, columns)))


def name_in_lines(name: str, y: float) -> tuple[int, str]:
    """The same in two lines where it has more words than fit into one; how many lines it took."""
    lines = wrap(one_line(clean(name)), NAME_COLUMNS, max_lines=2, placeholder="…") or [""]
    if any(shortened(line, NAME_COLUMNS) != line for line in lines):  # of signs twice as wide
        lines = [shortened(name, NAME_COLUMNS)]
    shapes = (words(0, y + at * LINE, line) for at, line in enumerate(lines))
    return len(lines), element("g", title(name), *shapes)


def day_name(day: date) -> str:
    """`23 Nov 2026`."""
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
        places = {0: (left, "start"), last: (left + width, "end")}
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
