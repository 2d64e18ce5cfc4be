"""Methods of HTTP that no route writes out: HEAD wherever there is GET, and which there are."""

from __future__ import annotations

from starlette.requests import Request
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def allowed(request: Request) -> str:
    """The methods that the request's path has, as `Allow` lists them."""
    routes = request.app.router.routes
    methods = [
        method
        for method in _METHODS
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes
        )
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
        """Pass on; the head is the whole answer."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b""})

        # once an answer is complete, `receive` tells its work that the client is gone
        await self._app({**scope, "method": "GET"}, receive, sending)
