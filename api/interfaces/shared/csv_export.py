"""Reports and comparisons as CSV, in which no cell is a formula to a spreadsheet."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

from api.core.text import clean, cut
from api.features.comparisons.comparison import Comparison
from api.interfaces.shared.comparison_table import table, voice_table
from api.interfaces.shared.presentation import openable
from api.reports.report import DroppedItem, KeptItem, Report

_COLUMNS = (
    "rank", "key", "source", "title", "url", "created_at", "place", "score", "relevance",
    "low_relevance", "sentiment", "dropped_by", "explanation", "reason", "body", "credit", "thread",
    "stars", "engagement", "comments", "aspects", "findings",
)  # fmt: skip
_MARK = "\ufeff"  # without it Excel takes UTF-8 for the encoding of the machine
_LONGEST_CELL = 30_000  # characters of all comments of an item; a cell of Excel holds 32,767
# What a spreadsheet takes for the beginning of something to run.
_FORMULA = tuple("=+-@＝＋－＠\t\r\n|%")
# where the list separator is `;`, a quoted cell of a table with commas is split at it, and at the ends of lines;
# a match begins at the last of several, so that a run of them is read once
_INNER_FORMULA = re.compile(r"([;\t\n](?:[\"']|[^\S\t\n])*+)(?=[=@＝＠|%]|[+\-＋－][\w(=.])")


def report_csv(report: Report) -> str:
    """One row per item, kept ones first by rank; no cell is a formula to a spreadsheet."""
    report = openable(report)
    out = io.StringIO(_MARK)
    out.seek(0, io.SEEK_END)
    rows = csv.writer(out)
    rows.writerow(_COLUMNS)
    listed: tuple[KeptItem | DroppedItem, ...] = (*report.items, *report.dropped)
    for item in listed:
        values = item.model_dump(mode="json", include=set(_COLUMNS))
        if isinstance(item, KeptItem):
            values |= _joined(item)
        cited = [str(number) for number, finding in enumerate(report.findings, 1) if item.key in finding.cites]
        values |= {"aspects": ", ".join(item.aspects), "findings": ", ".join(cited)}
        rows.writerow([cell(values.get(column)) for column in _COLUMNS])
    return out.getvalue()


def _joined(item: KeptItem) -> dict[str, object]:
    """Measures and comments of a kept item, each in one cell; a measure that is not known is left out."""
    measures = (f"{name} {count:g}" for name, count in item.engagement.items() if count is not None)
    return {
        "stars": item.engagement.get("stars"),
        "engagement": ", ".join(measures),
        "comments": cut("\n\n".join(comment.body for comment in item.comments), _LONGEST_CELL),
    }


def cell(value: object) -> object:
    """Numbers as they are; text that a spreadsheet would run gets an apostrophe before it."""
    if isinstance(value, (bool, int, float)):
        return value
    raw = "" if value is None else str(value)
    text = clean(raw)
    runs = raw.startswith(_FORMULA) or text.lstrip("\"' ").startswith(_FORMULA)
    text = _INNER_FORMULA.sub(r"\1'", text)
    return f"'{text}" if runs and text else text


def comparison_csv(comparison: Comparison) -> str:
    """The table; no cell is a formula to a spreadsheet."""
    out = io.StringIO(_MARK)
    out.seek(0, io.SEEK_END)
    rows = csv.writer(out)
    rows.writerow(["", *(cell(each.query) for each in comparison.products)])
    shares = (replace(row, name=f"share of voice, {row.name}") for row in voice_table(comparison))
    rows.writerows([cell(part) for part in (row.name, *row.cells)] for row in (*table(comparison), *shares))
    return out.getvalue()
