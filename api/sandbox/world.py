"""What the servers of one sandbox share: request log, recorded answers, posts, and their base.

A folder of recordings has `<upstream>/index.json`, which maps file names to `status`, `headers` and
`url` (or `url_indicative`), and the files beside it. Each is served once, before the sandbox
generates answers; recordings without an address, and tokens, are not served.
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
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from api.sandbox.corpus import Post
from api.sandbox.faults import Faults

_SECRET = {"key", "api_key", "access_token"}
_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request, logged without secrets once its answer is ready (or none will come)."""

    number: int  # position in the order in which requests started, from 1
    upstream: str
    endpoint: str
    method: str
    path: str  # path and query, keys as `***`
    query: Mapping[str, str]
    status: int  # HTTP status of the answer; 0: none will come
    started: float  # monotonic seconds
    ended: float
    fault: str | None = None  # the fault that hit it
    body: Any = field(default=None, repr=False)
    """Decoded JSON sent to the model or to Langfuse; raw bytes of a protobuf; else None."""

    def public(self, bodies: bool = False) -> dict[str, Any]:
        """The request as JSON, with the body if `bodies`."""
        shown = asdict(self)
        body = shown.pop("body")
        del shown["query"]
        return shown | ({"body": None if isinstance(body, bytes) else body} if bodies else {})


class Journal:
    """The request log, in the order in which requests started; safe in any thread."""

    def __init__(self) -> None:
        self._entries: deque[LoggedRequest] = deque(maxlen=_KEPT)
        self._numbers = itertools.count(1)
        self._forgotten = 0
        self._lock = threading.Lock()

    def start(
        self, upstream: str, endpoint: str, method: str, path: str, query: str, body: Any = None
    ) -> LoggedRequest:
        """A new entry; `end` adds it to the log."""
        pairs = [(k, "***" if k in _SECRET else v) for k, v in parse_qsl(query, True)]
        shown = path + ("?" + urlencode(pairs, safe="*", quote_via=quote) if pairs else "")
        now = time.monotonic()
        return LoggedRequest(
            next(self._numbers), upstream, endpoint, method, shown, dict(pairs),
            status=0, started=now, ended=now, body=body,
        )  # fmt: skip

    def end(self, request: LoggedRequest, status: int, fault: str | None = None) -> None:
        """Add an entry to the log with its answer."""
        entry = replace(request, status=status, fault=fault, ended=time.monotonic())
        with self._lock:
            if entry.number > self._forgotten:
                self._entries.append(entry)

    def entries(self, upstream: str | None = None, endpoint: str | None = None) -> tuple[LoggedRequest, ...]:
        """The log, of all or of one upstream or endpoint."""
        with self._lock:
            kept = list(self._entries)
        return tuple(
            entry
            for entry in sorted(kept, key=lambda entry: entry.number)
            if upstream in (None, entry.upstream) and endpoint in (None, entry.endpoint)
        )

    def clear(self) -> None:
        """Forget every request that was logged or is under way."""
        with self._lock:
            self._entries.clear()
            self._forgotten = next(self._numbers)


# how a recorded address begins, by upstream and endpoint: `/r/all/search?q=mug` is `search`
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
    """Recorded answers not served yet, by upstream and endpoint, ordered by file name."""

    def __init__(self, folder: Path) -> None:
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
        """The next recorded answer of an endpoint, if one is left."""
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
"""`judge(query, about, texts, source)` -> probability of each text that it is about the product."""


@dataclass(frozen=True, slots=True)
class Options:
    """Credentials and limits of the servers; None accepts any credentials that are not empty."""

    reddit_credentials: tuple[str, str] | None = None
    youtube_key: str | None = None
    amazon_key: str | None = None
    openai_key: str | None = None
    langfuse_keys: tuple[str, str] | None = None
    langfuse_version: str = "4.59.0"
    """Version of the server; below 4.59 it has no dashboards and takes no list of scores."""
    reddit_limit: int = 1000  # requests per client id in ten minutes
    search_quota: int = 100  # YouTube searches per day and key
    unit_quota: int = 10_000  # YouTube units per day and key, without searches
    stackexchange_quota: int = 300  # Stack Exchange requests per day without a key
    github_searches: int = 10  # GitHub searches per minute without a token
    github_requests: int = 60  # other GitHub requests per hour without a token

    @classmethod
    def endless(cls) -> Self:
        """Options whose limits no test reaches."""
        most = 10**9
        return cls(
            reddit_limit=most, search_quota=most, unit_quota=most, stackexchange_quota=most,
            github_searches=most, github_requests=most,
        )  # fmt: skip


@dataclass(frozen=True)
class World:
    """What the servers of one sandbox share: posts, faults and the request log."""

    posts: tuple[Post, ...]
    judge: Probabilities
    options: Options = Options()
    faults: Faults = field(default_factory=Faults)
    journal: Journal = field(default_factory=Journal)
    clock: Callable[[], float] = time.time
    recordings: Recordings | None = None  # answers that are served before generated ones
    started: float = field(default_factory=time.time)
    """Unix seconds from which the ages of posts are counted back."""

    def of(self, source: str) -> tuple[Post, ...]:
        """Posts of one source, in the order of the corpus."""
        return tuple(post for post in self.posts if post.source == source)

    def post(self, source: str, id_: str | None) -> Post | None:
        """The post with that native id."""
        return None if id_ is None else self._by_id.get((source, id_))

    @cached_property
    def _by_id(self) -> dict[tuple[str, str], Post]:
        return {(post.source, post.id): post for post in self.posts}

    def created(self, age_days: float | None) -> float:
        """The Unix time of that age, in whole seconds."""
        return float(round(self.started - (age_days or 0) * 86_400))

    def moment(self, age_days: float | None) -> datetime:
        """The UTC time of that age."""
        return datetime.fromtimestamp(self.created(age_days), UTC)

    def stamp(self, age_days: float | None, fraction: str = "") -> str:
        """The time of that age in RFC 3339, `fraction` after the seconds."""
        return f"{self.moment(age_days):%Y-%m-%dT%H:%M:%S}{fraction}Z"


@dataclass(frozen=True, slots=True)
class Quota:
    """Counts requests by key in windows of `seconds`, the first of which began `shift` ago."""

    clock: Callable[[], float]
    seconds: int
    shift: float = 0.0
    _used: Counter[tuple[Hashable, int]] = field(default_factory=Counter)

    @property
    def window(self) -> tuple[int, float]:
        """Number of the current window, and the seconds left in it."""
        number, passed = divmod(self.clock() + self.shift, float(self.seconds))
        return int(number), self.seconds - passed

    def used(self, key: Hashable) -> int:
        """Requests of the key in this window."""
        return self._used[key, self.window[0]]

    def spend(self, key: Hashable) -> int:
        """Count one more request; returns how many there are now."""
        self._used[key, self.window[0]] += 1
        return self.used(key)


@cache
def fields(name: str) -> dict[str, Any]:
    """The fields that all objects of a kind have with the same value, from `data/fields.json`."""
    file = resources.files("api.sandbox") / "data" / "fields.json"
    kinds: dict[str, dict[str, Any]] = json.loads(file.read_text("utf-8"))
    return kinds[name]


def reply(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A page for a text, JSON for anything else."""
    kind = HTMLResponse if isinstance(body, str) else JSONResponse
    return kind(body, status, headers)


class SiteRefusal(Exception):
    """What a server answers instead; raised by handlers and guards."""

    def __init__(self, body: Any, status: int = 400, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status)
        self.response = reply(body, status, headers)


@dataclass(frozen=True, slots=True)
class SandboxCall:
    """One request with its body read."""

    request: Request
    body: bytes
    data: Any = None  # the body as JSON, where the server takes JSON
    fault: str | None = None

    @property
    def query(self) -> dict[str, str]:
        """The query parameters of the request."""
        return dict(self.request.query_params)

    @property
    def path(self) -> str:
        """Path of the request's URL, without its query."""
        return self.request.url.path

    def parameter(self, name: str) -> str:
        """Value of a parameter of the route's path, decoded."""
        return str(self.request.path_params[name])

    def number(self, parameter: str, default: int) -> int:
        """A query parameter as an integer; the default when it is anything else."""
        return whole(self.request.query_params.get(parameter), default)

    def page(self, size: int) -> slice:
        """The rows of the page that the query parameter `page` names, from 1."""
        start = (max(self.number("page", 1), 1) - 1) * size
        return slice(start, start + size)

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
    """Digits as an integer; the default for any other text."""
    return int(text) if text and text.isascii() and text.isdigit() else default


def decoded(text: str | bytes) -> Any:
    """The text parsed as JSON; None when it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


T = TypeVar("T")
Handler = Callable[[SandboxCall], Any]
"""Returns a response, or what `reply` makes one of; may raise `SiteRefusal`."""
_COMING_SOON = "<!doctype html><title>One moment</title><p>Please come back soon.</p>"


def serves(endpoint: str | Callable[[Any], str], *paths: str, **options: Any) -> Callable[[T], T]:
    """Mark a method as the handler of these paths; options are those of `EmulatedServer.route`."""

    def mark(handler: T) -> T:
        vars(handler).setdefault("served", []).append((endpoint, paths, options))
        return handler

    return mark


class EmulatedServer:
    """One upstream: its routes, with log, latency, faults and recordings around each answer."""

    upstream: ClassVar[str]
    fault_replies: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """Kind of fault -> arguments of `reply`."""

    def __init__(self, world: World) -> None:
        self.world = world

    def routes(self) -> list[Route]:
        """The routes of its handlers, which `serves` marks."""
        return [
            self.route(path, name, handler.__get__(self), **options)
            for handler in vars(type(self)).values()
            for name, paths, options in getattr(handler, "served", ())
            for path in paths
        ]

    def fault(self, kind: str, call: SandboxCall) -> Any:
        """The upstream's own answer to a fault; None when the fault only changes the usual answer."""
        return reply(*self.fault_replies[kind]) if kind in self.fault_replies else None

    def guard(self, call: SandboxCall) -> None:
        """Raise `SiteRefusal` for wrong keys and spent quotas; runs after faults and recordings."""

    def route(
        self, path: str, endpoint: str | Callable[[Any], str], answer: Handler, *,
        methods: Sequence[str] = ("GET",), keep: bool = False, guarded: bool = True,
    ) -> Route:  # fmt: skip
        """A route whose requests are logged; `keep` reads their bodies as JSON and logs them."""

        async def serve(request: Request) -> Response:
            try:
                body = await request.body()
            except ClientDisconnect:  # nobody is left to read an answer
                return PlainTextResponse("", 499)
            data = decoded(body) if keep else None
            name = endpoint if isinstance(endpoint, str) else endpoint(data)
            entry = self.world.journal.start(
                self.upstream, name, request.method, request.url.path, request.url.query,
                (body if data is None else data) if keep else None,
            )  # fmt: skip
            kind = self.world.faults.strike(self.upstream, name)
            seconds = self.world.faults.seconds(self.upstream, name)
            if kind == "slow":
                kind, seconds = None, max(seconds, 2.0)
            await asyncio.sleep(seconds)
            if kind == "hang":
                self.world.journal.end(entry, 0, kind)
                while (await request.receive())["type"] != "http.disconnect":
                    pass
                return PlainTextResponse("", 499)
            response = self._response(SandboxCall(request, body, data, kind), name, answer, guarded)
            self.world.journal.end(entry, response.status_code, kind)
            return response

        return Route(path, serve, methods=list(methods))

    def _response(self, call: SandboxCall, endpoint: str, answer: Handler, guarded: bool) -> Response:
        recordings, result = self.world.recordings, None
        try:
            if call.fault:
                result = self._spoilt(call.fault, call)
            elif recordings is not None:
                result = recordings.next(self.upstream, endpoint)
            if result is None:
                if guarded:
                    self.guard(call)
                result = answer(call)
        except SiteRefusal as refusal:
            return refusal.response
        return result if isinstance(result, Response) else reply(result)

    def _spoilt(self, kind: str, call: SandboxCall) -> Any:
        """The answer to a fault: one of all servers, or the upstream's own."""
        if kind == "drip":

            async def drops() -> AsyncIterator[bytes]:
                while not await call.request.is_disconnected():
                    yield b" "
                    await asyncio.sleep(0.2)

            return StreamingResponse(drops(), media_type="application/json")
        result = self.fault(kind, call)
        if result is None and kind == "500":
            return PlainTextResponse("Internal Server Error", 500)
        return _COMING_SOON if result is None and kind == "notjson" else result
