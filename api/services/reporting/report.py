"""A finished answer as one JSON object, the same for every door; its shape is versioned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from api.services.evidence.pipeline import Evidence
from api.services.reporting.citing import Drafted
from api.services.reporting.dossier import gate_line
from api.services.schemas import Assessed, Comment, Decision, Finding, Gathered, Quote, Usage
from api.services.text import clean

VERSION = 1
"""Of the JSON of `analyze`; raised when a field changes meaning."""


@dataclass(frozen=True, slots=True)
class Report:
    """What one question led to, before it is written as JSON."""

    id: str
    evidence: Evidence
    decision: Decision
    rationale: str
    disclaimer: str | None
    explanation: str | None
    drafted: Drafted | None
    suggestions: tuple[str, ...]
    notes: tuple[str, ...]
    usage: Usage
    timings_ms: Mapping[str, int]
    sample: bool
    trace_id: str | None


def report_json(report: Report) -> dict[str, Any]:
    """The `analyze` object of the interface."""
    evidence, drafted = report.evidence, report.drafted
    calls = evidence.crawl.upstream_calls
    return {
        "id": report.id,
        "version": VERSION,
        "query": evidence.scope.question.text,
        "about": evidence.scope.question.about,
        "rewritten_queries": list(evidence.crawl.queries),
        "depth": evidence.scope.depth_name,
        "decision": str(report.decision),
        "decision_rationale": report.rationale,
        "disclaimer": report.disclaimer,
        "explanation_text": report.explanation,
        "total_scored": evidence.counts.total_scored,
        "total_survived": evidence.counts.total_survived,
        "quality_notes": list(report.notes),
        "grading": "on" if evidence.grading else "off",
        "topic": drafted.topic if drafted else evidence.scope.question.text,
        "summary": drafted.summary if drafted else "",
        "findings": [_finding(finding) for finding in drafted.findings] if drafted else [],
        "figures": evidence.figures,
        "quotes": [_quote(quote) for quote in drafted.quotes] if drafted else [],
        "sources": {
            one.source: _gathered(one, report.sample, report.trace_id)
            for one in evidence.crawl.sources
        },
        "coverage": coverage(evidence.crawl.sources),
        "suggestions": list(report.suggestions),
        "items": [item_json(one) for one in evidence.kept],
        "dropped": [dropped_json(one) for one in evidence.dropped],
        "sample": report.sample,
        "cost": _cost(report.usage, calls),
        "timings_ms": dict(report.timings_ms),
        "trace_id": report.trace_id,
        "created_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }


def clarify_json(
    report_id: str, query: str, about: str, depth: str, guidance: str, sample: bool,
    trace_id: str | None,
) -> dict[str, Any]:  # fmt: skip
    """The `analyze` object for a question that is none: guidance, nothing asked, nothing spent."""
    return {
        "id": report_id,
        "version": VERSION,
        "query": clean(query),
        "about": clean(about),
        "rewritten_queries": [],
        "depth": depth,
        "decision": str(Decision.CLARIFY),
        "decision_rationale": "The text names nothing to look for, so nothing was asked.",
        "disclaimer": None,
        "explanation_text": guidance,
        "total_scored": 0,
        "total_survived": 0,
        "quality_notes": [],
        "grading": "off",
        "topic": "",
        "summary": "",
        "findings": [],
        "figures": {},
        "quotes": [],
        "sources": {},
        "coverage": "No source was asked.",
        "suggestions": [],
        "items": [],
        "dropped": [],
        "sample": sample,
        "cost": _cost(Usage(), 0),
        "timings_ms": {},
        "trace_id": trace_id,
        "created_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }


def fetch_json(
    gathered: Gathered,
    kept: tuple[Assessed, ...],
    dropped: tuple[Assessed, ...],
    *,
    sample: bool,
    trace_id: str | None,
) -> dict[str, Any]:
    """The `fetch` object of the interface."""
    return {
        **_gathered(gathered, sample, trace_id),
        "items": [item_json(one) for one in kept],
        "dropped": [dropped_json(one) for one in dropped],
    }


def _gathered(gathered: Gathered, sample: bool, trace_id: str | None) -> dict[str, Any]:
    return {
        "query": gathered.query,
        "source": gathered.source,
        "outcome": str(gathered.outcome),
        "reason": gathered.reason,
        "retry_at": _moment(gathered.retry_at),
        "gate": {
            "status": gathered.status,
            "reason": gathered.gate_reason,
            "model": gathered.model,
        },
        "attempts": [
            {
                "limit": attempt.limit,
                "fetched": attempt.fetched,
                "new": attempt.new,
                "relevant": attempt.relevant,
                "requests": attempt.requests,
                "status": attempt.status,
                "reason": attempt.reason,
            }
            for attempt in gathered.attempts
        ],
        "fetched": gathered.fetched,
        "kept": len(gathered.kept),
        "yield_ratio": gathered.yield_ratio,
        "refetched": gathered.refetched,
        "refetch_gain": gathered.refetch_gain,
        "upstream_calls": gathered.upstream_calls,
        "notes": list(gathered.notes),
        "dropped": [dropped_json(one) for one in gathered.dropped],
        "sample": sample,
        "trace_id": trace_id,
    }


def item_json(one: Assessed) -> dict[str, Any]:
    """A kept item with everything decided about it."""
    item = one.item
    return {
        "key": item.key,
        "id": item.id,
        "source": item.source,
        "title": item.title,
        "body": item.body,
        "url": item.url,
        "created_at": _moment(item.created_at),
        "engagement": dict(item.engagement),
        "place": item.place,
        "places": list(item.places),
        "comments": [_comment(comment) for comment in item.comments],
        "notes": list(item.notes),
        **_decided(one),
    }


def dropped_json(one: Assessed) -> dict[str, Any]:
    """A dropped item: what it was and why it went, in words."""
    return {
        "key": one.item.key,
        "title": one.item.title,
        "url": one.item.url,
        "reason": _why(one),
        **_decided(one),
    }


def _why(one: Assessed) -> str:
    """The stage's reason, and for a grade below the cutoff what the grader said."""
    said = one.grade.explanation if one.grade and one.dropped_by == "cutoff" else ""
    return f"{one.reason}: {said}" if said else one.reason


def _decided(one: Assessed) -> dict[str, Any]:
    grade, judged = one.grade, bool(one.verdict.judge)
    return {
        "verdict": one.verdict.relevant if judged else None,
        "judge": one.verdict.judge or None,
        "probability": one.verdict.probability,
        "score": grade.score if grade else None,
        "explanation": grade.explanation if grade else "",
        "sentiment": grade.sentiment if grade else None,
        "aspects": list(grade.aspects) if grade else [],
        "relevance": one.relevance,
        "defaulted": bool(grade and grade.defaulted),
        "low_relevance": one.low_relevance,
        "disputed": one.verdict.disputed,
        "rank": one.rank,
        "dropped_by": one.dropped_by,
    }


def _comment(comment: Comment) -> dict[str, Any]:
    return {
        "id": comment.id,
        "body": comment.body,
        "url": comment.url,
        "created_at": _moment(comment.created_at),
        "engagement": dict(comment.engagement),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {"text": finding.text, "kind": finding.kind, "cites": list(finding.cites)}


def _quote(quote: Quote) -> dict[str, Any]:
    said = {"text": quote.text, "key": quote.key, "url": quote.url}
    return said if quote.comment_id is None else {**said, "comment_id": quote.comment_id}


def _cost(usage: Usage, upstream_calls: int) -> dict[str, Any]:
    return {
        "usd": None if usage.usd is None else round(usage.usd, 6),
        "tokens": usage.input_tokens + usage.output_tokens,
        "upstream_calls": upstream_calls,
    }


def coverage(sources: tuple[Gathered, ...]) -> str:
    """One sentence per source: asked or not, seen and kept."""
    return " ".join(f"{gate_line(one)}." for one in sources) or "No source was asked."


def _moment(value: datetime | None) -> str | None:
    return None if value is None else f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
