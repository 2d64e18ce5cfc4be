"""The HTTP client of sources: deadline, size, redirects, no cookies; and how often a server may be asked.

The rate is the stricter of our limit and what the server's headers say, for everything in this process (`Pace`) and for
all processes on one database (`SharedPace`).
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property, partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any

import httpx

from api.core.addresses import is_public, points_here, same_server
from api.core.client_pool import ClientPool
from api.core.context import count_requests
from api.core.http_limits import (
    MAX_PORT,
    PACKINGS,
    REDIRECTS,
    TOO_LARGE,
    UNPACKABLE,
    Connecting,
    TooLarge,
    Unpackable,
    no_connection,
    read_all_async,
    retry_at,
    tls_context,
    unpacked,
)
from api.errors import (
    Blocked,
    Broken,
    QuotaExhausted,
    RateLimited,
    StoreUnavailable,
    TimedOut,
    Unreachable,
    construction_failures_as,
)
from api.features.analyses.store_ports import SourceMemory

if TYPE_CHECKING:
    from ssl import SSLContext

_MOVED = frozenset({301, 302, 303, 307, 308})
_MOVED_FOR_GOOD = frozenset({301, 308})


@dataclass(frozen=True)
class Reply:
    """One answer with its whole body."""

    status: int
    headers: Mapping[str, str]
    body: str
    content: bytes = b""
    """The body as it was sent, unpacked as its headers say."""

    @property
    def html(self) -> bool:
        """Whether the answer is an HTML page, whatever was requested."""
        return "html" in self.headers.get("content-type", "") or self.body.lstrip()[:1] == "<"

    @property
    def wait(self) -> datetime | None:
        """Time until which to wait, aware UTC; None when the answer does not say."""
        return retry_at(self.headers)

    @cached_property
    def data(self) -> Any:
        """The body parsed as JSON; None when it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


def host_of(address: str) -> str:
    """The host in an address, without its port; empty without one."""
    try:
        return httpx.URL(address).host
    except httpx.InvalidURL:
        return ""


def tls_of(trust_env: bool) -> SSLContext:
    """The TLS context of a source's connections, with the certificates that the environment names if `trust_env`."""
    return tls_context(httpx.create_ssl_context, trust_env)


class _Shown(httpx.URL):
    """An address as httpx logs it at level INFO: without its query, which may hold a key."""

    def __str__(self) -> str:
        return str(self.copy_with(query=None))


class WebClient:
    """Client of one server of a source, through httpx; belongs to one event loop."""

    def __init__(
        self,
        name: str,
        root: str,
        seconds: float,
        *,
        address: str,
        headers: Mapping[str, str],
        wall: Callable[[str], str | None] = lambda path: None,
    ) -> None:
        """`root` has no slash at its end, and `address` is the setting that holds it.

        `seconds` of real time are for one answer, redirects included. `wall` says of a path to
        which a redirect leads what stands there in the way, if anything.
        """
        self.root = root
        self._name, self._seconds, self._address, self._wall = name, seconds, address, wall
        trust_env = not points_here(root)
        verify = tls_of(trust_env)

        def make() -> httpx.AsyncClient:
            return httpx.AsyncClient(
                headers={**headers, "Accept-Encoding": PACKINGS},
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                timeout=seconds,
                trust_env=trust_env,
                verify=verify,
            )

        self._clients = ClientPool(make)

    async def get(
        self, path: str, params: Mapping[str, str | int] | None = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        """The answer, whatever its status.

        Raises:
            TimedOut: it was not complete within the deadline.
            Unreachable: there was no connection, or it broke.
            Blocked: a redirect led to a wall.
            Broken: it was too large, wrongly packed, or led to another server.
        """
        url = httpx.URL(self.root + path)
        return await self._answer(url.copy_merge_params(params) if params else url, "GET", headers=headers)

    async def post(self, path: str, body: Mapping[str, Any]) -> Reply:
        """The answer to JSON, whatever its status; raises as `get` does."""
        return await self._answer(httpx.URL(self.root + path), "POST", json=body)

    async def _answer(self, url: httpx.URL, method: str, **more: Any) -> Reply:
        with _failures_typed(self._name, self._seconds, self.root):
            async with asyncio.timeout(self._seconds):
                await self._clients.close_idle()
                with self._clients.lent() as client:
                    return await self._follow(client, url, method, more)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._clients.aclose()

    async def _follow(self, client: httpx.AsyncClient, url: httpx.URL, method: str, more: Mapping[str, Any]) -> Reply:
        """The answer, after redirects within the server; each is a request."""
        for _ in range(REDIRECTS + 1):
            async with aclosing(await _connected(client, url, method, more)) as response:
                location = response.headers.get("location")
                if response.status_code not in _MOVED or location is None:
                    packing = response.headers.get("content-encoding", "")
                    body = await read_all_async(unpacked(response.aiter_raw(), packing))
                    text = body.decode("utf-8-sig", "replace")
                    return Reply(response.status_code, response.headers, text, body)
            target = url.join(location)
            if why := self._wall(target.path):
                raise Blocked(self._name, f"redirected to a {why}")
            if not same_server(str(url), str(target)):
                detail = f"redirected to another host, name that one in `{self._address}`"
                raise Broken(self._name, detail)
            url = target
        raise Broken(self._name, f"more than {REDIRECTS} redirects")


async def _connected(client: httpx.AsyncClient, url: httpx.URL, method: str, more: Mapping[str, Any]) -> httpx.Response:
    """The beginning of an answer; while kept connections turn out dead, over the next one."""
    while True:
        count_requests()
        connecting = Connecting()
        request = client.build_request(method, url, extensions={"trace": connecting}, **more)
        request.url = _Shown(request.url)
        try:
            return await client.send(request, stream=True)
        except (httpx.NetworkError, httpx.RemoteProtocolError):
            if connecting.fresh:
                raise


@contextmanager
def _failures_typed(name: str, seconds: float, address: str) -> Iterator[None]:
    """What went wrong below an answer's meaning, as an error of the source."""
    try:
        yield
    except (TimeoutError, httpx.TimeoutException) as error:
        raise TimedOut(name, f"no full answer in {seconds:g} s") from error
    except TooLarge as error:
        raise Broken(name, TOO_LARGE) from error
    except Unpackable as error:
        raise Broken(name, UNPACKABLE) from error
    except (httpx.InvalidURL, UnicodeError) as error:  # the latter of a name that is too long
        raise Broken(name, "an address that is none") from error
    except (OSError, httpx.HTTPError) as error:
        raise Unreachable(name, no_connection(error, address)) from error


@dataclass(frozen=True, slots=True)
class Download:
    """One answer as bytes, from the server at the end of the redirects."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    address: str
    """Address that answered, after redirects."""
    moved: str
    """New address after permanent redirects; empty: unchanged."""

    @property
    def wait(self) -> datetime | None:
        """Time until which to wait, aware UTC; None when the answer does not say."""
        return retry_at(self.headers)


class NotPublic(Broken):
    """An address within this network, which no stranger may have us ask."""

    remedy = "an operator may put its address into `FEEDS`"


class PublicClient:
    """Client of any public server, through httpx; belongs to one event loop.

    A name is looked up once and asked at the address that was looked at, since it may mean another one by now. Servers
    that the settings name are asked wherever they are.
    """

    def __init__(
        self, name: str, seconds: float, most: int, *, trusted: Iterable[str], headers: Mapping[str, str]
    ) -> None:
        """`seconds` are for one answer, redirects included, `most` is in bytes, `trusted` are addresses of servers."""
        self._name, self._seconds, self._most = name, seconds, most
        self._trusted, self._headers = tuple(trusted), {**headers, "Accept-Encoding": PACKINGS}

    @cached_property
    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            headers=self._headers,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            timeout=self._seconds,
            trust_env=False,  # no proxy, to which an address that was looked up would mean nothing
            verify=tls_context(httpx.create_ssl_context),
            # two names may stand for one address, and a kept connection speaks for one of them alone
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def get(self, address: str, conditions: Mapping[str, Mapping[str, str]]) -> Download:
        """The answer, whatever its status; `conditions` are headers for single addresses.

        Raises:
            TimedOut, Unreachable: as `WebClient.get`.
            Broken: it was too large or wrongly packed, or led on too often.
            NotPublic: it is, or led, within this network.
        """
        with _failures_typed(self._name, self._seconds, address):
            async with asyncio.timeout(self._seconds):
                url, moved, for_good = httpx.URL(address), "", True
                for _ in range(REDIRECTS + 1):
                    shown = str(url)
                    async with aclosing(await self._connected(url, conditions.get(shown, {}))) as response:
                        location = response.headers.get("location")
                        if response.status_code not in _MOVED or location is None:
                            packing = response.headers.get("content-encoding", "")
                            body = await read_all_async(unpacked(response.aiter_raw(), packing), self._most)
                            return Download(response.status_code, response.headers, body, shown, moved)
                    url = url.join(location)
                    for_good = for_good and response.status_code in _MOVED_FOR_GOOD
                    moved = str(url) if for_good else moved
        raise Broken(self._name, f"more than {REDIRECTS} redirects")

    async def aclose(self) -> None:
        """Close the connections."""
        if "_client" in vars(self):
            await self._client.aclose()

    async def _connected(self, url: httpx.URL, headers: Mapping[str, str]) -> httpx.Response:
        with construction_failures_as(partial(Unreachable, self._name)):
            client = self._client
        there, extensions = url, {}
        if not any(same_server(str(url), trusted) for trusted in self._trusted):
            if url.scheme not in {"http", "https"} or not url.host:
                raise NotPublic(self._name, "an address that is neither http nor https")
            addresses = await _public_addresses(url)
            if not addresses:
                raise NotPublic(self._name, "an address within this network, which only `FEEDS` may hold")
            there, extensions = url.copy_with(host=addresses[0]), {"sni_hostname": url.raw_host.decode("ascii")}
        count_requests()
        own = {**headers, "Host": url.netloc.decode("ascii")}
        request = client.build_request("GET", there, headers=own, extensions=extensions)
        request.url = _Shown(request.url)
        return await client.send(request, stream=True)


async def _public_addresses(url: httpx.URL) -> list[str]:
    """The addresses of a server; none where any is within this network. Raises `OSError`, of a port `InvalidURL`."""
    port = url.port or (443 if url.scheme == "https" else 80)
    if port > MAX_PORT:
        raise httpx.InvalidURL(f"a port above {MAX_PORT}")
    host = url.raw_host.decode("ascii").strip("[]")
    entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in entries]
    return addresses if all(map(is_public, addresses)) else []


async def public_root(address: str, seconds: float) -> str:
    """Scheme, host and port of a public https address; empty for another, or one not resolved in time."""
    try:
        url = httpx.URL(address)
        async with asyncio.timeout(seconds):
            known = url.scheme == "https" and url.host and await _public_addresses(url)
    except (httpx.InvalidURL, OSError, UnicodeError):  # the last of a name that is too long
        return ""
    return f"https://{url.netloc.decode('ascii')}" if known else ""


PATIENCE = 3.0
"""Seconds that a request waits for its turn; for longer it is not sent."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Most requests in a number of seconds."""

    requests: int
    seconds: float


@dataclass(eq=False)
class Pace:
    """The requests of one kind to one server; shared by event loops and threads."""

    name: str
    limits: tuple[Limit, ...]
    bound: bool = True
    """Whether the limits apply; pauses that the server requests always do."""
    server: str = ""
    _sent: deque[float] = field(default_factory=deque)
    """Times of requests, sent or planned, in order, within the longest limit."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _until: float = 0.0
    _spent: type[RateLimited | QuotaExhausted] = RateLimited

    @property
    def left(self) -> int:
        """Requests that may be sent before the longest limit is reached."""
        start = time.monotonic() - self._longest.seconds
        sent = sum(moment > start for moment in tuple(self._sent))
        return max(self._longest.requests - sent, 0)

    @property
    def pause_end(self) -> tuple[datetime, bool] | None:
        """End of the pause that the server requested, and whether the daily quota is used up; None without a pause."""
        seconds = self._until - time.monotonic()
        return (datetime.now(UTC) + timedelta(seconds=seconds), self._spent is QuotaExhausted) if seconds > 0 else None

    async def turn(self) -> None:
        """Wait until one more may be sent, in the order of the callers, and count it.

        Raises:
            RateLimited: that is not within `PATIENCE`; `retry_at` is when.
            QuotaExhausted: the same, when the server said that the day's requests are used up.
        """
        at = self._reserved()
        try:
            while (wait := at - time.monotonic()) > 0:
                if wait > PATIENCE:
                    free = datetime.now(UTC) + timedelta(seconds=wait)
                    paused = self._until > time.monotonic()
                    spent = self._spent if paused else RateLimited
                    raise spent(self.name, "its limit is reached, nothing sent", retry_at=free)
                await asyncio.sleep(wait)
                if self._until > time.monotonic():  # meanwhile the server asked for a pause
                    self._release(at)
                    at = self._reserved()
        except (asyncio.CancelledError, RateLimited, QuotaExhausted):
            self._release(at)
            raise

    def pause(
        self,
        until: datetime | None,
        spent: type[RateLimited | QuotaExhausted] = RateLimited,
    ) -> None:
        """Send nothing before that moment, as the server asked; `spent` is what that is called."""
        if until is not None:
            seconds = (until - datetime.now(UTC)).total_seconds()
            if (end := time.monotonic() + seconds) > self._until:
                self._until, self._spent = end, spent

    def _reserved(self) -> float:
        """The next free moment, on the monotonic clock, which is then taken."""
        with self._lock:
            now = time.monotonic()
            while self._sent and self._sent[0] <= now - self._longest.seconds:
                self._sent.popleft()
            at = max(now, self._until, self._sent[-1] if self._sent else 0)
            for limit in self.limits if self.bound else ():
                if len(self._sent) >= limit.requests:
                    at = max(at, self._sent[-limit.requests] + limit.seconds)
            self._sent.append(at)
            return at

    def _release(self, at: float) -> None:
        """Leave a moment to others."""
        with self._lock:
            self._sent.remove(at)

    @property
    def _longest(self) -> Limit:
        return max(self.limits, key=lambda limit: limit.seconds)


@cache
def pace_of(name: str, server: str, *limits: Limit) -> Pace:
    """The one pace of a server in this process; on this machine no stranger's limits hold."""
    return Pace(name, limits, bound=not points_here(server), server=server)


@dataclass(frozen=True, slots=True)
class SharedPace:
    """A budget of requests shared by all processes on a database; without the database each has its own."""

    name: str
    memory: SourceMemory | None
    scope: str
    limits: tuple[Limit, ...] = ()

    async def turn(self) -> None:
        """Wait until one more may be sent, and count it.

        Raises:
            RateLimited, QuotaExhausted: as `Pace.turn`.
        """
        limits, end = [(limit.requests, limit.seconds) for limit in self.limits], time.monotonic() + PATIENCE
        while self.memory is not None:
            now = datetime.now(UTC)
            try:
                busy = await self.memory.take_turn(f"pace {self.scope}", limits, now)
            except StoreUnavailable:
                return
            if busy is None:
                return
            free, spent = busy
            wait = (free - now).total_seconds()
            if time.monotonic() + wait > end:
                reached = QuotaExhausted if spent else RateLimited
                raise reached(self.name, "its limit is reached, nothing sent", retry_at=free)
            await asyncio.sleep(wait)

    async def pause(self, until: datetime, spent: bool = False) -> None:
        """Have no process send anything before that moment."""
        if self.memory is not None:
            with suppress(StoreUnavailable):
                await self.memory.pause_source(f"pace {self.scope}", until, spent, datetime.now(UTC))
