"""Runs a sandbox in a thread of this process, or as a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.sandbox import corpus
from api.sandbox.amazon_server import Amazon
from api.sandbox.bluesky_server import Bluesky
from api.sandbox.corpus import Post
from api.sandbox.discourse_server import FORUM, Discourse
from api.sandbox.faults import Faults
from api.sandbox.feeds_server import Feeds
from api.sandbox.github_server import GitHub
from api.sandbox.hackernews_server import HackerNews
from api.sandbox.langfuse_server import Langfuse
from api.sandbox.lemmy_server import Lemmy
from api.sandbox.model_server import OpenAI
from api.sandbox.news_server import News
from api.sandbox.reddit_server import Reddit
from api.sandbox.stackexchange_server import StackExchange
from api.sandbox.steam_server import Steam
from api.sandbox.world import EmulatedServer, Journal, LoggedRequest, Options, Probabilities, Recordings, World, whole
from api.sandbox.youtube_server import YouTube

Rows = Iterable[Post | Mapping[str, Any]]
_READY_SECONDS = 10.0


def local_judge(query: str, about: str, texts: list[str], source: str) -> Sequence[float]:
    """The product's judge without a key, loaded on first use."""
    from api.models.local.judge import probabilities

    return probabilities(query, about, texts, source)


def world(
    posts: Rows | None = None, *, faults: Iterable[str] = (), latency: Iterable[str] = (),
    judge: Probabilities = local_judge, options: Options | None = None,
    recordings: Path | None = None, clock: Callable[[], float] = time.time,
    journal: Journal | None = None,
) -> World:  # fmt: skip
    """The world of a sandbox, by default with the shipped posts; raises `ValueError`."""
    rows = (*corpus.load(), *corpus.keyless(), *corpus.streamed(), *corpus.further()) if posts is None else list(posts)
    ready = tuple(row for row in rows if isinstance(row, Post))
    return World(
        posts=ready + corpus.posts(row for row in rows if not isinstance(row, Post)), judge=judge,
        options=options or Options(), faults=Faults(faults, latency),
        recordings=None if recordings is None else Recordings(recordings), clock=clock,
        journal=journal or Journal(), started=clock(),
    )  # fmt: skip


# variables whose value is the sandbox's root
_URLS = (
    "REDDIT_URL", "YOUTUBE_URL", "AMAZON_URL", "HACKERNEWS_URL", "STACKEXCHANGE_URL", "GITHUB_URL",
    "LEMMY_URL", "BLUESKY_URL", "BLUESKY_APPVIEW_URL", "BLUESKY_LOGIN_URL", "STEAM_URL", "NEWS_URL",
    "LANGFUSE_BASE_URL",
)  # fmt: skip
_KEYS = ("REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET", "YOUTUBE_API_KEY", "OPENAI_API_KEY")


def environment(url: str) -> dict[str, str]:
    """The variables that point every client at a sandbox; the keys are placeholders."""
    return {
        "LISTENPOST_MODE": "live", **dict.fromkeys(_URLS, url), **dict.fromkeys(_KEYS, "sandbox"),
        "AMAZON_PROVIDER": "html", "DISCOURSE_FORUMS": f"{url}{FORUM}",
        "OPENAI_BASE_URL": f"{url}/v1", "LANGFUSE_PUBLIC_KEY": "pk-lf-sandbox",
        "LANGFUSE_SECRET_KEY": "sk-lf-sandbox",
    }  # fmt: skip


def application(world: World) -> Starlette:
    """All servers as one application (no two have the same path), and the paths that control it."""

    async def log(request: Request) -> Response:
        query = request.query_params
        first, bodies = whole(query.get("since"), 0), query.get("bodies") == "1"
        entries = world.journal.entries(query.get("upstream"))
        return JSONResponse({"entries": [e.public(bodies) for e in entries if e.number > first]})

    async def fault(request: Request) -> Response:
        """Apply `{"clear": bool, "faults": [...], "latency": [...]}`; a text is a list of one."""
        try:
            wanted = await request.json()
            if not isinstance(wanted, Mapping):
                raise ValueError('send {"faults": ["youtube=quota"], "latency": ["openai=800ms"]}')
            if wanted.get("clear"):
                world.faults.clear()
            for name, apply in (("faults", world.faults.add), ("latency", world.faults.delay)):
                given = wanted.get(name) or []
                for text in [given] if isinstance(given, str) else given:
                    apply(str(text))
        except ValueError as error:
            return JSONResponse({"error": {"code": "invalid_request", "message": str(error)}}, 422)
        return JSONResponse({"ok": True})

    async def health(request: Request) -> Response:
        return JSONResponse({"ok": True, "posts": len(world.posts)})

    routes = [
        Route("/_sandbox/log", log),
        Route("/_sandbox/fault", fault, methods=["POST"]),
        Route("/_sandbox/health", health),
    ]
    servers: tuple[type[EmulatedServer], ...] = (
        Reddit, YouTube, OpenAI, Langfuse, Amazon, HackerNews, StackExchange, GitHub, Lemmy,
        Discourse, Feeds, Bluesky, Steam, News,
    )  # fmt: skip
    return Starlette(routes=[*routes, *chain(*(server(world).routes() for server in servers))])


class _StoppableServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._halt = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self.ready.set()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._halt.wait(), 1.0)
                return

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close everything, also requests in progress."""
        for server in self.servers:
            server.close()
        for each in list(self.server_state.connections):
            if (transport := getattr(each, "transport", None)) is not None:
                transport.abort()
        for task in list(self.server_state.tasks):
            task.cancel()
        await asyncio.gather(*self.server_state.tasks, return_exceptions=True)

    def halt(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._halt.set)


class Sandbox:
    """A running sandbox; use it as a context manager, or call `stop()`."""

    def __init__(self, world: World, server: _StoppableServer, thread: threading.Thread, url: str) -> None:
        """Use `Sandbox.start`; `url` is its root, `http://127.0.0.1:PORT`."""
        self.world, self.url = world, url
        self._server, self._thread, self._pid = server, thread, os.getpid()

    @classmethod
    def start(cls, posts: Rows | None = None, *, host: str = "127.0.0.1", port: int = 0, **options: Any) -> Self:
        """Serve on a free port in a daemon thread; `options` are those of `world`.

        Raises `ValueError` for an unknown fault or latency, `OSError` if the port is taken.
        """
        made = world(posts, **options)
        # asyncio sets TCP_NODELAY only if the protocol is named; without it the body of an answer
        # waits 40 ms for the acknowledgement of its head
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError:
            listener.close()
            raise
        config = uvicorn.Config(
            application(made), host=host, port=port, loop="asyncio", http="h11", ws="websockets-sansio",
            lifespan="off", log_config=None, access_log=False,
        )  # fmt: skip
        server = _StoppableServer(config)
        thread = threading.Thread(target=server.run, args=([listener],), name="listenpost-sandbox", daemon=True)
        thread.start()
        if not server.ready.wait(_READY_SECONDS):
            raise OSError("the sandbox did not start")
        return cls(made, server, thread, f"http://{host}:{listener.getsockname()[1]}")

    @property
    def log(self) -> tuple[LoggedRequest, ...]:
        """Every request since the start or `forget`, oldest first."""
        return self.world.journal.entries()

    def requests(self, upstream: str | None = None, endpoint: str | None = None) -> tuple[LoggedRequest, ...]:
        """The log of one upstream or endpoint."""
        return self.world.journal.entries(upstream, endpoint)

    def fault(self, *texts: str) -> None:
        """Add faults: `youtube=quota`, `openai.judge=500@2x1`."""
        for text in texts:
            self.world.faults.add(text)

    def latency(self, *texts: str) -> None:
        """Delay the answers of servers, as in `openai=800ms`."""
        for text in texts:
            self.world.faults.delay(text)

    def heal(self) -> None:
        """Remove all faults and latencies."""
        self.world.faults.clear()

    def forget(self) -> None:
        """Forget every request that was logged or is under way."""
        self.world.journal.clear()

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a process uses this server."""
        return environment(self.url)

    def stop(self) -> None:
        """Stop serving, also requests in progress; may be called twice."""
        if self._pid == os.getpid():
            self._server.halt()
            self._thread.join(timeout=5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def serve(
    host: str = "127.0.0.1", port: int = 4010, *, ready: Callable[[str], None] = lambda url: None,
    **options: Any,
) -> None:  # fmt: skip
    """Serve until interrupted, `ready(url)` first; raises `ValueError` or `OSError`."""
    with Sandbox.start(host=host, port=port, **options) as sandbox:
        ready(sandbox.url)
        stopped = threading.Event()
        try:
            while not stopped.wait(3600):
                pass
        except KeyboardInterrupt:
            return
