"""What a Langfuse project should have, read from `definitions/*.toml`, as the API takes it.

Names are not unique in Langfuse and its ids are generated, so descriptions of ours have a mark:
`listenpost:gate.yield`. `undrawable` finds what the API accepts and charts cannot draw.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Any

from api.core.prompts import NAMES, Prompt, packaged

DASHBOARDS = ("gate", "reports")
LABEL = "listenpost"  # label of the prompt version with the package's text
COMMITTED = "listenpost: as in the package"  # commit message of our versions
_COLUMNS = 12
# `listenpost:gate.yield` as a separate word in a description
_MARK = re.compile(r"(?<!\S)listenpost:([a-z]+\.[a-z_]+)(?!\S)")


class Kind(StrEnum):
    """Kinds of parts, with their names for people."""

    SCORE = "score config"
    DATASET = "dataset"
    WIDGET = "widget"
    DASHBOARD = "dashboard"


@dataclass(frozen=True, slots=True)
class Definition:
    """One object that the project should contain."""

    kind: Kind
    mark: str  # `gate.yield`; its description ends in `listenpost:gate.yield`
    body: Mapping[str, Any]  # as Langfuse takes it; a placement's `widgetId` is the widget's mark

    @property
    def name(self) -> str:
        """The part's name in Langfuse."""
        return str(self.body["name"])


@dataclass(frozen=True, slots=True)
class Definitions:
    """Everything that the project should have."""

    parts: tuple[Definition, ...]
    """Score configs, datasets, widgets, then the dashboards with these widgets."""
    prompts: tuple[Prompt, ...]


def load() -> Definitions:
    """Read all definitions from the package's TOML files."""
    dashboards = [_read(name) for name in DASHBOARDS]
    return Definitions(
        (
            *(_score(row) for row in _read("scores")["scores"]),
            *(
                _definition(Kind.DATASET, "dataset", row["key"], row)
                for row in _read("datasets")["datasets"]
            ),
            *(
                Definition(
                    Kind.WIDGET, f"{board['key']}.{row['key']}", widget_body(board["key"], row)
                )
                for board in dashboards
                for row in board["widgets"]
            ),
            *(
                _definition(
                    Kind.DASHBOARD, "dashboard", board["key"], board,
                    definition={"widgets": [*flowed(board["key"], board["widgets"])]},
                )
                for board in dashboards
            ),
        ),
        tuple(map(packaged, NAMES)),
    )  # fmt: skip


def mark_of(description: object) -> str | None:
    """The mark in a description; None when there is none, so that another program made the object."""
    match = _MARK.search(description) if isinstance(description, str) else None
    return match and match[1]


def widget_body(board: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A widget of a definition file in the form of the API."""
    filters = [*row.get("filters", [])]
    if "scores" in row:
        names = {"column": "name", "type": "stringOptions", "operator": "any of"}
        filters.insert(0, names | {"value": [*row["scores"]]})
    for key, value in row.get("metadata", {}).items():
        metadata = {"column": "metadata", "type": "stringObject", "operator": "="}
        filters.append(metadata | {"key": key, "value": value})
    chart: dict[str, Any] = {"type": row["chart"]}
    if "row_limit" in row:
        chart["row_limit"] = row["row_limit"]
    if "sort" in row:
        chart["defaultSort"] = {"column": row["sort"], "order": "DESC"}
    metrics = (metric.split() for metric in row["metrics"])
    return {
        "name": row["name"], "description": _marked(row["description"], f"{board}.{row['key']}"),
        "view": row["view"],
        "dimensions": [{"field": field} for field in row.get("dimensions", [])],
        "metrics": [{"measure": measure, "agg": agg} for agg, measure in metrics],
        "filters": filters, "chartType": row["chart"], "chartConfig": chart,
    }  # fmt: skip


def flowed(board: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Placements in rows of the grid, left to right; a row is as high as its highest widget."""
    x = y = height = 0
    for row in rows:
        columns, lines = row["size"]
        if x + columns > _COLUMNS:
            x, y, height = 0, y + height, 0
        mark = f"{board}.{row['key']}"
        yield {
            "type": "widget", "id": f"listenpost-{mark}", "widgetId": mark,
            "x": x, "y": y, "width": columns, "height": lines,
        }  # fmt: skip
        x, height = x + columns, max(height, lines)


def _read(name: str) -> dict[str, Any]:
    file = files("api.langfuse.dashboards").joinpath("definitions", f"{name}.toml")
    return tomllib.loads(file.read_text("utf-8"))


def _definition(kind: Kind, prefix: str, key: str, row: Mapping[str, Any], **body: Any) -> Definition:
    mark = f"{prefix}.{key}"
    named = {"name": row["name"], "description": _marked(row["description"], mark)}
    return Definition(kind, mark, named | body)


def _score(row: Mapping[str, Any]) -> Definition:
    body = dict(zip(("minValue", "maxValue"), row.get("range", ()), strict=False))
    if "values" in row:
        labels = enumerate(row["values"])
        body["categories"] = [{"label": label, "value": number} for number, label in labels]
    return _definition(Kind.SCORE, "score", row["name"], row, dataType=row["type"], **body)


def _marked(description: str, mark: str) -> str:
    return f"{description.strip()}\n\nlistenpost:{mark}"


# dimensions with a value per person or trace: never over time, else only with limit and sort
_MANY = frozenset(
    "userId sessionId traceId observationId id experimentId experimentName experimentDatasetId experimentItemId".split()
)
# Dimensions of observations that no chart shows.
_HIDDEN = frozenset({"id", "traceId"})
# columns with one type of filter; any other ends in an error of the chart
_FILTER_TYPES = {
    "metadata": "stringObject", "tags": "arrayOptions", "toolNames": "arrayOptions",
    "calledToolNames": "arrayOptions",
}  # fmt: skip
# filters on traces: since version 4 they hide some scores
_OF_ROOT = frozenset({"traceName", "tags", "traceRelease", "traceVersion"})


def undrawable(widget: Mapping[str, Any]) -> Iterator[str]:
    """Reasons why a chart of this widget would fail or lack a part."""
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
