"""The HTTP app over an open app context, with the MCP tools at `/mcp` behind the same keys.

Its own routes are `/healthz` (the process answers), `/readyz` (its database does) and `/metrics` (for Prometheus).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib import import_module
from importlib.metadata import version
from secrets import token_urlsafe
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response
from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import HTTPConnection
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.bootstrap.app_context import AppContext
from api.errors import ConfigurationError, UsageError, extras_named
from api.interfaces.http import (
    access,
    analysis_routes,
    chat_routes,
    comparison_routes,
    errors_json,
    feed_routes,
    feedback_routes,
    gate_routes,
    inbox_routes,
    watch_routes,
)
from api.interfaces.http.access import OpenContext, Reader, admitted, metrics_of
from api.interfaces.http.errors_json import HeadAsGet, documented
from api.interfaces.http.schemas import Health, Readiness
from api.interfaces.pages import (
    analysis_page,
    ask_page,
    chat_page,
    compare_page,
    evidence_page,
    inbox_page,
    replay_page,
    screen,
    sources_page,
    stored_pages,
    templates_rendering,
    watch_pages,
)
from api.interfaces.pages.screen import page_for_browser
from api.interfaces.pages.templates_rendering import TEMPLATES
from api.sources import SOURCE_LIST

operations = APIRouter(tags=["operations"])
_TEXT = {"text/plain": {"schema": {"type": "string"}}}


@operations.get("/healthz", responses=documented(500), summary="The process answers")
async def health() -> Health:
    """Needs no key and asks nothing."""
    return Health(status="ok")


@operations.get("/readyz", responses=documented(500, 503), summary="Requests can be answered")
async def readiness(app_context: OpenContext) -> Readiness:
    """Needs no key; 503 when the database cannot be used."""
    await app_context.ping()
    product = "loaded" if app_context.loaded else "loading"
    return Readiness(status="ready", product=product, sample=app_context.sample)


@operations.get(
    "/metrics",
    responses={200: {"content": _TEXT}, **documented(401, 403, 422, 500, 503)},
    response_class=Response,
    summary="Counters for Prometheus",
)
async def metrics(request: Request, tenant: Reader) -> Response:
    """Counters of all tenants together for Prometheus; needs a key when keys are configured."""
    shown = metrics_of(request.app)
    return Response(shown.page(), media_type=shown.media_type)


Part = Callable[[FastAPI, AppContext], AbstractAsyncContextManager[None]]
"""Something that mounts itself and lives as long as the app."""
ROUTERS: tuple[APIRouter, ...] = (
    operations,
    analysis_routes.router,
    comparison_routes.router,
    gate_routes.router,
    chat_routes.router,
    chat_routes.chats_router,
    feedback_routes.corrections_router,
    feedback_routes.router,
    gate_routes.search_router,
    gate_routes.stats_router,
    feed_routes.router,
    inbox_routes.router,
    watch_routes.router,
    watch_routes.notification_router,
    watch_routes.feeds,
    watch_routes.trend_router,
)
"""Routers of the app; another interface over HTTP is another router here. A router's routes are built at its first
request, so that the first request of all, such as a readiness check, waits only for one router."""
SCREENS: tuple[APIRouter, ...] = (
    ask_page.router,
    analysis_page.router,
    analysis_page.share_router,
    evidence_page.router,
    replay_page.router,
    chat_page.router,
    compare_page.router,
    stored_pages.router,
    sources_page.router,
    inbox_page.router,
    stored_pages.search_page_router,
    watch_pages.router,
    watch_pages.notification_page_router,
    stored_pages.gate_page_router,
    screen.router,
    templates_rendering.router,
)
"""The pages for people; they are no part of the API and its document."""
PATH = "/mcp"
_DESCRIPTION = f"""
Beyond the answers of its routes a path answers 405 to a method that it does not have, with those
that it has in `Allow`, and 408 to a request whose headers do not come in time.

As MCP tools the same questions are asked by `POST {PATH}`, with the same key; that protocol
describes itself.
"""
# It keeps no sessions, so there is none to listen to with GET, and none to DELETE.
_MCP_METHODS = ("POST",)


@asynccontextmanager
async def mounted(app: FastAPI, app_context: AppContext) -> AsyncIterator[None]:
    """Serve `/mcp` while the app runs; the protocol's library is imported at the first request."""
    mount = McpMount(app_context)
    for path in (PATH, f"{PATH}/"):
        app.router.routes.append(Route(path, mount, methods=_MCP_METHODS, include_in_schema=False))
    try:
        yield
    finally:
        await mount.aclose()


class McpMount:
    """Lets in who has a key and a request left, then hands over to the MCP server."""

    def __init__(self, app_context: AppContext) -> None:
        """Import nothing until the first request to `/mcp`."""
        self._app_context = app_context
        self._serving: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[ASGIApp] | None = None
        self._over = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of a tenant who may ask."""
        connection = HTTPConnection(scope)
        tenant = await admitted(self._app_context, connection, "mcp")
        media = connection.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media != "application/json":
            raise UsageError(errors_json.NO_JSON_TYPE)
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
        await self._app_context.product()
        with extras_named():
            module: Any = await asyncio.to_thread(import_module, "api.interfaces.mcp.mcp_transports")
        app, running = module.over_http(self._app_context)
        async with running:
            ready.set_result(app)
            await self._over.wait()


class BelowPath:
    """Serves the app below a path, which may stand before a request's path and comes before each path in `Location`."""

    def __init__(self, app: ASGIApp, root: str) -> None:
        self._app, self._root = app, root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on by its path within the app, as if a proxy had removed the root."""

        async def sending(message: Message) -> None:
            headers = MutableHeaders(raw=message.get("headers", []))
            if (place := headers.get("location", "")).startswith("/"):
                headers["location"] = self._root + place
            await send(message)

        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if f"{scope['path']}/".startswith(f"{self._root}/"):
            scope = {**scope, "path": scope["path"].removeprefix(self._root) or "/"}
        await self._app(scope, receive, sending)


def refuse_own_path(root: str, routers: Sequence[APIRouter]) -> None:
    """Raise `ConfigurationError` for a root whose first part is one of the server's own paths.

    Whether a proxy removed it could not be told from a request.
    """
    first = root.split("/")[1:2]
    own = {route.path.split("/")[1] for router in routers for route in router.routes if isinstance(route, Route)}
    if own.union([PATH[1:]]).intersection(first):
        raise ConfigurationError(
            f"`LISTENPOST_ROOT_PATH`: `/{first[0]}` is a path of this server; use another, such as `/listenpost`"
        )


PARTS: tuple[Part, ...] = (mounted,)
"""Doors that are no routers."""


def create_app(
    app_context: AppContext, routers: Sequence[APIRouter] = ROUTERS, parts: Sequence[Part] = PARTS
) -> FastAPI:
    """The app; it builds the product when it starts, and closes the app context at the end."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(app_context.aclose)
            for part in parts:
                await stack.enter_async_context(part(app, app_context))
            app_context.load("api.interfaces.http.prometheus_metrics", TEMPLATES)
            yield

    root = app_context.settings.general.root_path or ""
    refuse_own_path(root, (*routers, *SCREENS))
    app = FastAPI(
        title="Listenpost",
        summary=f"What people really say about a product on {SOURCE_LIST}.",
        description=_DESCRIPTION,
        version=version("listenpost"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        servers=[{"url": root or "/", "description": "The server that this document comes from."}],
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.app_context, app.state.csrf = app_context, token_urlsafe(32)
    app_context.runner.on_end(lambda report, reason: metrics_of(app).ended(report, reason))
    app_context.on_fetch(lambda fetched: metrics_of(app).fetched(fetched))
    app.add_middleware(GZipMiddleware, compresslevel=4)  # on the event loop, and never of an event stream
    app.add_middleware(HeadAsGet)
    errors_json.install(app, page_for_browser)
    access.install(app, app_context)
    if root:
        app.add_middleware(BelowPath, root=root)
    for router in (*routers, *SCREENS):
        app.include_router(router)
    return app
