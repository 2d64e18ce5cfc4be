"""Pairs of client and thread: reuse, deadlines, abandonment, and the end of the process."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.core.context import count_requests, request_counter
from api.errors import TimedOut
from api.sources.worker_threads import Workers


class Client:
    """Knows its thread and whether it was closed."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.closed = threading.Event()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Ends jobs that hang."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_client_that_cannot_be_made_beforehand_is_no_complaint() -> None:
    """The first job makes it again and tells why; the event loop has nothing to say about it."""
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    refusals = iter([ValueError("not now")])

    def make() -> Client:
        for refusal in refusals:
            raise refusal
        return Client()

    workers = Workers("test", make)
    workers.prepare(1)
    client = await workers.run(lambda client: client, 5)  # in the same thread, after it
    await asyncio.sleep(0)
    gc.collect()
    workers.close()

    assert isinstance(client, Client)
    assert complaints == []


async def test_client_is_used_in_its_own_thread_and_reused() -> None:
    """One call after the other takes the same pair; the client is made where it is used."""
    workers = Workers("test", Client)

    clients = [await workers.run(lambda client: client, 5) for _ in range(3)]
    thread = await workers.run(lambda client: threading.get_ident(), 5)
    workers.close()

    assert len({id(client) for client in clients}) == 1
    assert clients[0].thread == thread != threading.get_ident()


async def test_concurrent_jobs_have_different_clients() -> None:
    """Four jobs meet at a barrier, so each has a thread and a client of its own."""
    barrier = threading.Barrier(4)
    workers = Workers("test", Client, 4)

    def meet(client: Client) -> Client:
        barrier.wait(5)
        return client

    clients = await asyncio.gather(*(workers.run(meet, 5) for _ in range(4)))
    workers.close()

    assert len({client.thread for client in clients}) == 4


async def test_overrun_job_is_abandoned_with_its_pair(release: threading.Event) -> None:
    """The caller gets its answer on time, and the next job a fresh client."""
    workers = Workers("test", Client, 1)
    first = await workers.run(lambda client: client, 60)

    with pytest.raises(TimedOut, match=r"no answer within 0.05 s"):
        await workers.run(lambda client: release.wait(), 0.05)
    second = await workers.run(lambda client: client, 60)
    workers.close()

    assert not release.is_set()
    assert first is not second


async def test_waiting_for_a_pair_does_not_count(release: threading.Event) -> None:
    """A job behind a hung one still has its whole time."""
    workers = Workers("test", Client, 1)
    hung = asyncio.ensure_future(workers.run(lambda client: release.wait(30), 0.2))
    await asyncio.sleep(0)

    assert await workers.run(lambda client: "done", 0.15) == "done"
    with pytest.raises(TimedOut):
        await hung
    workers.close()


async def test_errors_arrive_as_they_are() -> None:
    """What the job, or making its client, raises reaches the caller; the pair stays usable."""

    def broken(client: Client) -> None:
        raise LookupError("lost")

    def unmakeable() -> Client:
        raise ConnectionError("no client")

    workers, hopeless = Workers("test", Client), Workers("test", unmakeable)

    with pytest.raises(LookupError, match="lost"):
        await workers.run(broken, 5)
    with pytest.raises(ConnectionError, match="no client"):
        await hopeless.run(lambda client: None, 5)
    assert await workers.run(lambda client: 1, 5) == 1
    workers.close()
    hopeless.close()


async def test_context_reaches_the_thread() -> None:
    """A request that a thread sends is counted in the caller's block."""
    workers = Workers("test", Client)

    with request_counter() as calls:
        await workers.run(lambda client: count_requests(2), 5)
    workers.close()

    assert calls.made == 2


async def test_cancelled_caller_abandons_its_job(release: threading.Event) -> None:
    """Cancellation is immediate and leaves room for the next job."""
    workers = Workers("test", Client, 1)
    task = asyncio.ensure_future(workers.run(lambda client: release.wait(30), 30))
    await asyncio.sleep(0)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert await workers.run(lambda client: "free", 5) == "free"
    workers.close()


async def test_closing_closes_the_clients() -> None:
    """An idle pair closes its client in its own thread; an abandoned one after its job."""
    workers = Workers("test", Client, 2, lambda client: client.closed.set())
    client = await workers.run(lambda client: client, 5)
    held: list[Client] = []
    over = threading.Event()

    def hold(client: Client) -> None:
        held.append(client)
        over.wait(30)

    with pytest.raises(TimedOut):
        await workers.run(hold, 0.05)
    over.set()
    workers.close()

    assert held[0] is client
    assert await asyncio.to_thread(client.closed.wait, 5)


def test_hung_job_does_not_hold_the_process(root: Path) -> None:
    """A process whose job never ends exits at once."""
    program = """
import asyncio, threading
from api.errors import TimedOut
from api.sources.worker_threads import Workers
async def main():
    workers = Workers("test", object)
    try:
        await workers.run(lambda client: threading.Event().wait(60), 0.1)
    except TimedOut as error:
        print(error.code)
    workers.close()
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert done.stdout.split() == ["timed_out"]
