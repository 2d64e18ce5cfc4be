"""The sandbox's Langfuse: dashboards, widgets and placements, checked as the server checks them.

Rows that the sandbox's Langfuse keeps, with its ids, times and pages, and its refusals.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from api.sandbox.world import RequestGateway, SandboxCall

Row = dict[str, Any]
_CODES = {
    400: "invalid_request", 401: "authentication_failed", 403: "access_denied",
    404: "resource_not_found", 409: "conflict", 422: "unprocessable_content", 429: "rate_limited",
    500: "internal_error",
}  # fmt: skip
_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_MOST = 100
_NUMBERS = itertools.count(1)


class Rejection(Exception):
    """A request that Langfuse refuses."""

    def __init__(self, status: int, message: str, *, code: str = "", **details: Any) -> None:
        """`details` are those of the newer endpoints."""
        super().__init__(message)
        self.status, self.message, self.details = status, message, details
        self.code = code or _CODES[status]


def answering(
    work: Callable[[SandboxCall], Any], status: int = 200
) -> Callable[[SandboxCall], Response]:
    """An endpoint that answers what `work` returns as JSON, or why it does not.

    A body holds both forms of an error, of the older and the newer endpoints.
    """

    def answer(call: SandboxCall) -> Response:
        try:
            result = work(call)
        except Rejection as rejection:
            details = {"details": rejection.details} if rejection.details else {}
            words = {"message": rejection.message, "code": rejection.code, **details}
            return JSONResponse(words | {"error": rejection.code}, rejection.status)
        return result if isinstance(result, Response) else JSONResponse(result, status)

    return answer


class Rows:
    """Rows of one kind by id; the one that changed last comes first."""

    def __init__(self, name: str) -> None:
        """`name` is what messages call a row."""
        self._name, self._rows = name, dict[str, Row]()

    def make(self, fields: Mapping[str, Any], id_: str | None = None) -> Row:
        """One more row, with an id of ours unless one is given."""
        now = moment()
        key = id_ or f"c{next(_NUMBERS):024d}"
        self._rows[key] = {"id": key, "createdAt": now, "updatedAt": now, **fields}
        return self._rows[key]

    def get(self, id_: str) -> Row:
        """One row.

        Raises:
            Rejection: 404.
        """
        if id_ not in self._rows:
            raise Rejection(404, f"{self._name} {id_} not found")
        return self._rows[id_]

    def change(self, id_: str, fields: Mapping[str, Any]) -> Row:
        """Replace fields of a row."""
        row = self.get(id_)
        row |= {**fields, "updatedAt": moment()}
        return row

    def drop(self, id_: str) -> Row:
        """Take a row away."""
        self.get(id_)
        return self._rows.pop(id_)

    def rows(self) -> list[Row]:
        """All of them, newest change first."""
        return sorted(self._rows.values(), key=lambda row: str(row["updatedAt"]), reverse=True)

    def page(self, call: SandboxCall, rows: Iterable[Row] | None = None) -> dict[str, Any]:
        """The page that a request asks for.

        Raises:
            Rejection: 400, outside of the limits.
        """
        listed = self.rows() if rows is None else list(rows)
        page, limit = call.number("page", 1), call.number("limit", 50)
        if page < 1 or not 1 <= limit <= _MOST:
            raise Rejection(400, "page from 1, limit from 1 to 100", code="invalid_query")
        meta = {
            "page": page, "limit": limit, "totalItems": len(listed),
            "totalPages": -(-len(listed) // limit),
        }  # fmt: skip
        return {"data": listed[(page - 1) * limit : page * limit], "meta": meta}


def fields_of(call: SandboxCall) -> dict[str, Any]:
    """The body of a request, which must be an object with something in it.

    Raises:
        Rejection: 400.
    """
    if not isinstance(call.data, Mapping) or not call.data:
        raise Rejection(400, "Invalid request body", code="invalid_body")
    return dict(call.data)


def demand(fine: object, message: str, **details: Any) -> None:
    """Refuse a body that is not fine.

    Raises:
        Rejection: 400.
    """
    if not fine:
        raise Rejection(400, message, code="invalid_request", **details)


def moment() -> str:
    """A time after all that were given before."""
    time = _FIRST + timedelta(milliseconds=next(_NUMBERS))
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


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

    def routes(self, keyed: RequestGateway, root: str) -> list[Route]:
        """Its paths below the root of the API."""
        boards, widgets = f"{root}/unstable/dashboards", f"{root}/unstable/dashboard-widgets"
        endpoints: list[tuple[str, str, str, Callable[[SandboxCall], Any]]] = [
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

    def _board(self, call: SandboxCall) -> Row:
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

    def _change_board(self, call: SandboxCall) -> Row:
        sent = fields_of(call)
        if "definition" in sent:
            self._check_placements(sent["definition"]["widgets"])
        known = {"name", "description", "definition", "filters"}
        return self._boards.change(_id(call), {k: v for k, v in sent.items() if k in known})

    def _drop_board(self, call: SandboxCall) -> Row:
        self._boards.drop(_id(call))
        return {"message": "Dashboard successfully deleted"}

    def _place(self, call: SandboxCall) -> Row:
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

    def _make_widget(self, call: SandboxCall) -> Row:
        sent = fields_of(call)
        demand(sent.get("name") and isinstance(sent.get("filters"), list), "Invalid request body")
        row = {"description": "", "dimensions": []} | {k: sent[k] for k in _WIDGET & set(sent)}
        return self._widgets.make(checked_widget(row))

    def _change_widget(self, call: SandboxCall) -> Row:
        sent = fields_of(call)
        row = dict(self._widgets.get(_id(call)))
        if "chartType" in sent and "chartConfig" not in sent:
            row.pop("chartConfig")
        row |= {name: sent[name] for name in _WIDGET & set(sent)}
        return self._widgets.change(_id(call), checked_widget(row))

    def _drop_widget(self, call: SandboxCall) -> Row:
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


def _id(call: SandboxCall) -> str:
    return str(call.request.path_params["id"])


def _page_not_found(call: SandboxCall) -> Response:
    """What a server answers to a path that it does not know: a page."""
    return HTMLResponse("<!DOCTYPE html><title>404: This page could not be found</title>", 404)
