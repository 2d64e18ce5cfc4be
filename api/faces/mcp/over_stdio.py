"""`listenpost mcp`: the protocol on stdin and stdout, a message a line."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import Any, Self

import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from api import wiring
from api.faces.mcp.messages import mended, refusal
from api.faces.mcp.server import server
from api.services.callers import Caller, admit
from api.wiring.serving import open_house


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
    settings = wiring.load_settings(sandbox=sandbox)

    async def serve() -> None:
        admit(Caller("mcp"))
        house = await open_house(settings, durable=True)
        try:
            if house.sample:
                words = "sample data: everything is made up and served by the offline sandbox"
                print(f"listenpost: {words}", file=sys.stderr, flush=True)
            house.load()
            made = server(house, text_only=text_only)
            async with stdio_server() as (incoming, outgoing):
                messages = Messages(incoming, outgoing)
                await made.run(messages, outgoing, made.create_initialization_options())
        finally:
            await house.aclose()

    try:
        asyncio.run(serve())
    except KeyboardInterrupt:
        return 130
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
