"""The HTTP app over an open house, with the MCP tools at `/mcp` behind the same keys and limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib import import_module
from importlib.metadata import version
from secrets import token_urlsafe
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import HTTPConnection
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import UsageError
from api.faces.web import (
    analyses,
    chat,
    chats,
    comparisons,
    errors,
    feedback,
    gate,
    health,
    origins,
    searching,
    stats,
    telling,
    trend,
    watches,
)
from api.faces.web.access import admitted
from api.faces.web.health import counted
from api.faces.web.methods import HeadAsGet
from api.faces.web.pages import access as pages_access
from api.faces.web.pages import (
    asking,
    assets,
    comparing,
    conversing,
    evidence,
    history,
    reading,
    sharing,
    sources,
)
from api.faces.web.pages import gate as pages_gate
from api.faces.web.pages import searching as pages_searching
from api.faces.web.pages import telling as pages_telling
from api.faces.web.pages import watching as pages_watching
from api.faces.web.pages.rendering import TEMPLATES
from api.faces.web.pages.screen import page_for_browser
from api.sources import NAMED
from api.wiring.serving import House

Part = Callable[[FastAPI, House], AbstractAsyncContextManager[None]]
"""Something that mounts itself and lives as long as the app."""
ROUTERS: tuple[APIRouter, ...] = (
    health.router,
    analyses.router,
    comparisons.router,
    gate.router,
    chat.router,
    chats.router,
    feedback.router,
    searching.router,
    stats.router,
    watches.router,
    telling.router,
    telling.feeds,
    trend.router,
)
"""Every route; another door over HTTP is another router here. A router's routes are built when a
request first gets to it: whoever asks whether this is ready waits for the first one's alone."""
SCREENS: tuple[APIRouter, ...] = (
    asking.router,
    reading.router,
    sharing.router,
    evidence.router,
    conversing.router,
    comparing.router,
    history.router,
    sources.router,
    pages_searching.router,
    pages_watching.router,
    pages_telling.router,
    pages_gate.router,
    pages_access.router,
    assets.router,
)
"""The pages for people; they are no part of the API and its document."""
PATH = "/mcp"
_DESCRIPTION = f"""
Beyond the answers of its routes a path answers 405 to a method that it does not have, with those
that it has in `Allow`, and 408 to a request whose headers do not come in time.

As MCP tools the same questions are asked by `POST {PATH}`, with the same key; that protocol
describes itself.
"""
_MCP_METHODS = ("POST",)
"""It keeps no sessions, so there is none to listen to with GET, and none to DELETE."""


@asynccontextmanager
async def mounted(app: FastAPI, house: House) -> AsyncIterator[None]:
    """Serve `/mcp` while the app lives; the protocol's library loads with the first request."""
    door = McpDoor(house)
    for path in (PATH, f"{PATH}/"):
        app.router.routes.append(Route(path, door, methods=_MCP_METHODS, include_in_schema=False))
    try:
        yield
    finally:
        await door.aclose()


class McpDoor:
    """Lets in who has a key and a request left, then hands over to the MCP server."""

    def __init__(self, house: House) -> None:
        """Nothing is loaded yet."""
        self._house = house
        self._serving: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[ASGIApp] | None = None
        self._over = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        connection = HTTPConnection(scope)
        tenant = await admitted(self._house, connection, "mcp")
        media = connection.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media != "application/json":
            raise UsageError(errors.NO_JSON_TYPE)
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._ready), name="serving MCP")
            self._serving.add_done_callback(self._ended)
        server = await asyncio.shield(self._ready)
        await server({**scope, "path": PATH, "listenpost.tenant": tenant}, receive, send)

    async def aclose(self) -> None:
        """End what is under way."""
        self._over.set()
        if self._serving is not None:
            await asyncio.wait([self._serving])

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A server that did not come up is tried again with the next request."""
        error = None if task.cancelled() else task.exception()
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(error or asyncio.CancelledError())
        self._ready = None

    async def _serve(self, ready: asyncio.Future[ASGIApp]) -> None:
        await self._house.product()
        module: Any = await asyncio.to_thread(import_module, "api.faces.mcp.over_http")
        app, running = module.over_http(self._house)
        async with running:
            ready.set_result(app)
            await self._over.wait()


PARTS: tuple[Part, ...] = (mounted,)
"""Doors that are no routers."""


def create_app(
    house: House, routers: Sequence[APIRouter] = ROUTERS, parts: Sequence[Part] = PARTS
) -> FastAPI:
    """The app; it loads the product once it serves, and closes the house at the end."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(house.aclose)
            for part in parts:
                await stack.enter_async_context(part(app, house))
            house.load("api.faces.web.metrics", TEMPLATES)
            yield

    app = FastAPI(
        title="Listenpost",
        summary=f"What people really say about a product on {NAMED}.",
        description=_DESCRIPTION,
        version=version("listenpost"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        servers=[{"url": "/", "description": "The server that this document comes from."}],
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.house, app.state.csrf = house, token_urlsafe(32)
    house.runner.on_end(lambda report, reason: counted(app).ended(report, reason))
    house.on_fetch(lambda fetched: counted(app).fetched(fetched))
    app.add_middleware(GZipMiddleware)  # never of an event stream
    app.add_middleware(HeadAsGet)
    errors.install(app, page_for_browser)
    origins.install(app, house)
    for router in (*routers, *SCREENS):
        app.include_router(router)
    return app
