"""The HTTP app over an open house."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib.metadata import version

from fastapi import APIRouter, FastAPI

from api.faces.web import analyses, chat, errors, fetching, health, mcp_door, relevance
from api.faces.web.counting import counted
from api.sources import NAMED
from api.wiring.serving import House

Part = Callable[[FastAPI, House], AbstractAsyncContextManager[None]]
"""Something that mounts itself and lives as long as the app."""
ROUTERS: tuple[APIRouter, ...] = (
    analyses.router,
    fetching.router,
    relevance.router,
    chat.router,
    health.router,
)
"""Every route; another door over HTTP is another router here."""
PARTS: tuple[Part, ...] = (mcp_door.mounted,)
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
            house.load("api.faces.web.metrics")
            yield

    app = FastAPI(
        title="Listenpost",
        summary=f"What people really say about a product on {NAMED}.",
        version=version("listenpost"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.house = house
    house.runner.on_end(lambda report, reason: counted(app).ended(report, reason))
    errors.install(app)
    for router in routers:
        app.include_router(router)
    return app
