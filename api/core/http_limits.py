"""What every client of a server keeps to, with any library.

When to ask again, how much of an answer is read, how it is unpacked, which certificates count, why a connection failed.
Sends nothing itself.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from api.core.addresses import points_here
from api.errors import suspect_variables

if TYPE_CHECKING:
    from ssl import SSLContext

MAX_BYTES = 8_000_000
"""Most that is read of one answer, as sent and unpacked."""
TOO_LARGE = f"an answer above {MAX_BYTES // 1_000_000} MB"
PACKINGS = "gzip, deflate"
"""Value of `Accept-Encoding`: the compressions that `unpacked` can read."""
UNPACKABLE = "an answer that cannot be unpacked"
MAX_PORT = 65_535
"""Largest number of a port; libraries fail in ways of their own beyond it."""
REDIRECTS = 3
"""Redirects that are followed for one answer, all on one server."""
LONGEST_WAIT = 86_400.0
"""Seconds; a server that asks for more is asked again after a day."""
# Headers that say when to come back, the plainest first, and seconds in their unit; the last is
# RapidAPI's.
_WAITS = {
    "retry-after-ms": 0.001,
    "retry-after": 1.0,
    "x-ratelimit-reset": 1.0,
    "x-ratelimit-requests-reset": 1.0,
}
# Numbers from here on are no waits but times since 1970: seconds (from July 2017 on; an absurd
# wait is smaller), and milliseconds.
_EPOCH, _EPOCH_MS = 1.5e9, 1e11
# Bytes that are unpacked at a time.
_PIECE = 65_536
# why a connection failed, by the name of the error or of a class above it
_CONNECTION_FAILURES = {
    "gaierror": "the name was not found",
    "ConnectionRefusedError": "it was refused",
    "ConnectionResetError": "it was cut",
    "BrokenPipeError": "it was cut",
    "SSLCertVerificationError": "the certificate is not trusted",
    "SSLError": "TLS failed",
}


class Connecting:
    """Notes whether a request opened a connection: one that was kept may have died unnoticed.

    For the `trace` extension of a request of httpx and its kin.
    """

    def __init__(self) -> None:
        """Start with no connection opened."""
        self.fresh = False

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        """Note whether a connection was opened; httpcore calls it with each of its trace events."""
        self.fresh = self.fresh or event == "connection.connect_tcp.started"


class TooLarge(Exception):
    """A body exceeds `MAX_BYTES`; each client maps this to its own error."""


def wait_of(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds until asking again makes sense, from 0 to a day; None when no header says.

    A header holds seconds (`7`, `1.5`), a time (`1790000000`) or an HTTP date; what cannot be read
    is as good as absent. Names are looked up in lower case.
    """
    now = now or datetime.now(UTC)
    for name, unit in _WAITS.items():
        seconds = _seconds(headers.get(name) or "", unit, now)
        if seconds is not None:
            return min(max(seconds, 0.0), LONGEST_WAIT)
    return None


def retry_at(headers: Mapping[str, str], now: datetime | None = None) -> datetime | None:
    """Time from which asking again makes sense, aware UTC; None when no header says."""
    now = now or datetime.now(UTC)
    seconds = wait_of(headers, now)
    return None if seconds is None else now + timedelta(seconds=seconds)


def _seconds(text: str, unit: float, now: datetime) -> float | None:
    """One header as seconds from now; None when it holds neither a number nor a date."""
    try:
        number = float(text)
    except ValueError:
        try:
            date = parsedate_to_datetime(text)
        except (ValueError, TypeError, LookupError, OverflowError):  # the parser's own stumbling
            return None
        return ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds()
    if math.isnan(number):
        return None
    if unit == 1.0 and number >= _EPOCH:
        return (number / 1000 if number >= _EPOCH_MS else number) - now.timestamp()
    return number * unit


def tls_context(load: Callable[..., SSLContext], trust_env: bool = True) -> SSLContext:
    """The TLS context that `load(trust_env=...)` returns, loaded once per process.

    Loading a CA bundle takes 25 ms, more than everything else of building a client. It is loaded
    again when a variable that names certificates or a key log has changed.

    Raises:
        OSError: the file that a variable names cannot be read.
    """
    names = ("SSL_CERT_FILE", "SSL_CERT_DIR") if trust_env else ()
    return _loaded(load, trust_env, *map(os.environ.get, (*names, "SSLKEYLOGFILE")))


@cache
def _loaded(load: Callable[..., SSLContext], trust_env: bool, *variables: str | None) -> SSLContext:
    return load(trust_env=trust_env)


def connection_failure(error: BaseException) -> str:
    """Why a connection failed, taken from the error or its causes; the error's class name when no cause is known."""
    cause: BaseException | None = error
    while cause is not None:
        kinds = (kind.__name__ for kind in type(cause).__mro__)
        if known := next((kind for kind in kinds if kind in _CONNECTION_FAILURES), None):
            return _CONNECTION_FAILURES[known]
        cause = cause.__cause__ or cause.__context__  # httpcore raises some "from None"
    return type(error).__name__


def no_connection(error: BaseException, url: str) -> str:
    """Why a server could not be reached, and variables that may be at fault.

    Of proxies the one in use may be well and the server down; no variable counts on this machine.
    """
    why = f"no connection ({connection_failure(error)})"
    names = [] if points_here(url) else [f"`{name}`" for name in suspect_variables(error)]
    return f"{why}; check {', '.join(names)}" if names else why


class Unpackable(Exception):
    """A body is not packed as its header says."""


async def unpacked(chunks: AsyncIterable[bytes], packing: str) -> AsyncIterator[bytes]:
    """A body in pieces of at most 64 KB, so that whoever counts them can stop in time.

    `packing` is the header of the answer; without one the body is as it is. What a library unpacks
    by itself it unpacks whole: 200 KB can be 200 MB.

    Raises:
        Unpackable: it is packed in another way, wrongly, or not to its end.
    """
    names = [name for part in packing.lower().split(",") if (name := part.strip())]
    if names in ([], ["identity"]):
        async for chunk in chunks:
            yield chunk
        return
    if names not in (["gzip"], ["x-gzip"], ["deflate"]):
        raise Unpackable(UNPACKABLE)
    inflate, empty = zlib.decompressobj(zlib.MAX_WBITS | 32), True  # 32: finds out which of both
    try:
        async for chunk in chunks:
            rest, empty = chunk, empty and not chunk
            while rest and not inflate.eof:
                yield inflate.decompress(rest, _PIECE)
                rest = inflate.unconsumed_tail
        yield inflate.flush()
    except zlib.error:
        raise Unpackable(UNPACKABLE) from None
    if not inflate.eof and not empty:
        raise Unpackable(UNPACKABLE)


def read_all(chunks: Iterable[bytes]) -> bytes:
    """A whole body.

    Raises:
        TooLarge: as soon as it has more than `MAX_BYTES`.
    """
    body = bytearray()
    for chunk in chunks:
        _grow(body, chunk)
    return bytes(body)


async def read_all_async(chunks: AsyncIterable[bytes], most: int = MAX_BYTES) -> bytes:
    """All chunks of an answer as one value, for a client on the event loop; `TooLarge` beyond `most` bytes."""
    body = bytearray()
    async for chunk in chunks:
        _grow(body, chunk, most)
    return bytes(body)


def _grow(body: bytearray, chunk: bytes, most: int = MAX_BYTES) -> None:
    body += chunk
    if len(body) > most:
        raise TooLarge(TOO_LARGE)
