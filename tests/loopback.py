"""A loopback HTTP server whose answers are a function, and which can hang, drip, stream and hang up."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import socket
import ssl
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self
from urllib.parse import parse_qsl, urlsplit


@cache
def packed_zeros(megabytes: int) -> bytes:
    """So many MB of zeros as gzip, a thousand times smaller: one packed MB again and again."""
    pack, million = zlib.compressobj(wbits=-zlib.MAX_WBITS), bytes(1_000_000)
    part, checksum = pack.compress(million) + pack.flush(zlib.Z_FULL_FLUSH), 0
    for _ in range(megabytes):
        checksum = zlib.crc32(million, checksum)
    header, size = gzip.compress(b"", mtime=0)[:10], megabytes * len(million)
    return header + part * megabytes + pack.flush() + struct.pack("<II", checksum, size)


@dataclass(frozen=True)
class Asked:
    """One request as the server saw it."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    form: Mapping[str, str]
    body: str = ""


Manner = Literal["answer", "hang", "drip", "hang up", "answer and reset", "half", "stream"]
"""How an answer is given; `half`: the connection is reset within the body; `stream`: the body is frames of a socket."""


@dataclass(frozen=True)
class Reply:
    """What to answer; `manner` says how."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    manner: Manner = "answer"

    @property
    def content(self) -> bytes:
        """Bytes and text as they are, everything else as JSON."""
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()

    @property
    def kind(self) -> str:
        """The content type that goes with the body."""
        return "text/html" if isinstance(self.body, str) else "application/json"


HANG = Reply(manner="hang")
DRIP = Reply(manner="drip")


class _Handler(BaseHTTPRequestHandler):
    """One connection; the server carries the `Loopback` it belongs to."""

    protocol_version = "HTTP/1.1"
    # else the body waits for the head's receipt, and a reset takes it along
    disable_nagle_algorithm = True
    server: _Server

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except OSError:  # the client went away
            self.close_connection = True

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode("utf-8", "replace")
        headers = {name.lower(): value for name, value in self.headers.items()}
        query, form = dict(parse_qsl(url.query)), dict(parse_qsl(body))
        asked = Asked(self.command, url.path, query, headers, form, body)
        self.server.loopback.asked.append(asked)
        self._send(self.server.loopback.answer(asked))

    def do_POST(self) -> None:
        self.do_GET()

    def _send(self, reply: Reply) -> None:
        over = self.server.loopback.over
        self.close_connection = reply.manner != "answer"
        if reply.manner == "hang":
            over.wait(300)
        if reply.manner in {"hang", "hang up"}:
            return
        if reply.manner == "stream":
            self._stream(reply.body)
            return
        self.send_response(reply.status)
        length = 10_000 if reply.manner == "drip" else len(reply.content)
        headers = {"content-type": reply.kind, "content-length": str(length)}
        for name, value in {**headers, **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        while reply.manner == "drip" and not over.wait(0.05):
            self.wfile.write(b" ")
            self.wfile.flush()
        body = reply.content
        self.wfile.write(body[: len(body) // 2] if reply.manner == "half" else body)
        if reply.manner in {"answer and reset", "half"}:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.connection.detach())
            self.server.loopback.resets.release()

    def _stream(self, frames: Iterable[str | bytes]) -> None:
        """Frames of a websocket, text or binary; an empty one closes it, else it stays open and silent."""
        key = self.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("upgrade", "websocket")
        self.send_header("connection", "Upgrade")
        self.send_header("sec-websocket-accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        for frame in frames:
            kind, body = (0x81, frame.encode()) if isinstance(frame, str) else (0x82, frame)
            if not body:
                kind, body = 0x88, struct.pack("!H", 1001)
            size = len(body)
            if size < 126:
                head = struct.pack("!BB", kind, size)
            elif size < 65_536:
                head = struct.pack("!BBH", kind, 126, size)
            else:
                head = struct.pack("!BBQ", kind, 127, size)
            self.wfile.write(head + body)
        if self.rfile.read(1):  # a client that has read enough says so, and sends nothing else
            self.wfile.write(struct.pack("!BB", 0x88, 0))

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    loopback: Loopback


class Loopback:
    """Serves `answer(asked)` on 127.0.0.1 while its block runs; remembers what was asked."""

    def __init__(self, answer: Callable[[Asked], Reply], tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[Asked] = []
        self.over = threading.Event()
        self.resets = threading.Semaphore(0)
        """Released once for each connection that was reset."""
        self.answer = answer
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.loopback = self
        self._scheme = "http"
        if tls is not None:
            self._scheme = "https"
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)

    @property
    def url(self) -> str:
        """Root of the server."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()


def free_port() -> int:
    """A port where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
