"""A watch over time for a terminal: weeks as rows, bars, words where nothing is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from api.core.display_names import title_in
from api.core.text import quantity
from api.features.watches.trend import SourceWeek, Trend, TrendLine, TrendWeek, WeekShare
from api.interfaces.cli.terminal_text import shown, table_lines, wrapped
from api.interfaces.shared.chart_data import ASPECTS, UNHEARD, leading, undated_posts, weekly
from api.sources import ALL_SOURCES

_BAR = 8

_GAP = "  "

_VOLUME = (
    "Posts about it, by when they were written; a bar is full in its source's largest week. In "
    "brackets: how many of the week's runs heard the source, or of how many days the posts are, "
    "where that is not all of them or not a week. `≥`: the source may have more."
)

_FEELING = "How the new posts sound, of those that a model graded; in brackets the 95 % interval."

_ASPECT = "New posts that speak of it, of all new ones; of these plain praise (+), complaint (-)."

_OTHER = "From here on another question was asked: nothing is compared with what was before."

Rows = Sequence[Sequence[str]]


def trend_text(name: str, trend: Trend, columns: int) -> str:
    """All lines of a trend, the oldest first; tables that are too wide go on below."""
    sample = " (made-up sample data)" if trend.sample else ""
    weeks = sum(len(line.weeks) for line in trend.lines)
    lines = wrapped(f"{name}{sample}: {quantity(weeks, 'week')} by the clock of {trend.tz}", columns)
    if trend.cut:
        lines += wrapped("Earlier runs are too many to be summed.", columns)
    for at, line in enumerate(trend.lines):
        lines += ["", *wrapped(_OTHER, columns)] if at else []
        for note, head, rows in _tables(line):
            lines += ["", *wrapped(note, columns), *_laid_out(line, head, rows, columns)]
        if undated := undated_posts(line):
            lines += ["", *wrapped(undated, columns)]
    return "\n".join(lines)


def _tables(line: TrendLine) -> Iterator[tuple[str, Sequence[str], Rows]]:
    """The tables of a line: each its note, its headings, and a row of cells for each week."""
    yield (
        _VOLUME,
        [title_in(ALL_SOURCES, name) for name in line.sources] or [""],
        [[_volume(week, name, line) for name in line.sources] or [UNHEARD] for week in line.weeks],
    )
    if any(week.positive for week in line.weeks):
        rows = [[_share(week, week.positive), _share(week, week.negative)] for week in line.weeks]
        yield _FEELING, ("positive", "negative"), rows
    if names := leading(line)[:ASPECTS]:
        yield _ASPECT, names, [[_aspect(week, name) for name in names] for week in line.weeks]


def _volume(week: TrendWeek, name: str, line: TrendLine) -> str:
    source = week.sources[name]
    if source is None:
        return UNHEARD
    rates = [weekly(other.sources[name]) for other in line.weeks]
    most = max(rate for rate in rates if rate is not None)
    number = f"{'≥' if source.capped else ''}{source.posts:,}"
    return f"{_bar(weekly(source) or 0, most)} {number:>4}{_partly(week, source)}"


def _partly(week: TrendWeek, source: SourceWeek) -> str:
    """Why a week cannot simply be compared with others."""
    notes = [f"{source.heard} of {week.runs} runs"] if source.heard < week.runs else []
    notes += [f"{source.days:.0f} days"] if source.days >= _LONG else []
    return f" ({', '.join(notes)})" if notes else ""


# Days from which a week is said to be long: one with a change of clocks is not.
_LONG = 7.5


def _share(week: TrendWeek, share: WeekShare | None) -> str:
    if share is None:
        return "none graded" if week.heard else UNHEARD
    low, high = share.interval
    spread = f"({low * 100:.0f}-{high * 100:.0f} %)"
    return f"{_bar(share.count, share.of)} {share.count} of {share.of} {spread}"


def _aspect(week: TrendWeek, name: str) -> str:
    if week.aspects is None or week.fresh is None:
        return UNHEARD
    aspect = week.aspects[name]
    leans = f"+{aspect.praise} -{aspect.complaint}"
    return f"{_bar(aspect.mentions, week.fresh)} {aspect.mentions} of {week.fresh} {leans}"


def _bar(value: float, most: float) -> str:
    """A bar of fixed width; any value above 0 fills at least one column."""
    filled = max(round(_BAR * value / most), 1) if value else 0
    return "█" * filled + "·" * (_BAR - filled)


def _laid_out(line: TrendLine, head: Sequence[str], rows: Rows, columns: int) -> Iterator[str]:
    """Lines of a table in parts that fit into the `columns`, each with the weeks at its left."""
    labels = ["", *(week.week for week in line.weeks)]
    left = max(map(cell_len, labels))
    cells = [[shown(name) for name in head], *rows]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    start = 0
    while start < len(widths):
        end, width = start + 1, left + len(_GAP) + widths[start]
        while end < len(widths) and width + len(_GAP) + widths[end] <= columns:
            width += len(_GAP) + widths[end]
            end += 1
        parts = zip(labels, cells, strict=True)
        yield from table_lines([[label, *row[start:end]] for label, row in parts])
        start = end
