"""A report or comparison as one file: nothing is loaded, nothing runs, nothing else is needed."""

from __future__ import annotations

from typing import Any

from api.faces import outline
from api.faces.web.pages.composing import comparison_values, report_values
from api.faces.web.pages.rendering import rendered, saved_policy, style
from api.services.comparing.comparison import Comparison
from api.services.reporting.report import Report


def report_html(report: Report) -> str:
    """The whole page."""
    values = report_values(report)
    title = outline.heading(report) or "Listenpost"
    return rendered("export_report.html", **_file(title), **values)


def comparison_html(comparison: Comparison) -> str:
    """The whole page of a comparison."""
    return rendered("export_comparison.html", **_file(""), **comparison_values(comparison))


def _file(title: str) -> dict[str, Any]:
    meta, _, _ = saved_policy().partition("; frame-ancestors")
    return {"title": title, "policy": meta, "style": style()}
