"""Sources over time as one picture: a row for each, a bar for each week or day; gaps stay empty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby

from api.core.text import quantity
from api.features.analyses.statistics import Stats
from api.features.watches.trend import SourceWeek, TrendLine
from api.features.watches.watch import dated_notes
from api.interfaces.pages.report_charts import NAME_COLUMN, Drawing, bar, dates, day_name, figure, name_of_row, rule
from api.interfaces.shared import statistics_text
from api.interfaces.shared.chart_data import UNHEARD, undated_of, undated_posts, weekly
from api.interfaces.shared.presentation import source_title
from api.interfaces.shared.svg import brief, element, part, percent, title, words

PERIODS = 60
"""Most periods in a chart of the gate, the latest ones."""
_GAPS = "the line below the bars is broken"


@dataclass(frozen=True, slots=True)
class _SourceBars:
    """A source: how full each period is, from 0 to 1, and None where nothing is known."""

    name: str
    shares: Sequence[float | None]
    notes: Sequence[str]
    """What each period holds, shown under the pointer."""
    number: str
    """Number at the end of the row."""
    instead: str = ""
    """Words where all bars are empty and that is not the whole truth."""


def watch_figure(line: TrendLine, notes: Sequence[str] = ()) -> str:
    """Posts a week of each source, with a mark in the week of each note; for a line of two weeks or more."""
    caption = f"Posts a week, {_span(line.weeks[0].monday, line.weeks[-1].monday)}"
    note = (
        f"Each place on a scale of its own, with the number of its largest week; where a week was {UNHEARD}, {_GAPS}."
    )
    if undated := undated_posts(line):
        note += f" {undated}"
    mondays = [week.monday for week in line.weeks]
    rows = [_watched(line, source) for source in line.sources]
    description = "; ".join(f"{row.name}: {row.number} in the largest week" for row in rows)
    table = [(day_name(week.monday), *(_posts(week.sources[source]) for source in line.sources)) for week in line.weeks]
    head = ("week from", *(row.name for row in rows))
    height, shapes = _drawn(rows, mondays, "largest week")
    marks = [(day, text) for day, text in dated_notes(notes) if mondays[0] <= day < mondays[-1] + timedelta(7)]
    for day, text in marks:
        x = NAME_COLUMN + 0.5 * ((day - mondays[0]).days + 0.5) / (7 * len(mondays))
        shapes.append(element("g", title(f"{day_name(day)}: {text}"), rule(x, 14, x, height - 20, "ends")))
    if marks:
        note += f" Marked by a line: {'; '.join(f'{day_name(day)} {text}' for day, text in marks)}."
    return figure(caption, note, Drawing(height, shapes, f"{description}.", head, table))


def places_figure(stats: Stats, min_yield: float) -> str:
    """The yield of each source as a bar, and all its figures as a table; a line at the setting `min_yield`."""
    caption, note = "Share of judged posts that are about the question, by place", ""
    if min_yield:
        note = f"Where a full first search has less (the line: {min_yield:.0%}), a wider one follows."
    row, left, width = 26, NAME_COLUMN, 0.46
    bottom = row * len(stats.sources)
    shapes = [rule(x, 0, x, bottom) for x in (left, left + width)]
    for at, (source, figures) in enumerate(stats.sources.items()):
        y, share = at * row + row / 2, figures.yields.pooled
        shapes += [
            name_of_row(source_title(source), y + 4),
            bar(left, y - 7, width * (share or 0.0), 14, "plain"),
            words(percent(left + width), y + 4, "not judged" if share is None else f"{share:.0%}", dx=8),
        ]
    if min_yield:
        shapes.append(rule(left + width * min_yield, 0, left + width * min_yield, bottom, "ends"))
    head, *table = zip(*statistics_text.source_table(stats.sources), strict=True)
    head = tuple(statistics_text.PLAIN_ROWS.get(name, name) for name in head)
    description = "; ".join(f"{name} {yields}" for name, _, yields, *_ in table)
    return figure(caption, note, Drawing(bottom, shapes, f"{description}.", ("place", *head[1:]), table))


def gate_figure(stats: Stats) -> str:
    """Yields of each source over time; for two periods or more."""
    kept = {period.start: period.yields for period in stats.periods}
    days = _steps(stats.periods[0].start, stats.periods[-1].start, stats.unit == "week")
    shown = days[-PERIODS:]
    rows = []
    for source, figures in stats.sources.items():
        yields = [kept[day].get(source) if day in kept else None for day in shown]
        shares = [each.pooled if each is not None else None for each in yields]
        notes = [f"{each.relevant} of {each.judged}" if each is not None else "" for each in yields]
        whole = figures.yields.pooled
        number = "-" if whole is None else f"{whole:.0%}"
        rows.append(_SourceBars(source_title(source), shares, notes, number))
    caption = f"Share about the question per {stats.unit} (UTC), {_span(shown[0], shown[-1])}"
    if len(shown) < len(days):
        caption += f"; the latest {PERIODS} of {len(days)} {stats.unit}s"
    note = f"The line above the bars is 100 %; where nothing of a place was judged, {_GAPS}."
    description = "; ".join(f"{row.name}: {row.number} in all" for row in rows)
    head, *table = statistics_text.period_table(stats)
    height, shapes = _drawn(rows, shown, "in all")
    return figure(caption, note, Drawing(height, shapes, f"{description}.", head, table))


def _watched(line: TrendLine, source: str) -> _SourceBars:
    weeks = [week.sources[source] for week in line.weeks]
    rates = [weekly(week) for week in weeks]
    most = max((rate for rate in rates if rate is not None), default=0.0)
    capped = any(week is not None and week.capped and rate == most for week, rate in zip(weeks, rates, strict=True))
    undated = undated_of(line, source)
    return _SourceBars(
        source_title(source),
        [None if rate is None else part(rate, most) for rate in rates],
        [quantity(round(rate), "post") if rate is not None else "" for rate in rates],
        f"{'≥' if capped else ''}{brief(round(most))}",
        f"{brief(undated)} without a date" if undated and not most else "",
    )


def _posts(week: SourceWeek | None) -> str:
    return UNHEARD if week is None else f"{week.posts}{' or more' if week.capped else ''}"


def _span(first: date, last: date) -> str:
    return f"{day_name(first)} to {day_name(last)}"


def _steps(first: date, last: date, weekly: bool) -> list[date]:
    """Every day or week, those in which nothing was asked among them."""
    step = timedelta(7 if weekly else 1)
    return [first + at * step for at in range((last - first) // step + 1)]


def _drawn(rows: Sequence[_SourceBars], days: Sequence[date], head: str) -> tuple[int, list[str]]:
    """Height and shapes: names on the left, bars, numbers on the right, dates below."""
    row, top, tall, left, width = 40, 18, 26, NAME_COLUMN, 0.5
    slot = width / len(days)
    thick = min(slot * 0.75, 0.06)
    shapes = [words("100%", 12, head, class_="dim", text_anchor="end")]
    for at, source in enumerate(rows):
        baseline = top + at * row + row - 6
        shapes.append(name_of_row(source.name, baseline))
        shapes.append(rule(left, baseline - tall, left + width, baseline - tall))
        shapes.append(words("100%", baseline, source.number, text_anchor="end"))
        if source.instead:
            shapes.append(words(percent(left), baseline - 5, source.instead, class_="dim"))
        for begin, end in _known(source.shares):
            shapes.append(bar(left + begin * slot, baseline, (end - begin) * slot, 2, "plain"))
        for number, (day, share) in enumerate(zip(days, source.shares, strict=True)):
            if share:
                x, height = left + (number + 0.5) * slot - thick / 2, max(2.0, tall * share)
                note = f"{day_name(day)}: {source.notes[number]}"
                shapes.append(bar(x, baseline - height, thick, height, "plain", note))
    bottom = top + row * len(rows)
    return bottom + 20, [*shapes, *dates(days, left, width, bottom + 14)]


def _known(shares: Sequence[float | None]) -> Iterator[tuple[int, int]]:
    """Start and end of each run of known values."""
    at = 0
    for known, stretch in groupby(shares, key=lambda share: share is not None):
        end = at + len(list(stretch))
        if known:
            yield at, end
        at = end
