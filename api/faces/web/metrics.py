"""What Prometheus reads: how analyses end, whether the gate works, what upstream was asked."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import generate_latest

from api.services.containment import is_defect
from api.services.reporting.report import Report, SourceReport

_BUCKETS = (0.5, 1, 2, 5, 10, 20, 45, 90, 180)


class Metrics:
    """One app's counters, in a registry of their own."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        """Everything at nought."""
        self._registry = CollectorRegistry()
        self._runs = Counter(
            "listenpost_analyses", "Analyses that ended, by decision or `failed`.",
            ["decision"], registry=self._registry,
        )  # fmt: skip
        self._open = Counter(
            "listenpost_gate_fail_open", "Batches that passed unjudged, by source and reason.",
            ["source", "reason"], registry=self._registry,
        )  # fmt: skip
        self._outcomes = Counter(
            "listenpost_sources", "Sources asked, by outcome; `defect`: this program stumbled.",
            ["source", "outcome"], registry=self._registry,
        )  # fmt: skip
        self._calls = Counter(
            "listenpost_upstream_calls", "Requests sent to sources.",
            ["source"], registry=self._registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "listenpost_analysis_seconds", "From question to report.",
            ["depth"], buckets=_BUCKETS, registry=self._registry,
        )  # fmt: skip

    def ended(self, report: Report | None, reason: str) -> None:
        """Count one analysis, finished or not."""
        if report is None:
            self._runs.labels("failed").inc()
            return
        self._runs.labels(str(report.decision)).inc()
        if (total := report.timings_ms.total) is not None:
            self._seconds.labels(report.depth).observe(total / 1000)
        for source in report.sources.values():
            self.fetched(source)

    def fetched(self, source: SourceReport) -> None:
        """Count one source's answer."""
        outcome = "defect" if is_defect(source.reason) else str(source.outcome)
        self._outcomes.labels(source.source, outcome).inc()
        self._calls.labels(source.source).inc(source.upstream_calls)
        for attempt in source.attempts:
            if attempt.status == "degraded":
                self._open.labels(source.source, attempt.reason or "unknown").inc()

    def page(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self._registry)
