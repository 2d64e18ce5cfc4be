"""A loopback model server that says what a test scripts, slowly or not at all when asked to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr

from api.models.dialects import ModelCallLimiter
from api.models.model_client import ModelClient
from api.settings import ModelSettings

KEY = "sk-test-0123456789abcdef"


@dataclass(frozen=True)
class Reply:
    """One scripted answer."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False
    """Say nothing until the server stops."""
    drip: bool = False
    """Send the body a byte at a time, for longer than any deadline."""
    hold: asyncio.Event | None = None
    """Answer when it is set."""
    drop: bool = False
    """Close the connection instead of answering."""


def says(content: str | None, finish: str | None = "stop", **more: Any) -> Reply:
    """A completion with this text."""
    message = {"role": "assistant", "content": content, "refusal": more.pop("refusal", None)}
    completion = {
        "id": "c-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o-mini",
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100},
    }
    return Reply(json.dumps(completion | more).encode())


def fails(status: int, code: str = "", message: str = "no", **headers: str) -> Reply:
    """An error in the shape of the API; header names are written with underscores."""
    error = {"error": {"message": message, "type": "error", "code": code or None}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(json.dumps(error).encode(), status, named)


@dataclass
class ModelServer:
    """Gives the scripted replies in order, the last one for ever, and keeps what was asked."""

    replies: list[Reply] = field(default_factory=list)
    respond: Callable[[dict[str, Any]], Reply] | None = None
    """Answers from the request instead."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    once_a_connection: bool = False
    """Hang up instead of answering the second request of a connection."""
    under_way: int = 0
    most_under_way: int = 0
    port: int = 0
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def url(self) -> str:
        """What `OPENAI_BASE_URL` would be."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def user(self) -> str:
        """The user message of the last request."""
        return str(self.asked[-1]["messages"][1]["content"])

    @property
    def system(self) -> str:
        """The system message of the last request."""
        return str(self.asked[-1]["messages"][0]["content"])

    async def saw(self, count: int) -> None:
        """Wait until so many requests have arrived."""
        async with self.arrived:
            await self.arrived.wait_for(lambda: len(self.asked) >= count)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, kept alive."""
        answered = 0
        try:
            while not self.stopped.is_set():
                await self._exchange(reader, writer, kept=answered > 0)
                answered += 1
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, kept: bool) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        head = lines[1:-2]
        headers = {name.lower(): value.strip() for name, _, value in (h.partition(":") for h in head)}
        request = json.loads(await reader.readexactly(int(headers["content-length"])))
        if kept and self.once_a_connection:
            raise ConnectionResetError
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        async with self.arrived:
            self.paths.append(lines[0].split()[1])
            self.headers.append(headers)
            self.asked.append(request)
            self.arrived.notify_all()
        try:
            await self._send(writer, self._reply(request))
        finally:
            self.under_way -= 1

    def _reply(self, request: dict[str, Any]) -> Reply:
        if self.respond is not None:
            return self.respond(request)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    async def _send(self, writer: asyncio.StreamWriter, reply: Reply) -> None:
        if reply.hang:
            await self.stopped.wait()
        if reply.hold:
            await reply.hold.wait()
        if reply.drop:
            raise ConnectionResetError
        sent = {"content-type": "application/json", "content-length": str(len(reply.body))}
        lines = [f"{name}: {value}" for name, value in (sent | dict(reply.headers)).items()]
        writer.write("\r\n".join([f"HTTP/1.1 {reply.status} X", *lines, "", ""]).encode())
        pieces = [reply.body[n : n + 1] for n in range(len(reply.body))] if reply.drip else []
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.wait([asyncio.ensure_future(self.stopped.wait())], timeout=0.05)
        writer.write(b"" if reply.drip else reply.body)
        await writer.drain()


@asynccontextmanager
async def serving(*replies: Reply, **options: Any) -> AsyncIterator[ModelServer]:
    """A server on a free port of this loop."""
    model = ModelServer(list(replies), **options)
    connections: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(model.serve(reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    listening = await asyncio.start_server(accept, "127.0.0.1", 0)
    model.port = listening.sockets[0].getsockname()[1]
    try:
        yield model
    finally:
        model.stopped.set()
        listening.close()
        for task in list(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


@asynccontextmanager
async def client_of(model: ModelServer, key: str | None = KEY, limit: int = 8) -> AsyncIterator[ModelClient]:
    """The real client pointed at a server."""
    settings = ModelSettings(openai_api_key=SecretStr(key) if key is not None else None, openai_base_url=model.url)
    client = ModelClient(settings, ModelCallLimiter(limit))
    try:
        yield client
    finally:
        await client.aclose()


def verdicts(values: Sequence[Any]) -> str:
    """What a well-behaved model answers to a relevance question."""
    return json.dumps({str(number): value for number, value in enumerate(values, 1)})
