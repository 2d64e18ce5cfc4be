"""Ways to break a server's answer, from silence to numbers that are not finite."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from fault_proxy import Exchange, Way

HUGE = 200_000_000
"""Bytes of a body that nobody may read to its end."""
_BLOCK = bytes(1_000_000)
_DRIP_SECONDS = 0.05
_NUMBER = re.compile(rb"(?<=[:\[,])\s*-?\d+(?:\.\d+)?(?=\s*[,}\]])")
"""A number of a JSON text: `12` in `{"score": 12}`."""

_NAME = re.compile(rb'(?<=[{,])\s*("\w+")\s*:')
"""A name in a JSON object: `"score":`."""

CAPTCHA = (
    "<html><title>Robot Check</title><form action='/errors/validateCaptcha'>"
    "Enter the characters you see below <i>captcha</i></form></html>"
)


async def hang(exchange: Exchange) -> None:
    """Nothing, for ever."""
    await exchange.relay.over()


def dripping(start: bytes, drop: bytes) -> Way:
    """A start, and then drop after drop for ever."""

    async def way(exchange: Exchange) -> None:
        await exchange.send(start)
        while not await exchange.relay.over(_DRIP_SECONDS):
            await exchange.send(drop)

    return way


def cut(data: bytes, *, reset: bool = True) -> Way:
    """Some bytes, and then the end of the connection: a reset, or in good manners."""

    async def way(exchange: Exchange) -> None:
        if data:
            await exchange.send(data)
        (exchange.reset if reset else exchange.hang_up)()

    return way


async def stale(exchange: Exchange) -> None:
    """A connection that was kept is dead when it is used again."""
    if exchange.number > 1:
        exchange.reset()
    else:
        status, kind, body = await exchange.good()
        await exchange.answer(status, body, {"content-type": kind})


def status(code: int, headers: Mapping[str, object] | None = None, *, page: bool = False) -> Way:
    """A failed answer that repeats what it was asked: path, key and all."""

    async def way(exchange: Exchange) -> None:
        heard = exchange.asked.head.decode("latin-1")
        body = f"<html><pre>{heard}</pre></html>" if page else json.dumps({"error": heard})
        kind = {"content-type": "text/html"} if page else {}
        await exchange.answer(code, body.encode(), {**kind, **(headers or {})})

    return way


def content(body: bytes, headers: Mapping[str, object] | None = None, code: int = 200) -> Way:
    """This body."""

    async def way(exchange: Exchange) -> None:
        await exchange.answer(code, body, headers)

    return way


def page(html: str) -> Way:
    """A web page in place of the answer."""
    return content(html.encode(), {"content-type": "text/html; charset=utf-8"})


def spoilt(change: Callable[[bytes], bytes], headers: Mapping[str, object] | None = None) -> Way:
    """The good answer after a change, in the same kind of content."""

    async def way(exchange: Exchange) -> None:
        code, kind, body = await exchange.good()
        await exchange.answer(code, change(body), {"content-type": kind, **(headers or {})})

    return way


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
    """The same page for ever, each with a next one."""
    code, kind, body = await exchange.good()
    if "json" in kind:
        answer = json.loads(body)
        answer["nextPageToken"] = "again"
        if "data" in answer:
            answer["data"]["after"] = "again"
        body = json.dumps(answer).encode()
    await exchange.answer(code, body, {"content-type": kind})


def doubled(body: bytes) -> bytes:
    """A JSON text in which every text is named twice, first with another value."""
    return _NAME.sub(rb'\1: "first", \1:', body)


def redirect(code: int, *, elsewhere: bool) -> Way:
    """Sent to another server, or round and round on this one."""

    async def way(exchange: Exchange) -> None:
        relay, path = exchange.relay, exchange.asked.head.split(b" ", 2)[1].decode()
        host = f"localhost:{relay.elsewhere}" if elsewhere else f"127.0.0.1:{relay.port}"
        await exchange.answer(code, b"", {"location": f"http://{host}{path}"})

    return way


def values(change: Callable[[Any], Any]) -> Way:
    """The good answer with each value inside its outermost shape changed; other texts stay."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: walk(inner) for name, inner in value.items()}
        return [walk(inner) for inner in value] if isinstance(value, list) else change(value)

    def changed(body: bytes) -> bytes:
        try:
            return json.dumps(walk(json.loads(body))).encode()
        except ValueError:
            return body

    return spoilt(changed)


def numbers(token: bytes) -> Way:
    """The good answer with this in place of every number."""
    return spoilt(lambda body: _NUMBER.sub(token, body))
