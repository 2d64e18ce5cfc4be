"""The two transports of MCP: `listenpost mcp` on stdin and stdout, a message a line, and HTTP at `/mcp`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import parse_qsl

import mcp_types as types
import regex
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api import bootstrap
from api.bootstrap.app_context import AppContext, open_app_context
from api.core.context import Caller, set_caller
from api.core.text import clean, cut, one_line
from api.errors import UsageError
from api.interfaces.mcp.mcp_server import TEXT_ONLY, server

# an escape of JSON: both halves of an emoji, `half` of one (such as `\ud83d`), or any other (`\\`)
_ESCAPE = regex.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?<half>u[dD][89a-fA-F]..)|.)", regex.S)


def mended(text: str) -> str:
    """The JSON with U+FFFD for every half of a character, which the library's parser refuses."""
    whole: str = _ESCAPE.sub(lambda escape: r"\ufffd" if escape["half"] is not None else escape[0], text)
    return whole


def refusal(code: int, words: str) -> types.JSONRPCError:
    """The protocol's error for what has no id that could be read."""
    error = types.ErrorData(code=code, message=f"{UsageError.code}: {words}")
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=error)


@dataclass(frozen=True, slots=True)
class Messages:
    """The library's stream of what came in: a line that it could not read is mended or answered.

    The library gives those lines as exceptions, and drops them: their sender would wait for good.
    """

    incoming: Any
    outgoing: Any

    async def __anext__(self) -> SessionMessage:
        while True:
            line = await anext(self.incoming)
            message = _read(line) if isinstance(line, Exception) else line
            if isinstance(message, SessionMessage):
                return message
            if message is not None:
                await self.outgoing.send(SessionMessage(message))

    receive = __anext__

    def __aiter__(self) -> Self:
        return self

    async def aclose(self) -> None:
        """Close the library's stream."""
        await self.incoming.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def mcp_command(*, text_only: bool, sandbox: bool = False) -> int:
    """Serve on stdin and stdout until the client hangs up; stdout carries the protocol alone."""
    settings = bootstrap.load_settings(sandbox=sandbox)

    async def serve() -> None:
        set_caller(Caller("mcp"))
        app_context = await open_app_context(settings, durable=True)
        try:
            if app_context.sample:
                words = "sample data: everything is made up and served by the offline sandbox"
                print(f"listenpost: {words}", file=sys.stderr, flush=True)
            app_context.load()
            made = server(app_context, text_only=text_only)
            async with stdio_server() as (incoming, outgoing):
                messages = Messages(incoming, outgoing)
                await made.run(messages, outgoing, made.create_initialization_options())
        finally:
            await app_context.aclose()

    try:
        asyncio.run(serve())
    except KeyboardInterrupt:
        return 130
    except ExceptionGroup as group:
        _, others = group.split(BrokenPipeError)
        if others is not None:
            raise others from None
        # the client reads no more: nobody is left to hear of it, and what is buffered goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _read(error: Exception) -> SessionMessage | types.JSONRPCError | None:
    """The message in a line that the library could not read, or what to answer instead.

    None for an empty line: nobody waits for an answer to it.
    """
    fault = error.errors(include_url=False)[0] if isinstance(error, ValidationError) else None
    if fault is None or fault["type"] != "json_invalid":
        return refusal(types.INVALID_REQUEST, "the line is no message of JSON-RPC 2.0")
    line = mended(str(fault["input"]))
    if not line.strip():
        return None
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError as still:
        wrong = still.errors(include_url=False)[0]["type"] == "json_invalid"
        code = types.PARSE_ERROR if wrong else types.INVALID_REQUEST
        return refusal(code, "the line is no message of JSON-RPC 2.0")


_PARAMETER = "text-only"
_ON_OFF = {"": True, "true": True, "1": True, "false": False, "0": False}
# How the library's own words for a body that is no message begin.
_REFUSED = {b"Parse error": types.PARSE_ERROR, b"Validation error": types.INVALID_REQUEST}


def over_http(app_context: AppContext) -> tuple[ASGIApp, AbstractAsyncContextManager[None]]:
    """The app, and what must run around it.

    It keeps no session of its own: each request stands alone, with its own key. A client that accepts no event stream
    gets one JSON object, without progress.
    """
    servers = streaming, plain = server(app_context), server(app_context)
    apps = [
        each.streamable_http_app(
            streamable_http_path="/mcp",
            json_response=each is plain,
            stateless_http=True,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        for each in servers
    ]

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        async with streaming.session_manager.run(), plain.session_manager.run():
            yield

    return _in_our_words(_by_accept(*apps)), running()


def _by_accept(streaming: ASGIApp, plain: ASGIApp) -> ASGIApp:
    """One of two apps, by `Accept`: `plain` for a POST that takes no event stream, else `streaming`.

    `plain` answers with one JSON object; `streaming` also refuses what neither can answer.
    """

    async def chosen(scope: Scope, receive: Receive, send: Send) -> None:
        others = [(name, value) for name, value in scope["headers"] if name != b"accept"]
        accept = b",".join(value for name, value in scope["headers"] if name == b"accept").lower()
        if scope["method"] != "POST" or any(kind in accept for kind in (b"text/event-stream", b"text/*")):
            await streaming(scope, receive, send)
        elif not accept or b"*/*" in accept or b"application/" in accept:
            await plain({**scope, "headers": [*others, (b"accept", b"application/json")]}, receive, send)
        else:
            await streaming(scope, receive, send)  # which says what it must accept

    return chosen


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
