"""Rows that the sandbox's Langfuse keeps, with its ids, times and pages, and its refusals."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from starlette.responses import JSONResponse, Response

from api.sandbox.world import Call

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


def answering(work: Callable[[Call], Any], status: int = 200) -> Callable[[Call], Response]:
    """An endpoint that answers what `work` returns as JSON, or why it does not.

    A body holds both forms of an error, of the older and the newer endpoints.
    """

    def answer(call: Call) -> Response:
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

    def page(self, call: Call, rows: Iterable[Row] | None = None) -> dict[str, Any]:
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


def fields_of(call: Call) -> dict[str, Any]:
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
