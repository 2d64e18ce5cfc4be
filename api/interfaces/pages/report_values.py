"""Values for the templates of a report, on the page and in a saved file; and the files that can be downloaded.

A saved file loads and runs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from fastapi.responses import Response

from api.errors import NotFound
from api.features.comparisons.comparison import Comparison
from api.interfaces.http.schemas import Format
from api.interfaces.pages.comparison_charts import share_figure, voice_figure
from api.interfaces.pages.report_charts import charts, process_charts
from api.interfaces.pages.screen import PRIVATE
from api.interfaces.pages.templates_rendering import rendered, saved_policy, style
from api.interfaces.shared import claim_layout, presentation
from api.interfaces.shared.presentation import openable
from api.reports.report import Report


def report_values(report: Report) -> dict[str, Any]:
    """Template values of a report that opens as a file: numbered items, charts and citations."""
    values = evidence_values(report)
    report = values["report"]
    return {
        **values,
        "charts": charts(report),
        "process_charts": process_charts(report),
        "listed": claim_layout.cited(report),
        "rest": claim_layout.uncited(report),
    }


def _tells_apart(report: Report) -> bool:
    """Whether the judge's relevance tells the listed posts apart: no value is that of most of them."""
    ((_, most),) = Counter(item.relevance for item in report.items).most_common(1) or [(None, 0)]
    return 2 * most < len(report.items)


def evidence_values(report: Report) -> dict[str, Any]:
    """Values of the evidence template: those of a report, without charts."""
    report = openable(report)
    return {
        "report": report,
        "numbers": presentation.numbered(report.items),
        "items": {item.key: item for item in report.items},
        "passages": _cited_words(report),
        "ranked": _tells_apart(report),
    }


def comparison_values(comparison: Comparison) -> dict[str, Any]:
    """Template values of a comparison that opens as a file."""
    comparison = openable(comparison)
    words: dict[str, list[str]] = {}
    for finding in comparison.findings:
        for side in finding.sides:
            for passage in side.evidence:
                words.setdefault(passage.key, []).append(passage.passage)
    return {
        "comparison": comparison,
        "numbers": presentation.numbered(comparison.items),
        "items": {item.key: item for item in comparison.items},
        "passages": words,
        "share_figure": share_figure(comparison),
        "voice_figure": voice_figure(comparison),
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


def report_html(report: Report) -> str:
    """The report as one HTML file."""
    values = report_values(report)
    title = presentation.heading(report) or "Listenpost"
    return rendered("export_report.html", "", **_file(title), **values)


def comparison_html(comparison: Comparison) -> str:
    """The comparison as one HTML file."""
    return rendered("export_comparison.html", "", **_file(""), **comparison_values(comparison))


def _file(title: str) -> dict[str, Any]:
    meta, _, _ = saved_policy().partition("; frame-ancestors")
    return {"title": title, "policy": meta, "style": style()}


# How a file of each format ends.
_ENDINGS: dict[Format, str] = {"html": "html", "markdown": "md", "csv": "csv", "json": "json"}


def kind_of(form: str) -> Format:
    """The format of that name.

    Raises:
        NotFound: there is none.
    """
    for kind in _ENDINGS:
        if kind == form:
            return kind
    raise NotFound("This can be taken along as HTML, Markdown, CSV or JSON.")


def as_file(answer: Response, name: str, kind: Format) -> Response:
    """The answer as a file, under this name and the ending of its format."""
    filename = f"{name}.{_ENDINGS[kind]}"
    answer.headers["Cache-Control"] = PRIVATE
    answer.headers["Content-Disposition"] = f'attachment; filename="{filename}"'
    return answer
