"""The HTTP client of sources: deadline, size, redirects, no cookies; and how often a server may be asked.

The rate is the stricter of our limit and what the server's headers say, shared by everything in this process.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

from api.core.context import count_requests
from api.core.http_limits import (
    PACKINGS,
    REDIRECTS,
    TOO_LARGE,
    UNPACKABLE,
    Connecting,
    TooLarge,
    Unpackable,
    no_connection,
    points_here,
    read_all_async,
    retry_at,
    same_server,
    tls_context,
    unpacked,
)
from api.errors import Blocked, Broken, QuotaExhausted, RateLimited, TimedOut, Unreachable

_MOVED = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True)
class Reply:
    """One answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def html(self) -> bool:
        """It is a page, whatever was asked for."""
        return "html" in self.headers.get("content-type", "") or self.body.lstrip()[:1] == "<"

    @property
    def wait(self) -> datetime | None:
        """Until when to wait, aware UTC, when the answer says."""
        return retry_at(self.headers)

    @cached_property
    def data(self) -> Any:
        """The body as JSON; None when it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


def host_of(address: str) -> str:
    """The host in an address, without its port; empty where there is none."""
    try:
        return httpx.URL(address).host
    except httpx.InvalidURL:
        return ""


class _Shown(httpx.URL):
    """An address as httpx logs it at level INFO: without its query, which may hold a key."""

    def __str__(self) -> str:
        return str(self.copy_with(query=None))


class WebClient:
    """One server of a place, through httpx; belongs to one event loop."""

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
        self._client = httpx.AsyncClient(
            headers={**headers, "Accept-Encoding": PACKINGS},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            timeout=seconds,
            trust_env=trust_env,
            verify=tls_context(httpx.create_ssl_context, trust_env),
        )

    async def get(self, path: str, params: Mapping[str, str | int] | None = None) -> Reply:
        """The answer, whatever its status.

        Raises:
            TimedOut: it was not complete within the deadline.
            Unreachable: there was no connection, or it broke.
            Blocked: a redirect led to a wall.
            Broken: it was too large, wrongly packed, or led to another server.
        """
        try:
            async with asyncio.timeout(self._seconds):
                url = httpx.URL(self.root + path)
                return await self._follow(url.copy_merge_params(params) if params else url)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise TimedOut(self._name, f"no full answer in {self._seconds:g} s") from error
        except TooLarge as error:
            raise Broken(self._name, TOO_LARGE) from error
        except Unpackable as error:
            raise Broken(self._name, UNPACKABLE) from error
        except httpx.InvalidURL as error:
            raise Broken(self._name, type(error).__name__) from error
        except httpx.HTTPError as error:
            raise Unreachable(self._name, no_connection(error, self.root)) from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _follow(self, url: httpx.URL) -> Reply:
        """The answer, after redirects within the server; each is a request."""
        for _ in range(REDIRECTS + 1):
            async with aclosing(await self._connected(url)) as response:
                location = response.headers.get("location")
                if response.status_code not in _MOVED or location is None:
                    packing = response.headers.get("content-encoding", "")
                    body = await read_all_async(unpacked(response.aiter_raw(), packing))
                    text = body.decode("utf-8-sig", "replace")
                    return Reply(response.status_code, response.headers, text)
            target = url.join(location)
            if why := self._wall(target.path):
                raise Blocked(self._name, f"redirected to a {why}")
            if not same_server(str(url), str(target)):
                detail = f"redirected to another host, name that one in `{self._address}`"
                raise Broken(self._name, detail)
            url = target
        raise Broken(self._name, f"more than {REDIRECTS} redirects")

    async def _connected(self, url: httpx.URL) -> httpx.Response:
        """The beginning of an answer; while kept connections turn out dead, over the next one."""
        while True:
            count_requests()
            connecting = Connecting()
            request = self._client.build_request("GET", url, extensions={"trace": connecting})
            request.url = _Shown(request.url)
            try:
                return await self._client.send(request, stream=True)
            except (httpx.NetworkError, httpx.RemoteProtocolError):
                if connecting.fresh:
                    raise


PATIENCE = 3.0
"""Seconds that a request waits for its turn; for longer it is not sent."""


@dataclass(frozen=True, slots=True)
class Limit:
    """So many requests in so many seconds."""

    requests: int
    seconds: float


@dataclass(eq=False)
class Pace:
    """The requests of one kind to one server; shared by event loops and threads."""

    name: str
    limits: tuple[Limit, ...]
    bound: bool = True
    """The limits hold; what the server asks for always does."""
    _sent: deque[float] = field(default_factory=deque)
    """When requests were sent, or will be, in order; within the longest limit."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _until: float = 0.0
    _spent: type[RateLimited | QuotaExhausted] = RateLimited

    @property
    def left(self) -> int:
        """Requests that may be sent before the longest limit is reached."""
        start = time.monotonic() - self._longest.seconds
        sent = sum(moment > start for moment in tuple(self._sent))
        return max(self._longest.requests - sent, 0)

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
    return Pace(name, limits, bound=not points_here(server))
