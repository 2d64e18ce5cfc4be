"""Watches with trends of four runs."""

from __future__ import annotations

from datetime import date
from zoneinfo import ZoneInfo

from api.features.watches.trend import VERSION, Trend, trend_lines
from api.features.watches.watch_ports import KeptCounts
from tests.features.watches.made import MONDAY, WEEK, of, week


def trend(*runs: KeptCounts, cut: bool = False) -> Trend:
    """Of runs in the order of time."""
    lines = tuple(trend_lines(runs[::-1], ZoneInfo("UTC"), date.min))
    return Trend(version=VERSION, watch_id="w1", tz="UTC", lines=lines, cut=cut, sample=False)


def battery(posts: int) -> dict[str, int]:
    """Half of them speak of it, a quarter each way."""
    shares = {"mentions": posts // 2, "praise": posts // 4, "complaint": posts // 4}
    return {f"{measure}:battery": number for measure, number in shares.items()}


def kept(number: int, rule: str = "a", /, **sources: int) -> KeptCounts:
    """A week's run; so many posts of each source."""
    counts = week(number, **{name: of(posts, battery(posts)) for name, posts in sources.items()})
    return KeptCounts(rule, counts.until, counts)


GAP = KeptCounts("a", MONDAY + 3 * WEEK, None)

FOUR = (kept(0, reddit=8, lemmy=4), kept(1, reddit=16), GAP, kept(3, reddit=0, lemmy=2))


def undated(count: int | None, **sources: int) -> KeptCounts:
    """The first week's run, with so many posts of each source that have no date."""
    counts = kept(0, **sources).counts
    assert counts is not None
    changed = {name: source.model_copy(update={"undated": count}) for name, source in counts.sources.items()}
    return KeptCounts("a", counts.until, counts.model_copy(update={"sources": changed}))
