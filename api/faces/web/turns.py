"""A chat turn as it happens, on the wire that its reader understands; hanging up ends its work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from api.faces.web.events import HEADERS, pour, unless_gone
from api.services.chatting.turns import Moment


@dataclass(frozen=True, slots=True)
class TurnWire:
    """How a turn is written down for those who read it."""

    media_type: str
    frames: Callable[[AsyncIterator[Moment]], AsyncGenerator[bytes]]
    """Each a whole event; an error of ours is the last one."""
    headers: Mapping[str, str] = field(default_factory=dict)


class TurnStream(Response):
    """A turn as it happens."""

    def __init__(
        self,
        moments: AsyncGenerator[Moment],
        first: asyncio.Future[Moment],
        wire: TurnWire,
        keepalive: float,
    ) -> None:
        """`first` is being read already, so that what fails soon is an error of its own."""
        super().__init__(media_type=wire.media_type)
        del self.headers["content-length"]
        self.headers.update({**HEADERS, **wire.headers})
        self._moments, self._first, self._wire = moments, first, wire
        self._keepalive = keepalive

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the turn is over or nobody reads."""
        async with aclosing(self._moments):
            frames = self._wire.frames(self._all())
            try:
                await unless_gone(receive, pour(send, self.raw_headers, frames, self._keepalive))
            finally:
                self._first.cancel()
                await asyncio.wait({self._first})

    async def _all(self) -> AsyncIterator[Moment]:
        yield await self._first
        async for moment in self._moments:
            yield moment


async def turn_stream(
    moments: AsyncGenerator[Moment], wire: TurnWire, keepalive: float
) -> TurnStream:
    """A response that begins once the turn has: what fails before is an error with a status.

    A turn that is silent for longer than a connection may be begins without its first moment.
    """
    first = asyncio.ensure_future(anext(moments))
    try:
        await asyncio.wait({first}, timeout=keepalive)
        if first.done():
            first.result()
    except asyncio.CancelledError:
        first.cancel()
        await asyncio.wait({first})
        raise
    return TurnStream(moments, first, wire, keepalive)
