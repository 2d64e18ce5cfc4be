"""What every picture of a watch over time shows alike."""

from __future__ import annotations

from collections.abc import Mapping

from api.faces.outline import source_title
from api.services.text import many
from api.services.watching.trend import SourceWeek, TrendLine

ASPECTS = 4
"""Of a picture, at most."""
UNHEARD = "not heard"


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


def undated_of(line: TrendLine, source: str) -> int:
    """Posts of a source that have no date, and so are in no week; of earlier versions unknown."""
    weeks = (week.sources[source] for week in line.weeks)
    return sum(week.undated or 0 for week in weeks if week is not None)


def undated_posts(line: TrendLine) -> str:
    """`3 posts without a date are in no week (Amazon 3).`; nothing where there are none."""
    counts = {source: undated_of(line, source) for source in line.sources}
    total = sum(counts.values())
    verb = "is" if total == 1 else "are"
    posts = f"{many(total, 'post')} without a date {verb} in no week"
    return f"{posts}{_by_place(counts)}." if total else ""


def first_week(line: TrendLine) -> str:
    """What a line of one week holds: of one point nothing can be drawn."""
    (week,) = line.weeks
    known = {name: source for name, source in week.sources.items() if source is not None}
    total = sum(source.posts for source in known.values())
    least = "at least " if any(source.capped for source in known.values()) else ""
    counts = {name: source.posts for name, source in known.items()}
    monday = f"{week.monday.day} {week.monday:%B %Y}"
    posts = f"{least}{many(total, 'post')}{_by_place(counts)}"
    return f"One week so far, from {monday}: {posts}. {undated_posts(line)}".rstrip()


def _by_place(counts: Mapping[str, int]) -> str:
    """` (Lemmy 3, Reddit 1)`: those that have any."""
    named = ", ".join(f"{source_title(name)} {count}" for name, count in counts.items() if count)
    return f" ({named})" if named else ""
