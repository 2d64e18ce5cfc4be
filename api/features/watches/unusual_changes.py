"""Finds what is unusual in a run compared with the watch's own past, corrected for the number of tests.

A source that did not answer is in no count, then or now, so its silence is no drop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from api.core.display_names import SourceLabels, source_of_key, title_in
from api.core.text import quantity
from api.features.comparisons.comparison import Measure
from api.features.comparisons.product_counts import FEELINGS
from api.features.watches.new_posts import POSTS, Keys
from api.features.watches.watch_run import Change, RunCounts
from api.pipeline.evidence import figures
from api.pipeline.evidence.figures import Interval
from api.reports.keyless.theme_sentences import SHARED

FEWEST_RUNS = 3  # earlier runs below which nothing is called unusual
SHORTEST = timedelta(days=7)
"""Shortest total time of the past runs, so that a night is not compared with days only."""
FEW = 5  # posts that must be counted, or for a drop be expected: chance explains changes of fewer
ALPHA = 0.05  # probability that chance alone calls anything unusual in a run
_WORDS: dict[Measure, str] = {
    "mentions": "spoken of in",
    "praise": "praised in",
    "complaint": "complained of in",
    "sounds_positive": "Sounding positive:",
    "sounds_negative": "Sounding negative:",
}


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measure now and in each run before, over sources that answered then and now.

    `weight` is the number of new posts, or for `posts` the seconds of the run.
    """

    measure: Measure
    subject: str
    count: int
    weight: float
    before: tuple[tuple[int, float], ...]  # count and weight of earlier runs, the newest first
    sources: tuple[str, ...]
    capped: bool = False
    least: tuple[tuple[int, float], ...] = ()
    """Counts of all earlier runs, including those at a source's limit, which are minima and not in `before`."""

    @property
    def past(self) -> int:
        """The count of all runs before."""
        return sum(count for count, _ in self.before)

    @property
    def past_weight(self) -> float:
        """The weight of all runs before."""
        return sum(weight for _, weight in self.before)

    @property
    def more(self) -> bool:
        """Whether it is more than before."""
        return self.count * self.past_weight > self.past * self.weight

    @property
    def chance(self) -> float:
        """The probability that chance alone makes a difference as large."""
        if self.measure == POSTS:
            share = self.weight / (self.weight + self.past_weight)
            return figures.split(self.count, self.past, share)
        return figures.fisher(self.count, int(self.weight), self.past, int(self.past_weight))

    @property
    def usual(self) -> Interval:
        """See `Change.usual`."""
        if self.measure == POSTS:
            return figures.usual_counts(self.past, self.weight / (self.weight + self.past_weight))
        interval = figures.share_difference(self.count, int(self.weight), self.past, int(self.past_weight))
        assert interval is not None
        return interval

    @property
    def marked(self) -> bool:
        """Whether enough posts count, and it is beyond all runs before and the interval of chance.

        What comes in waves is no news. That an aspect is mentioned less is no news either: it says
        only that others are mentioned more.
        """
        expected = self.past * self.weight / self.past_weight
        if (self.count if self.more else expected) < FEW:
            return False
        rate, (low, high) = self.count / self.weight, self.usual
        if self.more:
            beyond = all(rate > other for other in self._rates(self.least or self.before))
        else:
            below = all(rate < other for other in self._rates(self.before))
            beyond = below and not self.capped and self.measure != "mentions"
        return beyond and not low <= (self.count if self.measure == POSTS else 0) <= high

    def _rates(self, runs: Sequence[tuple[int, float]]) -> Iterator[float]:
        """Rates of the fewest consecutive runs that weigh half as much: a minute alone has none."""
        start, count, weight = 0, 0, 0.0
        for more, heavier in runs:
            count, weight = count + more, weight + heavier
            while 2 * (weight - runs[start][1]) >= self.weight:
                count, weight = count - runs[start][0], weight - runs[start][1]
                start += 1
            if 2 * weight >= self.weight:
                yield count / weight


def measurements_of(now: RunCounts, past: Sequence[RunCounts]) -> list[Measurement]:
    """Everything that could be called unusual, either way: with enough runs and posts."""
    measurements = [*_volumes(now, past), *_shares(now, past)]
    return [m for m in measurements if m.count + m.past >= FEW]


def marked_changes(measurements: Sequence[Measurement], keys: Keys, places: SourceLabels) -> tuple[Change, ...]:
    """Changes that chance does not explain, the surest first; leans of an aspect replace its mentions."""
    chances = figures.holm([measurement.chance for measurement in measurements])
    ordered = sorted(zip(chances, measurements, strict=True), key=lambda pair: pair[0])
    marked = [(chance, m) for chance, m in ordered if chance <= ALPHA and m.marked]
    leaning = {(m.subject, m.more) for _, m in marked if m.measure != "mentions"}
    return tuple(
        _change(m, chance, keys, places)
        for chance, m in marked
        if m.measure != "mentions" or (m.subject, m.more) not in leaning
    )


def new_aspects(now: RunCounts, past: Sequence[RunCounts]) -> tuple[str, ...]:
    """Aspects that `SHARED` new posts mention and none in any run before.

    Only of sources that answered in `FEWEST_RUNS` runs: of others it is not known what is new.
    """
    known = {key for earlier in past for source in earlier.sources.values() for key in source.tallies}
    settled = [
        source
        for name, source in now.sources.items()
        if sum(name in earlier.sources for earlier in past) >= FEWEST_RUNS
    ]
    mentioned = sorted({key for source in settled for key in source.tallies} - known)
    return tuple(
        key.partition(":")[2]
        for key in mentioned
        if key.startswith("mentions:") and sum(source.tallies.get(key, 0) for source in settled) >= SHARED
    )


def _suffices(past: Sequence[RunCounts]) -> bool:
    seconds = sum((earlier.seconds for earlier in past), 0.0)
    return len(past) >= FEWEST_RUNS and seconds >= SHORTEST.total_seconds()


def _volumes(now: RunCounts, past: Sequence[RunCounts]) -> Iterator[Measurement]:
    """Posts of each source; a run at a limit of the source has only a minimum."""
    for name, source in now.sources.items():
        answered = [earlier for earlier in past if name in earlier.sources and earlier.seconds]
        full = [earlier for earlier in answered if not earlier.sources[name].capped]
        if _suffices(full) and now.seconds:
            before, least = (
                tuple((earlier.sources[name].posts, earlier.seconds) for earlier in runs) for runs in (full, answered)
            )
            yield Measurement(POSTS, name, source.posts, now.seconds, before, (name,), source.capped, least)


def _shares(now: RunCounts, past: Sequence[RunCounts]) -> Iterator[Measurement]:
    """Measurements of the aspects and the sentiment of new posts.

    Over the same sources then and now: those that answered in most runs before, by the runs in
    which all of them did. A source that is new, or comes back, would change every share.
    """
    names = tuple(name for name in now.sources if 2 * sum(name in earlier.sources for earlier in past) > len(past))
    alike = [earlier for earlier in past if set(names) <= set(earlier.sources)]
    if not names or not _suffices(alike):
        return
    keys = {key for counts in (now, *alike) for name in names for key in counts.sources[name].tallies}
    for key in sorted(keys):
        measure, _, subject = key.partition(":")
        pairs = []
        for counts in (now, *alike):
            sources = [counts.sources[name] for name in names]
            total = sum(s.graded if measure in FEELINGS else s.fresh for s in sources)
            pairs.append((sum(s.tallies.get(key, 0) for s in sources), float(total)))
        (count, weight), *earlier_pairs = pairs
        before = tuple(pair for pair in earlier_pairs if pair[1])
        if weight and len(before) >= FEWEST_RUNS:
            yield Measurement(cast("Measure", measure), subject, count, weight, before, names)


def _change(measured: Measurement, chance: float, keys: Keys, places: SourceLabels) -> Change:
    low, high = measured.usual
    least = "at least " if measured.capped else ""
    of = past_of = None
    if measured.measure == POSTS:
        text = (
            f"{title_in(places, measured.subject)}: {least}{quantity(measured.count, 'post')} in "
            f"this time, {'more' if measured.more else 'fewer'} than usual: {low} to {high} "
            f"(95 %, by {measured.past} in {quantity(len(measured.before), 'run')} before)."
        )
    else:
        of, past_of = int(measured.weight), int(measured.past_weight)
        ends = [f"{100 * end:.0f}" for end in sorted((abs(low), abs(high)))]
        size = abs(100 * (measured.count / of - measured.past / past_of))
        subject = measured.subject
        named = f"{subject[0].upper()}{subject[1:]}: " if subject else ""
        text = (
            f"{named}{_WORDS[measured.measure]} {measured.count or 'none'} of {of} new posts, "
            f"before in {measured.past or 'none'} of {past_of} ({size:.0f} percentage "
            f"points {'more' if measured.more else 'less'}, 95 %: {ends[0]} to {ends[1]})."
        )
    counted = keys.get((measured.measure, measured.subject), ())
    return Change(
        measure=measured.measure,
        subject=measured.subject,
        more=measured.more,
        count=measured.count,
        of=of,
        past=measured.past,
        past_of=past_of,
        usual=(low, high),
        chance=chance,
        cites=tuple(key for key in counted if source_of_key(key) in measured.sources),
        text=text,
    )
