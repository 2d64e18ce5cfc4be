"""What all servers of one sandbox share, and the way a request takes through it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from api.sandbox.corpus import Post
from api.sandbox.faults import Faults
from api.sandbox.journal import Journal, Started
from api.sandbox.recordings import Recordings
from api.sandbox.search import Index

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
    reddit_limit: int = 1000
    """Requests per client id in a window of ten minutes."""
    search_quota: int = 100
    """YouTube searches a day and key."""
    unit_quota: int = 10_000
    """YouTube units a day and key, searches apart."""


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

    def index(self, source: str) -> Index:
        """A search index over the posts of one source."""
        return Index(self.of(source))

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


Answer = Callable[[Call], Response | Awaitable[Response]]
Name = str | Callable[[Any], str]


class Desk:
    """Wraps answers of one upstream: log, latency and the faults that need no knowledge of it."""

    def __init__(
        self, world: World, upstream: str, refusals: Callable[[str, Call], Response | None]
    ):
        """`refusals(kind, call)` answers a fault in the upstream's own words, or declines."""
        self.world, self.upstream, self.refusals = world, upstream, refusals

    def route(
        self,
        path: str,
        endpoint: Name,
        answer: Answer,
        *,
        methods: Sequence[str] = ("GET",),
        keep: bool = False,
    ) -> Route:
        """A route whose requests are logged; `keep` keeps their bodies in the log."""

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
            return await self._serve(entry, Call(request, body, data), answer)

        return Route(path, serve, methods=list(methods))

    async def _serve(self, entry: Started, call: Call, answer: Answer) -> Response:
        kind = self.world.faults.strike(entry.upstream, entry.endpoint)
        seconds = self.world.faults.seconds(entry.upstream, entry.endpoint)
        if kind == "slow":
            kind, seconds = None, max(seconds, 2.0)
        if seconds:
            await asyncio.sleep(seconds)
        if kind == "hang":
            self.world.journal.end(entry, 0, kind)
            await gone(call.request)
            return PlainTextResponse("", 499)
        struck = Call(call.request, call.body, call.data, kind)
        response = self._refused(kind, struck) if kind else self._recorded(entry)
        if response is None:
            made = answer(struck)
            response = made if isinstance(made, Response) else await made
        self.world.journal.end(entry, response.status_code, kind)
        return response

    def _recorded(self, entry: Started) -> Response | None:
        kept = self.world.recordings
        return None if kept is None else kept.next(entry.upstream, entry.endpoint)

    def _refused(self, kind: str, call: Call) -> Response | None:
        if kind == "drip":
            return StreamingResponse(_drops(call.request), media_type="application/json")
        response = self.refusals(kind, call)
        if response is not None:
            return response
        if kind == "500":
            return PlainTextResponse("Internal Server Error", 500)
        if kind == "notjson":
            return HTMLResponse(
                "<!doctype html><title>One moment</title><p>Please come back soon.</p>"
            )
        return None


async def gone(request: Request) -> None:
    """Wait until the client has gone away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _drops(request: Request) -> AsyncIterator[bytes]:
    while not await request.is_disconnected():
        yield b" "
        await asyncio.sleep(0.2)


def decoded(body: bytes) -> Any:
    """The body as JSON, or None."""
    try:
        return json.loads(body)
    except ValueError:
        return None
