"""The sandbox's Langfuse: dashboards, widgets and placements, checked as the server checks them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from api.sandbox.langfuse_shelf import Rejection, Row, Rows, answering, demand, fields_of
from api.sandbox.world import Call, Gateway

_SCORES = (
    "environment name source dataType configId timestampMonth timestampDay traceName tags "
    "traceRelease traceVersion observationName observationModelName observationPromptName "
    "observationPromptVersion userId sessionId id traceId observationId "
)
_DIMENSIONS = {
    "observations": "environment type name level version tags traceName traceRelease traceVersion "
    "providedModelName promptName promptVersion startTimeMonth toolNames calledToolNames userId "
    "sessionId release costType usageType experimentName experimentDatasetId",
    "scores-numeric": f"{_SCORES} value",
    "scores-boolean": f"{_SCORES} booleanValue",
    "scores-categorical": f"{_SCORES} stringValue",
}
_TEXT_MEASURES = frozenset({"traceId", "uniqueUserIds", "uniqueSessionIds"})
_MEASURES = {
    "observations": "count latency streamingLatency timeToFirstToken inputTokens outputTokens "
    "totalTokens tokensPerSecond outputTokensPerSecond inputCost outputCost totalCost countScores "
    "toolDefinitions toolCalls traceId uniqueUserIds uniqueSessionIds costByType usageByType",
    "scores-numeric": "count value",
    "scores-boolean": "count value",
    "scores-categorical": "count",
}
_OF_SCORES = (
    "name source dataType tags environment userId sessionId metadata traceName observationName "
    "traceRelease traceVersion "
)
_FILTERS = {
    "observations": "traceName name userId sessionId metadata type tags providedModelName level "
    "toolNames calledToolNames traceRelease traceVersion environment release version "
    "experimentName experimentDatasetId experimentId isRootObservation",
    "scores-numeric": f"{_OF_SCORES} value",
    "scores-boolean": f"{_OF_SCORES} booleanValue",
    "scores-categorical": f"{_OF_SCORES} stringValue",
}
_AGGREGATIONS = "sum avg count max min p50 p75 p90 p95 p99 histogram uniq".split()
_OPERATORS = {
    "string": ("=", "contains", "does not contain", "starts with", "ends with"),
    "stringOptions": ("any of", "none of"),
    "arrayOptions": ("any of", "none of", "all of"),
    "number": ("=", "<", ">", "<=", ">="),
    "boolean": ("=", "<>"),
    "stringObject": ("=", "contains", "does not contain", "starts with", "ends with"),
    "null": ("is null", "is not null"),
}
_CHARTS = (
    "LINE_TIME_SERIES AREA_TIME_SERIES BAR_TIME_SERIES HORIZONTAL_BAR VERTICAL_BAR PIE NUMBER "
    "HISTOGRAM PIVOT_TABLE"
).split()
_WIDGET = {
    "name", "description", "view", "dimensions", "metrics", "filters", "chartType", "chartConfig",
}  # fmt: skip
_PLACEMENT = {"type", "id", "x", "y", "width", "height"}


class Dashboards:
    """Dashboards and widgets of one project."""

    def __init__(self, old: bool) -> None:
        """`old`: a server that does not know them yet."""
        self._old = old
        self._boards, self._widgets = Rows("Dashboard"), Rows("Dashboard widget")

    def routes(self, keyed: Gateway, root: str) -> list[Route]:
        """Its paths below the root of the API."""
        boards, widgets = f"{root}/unstable/dashboards", f"{root}/unstable/dashboard-widgets"
        endpoints: list[tuple[str, str, str, Callable[[Call], Any]]] = [
            (boards, "dashboards", "GET", self._boards.page),
            (boards, "dashboards", "POST", lambda call: self._boards.make(self._board(call))),
            (f"{boards}/{{id}}", "dashboards", "GET", lambda call: self._boards.get(_id(call))),
            (f"{boards}/{{id}}", "dashboards", "PATCH", self._change_board),
            (f"{boards}/{{id}}", "dashboards", "DELETE", self._drop_board),
            (f"{boards}/{{id}}/placements", "dashboards", "POST", self._place),
            (widgets, "widgets", "GET", self._widgets.page),
            (widgets, "widgets", "POST", self._make_widget),
            (f"{widgets}/{{id}}", "widgets", "GET", lambda call: self._widgets.get(_id(call))),
            (f"{widgets}/{{id}}", "widgets", "PATCH", self._change_widget),
            (f"{widgets}/{{id}}", "widgets", "DELETE", self._drop_widget),
        ]
        return [
            keyed.route(
                path, name, _page_not_found if self._old else answering(work),
                methods=(method,), keep=method in {"POST", "PATCH"},
            )
            for path, name, method, work in endpoints
        ]  # fmt: skip

    def _board(self, call: Call) -> Row:
        sent = fields_of(call)
        demand(sent.get("name"), "name is required")
        definition = sent.get("definition") or {"widgets": []}
        self._check_placements(definition["widgets"])
        return {
            "name": sent["name"],
            "description": sent.get("description") or "",
            "definition": definition,
            "filters": sent.get("filters") or [],
        }

    def _change_board(self, call: Call) -> Row:
        sent = fields_of(call)
        if "definition" in sent:
            self._check_placements(sent["definition"]["widgets"])
        known = {"name", "description", "definition", "filters"}
        return self._boards.change(_id(call), {k: v for k, v in sent.items() if k in known})

    def _drop_board(self, call: Call) -> Row:
        self._boards.drop(_id(call))
        return {"message": "Dashboard successfully deleted"}

    def _place(self, call: Call) -> Row:
        """One more placement, below the others where no place is named."""
        board, sent = self._boards.get(_id(call)), fields_of(call)
        placed = board["definition"]["widgets"]
        below = max((entry["y"] + entry["height"] for entry in placed), default=0)
        made = {"id": f"p{len(placed)}", "x": 0, "y": below, "width": 6, "height": 6} | sent
        if any(entry["id"] == made["id"] for entry in placed):
            raise Rejection(409, "Placement id in use")
        self._check_placements([*placed, made])
        self._boards.change(_id(call), {"definition": {"widgets": [*placed, made]}})
        return made

    def _check_placements(self, placements: Iterable[Mapping[str, Any]]) -> None:
        """Strict: exactly the known keys, whole numbers, ids of their own, widgets that exist."""
        ids = set[str]()
        for entry in placements:
            target = "presetId" if entry.get("type") == "preset" else "widgetId"
            if set(entry) != {*_PLACEMENT, target}:
                raise Rejection(400, "Unrecognized or missing key", code="invalid_body")
            numbers = [entry["x"], entry["y"], entry["width"] - 1, entry["height"] - 1]
            if any(not isinstance(number, int) or number < 0 for number in numbers):
                raise Rejection(400, "Invalid position", code="invalid_body")
            if entry["id"] in ids:
                raise Rejection(400, "Placement ids must be unique", code="invalid_body")
            ids.add(entry["id"])
            if target == "widgetId":
                self._widgets.get(entry["widgetId"])

    def _make_widget(self, call: Call) -> Row:
        sent = fields_of(call)
        demand(sent.get("name") and isinstance(sent.get("filters"), list), "Invalid request body")
        row = {"description": "", "dimensions": []} | {k: sent[k] for k in _WIDGET & set(sent)}
        return self._widgets.make(checked_widget(row))

    def _change_widget(self, call: Call) -> Row:
        sent = fields_of(call)
        row = dict(self._widgets.get(_id(call)))
        if "chartType" in sent and "chartConfig" not in sent:
            row.pop("chartConfig")
        row |= {name: sent[name] for name in _WIDGET & set(sent)}
        return self._widgets.change(_id(call), checked_widget(row))

    def _drop_widget(self, call: Call) -> Row:
        boards = [
            board["name"]
            for board in self._boards.rows()
            for entry in board["definition"]["widgets"]
            if entry.get("widgetId") == _id(call)
        ]
        if boards:
            raise Rejection(409, f"Widget is still placed on: {', '.join(boards)}")
        self._widgets.drop(_id(call))
        return {"message": "Dashboard widget successfully deleted"}


def checked_widget(row: Row) -> Row:
    """A widget with its chart's type filled in.

    Raises:
        Rejection: 400, where the server would refuse it; what it cannot draw passes, as there.
    """
    view, chart = row.get("view"), row.get("chartType")
    if view not in _DIMENSIONS or chart not in _CHARTS or not row.get("metrics"):
        raise Rejection(400, "Invalid view, chart or metrics", code="invalid_body")
    config = {"type": chart} | (row.get("chartConfig") or {})
    limits = ("row_limit", 1000), ("bins", 100)
    if config["type"] != chart or any(not 1 <= config.get(n, 1) <= most for n, most in limits):
        raise Rejection(400, "Invalid chartConfig", code="invalid_body")
    pivot = chart == "PIVOT_TABLE"
    if len(row["dimensions"]) > (2 if pivot else 1) or len(row["metrics"]) > 10:
        raise Rejection(400, "Too many dimensions or metrics", code="invalid_body")
    for number, dimension in enumerate(row["dimensions"]):
        known = _DIMENSIONS[view].split()
        field = f"dimensions[{number}].field"
        demand(dimension["field"] in known, "Unknown dimension", field=field, allowedValues=known)
    for number, metric in enumerate(row["metrics"]):
        known, measure = _MEASURES[view].split(), metric["measure"]
        fit = ["count", "uniq"] if measure in _TEXT_MEASURES else _AGGREGATIONS
        fine = measure in known and metric["agg"] in fit
        demand(fine, "Unknown metric", field=f"metrics[{number}].agg", allowedValues=fit)
    for condition in row["filters"]:
        column = condition["column"]
        demand(column in _FILTERS[view].split(), f"Unknown filter {column}", field="filters")
        options = condition["value"] if condition["type"].endswith("Options") else [""]
        if condition["operator"] not in _OPERATORS.get(condition["type"], ()) or not options:
            raise Rejection(400, "Invalid filter", code="invalid_body")
    return {**row, "chartConfig": config}


def _id(call: Call) -> str:
    return str(call.request.path_params["id"])


def _page_not_found(call: Call) -> Response:
    """What a server answers to a path that it does not know: a page."""
    return HTMLResponse("<!DOCTYPE html><title>404: This page could not be found</title>", 404)
