"""Connections: only so many at a time, and each has only so long to ask and to take its answer.

uvicorn closes a kept connection that asks nothing more, but waits for ever for a request that does
not come, stops in its headers or drips in its body, and for somebody who does not read.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import socket
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from api.interfaces.http.errors_json import error_body

_log = logging.getLogger(__name__)
MOST = 512
"""Connections at a time, where there are descriptors enough."""
# Connections that wait to be accepted; that many may be accepted before one can be refused.
_BACKLOG = 128
_GRACE_SECONDS = 5
_OUT_OF_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
_PAUSE_SECONDS = 60.0


class BoundedConnection(H11Protocol):
    """One connection; refused beyond `most` connections, and closed when a time limit passes."""

    most: int = MOST
    header_seconds: float = 10.0
    """Seconds from the start, or the last answer, to the end of a request's headers."""
    body_seconds: float = 30.0
    """Seconds from the end of the headers to the end of the body."""
    answer_seconds: float = 60.0
    """Seconds to read the answer, once the network buffers no more of it."""
    _awaited: str | None = None
    _clock: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Refuse it, or start its clock."""
        if len(self.connections) >= self.most:
            self.transport = transport
            words = f"all {self.most} connections are taken; try again in a moment"
            transport.write(_answer(HTTPStatus.SERVICE_UNAVAILABLE, "busy", words))
            transport.close()
            return
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # nothing waits here without a clock
        self._watch()

    def handle_events(self) -> None:
        """Handle events as uvicorn does, then start the timer of what is expected next."""
        super().handle_events()
        self._watch()

    def on_response_complete(self) -> None:
        """Complete the answer as uvicorn does, then start the timer of the next request."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """Pause as uvicorn does, then limit the time for reading the answer."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.answer_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Resume as uvicorn does, and stop the timer, since everything was read."""
        self._read()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer in the common shape that this is not HTTP; does nothing when an answer was sent already."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            words = "this is no valid HTTP/1.1 request"
            self.transport.write(_answer(HTTPStatus.BAD_REQUEST, "invalid_request", words))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timeouts of the connection."""
        super().connection_lost(exc)
        self._stop()
        self._read()

    def _watch(self) -> None:
        """The clock of headers, or a body, starts once and is not set back by a byte that drips."""
        awaited = None
        if self.cycle is None or self.cycle.response_complete:
            awaited = "headers"
        elif self.cycle.more_body:
            awaited = "body"
        if awaited == self._awaited:
            return
        self._stop()
        if awaited is not None and not self.transport.is_closing():
            seconds = self.header_seconds if awaited == "headers" else self.body_seconds
            self._clock = self.loop.call_later(seconds, self._expired, awaited, seconds)
        self._awaited = awaited

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
        self._clock, self._awaited = None, None

    def _read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
        self._unread = None

    def _expired(self, awaited: str, seconds: float) -> None:
        if awaited == "body" and self.cycle.response_started:
            self.transport.abort()
            return
        words = f"the request's {awaited} did not come within {seconds:g} s"
        self.transport.write(_answer(HTTPStatus.REQUEST_TIMEOUT, "request_timeout", words))
        self.transport.close()


def _answer(status: HTTPStatus, code: str, words: str) -> bytes:
    """An error in the one shape, before there is a request that the app could answer."""
    body = json.dumps(error_body(code, words, "")).encode()
    wait = "retry-after: 5\r\n" if status is HTTPStatus.SERVICE_UNAVAILABLE else ""
    return (
        f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n{wait}connection: close\r\n\r\n"
    ).encode() + body


def bounded_config(app: ASGIApp) -> uvicorn.Config:
    """Configuration to serve `app`; a quarter of the file descriptors stays free for files and upstream connections."""
    descriptors = _descriptors()

    class Connection(BoundedConnection):
        most = min(MOST, descriptors // 2)

    return uvicorn.Config(
        app,
        loop="asyncio",
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=min(_BACKLOG, descriptors // 4),
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )


class AnnouncedServer(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does, then call `on_start`."""
        await super().startup(sockets)
        if self.started:
            self._on_start()


def _descriptors() -> int:
    """Files and connections that this process may have open at a time."""
    if sys.platform == "win32":
        return 2 * MOST
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2 * MOST if soft == resource.RLIM_INFINITY else soft


def quieten(loop: asyncio.AbstractEventLoop) -> None:
    """Say once a minute, not a thousand times a second, that no connection can be accepted."""
    next_words = loop.time()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal next_words
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in _OUT_OF_DESCRIPTORS:
            loop.default_exception_handler(context)
        elif loop.time() >= next_words:
            next_words = loop.time() + _PAUSE_SECONDS
            _log.error("no connection can be accepted (%s); raise `ulimit -n`", error.strerror)

    loop.set_exception_handler(handle)
