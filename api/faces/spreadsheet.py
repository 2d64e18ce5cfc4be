"""A report as CSV that runs nothing: one row per item."""

from __future__ import annotations

import csv
import io

from api.faces.opening import openable
from api.services.reporting.report import Report
from api.services.text import clean

_COLUMNS = (
    "rank", "key", "source", "title", "url", "created_at", "place", "score", "relevance",
    "low_relevance", "sentiment", "dropped_by", "explanation", "reason", "body", "credit", "thread",
)  # fmt: skip
_FORMULA = tuple("=+-@＝＋－＠\t\r\n|%")
"""What a spreadsheet takes for the beginning of something to run."""


def report_csv(report: Report) -> str:
    """One row per item, kept ones first by rank; no cell is a formula to a spreadsheet."""
    report = openable(report)
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
