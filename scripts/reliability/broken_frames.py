"""Ways to break a WebSocket that is open: frames that are no frames, and frames that hold no event."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Literal

from broken_answers import HUGE
from fault_proxy import Breaker, Exchange

TEXT, CLOSE, PING = 0x1, 0x8, 0x9
"""Kinds of frames: https://www.rfc-editor.org/rfc/rfc6455#section-5.2."""
WHOLE, COMPRESSED, PART = 0x80, 0x40, 0x00
"""Flags of a frame's first byte: the last one of a message, compressed content, a part that others follow."""
MASKED = 0x80
"""Flag of the second byte, which a client alone may set."""
LEFT = b"\x03\xe9"
"""Content of a closing frame: 1001, the server goes away."""
LAST_WORD = b'{"$type":"error","error":"ConsumerTooSlow","message":"reconnect"}'
_BLOCK = bytes(1_000_000)
_DRIP_SECONDS = 0.05
End = Literal["wait", "reset", "hang up"]


def frame(content: bytes, kind: int = TEXT, flags: int = WHOLE, *, mask: int = 0, size: int | None = None) -> bytes:
    """A frame as a server sends it; `size` is the length that it names, by default the true one."""
    length = len(content) if size is None else size
    if length < 126:
        head = bytes([mask | length])
    elif length < 65_536:
        head = bytes([mask | 126]) + length.to_bytes(2, "big")
    else:
        head = bytes([mask | 127]) + length.to_bytes(8, "big")
    return bytes([flags | kind]) + head + content


async def texts(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The contents of the text frames that the sandbox sends, none of which is masked or in parts."""
    while True:
        first, length = await reader.readexactly(2)
        if length >= 126:
            length = int.from_bytes(await reader.readexactly(2 if length == 126 else 8), "big")
        content = await reader.readexactly(length)
        if first & 0xF == TEXT:
            yield content


def sent(data: bytes, end: End = "wait", good: int = 0, again: bytes = b"", pause: float = 0.0) -> Breaker:
    """So many good frames, these bytes, then others for ever where there are any, and the end of the connection."""

    async def breaker(exchange: Exchange) -> None:
        reader, writer = await exchange.opened()
        try:
            contents = texts(reader)
            for _ in range(good):
                await exchange.send(frame(await anext(contents)))
        finally:
            writer.close()
        await exchange.send(data)
        while again and not await exchange.proxy.over(pause):
            await exchange.send(again)
        if end == "wait":
            await exchange.proxy.over()
        elif end == "reset":
            exchange.reset()
        else:
            exchange.hang_up()

    return breaker


def changed(change: Callable[[bytes], bytes]) -> Breaker:
    """The good stream with the content of each frame changed."""

    async def breaker(exchange: Exchange) -> None:
        reader, writer = await exchange.opened()
        try:
            async for content in texts(reader):
                await exchange.send(frame(change(content)))
        finally:
            writer.close()

    return breaker


async def repeated(exchange: Exchange) -> None:
    """The first frame for ever."""
    reader, writer = await exchange.opened()
    try:
        first = frame(await anext(texts(reader)))
    finally:
        writer.close()
    while not exchange.writer.is_closing():
        await exchange.send(first * 100)
        await asyncio.sleep(0)


async def flood(exchange: Exchange) -> None:
    """One frame of 200 MB, as much of it as is taken."""
    _, writer = await exchange.opened()
    writer.close()
    await exchange.send(frame(b"", size=HUGE))
    for _ in range(HUGE // len(_BLOCK)):
        await exchange.send(_BLOCK)


async def dripping(exchange: Exchange) -> None:
    """A frame whose bytes come one by one, and never end."""
    await sent(frame(b"", size=5_000), again=b" ", pause=_DRIP_SECONDS)(exchange)
