"""A stored report in other formats: markdown, one safe HTML page, CSV that runs nothing."""

from __future__ import annotations

import csv
import io

from fastapi.responses import Response

from api.faces.markdown import report_markdown
from api.faces.web.page import POLICY, report_html
from api.faces.web.schemas import Format
from api.services.reporting.report import Report
from api.services.text import clean

_MEDIA: dict[str, Format] = {
    "application/json": "json",
    "text/html": "html",
    "text/markdown": "markdown",
    "text/csv": "csv",
}
_COLUMNS = (
    "rank", "key", "source", "title", "url", "created_at", "place", "score", "relevance",
    "low_relevance", "sentiment", "dropped_by", "explanation", "reason", "body",
)  # fmt: skip
_FORMULA = tuple("=+-@＝＋－＠\t\r\n|%")
_HTML_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def preferred(accept: str) -> Format:
    """The first format in an `Accept` header that there is; JSON without one."""
    for part in accept.split(","):
        media = part.partition(";")[0].strip().lower()
        if media in _MEDIA:
            return _MEDIA[media]
    return "json"


def answer(report: Report, form: Format) -> Response:
    """The report as HTML, markdown or CSV."""
    if form == "html":
        return Response(report_html(report), 200, _HTML_HEADERS, "text/html")
    if form == "markdown":
        return Response(report_markdown(report, True), media_type="text/markdown")
    name = "".join(letter for letter in report.id if letter.isalnum())
    attached = {"Content-Disposition": f'attachment; filename="analysis-{name}.csv"'}
    return Response(report_csv(report), 200, attached, "text/csv")


def report_csv(report: Report) -> str:
    """One row per item, kept ones first by rank; no cell is a formula to a spreadsheet."""
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(_COLUMNS)
    for item in (*report.items, *report.dropped):
        values = item.model_dump(mode="json", include=set(_COLUMNS))
        rows.writerow([cell(values.get(column)) for column in _COLUMNS])
    return out.getvalue()


def cell(value: object) -> object:
    """Numbers as they are; text that a spreadsheet would run gets an apostrophe before it."""
    if isinstance(value, (bool, int, float)):
        return value
    raw = "" if value is None else str(value)
    text = clean(raw)
    runs = raw.startswith(_FORMULA) or text.lstrip("\"' ").startswith(_FORMULA)
    return f"'{text}" if runs and text else text
