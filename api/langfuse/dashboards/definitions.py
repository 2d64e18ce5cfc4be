"""What a Langfuse project should have, read from `definitions/*.toml`, as the API takes it.

Names are not unique in Langfuse and its ids are generated, so descriptions of ours have a mark:
`listenpost:gate.yield`. `undrawable` finds what the API accepts and charts cannot draw.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Any

from api.core.prompts import NAMES, Prompt, packaged

DASHBOARDS = ("gate", "reports")
LABEL = "listenpost"  # of the version of a prompt that is as the package has it
COMMITTED = "listenpost: as in the package"  # the commit message of versions that are ours
_COLUMNS = 12
# `listenpost:gate.yield` as a word of its own in a description.
_MARK = re.compile(r"(?<!\S)listenpost:([a-z]+\.[a-z_]+)(?!\S)")


class Kind(StrEnum):
    """What a part is; the value is what people call it."""

    SCORE = "score config"
    DATASET = "dataset"
    WIDGET = "widget"
    DASHBOARD = "dashboard"


@dataclass(frozen=True, slots=True)
class Definition:
    """One thing that should be there."""

    kind: Kind
    mark: str  # `gate.yield`; its description ends in `listenpost:gate.yield`
    body: Mapping[str, Any]  # as Langfuse takes it; a placement's `widgetId` is the widget's mark

    @property
    def name(self) -> str:
        """As people see it."""
        return str(self.body["name"])


@dataclass(frozen=True, slots=True)
class Definitions:
    """Everything that should be there."""

    parts: tuple[Definition, ...]
    """Score configs, datasets, then widgets, then the dashboards that hold them."""
    prompts: tuple[Prompt, ...]


def load() -> Definitions:
    """The definitions of the package."""
    dashboards = [_read(name) for name in DASHBOARDS]
    return Definitions(
        parts=(
            *(_score(row) for row in _read("scores")["scores"]),
            *(_dataset(row) for row in _read("datasets")["datasets"]),
            *(
                Definition(
                    Kind.WIDGET, f"{board['key']}.{row['key']}", widget_body(board["key"], row)
                )
                for board in dashboards
                for row in board["widgets"]
            ),
            *(_dashboard(board) for board in dashboards),
        ),
        prompts=tuple(map(packaged, NAMES)),
    )


def mark_of(description: object) -> str | None:
    """The mark in a description; None where there is none: then it is not ours."""
    match = _MARK.search(description) if isinstance(description, str) else None
    return match and match[1]


def widget_body(board: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A widget of a definition file as Langfuse takes it."""
    filters = [*row.get("filters", [])]
    if "scores" in row:
        filters.insert(
            0, _filter("name", "stringOptions", operator="any of", value=[*row["scores"]])
        )
    for key, value in row.get("metadata", {}).items():
        filters.append(_filter("metadata", "stringObject", key=key, operator="=", value=value))
    chart: dict[str, Any] = {"type": row["chart"]}
    if "row_limit" in row:
        chart["row_limit"] = row["row_limit"]
    if "sort" in row:
        chart["defaultSort"] = {"column": row["sort"], "order": "DESC"}
    metrics = (metric.split() for metric in row["metrics"])
    return {
        "name": row["name"],
        "description": _marked(row["description"], f"{board}.{row['key']}"),
        "view": row["view"],
        "dimensions": [{"field": field} for field in row.get("dimensions", [])],
        "metrics": [{"measure": measure, "agg": agg} for agg, measure in metrics],
        "filters": filters,
        "chartType": row["chart"],
        "chartConfig": chart,
    }


def flowed(board: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Placements in rows of the grid, from left to right; a row is as high as its highest."""
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


def _score(row: Mapping[str, Any]) -> Definition:
    mark = f"score.{row['name']}"
    limits: Sequence[float] = row.get("range", ())
    body: dict[str, Any] = {
        "name": row["name"],
        "dataType": row["type"],
        "description": _marked(row["description"], mark),
        **dict(zip(("minValue", "maxValue"), limits, strict=False)),
    }
    if "values" in row:
        labels = enumerate(row["values"])
        body["categories"] = [{"label": label, "value": number} for number, label in labels]
    return Definition(Kind.SCORE, mark, body)


def _dataset(row: Mapping[str, Any]) -> Definition:
    mark = f"dataset.{row['key']}"
    body = {"name": row["name"], "description": _marked(row["description"], mark)}
    return Definition(Kind.DATASET, mark, body)


def _dashboard(board: Mapping[str, Any]) -> Definition:
    mark = f"dashboard.{board['key']}"
    return Definition(
        Kind.DASHBOARD,
        mark,
        {
            "name": board["name"],
            "description": _marked(board["description"], mark),
            "definition": {"widgets": [*flowed(board["key"], board["widgets"])]},
        },
    )


def _filter(column: str, kind: str, **rest: Any) -> dict[str, Any]:
    return {"column": column, "type": kind, **rest}


def _marked(description: str, mark: str) -> str:
    return f"{description.strip()}\n\nlistenpost:{mark}"


# Dimensions with a value per person or trace: never over time, else only with limit and sort.
_MANY = frozenset(
    "userId sessionId traceId observationId id experimentId experimentName experimentDatasetId "
    "experimentItemId".split()
)
# Dimensions of observations that no chart shows.
_HIDDEN = frozenset({"id", "traceId"})
# Columns that take one type of filter; with another one the chart ends in an error.
_FILTER_TYPES = {
    "metadata": "stringObject",
    "tags": "arrayOptions",
    "toolNames": "arrayOptions",
    "calledToolNames": "arrayOptions",
}
# Filters that scores do not have themselves: since version 4 some scores vanish under them.
_OF_ROOT = frozenset({"traceName", "tags", "traceRelease", "traceVersion"})


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
