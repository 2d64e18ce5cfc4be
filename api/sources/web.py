"""Asking a place over HTTP: one deadline, one cap, one rule for redirects, no cookies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx

from api.errors import Blocked, Broken, TimedOut, Unreachable
from api.services.metering import charge
from api.services.wire import (
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
    unpacked,
)

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
        self._client = httpx.AsyncClient(
            headers={**headers, "Accept-Encoding": PACKINGS},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            timeout=seconds,
            trust_env=not points_here(root),
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
            charge()
            connecting = Connecting()
            request = self._client.build_request("GET", url, extensions={"trace": connecting})
            request.url = _Shown(request.url)
            try:
                return await self._client.send(request, stream=True)
            except (httpx.NetworkError, httpx.RemoteProtocolError):
                if connecting.fresh:
                    raise
