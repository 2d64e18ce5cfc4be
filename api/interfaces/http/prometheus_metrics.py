"""What Prometheus reads: how analyses end, whether the gate works, what upstream was asked.

Counted as in `listenpost stats`: what an answer counts for is defined in its tally.
"""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import generate_latest

from api.core.domain import Decision
from api.core.work import is_defect
from api.features.analyses.feedback import Given
from api.features.analyses.store_ports import SourceTally, Tally
from api.reports.report import Report, SourceReport
from api.sources import ALL_SOURCES

_SECONDS = (0.5, 1, 2, 5, 10, 20, 45, 90, 180)
_SHARES = tuple(tenth / 10 for tenth in range(11))


class Metrics:
    """Counters of one app, in their own registry."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self, with_samples: bool = False) -> None:
        """Everything at nought; `with_samples` where all is sample data, else it is apart."""
        self._with_samples = with_samples
        self._registry = CollectorRegistry()

        def counter(name: str, says: str, *labels: str) -> Counter:
            return Counter(f"listenpost_{name}", says, labels, registry=self._registry)

        def histogram(name: str, says: str, buckets: Sequence[float], *labels: str) -> Histogram:
            return Histogram(f"listenpost_{name}", says, labels, buckets=buckets, registry=self._registry)

        self._runs = counter("analyses", "Analyses that ended, by decision or `failed`.", "decision")
        self._samples = counter("sample_analyses", "Analyses of sample data, left out elsewhere.")
        self._seconds = histogram("analysis_seconds", "From question to report.", _SECONDS, "depth")
        self._run_yield = histogram(
            "run_yield", "Relevant over judged items of one analysis, unless degraded.", _SHARES
        )
        self._kept = counter("items_kept", "Items that analyses kept in the end.")
        self._cited = counter("items_cited", "Items that findings rest on.")
        self._pairs = counter("support_pairs", "Sentences checked against a passage.")
        self._supported = counter("support_supported", "Of these, those that the passage says.")
        self._own = counter("own_items_analyses", "Analyses of own items, in no mean.")
        self._unanswered = counter("unanswered_analyses", "Analyses that no source answered.")
        self._usd = counter("cost_usd", "USD that priced analyses cost.")
        self._priced = counter("priced_analyses", "Analyses that a source answered, price known.")
        self._priced_kept = counter("priced_items_kept", "Items that priced analyses kept.")
        self._unpriced = counter("unpriced_analyses", "Analyses with a price that is unknown.")
        self._outcomes = counter(
            "sources", "Sources asked, by outcome; `defect`: this program stumbled.",
            "source", "outcome",
        )  # fmt: skip
        self._answers = counter("answers", "Sources asked that could answer.", "source")
        self._judged = counter("items_judged", "Items with a sound verdict.", "source")
        self._relevant = counter("items_relevant", "Of these, those about the question.", "source")
        self._yield = histogram(
            "relevance_yield", "Relevant over judged items of one answer, unless degraded.",
            _SHARES, "source",
        )  # fmt: skip
        self._degraded = counter("degraded_answers", "Answers that passed unjudged.", "source")
        self._open = counter(
            "gate_fail_open", "Answers with items that went unjudged, by first reason.",
            "source", "reason",
        )  # fmt: skip
        self._refetches = counter("refetches", "Answers with a second, wider fetch.", "source")
        self._gain = counter("refetch_gain", "Relevant items only it brought.", "source")
        self._calls = counter("upstream_calls", "Requests sent to sources.", "source")
        self._feedback = counter("feedback", "Thumbs given or turned, by the report's decision.", "decision", "rating")
        # Prometheus sees no increase in a series that begins at 1, and alerts ask for the first one
        for decision in ("failed", *map(str, Decision)):
            self._runs.labels(decision)
        for source in ALL_SOURCES:
            self._outcomes.labels(source, "defect")

    def ended(self, report: Report | None, reason: str) -> None:
        """Count one analysis, finished or not."""
        if report is None:
            self._runs.labels("failed").inc()
            return
        if report.sample and not self._with_samples:
            self._samples.inc()
            return
        tally = Tally.of(report)
        self._runs.labels(str(tally.decision)).inc()
        if (total := report.timings_ms.total) is not None:
            self._seconds.labels(report.depth).observe(total / 1000)
        if tally.judged and not tally.degraded and not tally.own_items:
            self._run_yield.observe(tally.relevant / tally.judged)
        self._kept.inc(tally.items)
        self._cited.inc(tally.cited)
        self._pairs.inc(tally.support.pairs)
        self._supported.inc(tally.support.supported)
        self._own.inc(tally.own_items)
        self._unanswered.inc(tally.unanswered)
        if tally.comparable and tally.price is None:
            self._unpriced.inc()
        elif tally.comparable:
            self._usd.inc(tally.price or 0.0)
            self._priced.inc()
            self._priced_kept.inc(tally.items)
        for source in report.sources.values():
            self.fetched(source)

    def fetched(self, answer: SourceReport) -> None:
        """Count the answer of one source, of an analysis or of a fetch by itself."""
        tally, name = SourceTally.model_validate(answer, from_attributes=True), answer.source
        self._outcomes.labels(name, "defect" if is_defect(answer.reason) else tally.outcome).inc()
        self._calls.labels(name).inc(tally.upstream_calls)
        if not tally.outcome.answered:
            return
        self._answers.labels(name).inc()
        self._judged.labels(name).inc(tally.judged)
        self._relevant.labels(name).inc(tally.relevant)
        if tally.judged:
            self._yield.labels(name).observe(tally.relevant / tally.judged)
        self._degraded.labels(name).inc(tally.degraded)
        if tally.open_reason is not None:
            self._open.labels(name, tally.open_reason).inc()
        self._refetches.labels(name).inc(tally.refetched)
        self._gain.labels(name).inc(tally.refetch_gain)

    def rated(self, given: Given) -> None:
        """Count one thumb, unless it is of sample data or was given before."""
        if given.repeated or (given.sample and not self._with_samples):
            return
        self._feedback.labels(given.decision, given.feedback.rating).inc()

    def page(self) -> bytes:
        """All counters in Prometheus' text format."""
        return generate_latest(self._registry)
