"""Connections that say nothing, say it slowly, or are too many."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from api.interfaces.http.connections import BoundedConnection, bounded_config, quieten
from tests.interfaces.http.process import serving

GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\n"


class Hasty(BoundedConnection):
    """Waits no longer than a test may."""

    header_seconds = body_seconds = answer_seconds = 0.2


class Scarce(BoundedConnection):
    """Two connections at a time."""

    most = 2


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the body; under `/at-once` it begins to answer before it has the body."""
    request = Request(scope, receive)
    if scope["path"] == "/at-once":

        async def pieces() -> AsyncIterator[bytes]:
            yield b"a"
            await asyncio.get_running_loop().create_future()

        await StreamingResponse(pieces())(scope, receive, send)
        return
    await PlainTextResponse(await request.body())(scope, receive, send)


@asynccontextmanager
async def listening(kind: type[BoundedConnection], app: ASGIApp = echo) -> AsyncIterator[int]:
    """The port of a server with such connections."""
    config = uvicorn.Config(app, http=kind, lifespan="off", ws="none", log_config=None)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = asyncio.create_task(server.serve([listener]))
        yield listener.getsockname()[1]
        server.should_exit = True
        await running


async def told(port: int, sent: bytes) -> bytes:
    """Everything the server says to this until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    answer = b""
    while piece := await reader.read(1000):
        answer += piece
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("sent", "awaited"),
    [(b"", "headers"), (GET[:20], "headers"), (POST, "body"), (POST + b"abc", "body")],
    ids=["silent", "half a header", "no body", "half a body"],
)
async def test_who_does_not_finish_a_request_is_sent_away(sent: bytes, awaited: str) -> None:
    """
    With 408 in the one shape, and the connection is closed.
    """
    async with listening(Hasty) as port:
        answer = await told(port, sent)

    head, _, body = answer.partition(b"\r\n\r\n")
    error = json.loads(body)["error"]
    assert head.startswith(b"HTTP/1.1 408 ")
    assert error["code"] == "request_timeout"
    assert error["message"] == f"the request's {awaited} did not come within 0.2 s"


async def test_a_second_request_that_drips_is_ended_too() -> None:
    """
    The first is answered; one byte of the next ends uvicorn's own clock, not ours.
    """
    async with listening(Hasty) as port:
        answer = await told(port, GET + GET[:5])

    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert b"HTTP/1.1 408 " in answer


async def test_a_body_that_stops_under_an_answer_ends_it() -> None:
    """
    Then no second answer can be given.
    """
    async with listening(Hasty) as port:
        answer = await told(port, POST.replace(b"/ ", b"/at-once "))

    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert b"408" not in answer


async def test_an_answer_may_take_its_time() -> None:
    """
    Once a request is there no clock runs: the answer comes when it comes.
    """
    async with listening(Hasty) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET.replace(b"/ ", b"/at-once "))
        assert await reader.readuntil(b"\r\na\r\n")
        silent = await told(port, b"")  # takes as long as the other would have had
        assert silent.startswith(b"HTTP/1.1 408 ")
        assert not reader.at_eof()
        writer.close()


async def test_who_does_not_read_the_answer_is_cut_off() -> None:
    """
    A connection that takes nothing of ten megabytes is given up, with the work behind it.
    """
    lost = asyncio.Event()

    async def much(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a" * 10_000_000, "more_body": True})
        assert (await receive())["type"] == "http.disconnect"
        lost.set()

    async with listening(Hasty, much) as port:
        with socket.create_connection(("127.0.0.1", port)) as silent:
            silent.sendall(GET)
            async with asyncio.timeout(120):
                await lost.wait()


async def test_who_reads_the_answer_gets_all_of_it() -> None:
    """
    Ten megabytes, piece by piece as the network takes them.
    """

    async def much(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(b"a" * 10_000_000)(scope, receive, send)

    async with listening(BoundedConnection, much) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(LAST)
        answer = await reader.read()
        writer.close()

    assert answer.endswith(b"\r\n\r\n" + b"a" * 10_000_000)


async def test_what_is_no_request_is_refused_in_the_one_shape() -> None:
    """
    400, and the connection is closed.
    """
    async with listening(BoundedConnection) as port:
        answer = await told(port, b"\x16\x03\x01\x02\r\n\r\n")

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["code"] == "invalid_request"


async def test_what_is_no_body_after_an_answer_ends_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """
    The answer to the request stands, and nothing is a fault of ours.
    """

    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("no", 404)(scope, receive, send)

    async with listening(BoundedConnection, refuse) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        chunked = POST.replace(b"content-length: 5", b"transfer-encoding: chunked")
        writer.write(chunked + b"5\r\nabcde\r\n")
        answer = await reader.readuntil(b"no")
        writer.write(b"zz\r\n\r\n")
        answer += await reader.read()
        writer.close()

    assert answer.count(b"HTTP/1.1 ") == 1
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_beyond_the_limit_a_connection_is_refused() -> None:
    """
    With 503 at once; when another has gone there is room.
    """
    async with listening(Scarce) as port:
        first = await asyncio.open_connection("127.0.0.1", port)
        first[1].write(GET)
        await first[0].readuntil(b"\r\n\r\n")
        second = await asyncio.open_connection("127.0.0.1", port)
        second[1].write(GET)
        await second[0].readuntil(b"\r\n\r\n")
        refused = await told(port, b"")
        second[1].close()
        async with asyncio.timeout(120):
            while (answer := await told(port, LAST)).startswith(b"HTTP/1.1 503"):
                continue
        first[1].close()

    assert refused.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 5" in refused
    assert json.loads(refused.partition(b"\r\n\r\n")[2])["error"]["code"] == "busy"
    assert answer.startswith(b"HTTP/1.1 200 OK")


def test_with_few_descriptors_the_server_lives_and_says_little(tmp_path: Path) -> None:
    """
    300 silent connections on 80 descriptors: some are refused, and it answers when they have gone.
    """
    variables = {"LISTENPOST_DATABASE_URL": f"sqlite:///{tmp_path}/a.db", "LISTENPOST_MODE": "live"}
    with serving(tmp_path, variables, descriptors=80) as process:
        port = int(process.url.rpartition(":")[2])
        with ExitStack() as stack:
            for _ in range(300):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=120))
            last = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=120))
            last.recv(10)
        with httpx.Client(transport=httpx.HTTPTransport(retries=5)) as client:
            health = client.get(f"{process.url}/healthz", timeout=120)

    assert health.status_code == 200
    assert len("".join(process.said)) < 2_000


async def test_the_want_of_descriptors_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """
    Of hundreds a second; what else goes wrong in the loop is told as ever.
    """
    loop = asyncio.get_running_loop()
    quieten(loop)
    for _ in range(500):
        loop.call_exception_handler({"message": "accept", "exception": OSError(24, "Too many")})
    loop.call_exception_handler({"message": "something else"})
    loop.set_exception_handler(None)

    assert [record.getMessage() for record in caplog.records] == [
        "no connection can be accepted (Too many); raise `ulimit -n`",
        "something else",
    ]


def test_a_server_leaves_descriptors_for_its_work() -> None:
    """
    Half of them at most are connections.
    """
    config = bounded_config(echo)

    assert isinstance(config.http, type)
    assert issubclass(config.http, BoundedConnection)
    assert 0 < config.http.most <= 512
    assert config.backlog <= 128
