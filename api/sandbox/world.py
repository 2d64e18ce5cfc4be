"""What all servers of one sandbox share, and the way a request takes through it."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Self

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from api.sandbox.corpus import Post
from api.sandbox.faults import Faults
from api.sandbox.journal import Journal, LoggedRequest
from api.sandbox.recordings import Recordings

Probabilities = Callable[[str, str, list[str], str], Sequence[float]]
"""`judge(query, about, texts, source)` -> how likely each text is about the product."""


@dataclass(frozen=True, slots=True)
class Options:
    """Who may come in and how often; None accepts any credentials that are not empty."""

    reddit_credentials: tuple[str, str] | None = None
    youtube_key: str | None = None
    amazon_key: str | None = None
    openai_key: str | None = None
    langfuse_keys: tuple[str, str] | None = None
    langfuse_version: str = "4.59.0"
    """What the server says it is; below 4.59 it knows no dashboards and takes no list of scores."""
    reddit_limit: int = 1000
    """Requests per client id in a window of ten minutes."""
    search_quota: int = 100
    """YouTube searches a day and key."""
    unit_quota: int = 10_000
    """YouTube units a day and key, searches apart."""
    stackexchange_quota: int = 300
    """Stack Exchange requests a day without a key."""
    github_searches: int = 10
    """GitHub searches a minute without a token."""
    github_requests: int = 60
    """Other GitHub requests an hour without a token."""

    @classmethod
    def endless(cls) -> Self:
        """Of everything as much as anybody asks for."""
        most = 10**9
        return cls(
            reddit_limit=most, search_quota=most, unit_quota=most, stackexchange_quota=most,
            github_searches=most, github_requests=most,
        )  # fmt: skip


@dataclass(frozen=True)
class World:
    """One sandbox: its posts, its troubles, its log."""

    posts: tuple[Post, ...]
    judge: Probabilities
    options: Options = Options()
    faults: Faults = field(default_factory=Faults)
    journal: Journal = field(default_factory=Journal)
    clock: Callable[[], float] = time.time
    recordings: Recordings | None = None
    """Answers to serve before the own ones."""
    started: float = field(default_factory=time.time)
    """Unix seconds; the age of a post counts from here."""

    def of(self, source: str) -> tuple[Post, ...]:
        """The posts of one source."""
        return tuple(post for post in self.posts if post.source == source)

    def post(self, source: str, id_: str | None) -> Post | None:
        """The post with that native id."""
        return None if id_ is None else self._by_id.get((source, id_))

    @cached_property
    def _by_id(self) -> dict[tuple[str, str], Post]:
        return {(post.source, post.id): post for post in self.posts}

    def created(self, age_days: float | None) -> float:
        """Unix seconds of something that old."""
        return float(round(self.started - (age_days or 0) * 86_400))

    def moment(self, age_days: float | None) -> datetime:
        """The same as aware UTC."""
        return datetime.fromtimestamp(self.created(age_days), UTC)


@dataclass(frozen=True, slots=True)
class Call:
    """One request with its body read."""

    request: Request
    body: bytes
    data: Any = None
    """The body as JSON, where the upstream takes JSON."""
    fault: str | None = None

    @property
    def query(self) -> dict[str, str]:
        """Its query parameters."""
        return dict(self.request.query_params)

    def number(self, parameter: str, default: int) -> int:
        """A query parameter that is a whole number; the default where it is anything else."""
        return whole(self.request.query_params.get(parameter), default)

    @property
    def basic(self) -> tuple[str, str]:
        """User and password of basic authentication; both empty when there is none."""
        kind, _, value = self.request.headers.get("authorization", "").partition(" ")
        try:
            user, _, password = base64.b64decode(value, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return "", ""
        return (user, password) if kind.casefold() == "basic" else ("", "")


def whole(text: str | None, default: int) -> int:
    """`12` as a number; the default for anything but digits."""
    return int(text) if text and text.isascii() and text.isdigit() else default


class Gateway:
    """Wraps answers of one upstream: log, latency and the faults that need no knowledge of it."""

    def __init__(
        self,
        world: World,
        upstream: str,
        refusals: Callable[[str, Call], Response | None],
        guard: Callable[[Call], Response | None] = lambda call: None,
    ):
        """`refusals(kind, call)` answers a fault in the upstream's own words, or declines.

        `guard(call)` refuses wrong keys and spent quotas, after faults and recordings.
        """
        self.world, self.upstream, self.refusals, self.guard = world, upstream, refusals, guard

    def route(
        self,
        path: str,
        endpoint: str | Callable[[Any], str],
        answer: Callable[[Call], Response],
        *,
        methods: Sequence[str] = ("GET",),
        keep: bool = False,
    ) -> Route:
        """A route whose requests are logged; `keep` reads their bodies as JSON and logs them."""

        async def serve(request: Request) -> Response:
            try:
                body = await request.body()
            except ClientDisconnect:  # whoever asked was interrupted: nobody reads an answer
                return PlainTextResponse("", 499)
            data = decoded(body) if keep else None
            name = endpoint if isinstance(endpoint, str) else endpoint(data)
            entry = self.world.journal.start(
                self.upstream, name, request.method, request.url.path, request.url.query,
                (body if data is None else data) if keep else None,
            )  # fmt: skip
            kind = await self._strike(entry)
            call = Call(request, body, data, kind)
            if kind == "hang":
                self.world.journal.end(entry, 0, kind)
                while (await request.receive())["type"] != "http.disconnect":
                    pass
                return PlainTextResponse("", 499)
            recordings = self.world.recordings
            response = None
            if kind:
                response = self._refusal(kind, call)
            elif recordings is not None:
                response = recordings.next(self.upstream, name)
            response = response or self.guard(call) or answer(call)
            self.world.journal.end(entry, response.status_code, kind)
            return response

        return Route(path, serve, methods=list(methods))

    async def _strike(self, entry: LoggedRequest) -> str | None:
        """The fault that hits this request, after its latency."""
        kind = self.world.faults.strike(entry.upstream, entry.endpoint)
        seconds = self.world.faults.seconds(entry.upstream, entry.endpoint)
        if kind == "slow":
            kind, seconds = None, max(seconds, 2.0)
        if seconds:
            await asyncio.sleep(seconds)
        return kind

    def _refusal(self, kind: str, call: Call) -> Response | None:
        """The answer of a fault; None when it only spoils what is answered."""
        if kind == "drip":

            async def drops() -> AsyncIterator[bytes]:
                while not await call.request.is_disconnected():
                    yield b" "
                    await asyncio.sleep(0.2)

            return StreamingResponse(drops(), media_type="application/json")
        response = self.refusals(kind, call)
        if response is None and kind == "500":
            return PlainTextResponse("Internal Server Error", 500)
        if response is None and kind == "notjson":
            page = "<!doctype html><title>One moment</title><p>Please come back soon.</p>"
            return HTMLResponse(page)
        return response


def decoded(text: str | bytes) -> Any:
    """The text as JSON, or None."""
    try:
        return json.loads(text)
    except ValueError:
        return None
