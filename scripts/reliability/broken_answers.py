"""Ways to break a server's answer, from silence to numbers that are not finite."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from itertools import count
from typing import Any

from fault_proxy import Breaker, Exchange

HUGE = 200_000_000
"""Bytes of a body that nobody may read to its end."""
_BLOCK = bytes(1_000_000)
_DRIP_SECONDS = 0.05
_PAGES = count()
NUMBER = re.compile(rb"(?<=[:\[,])\s*-?\d+(?:\.\d+)?(?=\s*[,}\]])")
"""A number of a JSON text: `12` in `{"score": 12}`."""

_NAME = re.compile(rb'(?<=[{,])\s*("\w+")\s*:')
"""A name in a JSON object: `"score":`."""

CAPTCHA = (
    "<html><title>Robot Check</title><form action='/errors/validateCaptcha'>"
    "Enter the characters you see below <i>captcha</i></form></html>"
)


async def hang(exchange: Exchange) -> None:
    """Never answer."""
    await exchange.proxy.over()


def dripping(start: bytes, drop: bytes) -> Breaker:
    """Send a start, and then single bytes for ever."""

    async def breaker(exchange: Exchange) -> None:
        await exchange.send(start)
        while not await exchange.proxy.over(_DRIP_SECONDS):
            await exchange.send(drop)

    return breaker


def cut(data: bytes, *, reset: bool = True) -> Breaker:
    """Send some bytes, and end the connection: by a reset, or properly."""

    async def breaker(exchange: Exchange) -> None:
        if data:
            await exchange.send(data)
        (exchange.reset if reset else exchange.hang_up)()

    return breaker


async def stale(exchange: Exchange) -> None:
    """A connection that was kept is dead when it is used again."""
    if exchange.number > 1:
        exchange.reset()
    else:
        status, kind, body = await exchange.good()
        await exchange.answer(status, body, {"content-type": kind})


def status(code: int, headers: Mapping[str, object] | None = None, *, page: bool = False) -> Breaker:
    """A failed answer that repeats what it was asked: path, key and all."""

    async def breaker(exchange: Exchange) -> None:
        answer = exchange.request.head.decode("latin-1")
        body = f"<html><pre>{answer}</pre></html>" if page else json.dumps({"error": answer})
        kind = {"content-type": "text/html"} if page else {}
        await exchange.answer(code, body.encode(), {**kind, **(headers or {})})

    return breaker


def content(body: bytes, headers: Mapping[str, object] | None = None, code: int = 200) -> Breaker:
    """Answer with this body."""

    async def breaker(exchange: Exchange) -> None:
        await exchange.answer(code, body, headers)

    return breaker


def page(html: str) -> Breaker:
    """A web page in place of the answer."""
    return content(html.encode(), {"content-type": "text/html; charset=utf-8"})


def unpacked(change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """The change of a body's text, also where it came packed as a file."""
    return lambda body: change(gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body)


def changed(change: Callable[[bytes], bytes], headers: Mapping[str, object] | None = None) -> Breaker:
    """The good answer after a change, in the same kind of content."""

    async def breaker(exchange: Exchange) -> None:
        code, kind, body = await exchange.good()
        await exchange.answer(code, change(body), {"content-type": kind, **(headers or {})})

    return breaker


async def flood(exchange: Exchange) -> None:
    """A body of 200 MB, as much of it as is taken."""
    await exchange.send(f"HTTP/1.1 200 X\r\ncontent-length: {HUGE}\r\n\r\n".encode())
    for _ in range(HUGE // len(_BLOCK)):
        await exchange.send(_BLOCK)


@cache
def _bomb() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    blocks = [packer.compress(b" " * len(_BLOCK)) for _ in range(HUGE // len(_BLOCK))]
    return b"".join([*blocks, packer.flush()])


async def bomb(exchange: Exchange) -> None:
    """A body of 200 KB that unpacks to 200 MB."""
    await exchange.answer(200, _bomb(), {"content-encoding": "gzip"})


async def short(exchange: Exchange) -> None:
    """The good answer with half of its length named."""
    code, kind, body = await exchange.good()
    half = {"content-type": kind, "content-length": len(body) // 2, "connection": "close"}
    await exchange.answer(code, body, half)
    exchange.hang_up()


async def long(exchange: Exchange) -> None:
    """The good answer, with more promised, and the end of the connection."""
    code, kind, body = await exchange.good()
    await exchange.answer(code, body, {"content-type": kind, "content-length": len(body) + 9})
    exchange.hang_up()


async def endless(exchange: Exchange) -> None:
    """Answer the same page for ever, always with a next one."""
    code, kind, body = await exchange.good()
    if "json" in kind:
        answer = json.loads(body)
        answer["nextPageToken"] = "again"
        if "data" in answer:
            answer["data"]["after"] = "again"
        if "response" in answer:  # Steam's cursors differ from page to page
            answer["response"] |= {"cursor": f"again {next(_PAGES)}", "total_matching": 1_000_000}
        body = json.dumps(answer).encode()
    await exchange.answer(code, body, {"content-type": kind})


def doubled(body: bytes) -> bytes:
    """A JSON text in which every text is named twice, first with another value."""
    return _NAME.sub(rb'\1: "first", \1:', body)


def redirect(code: int, *, other_host: bool) -> Breaker:
    """Redirect to another server, or in a circle on this one."""

    async def breaker(exchange: Exchange) -> None:
        proxy, path = exchange.proxy, exchange.request.head.split(b" ", 2)[1].decode()
        host = f"localhost:{proxy.other_host_port}" if other_host else f"127.0.0.1:{proxy.port}"
        await exchange.answer(code, b"", {"location": f"http://{host}{path}"})

    return breaker


def with_values(change: Callable[[Any], Any]) -> Callable[[bytes], bytes]:
    """Change each value inside the outermost shape of a JSON text, or of each of its lines; other texts stay."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: walk(inner) for name, inner in value.items()}
        return [walk(inner) for inner in value] if isinstance(value, list) else change(value)

    def change_values(body: bytes) -> bytes:
        try:
            lines = body.split(b"\n")  # the last one may be empty
            return b"\n".join(json.dumps(walk(json.loads(line))).encode() if line else line for line in lines)
        except ValueError:
            return body

    return unpacked(change_values)


def values(change: Callable[[Any], Any]) -> Breaker:
    """The good answer with each value inside its outermost shape changed; other texts stay."""
    return changed(with_values(change))


def with_nul(value: Any) -> Any:
    """A text with a NUL at its end; other values stay."""
    return f"{value}\0" if isinstance(value, str) else value


def numbers(token: bytes) -> Breaker:
    """The good answer with this in place of every number."""
    return changed(unpacked(lambda body: NUMBER.sub(token, body)))
