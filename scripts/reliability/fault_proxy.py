"""A loopback proxy before the sandbox that breaks one kind of call and passes on all others.

It speaks raw sockets, since HTTP libraries would not send most of what goes wrong between machines.
`broken_answers.py` has the ways in which an answer is broken.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import struct
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from socket import SO_LINGER, SOL_SOCKET
from typing import Self
from urllib.parse import urlsplit

from api.sandbox.model_server import endpoint

_PATHS = {
    "/access_token": "token",
    "/comments/": "comments",
    "/commentThreads": "comments",
    "/videos": "details",
    "/dp/": "comments",
    "/api/v1/items/": "comments",
    "/answers": "comments",
    "/issues/": "comments",
    "/comment/list": "comments",
    "/t/": "comments",
    "/nodeinfo": "version",
    "/api/v3/site": "version",
    "/top-product-reviews": "comments",
    "/IUserReviewsService": "reviews",
    "/gal/feed.rss": "list",
    "/log.json": "document",
    "/notes.xml": "xml",
    "/xrpc/network.bsky.jetstream": "stream",
    "/subscribe": "stream",
    "/app.bsky.feed.getPosts": "counts",
    "/app.bsky.feed.getPostThread": "comments",
    "/traces": "traces",
    "/ingestion": "scores",
}
"""Part of a path -> the call it belongs to, the first that fits; every other path is a source's search."""
_LIST = re.compile(r"/gal/\d{10}(?P<minute>\d\d)00\.gal")
"""The file of a minute: `/gdeltv3/gal/20261201041600.gal.json.gz`. The sandbox has those after a quarter."""
_STEPS = {"judge": "gate", "agent": "report", "chat": "report"}
"""What the sandbox calls a model's step -> the call; the others have one name. An analysis has no chat: what is so
called is a report that is asked for without tools."""


@dataclass(frozen=True, slots=True)
class RawRequest:
    """One request as it was received."""

    head: bytes
    """Request line and headers, the empty line included."""
    body: bytes

    @property
    def call(self) -> str:
        """Kind of call: `search`, `comments`, `gate`."""
        path = urlsplit(self.head.split(b" ", 2)[1].decode("latin-1")).path
        if path.endswith("/chat/completions"):
            step = endpoint(json.loads(self.body))
            return _STEPS.get(step, step)
        if listed := _LIST.search(path):
            return "file" if int(listed["minute"]) % 15 in {1, 2} else "absent"
        return next((call for part, call in _PATHS.items() if part in path), "search")


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request whose answer is broken, and the connection that waits for it."""

    proxy: FaultProxy
    request: RawRequest
    writer: asyncio.StreamWriter
    number: int
    """Number of the request on its connection, from 1."""

    async def send(self, data: bytes) -> None:
        """Write, and wait until most of it has been taken."""
        self.writer.write(data)
        await self.writer.drain()
        self.proxy.sent += len(data)

    async def answer(self, status: int, body: bytes, headers: Mapping[str, object] | None = None) -> None:
        """Send a complete answer, JSON unless the headers say otherwise."""
        fields = {"content-type": "application/json", "content-length": len(body)}
        lines = [f"{name}: {value}\r\n" for name, value in {**fields, **(headers or {})}.items()]
        await self.send(f"HTTP/1.1 {status} X\r\n{''.join(lines)}\r\n".encode() + body)

    async def good(self) -> tuple[int, str, bytes]:
        """Status, content type and body of what the sandbox answers."""
        url = urlsplit(self.proxy.target)
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        try:
            # an answer to HTTP/1.0 is never chunked, and ends with its connection
            head = self.request.head.replace(b" HTTP/1.1", b" HTTP/1.0\r\nConnection: close", 1)
            writer.write(head + self.request.body)
            answer = await reader.read(-1)
        finally:
            writer.close()
        start, _, body = answer.partition(b"\r\n\r\n")
        first, *fields = start.decode("latin-1").split("\r\n")
        kinds = (field[13:].strip() for field in fields if field[:13].lower() == "content-type:")
        return int(first.split(" ")[1]), next(kinds, "text/plain"), body

    async def opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The sandbox's side of a WebSocket, after the answer that opened it was sent on."""
        url = urlsplit(self.proxy.target)
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        writer.write(self.request.head)
        await self.send(await reader.readuntil(b"\r\n\r\n"))
        return reader, writer

    def reset(self) -> None:
        """End the connection by a reset."""
        socket = self.writer.get_extra_info("socket")
        socket.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def hang_up(self) -> None:
        """End the connection properly, whatever length was announced."""
        self.writer.close()


Breaker = Callable[[Exchange], Awaitable[None]]


@dataclass
class FaultProxy:
    """Passes on all but `call`, which `breaker` answers while `breaking` is set."""

    target: str
    """Root of the sandbox."""
    call: str
    breaker: Breaker
    raw: bool = False
    """No HTTP: `breaker` answers each connection at once."""
    breaking: bool = True
    broken_requests: int = 0
    """Requests that `breaker` answered."""
    sent: int = 0
    """Bytes of its answers that were read."""
    port: int = 0
    other_host_port: int = 0
    """Port of a server to which nothing may be sent."""
    stray_requests: int = 0
    """Requests that arrived at that server."""
    bodies: list[bytes] = field(default_factory=list)
    """Bodies of all requests, unpacked."""
    _server: asyncio.Server | None = None
    _over: asyncio.Event = field(default_factory=asyncio.Event)
    _connections: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        await self.open()
        self._other = await asyncio.start_server(self._strayed, "127.0.0.1", 0)
        self.other_host_port = self._other.sockets[0].getsockname()[1]
        return self

    async def open(self) -> None:
        """Listen, again on the same port."""
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, limit=2**20)
            self.port = self._server.sockets[0].getsockname()[1]

    def shut(self) -> None:
        """Refuse connections."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def __aexit__(self, *_: object) -> None:
        """Stop, and let go whoever still waits."""
        self._over.set()
        self.shut()
        self._other.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def over(self, seconds: float | None = None) -> bool:
        """Whether everything ended within so many seconds; None: wait until it does."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), seconds)
        return self._over.is_set()

    async def _strayed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.stray_requests += 1
        writer.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, kept as long as both sides like."""
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = 0
        try:
            if self.raw:
                self.broken_requests += 1
                await self.breaker(Exchange(self, RawRequest(b"GET / HTTP/1.1\r\n\r\n", b""), writer, 1))
            while not self.raw and not writer.is_closing():
                number += 1
                head = await reader.readexactly(1)
                if head == b"\x16":  # the greeting of TLS
                    writer.write(b"HTTP/1.1 400 X\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                    break
                head += await reader.readuntil(b"\r\n\r\n")
                fields = (line.partition(b":") for line in head.lower().split(b"\r\n"))
                size = next((int(value) for name, _, value in fields if name == b"content-length"), 0)
                request = RawRequest(head, await reader.readexactly(size))
                await self._answer(Exchange(self, request, writer, number), reader)
        except (EOFError, OSError, asyncio.CancelledError):
            pass  # whoever asked has gone, or everything is over
        finally:
            writer.close()

    async def _answer(self, exchange: Exchange, reader: asyncio.StreamReader) -> None:
        request = exchange.request
        self.bodies.append(gzip.decompress(request.body) if request.body.startswith(b"\x1f\x8b") else request.body)
        if self.breaking and request.call == self.call:
            self.broken_requests += 1
            await self.breaker(exchange)
        elif b"\r\nupgrade: websocket" in request.head.lower():
            await _tunnel(exchange, reader)
        else:
            status, kind, content = await exchange.good()
            await exchange.answer(status, content, {"content-type": kind})


async def _tunnel(exchange: Exchange, reader: asyncio.StreamReader) -> None:
    """Pass on both directions of a WebSocket until either side ends."""
    upstream, back = await exchange.opened()
    ways = [asyncio.ensure_future(_pass_on(reader, back)), asyncio.ensure_future(_pass_on(upstream, exchange.writer))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        back.close()
        exchange.hang_up()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
