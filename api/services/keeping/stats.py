"""Statistics over the analyses that a tenant keeps, as every door answers them.

What a dashboard shows, without one. An answer whose gate failed open counts as such, and never in a
yield: all its items passed unjudged. What is unknown, or of nothing, is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Literal

from api.services.reporting.report import Share, Timestamp
from api.services.schemas import Decision, Outcome, Published


class YieldStats(Published):
    """How much of what was judged was about the question."""

    runs: int
    """With a sound verdict on at least one item: what `mean` is over."""
    judged: int
    relevant: int
    pooled: Share | None
    """`relevant` / `judged`: an item weighs as much as any other."""
    mean: Share | None
    """Of the yields of `runs`: a run weighs as much as any other."""
    degraded: int
    """Runs that are in none of these figures, since their gate failed open."""


class SourceStats(Published):
    """One source in all runs that asked it."""

    runs: int
    """That asked it."""
    outcomes: Mapping[Outcome, int]
    answered: int
    """What the rates are over: runs in which it could be asked and answered."""
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
    upstream_calls: int


class StatsPeriod(Published):
    """A day or week (from Monday), UTC, in which analyses were begun."""

    start: date
    runs: int
    yields: Mapping[str, YieldStats]
    """By source."""


class ItemStats(Published):
    """What became of items, over all runs."""

    judged: int
    relevant: int
    """Past the gate."""
    kept: int
    """In the end: past grades and copies too."""
    cited: int
    """By findings."""


class SupportStats(Published):
    """Passages that say what their sentence says, of those that were checked."""

    reports: int
    """With a check."""
    pairs: int
    supported: int
    rate: Share | None


class CostStats(Published):
    """What analyses cost that a source answered and whose price is known."""

    usd: float
    left_out: float
    """USD of the others: those of own items, and those that no source answered."""
    priced: int
    """Analyses in these figures."""
    unpriced: int
    """Analyses left out, since a model's price is unknown."""
    per_analysis: float | None
    per_kept_item: float | None


class ThumbStats(Published):
    """What people thought: of reports, findings and items together."""

    up: int
    down: int
    share: Share | None
    """`up` of both."""


class Stats(Published):
    """Figures over the analyses of one tenant."""

    since: Timestamp | None
    """None: from the first on."""
    unit: Literal["day", "week"]
    """Of `periods`: days up to 31 of them, else weeks."""
    runs: int
    """Analyses that ended with an answer, of every decision."""
    failed: int
    own_items: int
    """Analyses of a person's own items; in no mean over analyses, and in no yield of runs."""
    unanswered: int
    """Analyses that no source answered; in no mean over analyses."""
    samples: int
    """Analyses of made-up sample data; they are in no other figure unless `with_samples`."""
    with_samples: bool
    cut: bool
    """There are more than can be counted: these are the newest."""
    decisions: Mapping[Decision, int]
    yields: YieldStats
    """Of whole runs, over all their sources; one with a degraded source is degraded."""
    sources: Mapping[str, SourceStats]
    periods: tuple[StatsPeriod, ...]
    """Those in which there were runs, in order."""
    items: ItemStats
    support: SupportStats
    upstream_calls: int
    calls_per_analysis: float | None
    """Over those that a source answered."""
    cost: CostStats
    feedback: ThumbStats
    feedback_by_decision: Mapping[Decision, ThumbStats]
