"""Blocking clients on daemon threads of our own, with deadlines that hold.

A client has one thread, and only that thread uses it. A job that overruns its deadline is abandoned
with its client and thread, and the next job gets new ones, so a server that hangs delays neither
the caller nor the exit of the process. The connections of an abandoned client, which it hands to
`watch`, are ended at once, and with them its thread.
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


_THREAD = threading.local()


def watch(connection: socket.socket) -> None:
    """Let the deadline of the running job end a new connection; raises `ConnectionAbortedError`."""
    worker: _Worker[Any] | None = getattr(_THREAD, "worker", None)
    if worker is not None:
        worker.add(connection)


class _Worker(Generic[C]):
    """One thread and its client, which is made in the thread by its first job."""

    def __init__(self, name: str, make: Callable[[], C], close: Callable[[C], None]) -> None:
        self.jobs: queue.SimpleQueue[Callable[[_Worker[C]], None] | None] = queue.SimpleQueue()
        self._make, self._close = make, close
        self._clients: list[C] = []
        self._connections, self._abandoned = WeakSet[socket.socket](), False
        self._lock = threading.Lock()
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    @property
    def client(self) -> C:
        if not self._clients:
            self._clients.append(self._make())
        return self._clients[0]

    def add(self, connection: socket.socket) -> None:
        with self._lock:
            if self._abandoned:
                connection.close()
                raise ConnectionAbortedError("the job that wanted it was abandoned")
            self._connections.add(connection)

    def abandon(self) -> None:
        self.jobs.put(None)  # its thread ends after its job
        with self._lock:
            self._abandoned = True
            for connection in self._connections:
                # it may be closed already; of TLS only the socket below is ended
                with suppress(OSError):
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def _serve(self) -> None:
        _THREAD.worker = self
        while (job := self.jobs.get()) is not None:
            job(self)
        while self._clients:
            self._close(self._clients.pop())


class Workers(Generic[C]):
    """At most `size` threads with a client each, started when needed; belongs to one event loop."""

    def __init__(
        self,
        name: str,
        make: Callable[[], C],
        size: int = 4,
        close: Callable[[C], None] = lambda client: None,
    ) -> None:
        """`make` builds a client without a request; `close` ends it, in its thread."""
        self._name, self._make, self._close = name, make, close
        self._free = asyncio.Semaphore(size)
        self._idle: list[_Worker[C]] = []

    async def run(self, job: Callable[[C], R], seconds: float) -> R:
        """`job(client)` in a thread, in a copy of this context; raises `TimedOut`, or its error."""
        async with self._free:
            worker = self._idle.pop() if self._idle else self._new_worker()
            done = _submit(worker, job)
            try:
                async with asyncio.timeout(seconds):
                    return await done
            except TimeoutError:
                raise TimedOut(self._name, f"no answer within {seconds:g} s") from None
            finally:
                if done.done() and not done.cancelled():
                    self._idle.append(worker)
                else:
                    worker.abandon()

    def prepare(self, count: int) -> None:
        """Make so many idle clients now, while the caller waits for something else."""
        for _ in range(count - len(self._idle)):
            worker = self._new_worker()
            made = _submit(worker, lambda client: None)
            # a client that cannot be made is made again by the first job, which raises the error
            made.add_done_callback(lambda made: None if made.cancelled() else made.exception())
            self._idle.append(worker)

    def close(self) -> None:
        """Let idle threads end; busy ones end after their job."""
        while self._idle:
            self._idle.pop().jobs.put(None)

    def _new_worker(self) -> _Worker[C]:
        return _Worker(self._name, self._make, self._close)


def _submit(worker: _Worker[C], job: Callable[[C], R]) -> asyncio.Future[R]:
    """Queue the job; the future gets its result or error."""
    done: asyncio.Future[R] = asyncio.get_running_loop().create_future()
    context = contextvars.copy_context()

    def work(worker: _Worker[C]) -> None:
        with _Delivery(done) as delivery:
            delivery.send(done.set_result, context.run(lambda: job(worker.client)))

    worker.jobs.put(work)
    return done


class _Delivery:
    """Carries a thread's result or error to the loop that waits, if it still does."""

    def __init__(self, done: asyncio.Future[Any]) -> None:
        self._done, self._loop = done, done.get_loop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is not None:
            self.send(self._done.set_exception, error)
        return True

    def send(self, settle: Callable[[Any], None], value: object) -> None:
        def deliver() -> None:
            if not self._done.done():
                settle(value)

        with suppress(RuntimeError):  # the loop is closed, so nothing waits
            self._loop.call_soon_threadsafe(deliver)
