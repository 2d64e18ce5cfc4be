"""What every rendering says about a report's figures: of how many, which are drawn, in which order.

Each function gives a caption and rows: no rows where there is too little to draw, which the
caption then says, and no caption where nothing was counted. Captions are ours; names in rows are
strangers'.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from api.faces.outline import source_title
from api.services.evidence.figures import AspectCount, Feeling, Figures, Period
from api.services.reporting.report import Report

FEW_GRADED, FEW_DATED = 5, 10
"""Items below which shares, and a timeline, would say more than is known."""
_WEEK = "week (from Monday, UTC)"


@dataclass(frozen=True, slots=True)
class FunnelRow:
    """How many of one source's items got how far."""

    name: str
    counts: tuple[int, int, int, int]
    """Each at most the one before: found, kept by the gate, left in the report, cited."""


def sentiment(figures: Figures) -> tuple[str, tuple[Feeling, ...]]:
    """How the graded items sound, the best first."""
    felt = figures.sentiment
    if felt is None or not felt.n:
        return "", ()
    caption = f"Sentiment of {_items(felt.n, 'graded')}"
    if felt.n < FEW_GRADED:
        counts = ", ".join(f"{feeling.count} {feeling.name}" for feeling in felt.feelings)
        return f"{caption}: {counts}; too few to draw shares", ()
    if felt.ungraded:
        was = "was" if felt.ungraded == 1 else "were"
        caption += f"; {felt.ungraded} more {was} kept without one"
    return caption, felt.feelings


def timeline(figures: Figures, most: int) -> tuple[str, tuple[Period, ...]]:
    """Items over time, the latest `most` periods, those without any item among them."""
    dates = figures.timeline
    if dates is None or not (kept := dates.dated + dates.undated):
        return "", ()
    share = f"{dates.dated} of {kept} kept"
    if dates.dated < FEW_DATED:
        return f"Too few dated items for a timeline: {share}", ()
    points = dates.points
    if len(points) < 2:
        return f"All dated items ({share}) are of one {dates.unit}, {points[0].start} (UTC)", ()
    unit = _WEEK if dates.unit == "week" else f"{dates.unit} (UTC)"
    caption = f"Items per {unit}, {share} have a date"
    if len(points) > most:
        caption += f"; the latest {most} of {len(points)} {dates.unit}s"
    return caption, points[-most:]


def aspects(report: Report, most: int) -> tuple[str, list[AspectCount]]:
    """The aspects named most often, in the order in which the report's words come to them.

    Those that no word of it names follow, the most often named first.
    """
    named = (report.figures.aspects or ())[:most]
    if not named:
        return "", []
    felt = report.figures.sentiment
    kept = felt.n + felt.ungraded if felt is not None else len(report.items)
    texts = (report.summary, *(finding.text for finding in report.findings))
    prose = "\n".join(texts).casefold()

    def place(aspect: AspectCount) -> int:
        # the aspect as a word of its own: `app` in "the app's", not in "happy"; 电池 anywhere
        word = rf"(?<![a-z]){re.escape(aspect.aspect)}(?![a-z])"
        match = re.search(word, prose)
        return match.start() if match else len(prose)

    caption = f"Aspects that the grader noted, by how many of {_items(kept, 'kept')}"
    return caption, sorted(named, key=place)


def legend(aspect: AspectCount) -> str:
    """What the signed numbers beside an aspect are, told by one of them."""
    those = "1 item that names it" if aspect.count == 1 else f"{aspect.count} items that name it"
    return f"(+{aspect.positive} -{aspect.negative}): praise, complaint among the {those}"


def funnel(report: Report) -> tuple[str, list[FunnelRow]]:
    """From what each source found to what the findings cite."""
    counted = report.figures.sources or {}
    cites = {key for finding in report.findings for key in finding.cites}
    cites |= {quote.key for quote in report.quotes}
    sources = [item.source for item in report.items if item.key in cites]
    rows = [
        FunnelRow(
            source_title(name),
            (
                figure.fetched,
                figure.relevant,
                figure.kept,
                # a person's own items may name any source, but are the only ones then
                len(sources) if len(counted) == 1 else sources.count(name),
            ),
        )
        for name, figure in counted.items()
        if figure.fetched
    ]
    total = sum(row.counts[0] for row in rows)
    return (f"From found to cited: what became of {_items(total, 'found')}" if rows else ""), rows


def _items(count: int, which: str) -> str:
    return f"{count} {which} item{'' if count == 1 else 's'}"
