"""The sandbox's Langfuse: dashboards, widgets and placements, checked as the server checks them.

Also the rows, ids, times, pages and refusals that all of its endpoints share.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from api.sandbox.world import Handler, SandboxCall, SiteRefusal, fields

Row = dict[str, Any]
Endpoint = tuple[str, str, str, Handler]  # path, name in the log, method, and what answers
_CODES = {
    400: "invalid_request", 401: "authentication_failed", 403: "access_denied",
    404: "resource_not_found", 409: "conflict", 422: "unprocessable_content", 429: "rate_limited",
    500: "internal_error",
}  # fmt: skip
_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_MOST = 100
_NUMBERS = itertools.count(1)


def rejection(status: int, message: str, code: str = "", **details: Any) -> SiteRefusal:
    """A refused request, in the form of both older and newer endpoints (which have `details`)."""
    code = code or _CODES[status]
    body = {"message": message, "code": code, "error": code}
    return SiteRefusal(body | ({"details": details} if details else {}), status)


def demand(valid: object, message: str, code: str = "invalid_request", **details: Any) -> None:
    """Refuse a request (400) that is not valid."""
    if not valid:
        raise rejection(400, message, code, **details)


def fields_of(call: SandboxCall) -> dict[str, Any]:
    """The body of a request, which must be an object that is not empty."""
    demand(isinstance(call.data, Mapping) and call.data, "Invalid request body", "invalid_body")
    return dict(call.data)


def moment() -> str:
    """A time after all that were given before."""
    time = _FIRST + timedelta(milliseconds=next(_NUMBERS))
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Rows:
    """Rows of one kind by id, the last changed first."""

    def __init__(self, name: str) -> None:
        """`name` is what messages call a row."""
        self._name, self._rows = name, dict[str, Row]()

    def make(self, fields: Mapping[str, Any], id_: str | None = None) -> Row:
        """Add a row, with a generated id unless one is given."""
        now = moment()
        key = id_ or f"c{next(_NUMBERS):024d}"
        self._rows[key] = {"id": key, "createdAt": now, "updatedAt": now, **fields}
        return self._rows[key]

    def get(self, id_: str) -> Row:
        """One row; an unknown id is answered with 404."""
        if id_ not in self._rows:
            raise rejection(404, f"{self._name} {id_} not found")
        return self._rows[id_]

    def find(self, **fields: Any) -> Row | None:
        """The row with these values, if there is one."""
        rows = (row for row in self.all() if fields.items() <= row.items())
        return next(rows, None)

    def change(self, id_: str, fields: Mapping[str, Any]) -> Row:
        """Replace fields of a row."""
        row = self.get(id_)
        row |= {**fields, "updatedAt": moment()}
        return row

    def read(self, call: SandboxCall) -> Row:
        """The row whose `id` is in the path."""
        return self.get(call.parameter("id"))

    def drop(self, call: SandboxCall) -> Row:
        """Delete the row whose `id` is in the path; returns Langfuse's confirmation."""
        del self._rows[self.read(call)["id"]]
        return {"message": f"{self._name} successfully deleted"}

    def all(self) -> list[Row]:
        """All rows, newest change first."""
        return sorted(self._rows.values(), key=lambda row: str(row["updatedAt"]), reverse=True)

    def page(self, call: SandboxCall, rows: Iterable[Row] | None = None) -> dict[str, Any]:
        """The page of `rows` (default: all) that a request asks for."""
        listed = self.all() if rows is None else list(rows)
        page, limit = call.number("page", 1), call.number("limit", 50)
        fine = page >= 1 and 1 <= limit <= _MOST
        demand(fine, "page from 1, limit from 1 to 100", "invalid_query")
        meta = {
            "page": page, "limit": limit, "totalItems": len(listed),
            "totalPages": -(-len(listed) // limit),
        }  # fmt: skip
        return {"data": listed[call.page(limit)], "meta": meta}


_TEXT_MEASURES = frozenset({"traceId", "uniqueUserIds", "uniqueSessionIds"})
_AGGREGATIONS = "sum avg count max min p50 p75 p90 p95 p99 histogram uniq".split()
_CHARTS = (
    "LINE_TIME_SERIES AREA_TIME_SERIES BAR_TIME_SERIES HORIZONTAL_BAR VERTICAL_BAR PIE NUMBER HISTOGRAM PIVOT_TABLE"
).split()
_WIDGET = {
    "name", "description", "view", "dimensions", "metrics", "filters", "chartType", "chartConfig",
}  # fmt: skip
_PLACEMENT = {"type", "id", "x", "y", "width", "height"}


class Dashboards:
    """Dashboards and widgets of one project."""

    def __init__(self) -> None:
        self._boards, self._widgets = Rows("Dashboard"), Rows("Dashboard widget")

    def endpoints(self, root: str) -> list[Endpoint]:
        """Endpoints of the dashboards below the root of the API."""
        boards, widgets = f"{root}/unstable/dashboards", f"{root}/unstable/dashboard-widgets"
        return [
            (boards, "dashboards", "GET", self._boards.page),
            (boards, "dashboards", "POST", lambda call: self._boards.make(self._board(call))),
            (f"{boards}/{{id}}", "dashboards", "GET", self._boards.read),
            (f"{boards}/{{id}}", "dashboards", "PATCH", self._change_board),
            (f"{boards}/{{id}}", "dashboards", "DELETE", self._boards.drop),
            (f"{boards}/{{id}}/placements", "dashboards", "POST", self._place),
            (widgets, "widgets", "GET", self._widgets.page),
            (widgets, "widgets", "POST", self._make_widget),
            (f"{widgets}/{{id}}", "widgets", "GET", self._widgets.read),
            (f"{widgets}/{{id}}", "widgets", "PATCH", self._change_widget),
            (f"{widgets}/{{id}}", "widgets", "DELETE", self._drop_widget),
        ]

    def _board(self, call: SandboxCall) -> Row:
        sent = fields_of(call)
        demand(sent.get("name"), "name is required")
        definition = sent.get("definition") or {"widgets": []}
        self._check_placements(definition["widgets"])
        return {
            "name": sent["name"], "description": sent.get("description") or "",
            "definition": definition, "filters": sent.get("filters") or [],
        }  # fmt: skip

    def _change_board(self, call: SandboxCall) -> Row:
        sent = fields_of(call)
        if "definition" in sent:
            self._check_placements(sent["definition"]["widgets"])
        known = {"name", "description", "definition", "filters"}
        return self._boards.change(call.parameter("id"), {k: v for k, v in sent.items() if k in known})

    def _place(self, call: SandboxCall) -> Row:
        board, sent = self._boards.read(call), fields_of(call)
        placed = board["definition"]["widgets"]
        below = max((entry["y"] + entry["height"] for entry in placed), default=0)
        made = {"id": f"p{len(placed)}", "x": 0, "y": below, "width": 6, "height": 6} | sent
        if any(entry["id"] == made["id"] for entry in placed):
            raise rejection(409, "Placement id in use")
        self._check_placements([*placed, made])
        self._boards.change(call.parameter("id"), {"definition": {"widgets": [*placed, made]}})
        return made

    def _check_placements(self, placements: Iterable[Mapping[str, Any]]) -> None:
        """Demand exactly the known keys, whole numbers, distinct ids, and widgets that exist."""
        ids = set[str]()
        for entry in placements:
            target = "presetId" if entry.get("type") == "preset" else "widgetId"
            keys = {*_PLACEMENT, target}
            demand(set(entry) == keys, "Unrecognized or missing key", "invalid_body")
            numbers = [entry["x"], entry["y"], entry["width"] - 1, entry["height"] - 1]
            whole = all(isinstance(number, int) and number >= 0 for number in numbers)
            demand(whole, "Invalid position", "invalid_body")
            demand(entry["id"] not in ids, "Placement ids must be unique", "invalid_body")
            ids.add(entry["id"])
            if target == "widgetId":
                self._widgets.get(entry["widgetId"])

    def _make_widget(self, call: SandboxCall) -> Row:
        sent = fields_of(call)
        demand(sent.get("name") and isinstance(sent.get("filters"), list), "Invalid request body")
        row = {"description": "", "dimensions": []} | {k: sent[k] for k in _WIDGET & set(sent)}
        return self._widgets.make(checked_widget(row))

    def _change_widget(self, call: SandboxCall) -> Row:
        sent = fields_of(call)
        row = dict(self._widgets.read(call))
        if "chartType" in sent and "chartConfig" not in sent:
            row.pop("chartConfig")
        row |= {name: sent[name] for name in _WIDGET & set(sent)}
        return self._widgets.change(call.parameter("id"), checked_widget(row))

    def _drop_widget(self, call: SandboxCall) -> Row:
        boards = [
            board["name"]
            for board in self._boards.all()
            for entry in board["definition"]["widgets"]
            if entry.get("widgetId") == call.parameter("id")
        ]
        if boards:
            raise rejection(409, f"Widget is still placed on: {', '.join(boards)}")
        return self._widgets.drop(call)


def checked_widget(row: Row) -> Row:
    """A widget with its chart's type filled in; an invalid one is refused, an undrawable one accepted."""
    view, chart = row.get("view"), row.get("chartType")
    dimensions, operators = fields("langfuse_dimensions"), fields("langfuse_operators")
    fine = view in dimensions and chart in _CHARTS and row.get("metrics")
    demand(fine, "Invalid view, chart or metrics", "invalid_body")
    config = {"type": chart} | (row.get("chartConfig") or {})
    limits = ("row_limit", 1000), ("bins", 100)
    fine = config["type"] == chart and all(1 <= config.get(name, 1) <= most for name, most in limits)
    demand(fine, "Invalid chartConfig", "invalid_body")
    most = 2 if chart == "PIVOT_TABLE" else 1
    fine = len(row["dimensions"]) <= most and len(row["metrics"]) <= 10
    demand(fine, "Too many dimensions or metrics", "invalid_body")
    known, measures = dimensions[str(view)], fields("langfuse_measures")[str(view)]
    for number, dimension in enumerate(row["dimensions"]):
        field = f"dimensions[{number}].field"
        demand(dimension["field"] in known, "Unknown dimension", field=field, allowedValues=known)
    for number, metric in enumerate(row["metrics"]):
        measure, field = metric["measure"], f"metrics[{number}].agg"
        fit = ["count", "uniq"] if measure in _TEXT_MEASURES else _AGGREGATIONS
        fine = measure in measures and metric["agg"] in fit
        demand(fine, "Unknown metric", field=field, allowedValues=fit)
    for condition in row["filters"]:
        column, kind = condition["column"], condition["type"]
        demand(
            column in fields("langfuse_filters")[str(view)],
            f"Unknown filter {column}",
            field="filters",
        )
        fine = condition["operator"] in operators.get(kind, ())
        fine = fine and (condition["value"] or not kind.endswith("Options"))
        demand(fine, "Invalid filter", "invalid_body")
    return {**row, "chartConfig": config}
