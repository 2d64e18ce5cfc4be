"""A stored report in the format that a client prefers."""

from __future__ import annotations

from fastapi.responses import Response

from api.faces.markdown import report_markdown
from api.faces.spreadsheet import report_csv
from api.faces.web.page import POLICY, report_html
from api.faces.web.schemas import Format
from api.services.reporting.report import Report

_MEDIA: dict[str, Format] = {
    "application/json": "json",
    "text/html": "html",
    "text/markdown": "markdown",
    "text/csv": "csv",
}
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
