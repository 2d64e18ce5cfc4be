"""What Langfuse accepts in a widget and then cannot draw, or draws without a part of it.

Its API checks names and types; these are left to whoever sends a widget.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_MANY = frozenset(
    "userId sessionId traceId observationId id experimentId experimentName experimentDatasetId "
    "experimentItemId".split()
)
"""Dimensions with a value per person or trace: never over time, else only with limit and sort."""
_HIDDEN = frozenset({"id", "traceId"})
"""Dimensions of observations that no chart shows."""
_FILTER_TYPES = {
    "metadata": "stringObject",
    "tags": "arrayOptions",
    "toolNames": "arrayOptions",
    "calledToolNames": "arrayOptions",
}
"""Columns that take one type of filter; with another one the chart ends in an error."""
_OF_ROOT = frozenset({"traceName", "tags", "traceRelease", "traceVersion"})
"""Filters that scores do not have themselves: since version 4 some scores vanish under them."""


def undrawable(widget: Mapping[str, Any]) -> Iterator[str]:
    """Why this widget, as it is sent, would not show what it says; nothing when it does."""
    chart, config = widget["chartType"], widget["chartConfig"]
    over_time = chart.endswith("_TIME_SERIES")
    fields = [dimension["field"] for dimension in widget["dimensions"]]
    columns = [f"{metric['agg']}_{metric['measure']}" for metric in widget["metrics"]]
    sort = config.get("defaultSort", {}).get("column")
    for field in fields:
        if widget["view"] == "observations" and field in _HIDDEN:
            yield f"`{field}` is a hidden dimension"
        elif field in _MANY and (over_time or not (sort and config.get("row_limit"))):
            yield f"`{field}` needs a chart without time, with a row limit and a sort"
    if len(columns) > 1 and chart != "PIVOT_TABLE":
        yield "only a PIVOT_TABLE shows a second metric"
    if sort is not None and sort not in {*columns, *fields}:
        yield f"`{sort}` is no column of it to sort by"
    for condition in widget["filters"]:
        column = condition["column"]
        wanted = _FILTER_TYPES.get(column, condition["type"])
        if condition["type"] not in {wanted, "null"}:
            yield f"a filter on `{column}` has type `{wanted}`"
        if column == "metadata" and not condition.get("key"):
            yield "a filter on `metadata` names a key"
        if column in _OF_ROOT and widget["view"] != "observations":
            yield f"scores vanish under a filter on `{column}`"
