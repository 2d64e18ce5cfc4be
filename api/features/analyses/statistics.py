"""Statistics over the analyses that a tenant keeps; `Tally` defines the numbers of one of them.

An answer whose gate failed open counts as such, and never in a yield: all its items passed
unjudged. A figure that is unknown, or over nothing, is None.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Literal

from pydantic.json_schema import SkipJsonSchema

from api.core.domain import DAYS_BY_DAY, Agreement, Decision, Outcome
from api.core.items import sum_of_agreements
from api.core.published import IF_SET, WHERE_THERE, Published, Timestamp
from api.errors import UsageError
from api.features.analyses.store_ports import Counted, SourceTally, Store, Tally, Thumbs
from api.reports.report import Share


class YieldStats(Published):
    """Share of judged items that were about the question."""

    runs: int
    """Runs with a sound verdict on at least one item: what `mean` is over."""
    judged: int
    relevant: int
    pooled: Share | None
    """`relevant` / `judged`: each item has the same weight."""
    mean: Share | None
    """Mean of the yields of `runs`: each run has the same weight."""
    degraded: int
    """Runs whose gate failed open; they are in none of these figures."""


class SourceStats(Published):
    """Counts of one source over all runs that asked it."""

    runs: int
    outcomes: Mapping[Outcome, int]
    answered: int
    """Runs in which it could be asked and answered: what the rates are over."""
    yields: YieldStats
    fail_open: int
    """Runs in which some of its items went unjudged."""
    fail_open_rate: Share | None
    fail_open_reasons: Mapping[str, int]
    refetched: int
    refetch_rate: Share | None
    refetch_gain: int
    """Relevant items that only second fetches brought."""
    gain_per_refetch: float | None
    disputed: Annotated[int, IF_SET] = 0
    """Sound verdicts of a model of which the local judge is sure of the opposite."""
    disputed_rate: Annotated[Share | SkipJsonSchema[None], WHERE_THERE] = None
    """Share of the judged items with such a verdict; there where any was disputed."""
    upstream_calls: int


class StatsPeriod(Published):
    """A day or week (from Monday), UTC, in which analyses were begun."""

    start: date
    runs: int
    yields: Mapping[str, YieldStats]
    """Yield statistics, one entry a source."""


class ItemStats(Published):
    """Counts of items over all analyses of the period."""

    judged: int
    relevant: int
    """Items that passed the gate."""
    kept: int
    """Items that were left after grading and removing copies."""
    cited: int
    """Number of items that at least one finding cites."""


class SupportStats(Published):
    """Share of checked passages that support their sentence."""

    reports: int
    """Number of reports with a support check."""
    pairs: int
    supported: int
    rate: Share | None


class CostStats(Published):
    """Cost of analyses that a source answered and whose price is known."""

    usd: float
    left_out: float
    """USD of other analyses: those of own items, and those that no source answered."""
    priced: int
    """Number of analyses whose price is known."""
    unpriced: int
    """Analyses left out, since a model's price is unknown."""
    per_analysis: float | None
    per_kept_item: float | None


class AgreementStats(Published):
    """Posts that a local judge decided instead of a model, in runs with promised agreement."""

    judged: int
    """Verdicts of both judges in the runs and sources with such a promise."""
    local: int
    """Number of posts that the local judge decided."""
    saved_calls: int
    saved_tokens: int
    """About how many tokens the model would have used for them."""
    saved_usd: float | None
    """USD saved; None when the model's price is unknown."""


class ThumbStats(Published):
    """Ratings of reports, findings and items together."""

    up: int
    down: int
    share: Share | None
    """Share of `up` among all thumbs."""


class Stats(Published):
    """Figures over the analyses of one tenant."""

    since: Timestamp | None
    """Start of the counted time; None: the first analysis."""
    unit: Literal["day", "week"]
    """Unit of `periods`: days up to 31 of them, then weeks."""
    runs: int
    """Analyses that ended with an answer, of every decision."""
    failed: int
    own_items: int
    """Number of analyses of a person's own items, which are in no mean and no yield."""
    unanswered: int
    """Number of analyses that no source answered, which are in no mean."""
    samples: int
    """Analyses of sample data; they are in no other figure unless `with_samples`."""
    with_samples: bool
    cut: bool
    """Whether there are more analyses than are counted; the newest are."""
    decisions: Mapping[Decision, int]
    yields: YieldStats
    """Yields of whole runs over all their sources; one degraded source makes the run degraded."""
    sources: Mapping[str, SourceStats]
    periods: tuple[StatsPeriod, ...]
    """Periods in which there were runs, in order."""
    items: ItemStats
    support: SupportStats
    upstream_calls: int
    calls_per_analysis: float | None
    """Mean number of calls to sources, over the analyses that a source answered."""
    cost: CostStats
    agreement: Annotated[AgreementStats | SkipJsonSchema[None], WHERE_THERE] = None
    feedback: ThumbStats
    feedback_by_decision: Mapping[Decision, ThumbStats]


MOST = 10_000
"""Analyses that are counted at most: the newest."""
_DAYS = {"d": 1, "w": 7}
# how far back in days or weeks: `30d`, `12w`
_SPAN = re.compile(r"([1-9][0-9]{0,4})([dw])")
_NO_THUMBS = Thumbs()


def since_of(text: str, now: datetime) -> datetime | None:
    """Start of a time span: `30d`, `12w`, a date or time (UTC by default); None for `all`.

    Raises:
        UsageError: the text has another form.
    """
    wanted = text.strip().lower()
    if wanted == "all":
        return None
    try:
        if span := _SPAN.fullmatch(wanted):
            return now - timedelta(days=int(span[1]) * _DAYS[span[2]])
        moment = datetime.fromisoformat(text.strip())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            "`since` needs days or weeks (`30d`, `12w`), a date (`2026-03-01`), a time "
            "(`2026-03-01T08:00+02:00`; in an address the `+` is `%2B`) or `all`"
        ) from None


async def stats_of(
    store: Store, tenant: str, since: datetime | None, now: datetime, *, with_samples: bool = False
) -> Stats:
    """Statistics over the analyses of a tenant that were begun since then.

    Raises:
        StoreUnavailable: the database cannot be used.
    """
    sums = Sums(await store.thumbs(tenant, since), with_samples)
    cut = await store.each_counted(tenant, since, MOST, sums.add)
    return sums.stats(since, now, cut=cut)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


@dataclass(slots=True)
class _YieldSums:
    runs: int = 0
    judged: int = 0
    relevant: int = 0
    ratios: float = 0.0
    """The sum of the runs' yields."""
    degraded: int = 0

    def add(self, tally: Tally | SourceTally) -> None:
        if tally.degraded:
            self.degraded += 1
        elif judged := tally.judged:
            relevant = tally.relevant
            self.runs += 1
            self.judged += judged
            self.relevant += relevant
            self.ratios += relevant / judged

    def join(self, other: _YieldSums) -> None:
        self.runs += other.runs
        self.judged += other.judged
        self.relevant += other.relevant
        self.ratios += other.ratios
        self.degraded += other.degraded

    def stats(self) -> YieldStats:
        return YieldStats(
            runs=self.runs,
            judged=self.judged,
            relevant=self.relevant,
            pooled=_ratio(self.relevant, self.judged),
            mean=_ratio(self.ratios, self.runs),
            degraded=self.degraded,
        )


@dataclass(slots=True)
class _SourceSums:
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    yields: _YieldSums = field(default_factory=_YieldSums)
    reasons: Counter[str] = field(default_factory=Counter)
    refetched: int = 0
    gains: int = 0
    """Refetches whose second batch was judged."""
    gain: int = 0
    disputed: int = 0
    calls: int = 0

    def add(self, tally: SourceTally) -> None:
        self.outcomes[tally.outcome] += 1
        self.calls += tally.upstream_calls
        if not tally.outcome.answered:
            return
        self.yields.add(tally)
        self.refetched += tally.refetched
        self.disputed += tally.disputed if tally.judged else 0
        if tally.refetched and all(attempt.status != "degraded" for attempt in tally.attempts):
            self.gains += 1
            self.gain += tally.refetch_gain
        if tally.open_reason is not None:
            self.reasons[tally.open_reason] += 1

    def stats(self) -> SourceStats:
        answered = sum(count for outcome, count in self.outcomes.items() if outcome.answered)
        fail_open = self.reasons.total()
        return SourceStats(
            runs=self.outcomes.total(),
            outcomes=dict(self.outcomes.most_common()),
            answered=answered,
            yields=self.yields.stats(),
            fail_open=fail_open,
            fail_open_rate=_ratio(fail_open, answered),
            fail_open_reasons=dict(self.reasons.most_common()),
            refetched=self.refetched,
            refetch_rate=_ratio(self.refetched, answered),
            refetch_gain=self.gain,
            gain_per_refetch=_ratio(self.gain, self.gains),
            disputed=self.disputed,
            disputed_rate=_ratio(self.disputed, self.yields.judged) if self.disputed else None,
            upstream_calls=self.calls,
        )


@dataclass(slots=True)
class _DaySums:
    runs: int = 0
    yields: dict[str, _YieldSums] = field(default_factory=dict)

    def join(self, other: _DaySums) -> None:
        self.runs += other.runs
        for name, sums in other.yields.items():
            self.yields.setdefault(name, _YieldSums()).join(sums)


@dataclass(slots=True)
class Sums:
    """Adds up analyses one by one, in any order, and holds none of them."""

    thumbs: Mapping[str, Thumbs]
    """Ratings by the id of an analysis."""
    with_samples: bool
    failed: int = 0
    samples: int = 0
    decisions: Counter[Decision] = field(default_factory=Counter)
    yields: _YieldSums = field(default_factory=_YieldSums)
    sources: dict[str, _SourceSums] = field(default_factory=dict)
    days: dict[date, _DaySums] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    usd: float = 0.0
    usd_left_out: float = 0.0
    agreement: Agreement | None = None
    feedback: dict[Decision, Thumbs] = field(default_factory=dict)

    def add(self, counted: Counted) -> None:
        """Count one analysis: a failed one as failed, one that still runs not at all."""
        tally = counted.tally
        if tally is None:
            self.failed += counted.state == "failed"
            return
        self.samples += tally.sample
        if tally.sample and not self.with_samples:
            return
        self.decisions[tally.decision] += 1
        if not tally.own_items:
            self.yields.add(tally)
        day = self.days.setdefault(counted.created_at.date(), _DaySums())
        day.runs += 1
        for name, source in tally.sources.items():
            self.sources.setdefault(name, _SourceSums()).add(source)
            self.agreement = sum_of_agreements((self.agreement, source.agreement))
            if source.outcome.answered:
                day.yields.setdefault(name, _YieldSums()).add(source)
        thumbs = self.thumbs.get(counted.id, _NO_THUMBS)
        self.feedback[tally.decision] = self.feedback.get(tally.decision, _NO_THUMBS) + thumbs
        comparable, calls, pairs = tally.comparable, tally.cost.upstream_calls, tally.support.pairs
        priced = comparable and tally.price is not None
        if priced:
            self.usd += tally.price or 0.0
        else:
            self.usd_left_out += tally.price or 0.0
        self.counts.update(
            judged=tally.judged, relevant=tally.relevant, kept=tally.items, cited=tally.cited,
            checked=bool(pairs), pairs=pairs, supported=tally.support.supported,
            own_items=tally.own_items, unanswered=tally.unanswered, calls=calls,
            comparable=comparable, calls_compared=calls * comparable,
            priced=priced, unpriced=comparable and not priced, kept_priced=tally.items * priced,
        )  # fmt: skip

    def stats(self, since: datetime | None, now: datetime, *, cut: bool) -> Stats:
        """The figures as they are published."""
        counts = self.counts
        first = min(self.days, default=now.date())
        weekly = (now.date() - first).days > DAYS_BY_DAY
        periods: dict[date, _DaySums] = {}
        for day in sorted(self.days):
            start = day - timedelta(days=day.weekday() if weekly else 0)
            periods.setdefault(start, _DaySums()).join(self.days[day])
        return Stats(
            since=since,
            unit="week" if weekly else "day",
            runs=self.decisions.total(),
            failed=self.failed,
            own_items=counts["own_items"],
            unanswered=counts["unanswered"],
            samples=self.samples,
            with_samples=self.with_samples,
            cut=cut,
            decisions=dict(self.decisions.most_common()),
            yields=self.yields.stats(),
            sources={name: self.sources[name].stats() for name in sorted(self.sources)},
            periods=tuple(
                StatsPeriod(
                    start=start,
                    runs=period.runs,
                    yields={name: period.yields[name].stats() for name in sorted(period.yields)},
                )
                for start, period in periods.items()
            ),
            items=ItemStats(
                judged=counts["judged"],
                relevant=counts["relevant"],
                kept=counts["kept"],
                cited=counts["cited"],
            ),
            support=SupportStats(
                reports=counts["checked"],
                pairs=counts["pairs"],
                supported=counts["supported"],
                rate=_ratio(counts["supported"], counts["pairs"]),
            ),
            upstream_calls=counts["calls"],
            calls_per_analysis=_ratio(counts["calls_compared"], counts["comparable"]),
            cost=CostStats(
                usd=round(self.usd, 6),
                left_out=round(self.usd_left_out, 6),
                priced=counts["priced"],
                unpriced=counts["unpriced"],
                per_analysis=_ratio(self.usd, counts["priced"]),
                per_kept_item=_ratio(self.usd, counts["kept_priced"]),
            ),
            agreement=_agreement_stats(self.agreement),
            feedback=_thumb_stats(self.feedback.values()),
            feedback_by_decision={
                decision: _thumb_stats([thumbs]) for decision, thumbs in self.feedback.items() if thumbs != _NO_THUMBS
            },
        )


def _agreement_stats(total: Agreement | None) -> AgreementStats | None:
    if total is None:
        return None
    saved = total.saved
    return AgreementStats(
        judged=total.judged, local=total.local, saved_calls=saved.requests,
        saved_tokens=saved.input_tokens + saved.output_tokens,
        saved_usd=None if saved.usd is None else round(saved.usd, 6),
    )  # fmt: skip


def _thumb_stats(thumbs: Iterable[Thumbs]) -> ThumbStats:
    total = sum(thumbs, _NO_THUMBS)
    return ThumbStats(up=total.up, down=total.down, share=_ratio(total.up, total.up + total.down))
