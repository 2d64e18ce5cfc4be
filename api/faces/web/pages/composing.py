"""What the templates of a report are given, on the page and in a saved file alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.faces import outline
from api.faces.opening import openable
from api.faces.web.charts import charts, tone
from api.services.comparing.comparison import Comparison
from api.services.reporting.report import Report


def report_values(report: Report) -> dict[str, Any]:
    """Of a report that can be opened alone: what is numbered, drawn and cited."""
    values = evidence_values(report)
    return {**values, "tone": tone(values["report"]), "charts": charts(values["report"])}


def evidence_values(report: Report) -> dict[str, Any]:
    """The same without pictures."""
    report = openable(report)
    return {
        "report": report,
        "numbers": outline.numbered(report.items),
        "items": {item.key: item for item in report.items},
        "passages": _cited_words(report),
    }


def comparison_values(comparison: Comparison) -> dict[str, Any]:
    """Of a comparison that can be opened alone."""
    comparison = openable(comparison)
    words: dict[str, list[str]] = {}
    for finding in comparison.findings:
        for side in finding.sides:
            for passage in side.evidence:
                words.setdefault(passage.key, []).append(passage.passage)
    return {
        "comparison": comparison,
        "numbers": outline.numbered(comparison.items),
        "items": {item.key: item for item in comparison.items},
        "passages": words,
    }


def _cited_words(report: Report) -> Mapping[str, list[str]]:
    """The words that findings and quotes take from each item they cite, by its key."""
    words: dict[str, list[str]] = {key: [] for each in report.findings for key in each.cites}
    for finding in report.findings:
        for passage in finding.evidence:
            words.setdefault(passage.key, []).append(passage.passage)
    for quote in report.quotes:
        words.setdefault(quote.key, []).append(quote.text)
    return words
