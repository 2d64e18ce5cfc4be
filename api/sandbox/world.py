"""What all servers of one sandbox share, and the way a request takes through it.

The request log: one frozen entry per request served, without secrets.

A folder of recorded answers, each served once before the sandbox answers itself.

Layout: `<upstream>/index.json` maps file names to `status`, `headers` and `url` (or
`url_indicative`); the files lie beside it. Recordings without an address, and tokens, are not
served.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import itertools
import json
import re
import threading
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from api.sandbox.corpus import Post
from api.sandbox.faults import Faults

_SECRET = {"key", "api_key", "access_token"}
_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request; it is in the log once its answer is ready (or none will come)."""

    number: int
    """The order in which requests started, from 1."""
    upstream: str
    endpoint: str
    method: str
    path: str
    """Path and query; keys are starred."""
    query: Mapping[str, str]
    status: int
    """HTTP status of the answer; 0 when there will be none."""
    started: float
    """Monotonic seconds."""
    ended: float
    fault: str | None = None
    """The fault that answered, if one did."""
    body: Any = field(default=None, repr=False)
    """Decoded JSON sent to the model or to Langfuse; raw bytes of a protobuf; else None."""

    def public(self, bodies: bool = False) -> dict[str, Any]:
        """As JSON; bodies on request."""
        shown = asdict(self)
        body = shown.pop("body")
        del shown["query"]
        return shown | ({"body": None if isinstance(body, bytes) else body} if bodies else {})


class Journal:
    """Requests in the order they started; safe to read from any thread."""

    def __init__(self) -> None:
        """Start empty."""
        self._entries: deque[LoggedRequest] = deque(maxlen=_KEPT)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def start(
        self, upstream: str, endpoint: str, method: str, path: str, query: str, body: Any = None
    ) -> LoggedRequest:
        """Note that a request came in."""
        pairs = [(k, "***" if k in _SECRET else v) for k, v in parse_qsl(query, True)]
        shown = path + ("?" + urlencode(pairs, safe="*", quote_via=quote) if pairs else "")
        now = time.monotonic()
        return LoggedRequest(
            next(self._numbers), upstream, endpoint, method, shown, dict(pairs),
            status=0, started=now, ended=now, body=body,
        )  # fmt: skip

    def end(self, request: LoggedRequest, status: int, fault: str | None = None) -> None:
        """Note how it was answered; it is in the log from now on."""
        entry = replace(request, status=status, fault=fault, ended=time.monotonic())
        with self._lock:
            self._entries.append(entry)

    def entries(
        self, upstream: str | None = None, endpoint: str | None = None
    ) -> tuple[LoggedRequest, ...]:
        """What was served so far, of everybody or of one upstream or endpoint."""
        with self._lock:
            kept = list(self._entries)
        return tuple(
            entry
            for entry in sorted(kept, key=lambda entry: entry.number)
            if upstream in (None, entry.upstream) and endpoint in (None, entry.endpoint)
        )

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()


# How a recorded address begins, by upstream and endpoint: `/r/all/search?q=mug` is `search`.
_ENDPOINTS: Mapping[str, Mapping[str, str]] = {
    "reddit": {
        "search": r"/r/[^/]+/search",
        "comments": r"/comments/",
        "more": r"/api/morechildren",
        "info": r"/api/info",
    },
    "youtube": {
        "search": r"/youtube/v3/search",
        "videos": r"/youtube/v3/videos",
        "comments": r"/youtube/v3/comment(?:Thread)?s",
    },
    "amazon": {"search": r"/s\?", "product": r"/dp/", "signin": r"/ap/signin"},
}
_HEADERS = ("content-type", "retry-after", "www-authenticate", "location", "x-ratelimit-")


class Recordings:
    """Answers waiting to be served, by upstream and endpoint, in the order of their file names."""

    def __init__(self, folder: Path) -> None:
        """Read the indexes; bodies are read when they are served.

        Raises:
            ValueError: the folder has no index of an upstream, or one is malformed.
        """
        self._waiting: dict[tuple[str, str], deque[tuple[Path, Mapping[str, Any]]]]
        self._waiting = defaultdict(deque)
        for upstream, patterns in _ENDPOINTS.items():
            index = folder / upstream / "index.json"
            recorded = json.loads(index.read_text("utf-8")) if index.is_file() else {}
            for name, facts in sorted(recorded.items()):
                if (index.parent / name).is_file() and isinstance(facts, Mapping):
                    url = str(facts.get("url") or facts.get("url_indicative") or "")
                    for endpoint, pattern in patterns.items():
                        if re.match(pattern, url):
                            self._waiting[upstream, endpoint].append((index.parent / name, facts))
        if not self._waiting:
            raise ValueError(f"`{folder}` holds no `reddit`, `youtube` or `amazon/index.json`")

    def next(self, upstream: str, endpoint: str) -> Response | None:
        """The next recorded answer of one endpoint, if any is left."""
        waiting = self._waiting.get((upstream, endpoint))
        if not waiting:
            return None
        file, facts = waiting.popleft()
        recorded = facts.get("headers", {}).items()
        headers = {name: str(value) for name, value in recorded if name.startswith(_HEADERS)}
        kind = "text/html; charset=utf-8" if file.suffix == ".html" else "application/json"
        headers.setdefault("content-type", kind)
        return Response(file.read_bytes(), int(facts.get("status", 200)), headers)


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
class SandboxCall:
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


class RequestGateway:
    """Wraps answers of one upstream: log, latency and the faults that need no knowledge of it."""

    def __init__(
        self,
        world: World,
        upstream: str,
        refusals: Callable[[str, SandboxCall], Response | None],
        guard: Callable[[SandboxCall], Response | None] = lambda call: None,
    ):
        """`refusals(kind, call)` answers a fault in the upstream's own words, or declines.

        `guard(call)` refuses wrong keys and spent quotas, after faults and recordings.
        """
        self.world, self.upstream, self.refusals, self.guard = world, upstream, refusals, guard

    def route(
        self,
        path: str,
        endpoint: str | Callable[[Any], str],
        answer: Callable[[SandboxCall], Response],
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
            call = SandboxCall(request, body, data, kind)
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

    def _refusal(self, kind: str, call: SandboxCall) -> Response | None:
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
