"""What is unusual in a run, by the watch's own past: computed, and corrected for every look.

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
from api.pipeline.evidence.figures import (
    Interval,
    fisher,
    holm,
    share_difference,
    split,
    usual_counts,
)
from api.reports.keyless.theme_sentences import SHARED

FEWEST_RUNS = 3
"""Earlier runs below which nothing is called unusual."""
SHORTEST = timedelta(days=7)
"""And how long these must be together, so that no night is compared with days alone."""
FEW = 5
"""Posts that must count, or for fewer than usual be expected."""
ALPHA = 0.05
"""How often chance may call anything at all unusual in a run in which nothing is."""
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

    `weight` is of how many new posts, or in how many seconds.
    """

    measure: Measure
    subject: str
    count: int
    weight: float
    before: tuple[tuple[int, float], ...]
    """The newest first."""
    sources: tuple[str, ...]
    """Whose posts are counted."""
    capped: bool = False
    least: tuple[tuple[int, float], ...] = ()
    """Every run before where some are no past, for their source was at its limit: these held at
    least as much."""

    @property
    def past(self) -> int:
        """The count of all runs before."""
        return sum(count for count, _ in self.before)

    @property
    def past_weight(self) -> float:
        """Their weight."""
        return sum(weight for _, weight in self.before)

    @property
    def more(self) -> bool:
        """It is more than before."""
        return self.count * self.past_weight > self.past * self.weight

    @property
    def beyond(self) -> bool:
        """It is beyond every run before: what comes in waves is no news.

        That an aspect is spoken of less says only that others are spoken of more.
        """
        rate = self.count / self.weight
        if self.more:
            return all(rate > wave for wave in self._waves(self.least or self.before))
        calm = all(rate < wave for wave in self._waves(self.before))
        return calm and not self.capped and self.measure != "mentions"

    @property
    def enough(self) -> bool:
        """Enough posts count, or are missing."""
        return (self.count if self.more else self.past * self.weight / self.past_weight) >= FEW

    @property
    def chance(self) -> float:
        """How often chance alone makes a difference as large."""
        if self.measure == POSTS:
            share = self.weight / (self.weight + self.past_weight)
            return split(self.count, self.past, share)
        return fisher(self.count, int(self.weight), self.past, int(self.past_weight))

    @property
    def usual(self) -> Interval:
        """See `Change.usual`."""
        if self.measure == POSTS:
            return usual_counts(self.past, self.weight / (self.weight + self.past_weight))
        interval = share_difference(self.count, int(self.weight), self.past, int(self.past_weight))
        assert interval is not None
        return interval

    @property
    def outside(self) -> bool:
        """The 95 % interval excludes that nothing has changed."""
        low, high = self.usual
        return not low <= (self.count if self.measure == POSTS else 0) <= high

    def _waves(self, runs: Sequence[tuple[int, float]]) -> Iterator[float]:
        """The rates of all the fewest runs in a row that weigh half as much as this one.

        Mostly these are single runs; one with one post, or of one minute, is no wave alone.
        """
        start, count, weight = 0, 0, 0.0
        for more, heavier in runs:
            count, weight = count + more, weight + heavier
            while 2 * (weight - runs[start][1]) >= self.weight:
                count, weight = count - runs[start][0], weight - runs[start][1]
                start += 1
            if 2 * weight >= self.weight:
                yield count / weight


def looks_at(now: RunCounts, past: Sequence[RunCounts]) -> list[Measurement]:
    """Everything that could be called unusual, whichever way: with past and posts enough."""
    looks = [*_volumes(now, past), *_shares(now, past)]
    return [look for look in looks if look.count + look.past >= FEW]


def unusual(looks: Sequence[Measurement], keys: Keys, places: SourceLabels) -> tuple[Change, ...]:
    """What chance does not explain, the surest first; of mentions that lean only the lean."""
    chances = holm([look.chance for look in looks])
    ordered = sorted(zip(chances, looks, strict=True), key=lambda pair: pair[0])
    marked = [
        (chance, look)
        for chance, look in ordered
        if chance <= ALPHA and look.enough and look.beyond and look.outside
    ]
    leaning = {(look.subject, look.more) for _, look in marked if look.measure != "mentions"}
    return tuple(
        _change(look, chance, _cited(look, keys), places)
        for chance, look in marked
        if look.measure != "mentions" or (look.subject, look.more) not in leaning
    )


def new_aspects(now: RunCounts, past: Sequence[RunCounts]) -> tuple[str, ...]:
    """Aspects of which several new posts speak, and none did in any run before.

    Of a source that few runs have heard nobody knows what is new.
    """
    known = {
        key for earlier in past for source in earlier.sources.values() for key in source.tallies
    }
    settled = [
        source
        for name, source in now.sources.items()
        if sum(name in earlier.sources for earlier in past) >= FEWEST_RUNS
    ]
    spoken = sorted({key for source in settled for key in source.tallies} - known)
    return tuple(
        key.partition(":")[2]
        for key in spoken
        if key.startswith("mentions:")
        and sum(source.tallies.get(key, 0) for source in settled) >= SHARED
    )


def _suffices(past: Sequence[RunCounts]) -> bool:
    """Whether there are runs enough, over time enough, to be a past."""
    seconds = sum((earlier.seconds for earlier in past), 0.0)
    return len(past) >= FEWEST_RUNS and seconds >= SHORTEST.total_seconds()


def _volumes(now: RunCounts, past: Sequence[RunCounts]) -> Iterator[Measurement]:
    """Posts of each source; a run that hit its limit says too little to be a past."""
    for name, source in now.sources.items():
        heard = [earlier for earlier in past if name in earlier.sources and earlier.seconds]
        full = [earlier for earlier in heard if not earlier.sources[name].capped]
        if _suffices(full) and now.seconds:
            before, least = (
                tuple((earlier.sources[name].posts, earlier.seconds) for earlier in runs)
                for runs in (full, heard)
            )
            yield Measurement(
                POSTS, name, source.posts, now.seconds, before, (name,), source.capped, least
            )


def _shares(now: RunCounts, past: Sequence[RunCounts]) -> Iterator[Measurement]:
    """What the new posts speak of, and how they sound.

    Over the same sources then and now: those heard in most runs before, by the runs that heard all
    of them. One that is new, or comes back, would else change every share by being there.
    """
    names = tuple(
        name
        for name in now.sources
        if 2 * sum(name in earlier.sources for earlier in past) > len(past)
    )
    alike = [earlier for earlier in past if set(names) <= set(earlier.sources)]
    if not names or not _suffices(alike):
        return
    keys = {
        key for counts in (now, *alike) for name in names for key in counts.sources[name].tallies
    }
    for key in sorted(keys):
        measure, _, subject = key.partition(":")
        feeling = measure in FEELINGS

        def within(counts: RunCounts, key: str = key, feeling: bool = feeling) -> tuple[int, float]:
            sources = [counts.sources[name] for name in names]
            number = sum(source.tallies.get(key, 0) for source in sources)
            return number, float(
                sum(source.graded if feeling else source.fresh for source in sources)
            )

        count, weight = within(now)
        before = tuple(pair for pair in map(within, alike) if pair[1])
        if weight and len(before) >= FEWEST_RUNS:
            yield Measurement(cast("Measure", measure), subject, count, weight, before, names)


def _cited(look: Measurement, keys: Keys) -> tuple[str, ...]:
    """The keys of the posts that it counts; a key begins with its source."""
    counted = keys.get((look.measure, look.subject), ())
    return tuple(key for key in counted if source_of_key(key) in look.sources)


def _change(
    look: Measurement, chance: float, cites: tuple[str, ...], places: SourceLabels
) -> Change:
    low, high = look.usual
    least = "at least " if look.capped else ""
    if look.measure == POSTS:
        text = (
            f"{title_in(places, look.subject)}: {least}{quantity(look.count, 'post')} in this time,"
            f" {'more' if look.more else 'fewer'} than usual: {low} to {high} "
            f"(95 %, by {look.past} in {quantity(len(look.before), 'run')} before)."
        )
    else:
        ends = [f"{100 * end:.0f}" for end in sorted((abs(low), abs(high)))]
        size = abs(100 * (look.count / look.weight - look.past / look.past_weight))
        named = f"{look.subject[0].upper()}{look.subject[1:]}: " if look.subject else ""
        text = (
            f"{named}{_WORDS[look.measure]} {look.count or 'none'} of {look.weight:.0f} new posts, "
            f"before in {look.past or 'none'} of {look.past_weight:.0f} ({size:.0f} percentage "
            f"points {'more' if look.more else 'less'}, 95 %: {ends[0]} to {ends[1]})."
        )
    return Change(
        measure=look.measure,
        subject=look.subject,
        more=look.more,
        count=look.count,
        of=None if look.measure == POSTS else int(look.weight),
        past=look.past,
        past_of=None if look.measure == POSTS else int(look.past_weight),
        usual=(low, high),
        chance=chance,
        cites=cites,
        text=text,
    )
