"""What every client of a server agrees on, whoever is asked and by whichever library.

When to come back, who is this machine, how much of an answer is read, where a redirect may lead.
Sends nothing itself, so that sources and judges share it without knowing each other.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from api.errors import suspect_variables

if TYPE_CHECKING:
    from ssl import SSLContext

MAX_BYTES = 8_000_000
"""Most that is read of one answer, as sent and unpacked."""
TOO_LARGE = f"an answer above {MAX_BYTES // 1_000_000} MB"
PACKINGS = "gzip, deflate"
"""How a body may be packed, as the header that asks for it."""
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
_PORTS = {"http": 80, "https": 443}
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
        """Nothing has been opened yet."""
        self.fresh = False

    async def __call__(self, event: str, info: Mapping[str, Any]) -> None:
        """Note whether a connection was opened; httpcore calls it with each of its trace events."""
        self.fresh = self.fresh or event == "connection.connect_tcp.started"


class TooLarge(Exception):
    """An answer has more bytes than are taken; its clients say so in their own terms."""


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
    """The same as a moment, aware UTC."""
    now = now or datetime.now(UTC)
    seconds = wait_of(headers, now)
    return None if seconds is None else now + timedelta(seconds=seconds)


def _seconds(text: str, unit: float, now: datetime) -> float | None:
    """One header as seconds from now; None when it is neither a number nor a date."""
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


def is_this_machine(host: str) -> bool:
    """Whether a host name or address is this machine's own: `localhost`, 127.0.0.0/8, `::1`.

    In any case, with or without brackets and the root's dot; an IPv4 address may be written as IPv6
    (`::ffff:127.0.0.1`), as a server on both protocols sees it.
    """
    name = host.strip("[]").removesuffix(".").lower()
    if name == "localhost":
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


# Special-purpose addresses that no server of the internet has, by IANA's registries
# (https://www.iana.org/assignments/iana-ipv4-special-registry, iana-ipv6-special-registry). A table of our own, since
# `is_global` of the standard library differs between Python versions. Of IPv6 only 2000::/3 is assigned for use.
_SPECIAL_IPV4 = tuple(
    IPv4Network(block)
    for block in (
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24"
        " 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4"
    ).split()
)
_USABLE_IPV6 = IPv6Network("2000::/3")
_SPECIAL_IPV6 = tuple(IPv6Network(block) for block in ("2001::/23", "2001:db8::/32", "3fff::/20"))
# Networks whose addresses hold an IPv4 address, with the bit at which it ends: mapped, NAT64 (RFC 6052), 6to4.
_EMBEDDED_IPV4 = (
    (IPv6Network("::ffff:0:0/96"), 128),
    (IPv6Network("64:ff9b::/96"), 128),
    (IPv6Network("2002::/16"), 48),
)


def is_public(address: str) -> bool:
    """Whether an address is routed on the internet, not private, loopback or link-local.

    An IPv6 address that embeds an IPv4 one is judged by that.
    """
    parsed = ip_address(address.partition("%")[0])
    if isinstance(parsed, IPv6Address):
        for network, end in _EMBEDDED_IPV4:
            if parsed in network:
                parsed = IPv4Address((int(parsed) >> (128 - end)) & 0xFFFFFFFF)
                break
    if isinstance(parsed, IPv4Address):
        return not any(parsed in block for block in _SPECIAL_IPV4)
    return parsed in _USABLE_IPV6 and not any(parsed in block for block in _SPECIAL_IPV6)


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


def points_here(url: str) -> bool:
    """Whether a server at this address is on this machine, so that no proxy is asked for it."""
    try:
        return is_this_machine(urlsplit(url).hostname or "")
    except ValueError:
        return False


def connection_failure(error: BaseException) -> str:
    """Why a connection failed, by the error or what caused it; the kind of error where neither is known."""
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


def same_server(first: str, second: str) -> bool:
    """Whether two addresses have scheme, host and port in common, as a redirect must.

    Everything sent to a server (a key, a question, a prompt) would go along to another one.
    """
    try:
        left, right = urlsplit(first), urlsplit(second)
        return (left.scheme, left.hostname, left.port or _PORTS.get(left.scheme)) == (
            right.scheme, right.hostname, right.port or _PORTS.get(right.scheme),
        )  # fmt: skip
    except ValueError:
        return False


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
