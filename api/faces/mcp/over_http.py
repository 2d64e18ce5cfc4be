"""The streamable HTTP endpoint at `/mcp`."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from urllib.parse import parse_qsl

import mcp_types as types
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import UsageError
from api.faces.mcp.messages import mended, refusal
from api.faces.mcp.server import TEXT_ONLY, server
from api.services.text import clean, cut, one_line
from api.wiring.serving import House

_PARAMETER = "text-only"
_ON_OFF = {"": True, "true": True, "1": True, "false": False, "0": False}
_REFUSED = {b"Parse error": types.PARSE_ERROR, b"Validation error": types.INVALID_REQUEST}
"""How the library's own words for a body that is no message begin."""


def over_http(house: House) -> tuple[ASGIApp, AbstractAsyncContextManager[None]]:
    """The app, and what must run around it.

    It keeps no session of its own: each request stands alone, with its own key.
    """
    made = server(house)
    app = made.streamable_http_app(
        streamable_http_path="/mcp",
        stateless_http=True,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return _in_our_words(app), made.session_manager.run()


def _in_our_words(app: ASGIApp) -> ASGIApp:
    """The app; where its library quotes a parser or validator, the caller reads what was wrong."""

    async def worded(scope: Scope, receive: Receive, send: Send) -> None:
        async def refuse(code: int, words: str) -> None:
            body = refusal(code, words).model_dump(mode="json", exclude_unset=True)
            await JSONResponse(body, 400)(scope, receive, send)

        start: Message = {}

        async def sending(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and message["status"] == 400:
                start = message
                return
            if start and message["type"] == "http.response.body":
                held, start = start, {}
                for words, code in _REFUSED.items():
                    if b'"message":"%b: ' % words in message["body"]:
                        await refuse(code, "the body is no message of JSON-RPC 2.0")
                        return
                await send(held)
            await send(message)

        async def receiving() -> Message:
            """The whole body at once, since a character may be cut between two parts."""
            message, body = await receive(), b""
            while message["type"] == "http.request":
                body += message.get("body", b"")
                if not message.get("more_body"):
                    text = body.decode("latin-1")  # which keeps every byte, be it UTF-8 or not
                    return {"type": "http.request", "body": mended(text).encode("latin-1")}
                message = await receive()
            return message

        try:
            text_only = _text_only(scope["query_string"])
        except UsageError as error:
            await refuse(types.INVALID_REQUEST, str(error))
            return
        await app({**scope, TEXT_ONLY: text_only}, receiving, sending)

    return worded


def _text_only(query: bytes) -> bool:
    """Whether the address asks for text alone.

    Raises:
        UsageError: it holds another parameter, or a value that is neither true nor false.
    """
    text_only = False
    for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        if name != _PARAMETER:
            shown = cut(one_line(clean(name)), 40)
            raise UsageError(f"there is no parameter `{shown}`; there is `{_PARAMETER}`")
        if value.lower() not in _ON_OFF:
            raise UsageError(f"`{_PARAMETER}` must be `true` or `false`")
        text_only = _ON_OFF[value.lower()]
    return text_only
