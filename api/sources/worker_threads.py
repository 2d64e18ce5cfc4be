"""Blocking clients on daemon threads that we own, with deadlines that hold.

A client and its thread are a pair: a client is never used from two threads. A job that overruns its
deadline is abandoned together with its pair, and the next job gets a fresh one, so a hung or
dripping server can neither delay the caller nor the exit of the process. The connections of an
abandoned pair, which its client hands to `watch`, are ended at once, and with them its thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, Self, TypeVar
from weakref import WeakSet

from api.errors import TimedOut

C = TypeVar("C")
R = TypeVar("R")


class _Lines:
    """The connections of one pair, from whichever thread they are ended."""

    def __init__(self) -> None:
        self._open = WeakSet[socket.socket]()
        self._over = False
        self._lock = threading.Lock()

    def add(self, line: socket.socket) -> None:
        with self._lock:
            if self._over:
                line.close()
                raise ConnectionAbortedError("the job that wanted it was abandoned")
            self._open.add(line)

    def end(self) -> None:
        with self._lock:
            self._over = True
            for line in self._open:
                with suppress(OSError):  # it may be closed; of TLS only the socket below is ended
                    socket.socket.shutdown(line, socket.SHUT_RDWR)


_HERE = threading.local()


def watch(line: socket.socket) -> None:
    """Let the deadline of the running job end this connection; call it for each that is made.

    Raises:
        ConnectionAbortedError: the job was abandoned meanwhile.
    """
    lines: _Lines | None = getattr(_HERE, "lines", None)
    if lines is not None:
        lines.add(line)


class _Pair(Generic[C]):
    """One thread and the client only it uses; the client is made in the thread, on first use."""

    def __init__(self, name: str, make: Callable[[], C], close: Callable[[C], None]) -> None:
        self.jobs: queue.SimpleQueue[Callable[[_Pair[C]], None] | None] = queue.SimpleQueue()
        self._make, self._close = make, close
        self._client: list[C] = []
        self._lines = _Lines()
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    @property
    def client(self) -> C:
        if not self._client:
            self._client.append(self._make())
        return self._client[0]

    def abandon(self) -> None:
        """End its connections and, after its job, its thread."""
        self.jobs.put(None)
        self._lines.end()

    def _serve(self) -> None:
        _HERE.lines = self._lines
        while (job := self.jobs.get()) is not None:
            job(self)
        while self._client:
            self._close(self._client.pop())


class Workers(Generic[C]):
    """At most `size` pairs, started when needed; belongs to one event loop."""

    def __init__(
        self,
        name: str,
        make: Callable[[], C],
        size: int = 4,
        close: Callable[[C], None] = lambda client: None,
    ) -> None:
        """`make` builds a client without asking the network; `close` ends it, in its thread."""
        self._name, self._make, self._close = name, make, close
        self._free = asyncio.Semaphore(size)
        self._idle: list[_Pair[C]] = []

    async def run(self, job: Callable[[C], R], seconds: float) -> R:
        """Run `job(client)` in a pair's thread, in a copy of this context.

        Raises:
            TimedOut: no result within `seconds` of real time; waiting for a pair does not count.
            Exception: whatever the job, or making its client, raised.
        """
        async with self._free:
            pair = self._idle.pop() if self._idle else _Pair(self._name, self._make, self._close)
            done: asyncio.Future[R] = asyncio.get_running_loop().create_future()
            pair.jobs.put(_delivering(job, done, contextvars.copy_context()))
            try:
                async with asyncio.timeout(seconds):
                    return await done
            except TimeoutError:
                raise TimedOut(self._name, f"no answer within {seconds:g} s") from None
            finally:
                if done.done() and not done.cancelled():
                    self._idle.append(pair)
                else:
                    pair.abandon()

    def prepare(self, pairs: int) -> None:
        """Make the clients of so many idle pairs now, while the caller waits for something else."""
        loop = asyncio.get_running_loop()
        for _ in range(pairs - len(self._idle)):
            pair = _Pair(self._name, self._make, self._close)
            made: asyncio.Future[None] = loop.create_future()
            # one that could not be made is made again by the first job, which tells why
            made.add_done_callback(lambda made: None if made.cancelled() else made.exception())
            pair.jobs.put(_delivering(lambda client: None, made, contextvars.copy_context()))
            self._idle.append(pair)

    def close(self) -> None:
        """Let idle threads end; busy ones end after their job."""
        while self._idle:
            self._idle.pop().jobs.put(None)


def _delivering(
    job: Callable[[C], R], done: asyncio.Future[R], context: contextvars.Context
) -> Callable[[_Pair[C]], None]:
    """The job, made to hand its result or error to the waiting loop."""

    def work(pair: _Pair[C]) -> None:
        with _Delivery(done) as delivery:
            delivery.send(done.set_result, context.run(lambda: job(pair.client)))

    return work


class _Delivery:
    """Carries a thread's outcome to the loop that waits, if it still does."""

    def __init__(self, done: asyncio.Future[Any]) -> None:
        self._done, self._loop = done, done.get_loop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is not None:
            self.send(self._done.set_exception, error)
        return True

    def send(self, settle: Callable[[Any], None], value: object) -> None:
        """Settle the future on its own loop; a loop that is gone has nobody waiting."""

        def deliver() -> None:
            if not self._done.done():
                settle(value)

        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(deliver)
