"""One error shape for everything: `{"error": {"code", "message", "trace_id"}}`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import AccessDenied, Conflict, LimitReached, ListenpostError, StoreUnavailable
from api.faces.web.methods import allowed
from api.faces.web.schemas import ErrorBody
from api.services.text import clean, cut, one_line
from api.services.trace_ids import new_trace_id

_log = logging.getLogger(__name__)
LARGEST = 1_000_000
"""Bytes a request's body may have."""
_TOO_LARGE = "the body is larger than 1 MB"
_CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}
_EXAMPLES = {
    401: (
        "unauthorized",
        "send an API key: `Authorization: Bearer KEY`",
        "No key, or a wrong one.",
    ),
    403: ("forbidden", "without API keys only this machine may call", "Not from this machine."),
    404: ("not_found", "there is no analysis `8c1f...`", "Nothing of that id is yours."),
    409: ("conflict", "the `Idempotency-Key` was used for a different request", "A conflict."),
    413: ("too_large", "the body is larger than 1 MB", "The body is larger than 1 MB."),
    422: ("invalid_request", "`body.depth`: Input should be 'quick'", "The request is wrong."),
    429: ("limit_reached", "60 requests per minute are used up", "A limit is reached."),
    500: ("error", "internal error", "Our fault; the log has the `trace_id`."),
    503: ("store_unavailable", "the database cannot be used", "The database cannot be used."),
}


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route, with examples."""
    answers: dict[int | str, dict[str, Any]] = {}
    for status in statuses:
        code, message, words = _EXAMPLES[status]
        example = error_body(code, message, "5f0c2d4e9a7b4c31b6d8f2a4c07e1935")
        answer: dict[str, Any] = {
            "model": ErrorBody,
            "description": words,
            "content": {"application/json": {"example": example}},
        }
        if status in {409, 429}:
            words = "Seconds to wait." if status == 429 else "Seconds to wait, if that helps."
            seconds = {"schema": {"type": "integer"}, "description": words}
            answer["headers"] = {"Retry-After": seconds}
        if status == 401:
            scheme = {"schema": {"type": "string"}, "description": "`Bearer`."}
            answer["headers"] = {"WWW-Authenticate": scheme}
        answers[status] = answer
    return answers


def error_body(code: str, message: str, trace_id: str) -> dict[str, Any]:
    """The one shape."""
    return {"error": {"code": code, "message": message, "trace_id": trace_id}}


def described(error: ListenpostError, trace_id: str) -> dict[str, Any]:
    """An error of ours in that shape, in words that may leave this machine."""
    return error_body(error.code, error.public, trace_id)


def trace_id_of(scope: Mapping[str, Any]) -> str:
    """What a log line, an answer and its trace have in common."""
    return str(scope.get("listenpost.trace_id", ""))


def install(app: FastAPI) -> None:
    """Answer every error in the one shape."""

    async def expected(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ListenpostError)
        headers = {}
        if isinstance(error, StoreUnavailable):
            _log.warning("request %s: %s", trace_id_of(request.scope), error)
        if isinstance(error, LimitReached | Conflict) and error.retry_after is not None:
            headers["Retry-After"] = str(error.retry_after)
        if isinstance(error, AccessDenied):
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse(described(error, trace_id_of(request.scope)), error.status, headers)

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        if error.status_code == 405:  # the router names the methods of one route, not of its path
            headers["Allow"] = allowed(request)
            if request.method == "OPTIONS":
                return Response(status_code=204, headers=headers)
        status = 422 if error.status_code == 400 else error.status_code
        code = _CODES.get(status, "invalid_request" if status < 500 else "error")
        words = HTTPStatus(status).phrase.lower() if status in {404, 405} else str(error.detail)
        body = error_body(code, words, trace_id_of(request.scope))
        return JSONResponse(body, status, headers)

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        # where the first fault is and what would be right, without what was sent
        first = error.errors()[0]
        # without what names a model and no field: `function-after[check(), Model]`, `[useChat]`
        names = [str(part) for part in first["loc"] if "[" not in str(part)]
        where = cut(".".join(names), 100)
        words = one_line(clean(f"`{where}`: {first['msg']}"))
        body = error_body("invalid_request", words, trace_id_of(request.scope))
        return JSONResponse(body, 422)

    app.add_exception_handler(ListenpostError, expected)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_middleware(OuterDoor)


class OuterDoor:
    """Outermost: a trace id for each request, large bodies refused, faults of ours hidden."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand before `app`."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, unless the body is too large."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["listenpost.trace_id"] = new_trace_id()
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message["headers"], (b"x-content-type-options", b"nosniff")]
            await send(message)

        seen = 0

        async def counting() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > LARGEST:
                raise HTTPException(413, _TOO_LARGE)
            return message

        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        if lengths and lengths[0].isdigit() and int(lengths[0]) > LARGEST:
            body = error_body("too_large", _TOO_LARGE, trace_id_of(scope))
            await JSONResponse(body, 413)(scope, receive, sending)
            return
        try:
            await self._app(scope, counting, sending)
        except Exception:
            _log.exception("request %s failed", trace_id_of(scope))
            if started:
                raise
            body = error_body("error", "internal error", trace_id_of(scope))
            await JSONResponse(body, 500)(scope, receive, sending)
