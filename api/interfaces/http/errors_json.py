"""The one shape of errors, `{"error": {"code", "message", "trace_id"}}`, and the HTTP methods of a route."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from threading import Lock
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.core.context import new_trace_id
from api.errors import AccessDenied, Conflict, LimitReached, ListenpostError, StoreUnavailable, UsageError
from api.interfaces.http.schemas import ErrorBody
from api.interfaces.shared.validation_messages import Form

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def allowed(request: Request) -> str:
    """The methods that the request's path has, as `Allow` lists them."""
    routes = request.app.router.routes
    methods = [
        method
        for method in _METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes)
    ]
    if "GET" in methods:
        methods.insert(1, "HEAD")
    return ", ".join([*methods, "OPTIONS"])


class HeadAsGet:
    """Answers HEAD with the head of what GET answers; a stream is hung up once it has begun."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand before `app`, and before what changes the length of its answers."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a HEAD request with the headers of GET."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b""})

        # once an answer is complete, `receive` tells its work that the client is gone
        await self._app({**scope, "method": "GET"}, receive, sending)


_log = logging.getLogger(__name__)
Page = Callable[[Request, int], Response | None]
"""Page for a browser about an error of this status that no screen handles; None for other clients."""
LARGEST = 1_000_000
"""Bytes a request's body may have."""
_TOO_LARGE = "the body is larger than 1 MB"
WRONG_DEPTH = "`depth` must be `quick`, `standard` or `deep`, not `fast`"
NO_CHAT = "there is no chat session `62774120a2d041fdaa2d8d8dfc8bd7e4`"
WRONG_LIMIT = "`limit` must be a whole number from 1 to 100, not `0`"
NO_JSON_TYPE = "the body must be JSON, sent with `Content-Type: application/json`"
# Why a parser gives up, from the narrow to the wide.
_UNREADABLE = (
    (RecursionError, "it is nested too deep"),
    (UnicodeDecodeError, "it is no UTF-8"),
    (ValueError, "a number in it is too long"),
    (Exception, "it cannot be read"),
)
_NOUNS = {"query": "parameter", "path": "part of the path"}
_CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}
_EXAMPLES = {
    401: (
        "unauthorized",
        "send an API key: `Authorization: Bearer KEY`",
        "No key, or a wrong one.",
    ),
    403: ("forbidden", "without API keys only this machine may call", "Not from this machine."),
    404: ("not_found", "there is no analysis `8c1f...`", "Nothing of that id is yours."),
    408: (
        "request_timeout",
        "the request's body did not come within 30 s",
        "The body did not come in time; the connection is closed.",
    ),
    409: ("conflict", "the `Idempotency-Key` was used for a different request", "A conflict."),
    413: ("too_large", "the body is larger than 1 MB", "The body is larger than 1 MB."),
    422: (
        "invalid_request",
        "`X-Listenpost-User` takes up to 128 visible ASCII characters without spaces",
        "The request is wrong.",
    ),
    429: ("limit_reached", "60 requests per minute are used up", "A limit is reached."),
    500: ("error", "internal error", "Our fault; the log has the `trace_id`."),
    503: ("store_unavailable", "the database cannot be used", "The database cannot be used."),
}


def documented(*statuses: int, wrong: str = "", missing: str = "") -> dict[int | str, dict[str, Any]]:
    """The error answers of a route, with examples; a body that is read may come too late (408).

    Of what is `wrong` (422) or `missing` (404) a route has words of its own.
    """
    own = {422: wrong, 404: missing}
    answers: dict[int | str, dict[str, Any]] = {}
    for status in (*statuses, *((408,) if 413 in statuses else ())):
        code, message, words = _EXAMPLES[status]
        example = error_body(code, own.get(status) or message, "5f0c2d4e9a7b4c31b6d8f2a4c07e1935")
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
    """The JSON object of an error: code, message and trace id."""
    return {"error": {"code": code, "message": message, "trace_id": trace_id}}


def described(error: ListenpostError, trace_id: str) -> dict[str, Any]:
    """An error of ours in that shape, in words that may leave this machine."""
    return error_body(error.code, error.public, trace_id)


def trace_id_of(scope: Mapping[str, Any]) -> str:
    """Trace id shared by a log line, an answer and its trace."""
    return str(scope.get("listenpost.trace_id", ""))


def install(app: FastAPI, page: Page) -> None:
    """Answer every error in the common shape; in a browser by a page when no route has its own."""

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
        if (shown := page(request, status)) is not None:
            shown.headers.update(headers)
            return shown
        code = _CODES.get(status, "invalid_request" if status < 500 else "error")
        words = HTTPStatus(status).phrase.lower() if status in {404, 405} else str(error.detail)
        if error.status_code == 400:  # a body over which a parser failed, with what it raised
            causes = (why for kind, why in _UNREADABLE if isinstance(error.__cause__, kind))
            words = f"the body is no JSON: {next(causes)}"
        body = error_body(code, words, trace_id_of(request.scope))
        return JSONResponse(body, status, headers)

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        # in a thread: the first one makes the OpenAPI document, and a body of 1 MB may have thousands of faults
        wrong = UsageError(await asyncio.to_thread(_refusal, request, error.errors()))
        return JSONResponse(described(wrong, trace_id_of(request.scope)), wrong.status)

    app.add_exception_handler(ListenpostError, expected)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_middleware(ErrorMiddleware, page=page)


# the document is made of what threads share, so one thread makes it while the others wait
_MAKING = Lock()


def _refusal(request: Request, faults: Sequence[Mapping[str, Any]]) -> str:
    """What is wrong with a request, in terms of the route's OpenAPI schema."""
    location, *_ = faults[0]["loc"]  # the body, or the parameters of a kind: `("query", "limit")`
    inner = [{**each, "loc": each["loc"][1:]} for each in faults if each["loc"][0] == location]
    with _MAKING:
        document = request.app.openapi()
    operations = document["paths"].get(request.scope["route"].path_format)
    if operations is None:
        return "this address holds what it does not take"
    operation = operations[request.method.lower()]
    if location != "body":
        parameters = [each for each in operation["parameters"] if each["in"] == location]
        properties = {each["name"]: each["schema"] for each in parameters}
        form = Form({"properties": properties}, f"the {location}", _NOUNS.get(location, location), document)
        return form.refusal(inner)
    if inner[0]["type"] == "json_invalid":
        cause, (at,) = inner[0]["ctx"]["error"], inner[0]["loc"]
        return f"the body is no JSON: {cause[0].lower()}{cause[1:]} at character {at + 1}"
    if isinstance(inner[0]["input"], bytes):
        return NO_JSON_TYPE
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    words = Form(schema, "the body", "field", document).refusal(inner)
    # `[UiChat]`, of several that may come
    name = next((str(part) for part in inner[0]["loc"] if str(part).startswith("[")), "")
    return f"{words}; the body is read as `{name.strip('[]')}`" if name else words


class ErrorMiddleware:
    """Outermost: a trace id for each request, large bodies refused, faults of ours hidden."""

    def __init__(self, app: ASGIApp, page: Page) -> None:
        self._app, self._page = app, page

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
            await self._refused(scope, 413, _TOO_LARGE)(scope, receive, sending)
            return
        try:
            await self._app(scope, counting, sending)
        except Exception:
            _log.exception("request %s failed", trace_id_of(scope))
            if started:
                raise
            await self._refused(scope, 500, "internal error")(scope, receive, sending)

    def _refused(self, scope: Scope, status: int, words: str) -> Response:
        body = error_body(_CODES.get(status, "error"), words, trace_id_of(scope))
        return self._page(Request(scope), status) or JSONResponse(body, status)
