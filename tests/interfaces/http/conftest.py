"""An app over a real store and the real clients, against one sandbox."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import BaseRoute

from api import bootstrap
from api.bootstrap.app_context import AppContext, open_app_context
from api.interfaces.http.app import create_app
from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from tests.interfaces.one_minute import within_one_minute

QUESTION = {"query": "plaud.ai", "depth": "quick"}


@dataclass
class Served:
    """An app, and a client that calls it from this machine."""

    app: FastAPI
    app_context: AppContext
    client: httpx.AsyncClient
    sandbox: Sandbox

    def calling(self, base: str = "http://localhost", peer: str = "127.0.0.1") -> httpx.AsyncClient:
        """Another caller."""
        transport = httpx.ASGITransport(self.app, client=(peer, 50000))
        return httpx.AsyncClient(transport=transport, base_url=base, timeout=120)


Opening = Callable[..., AbstractAsyncContextManager[Served]]


@pytest.fixture(scope="session")
def shared_sandbox() -> Iterator[Sandbox]:
    """One for all, since starting it costs, with searches enough for all."""
    with Sandbox.start(options=Options.endless()) as started:
        yield started


@pytest.fixture
def sandbox(shared_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """Healthy, with an empty log; the environment points at it, without Langfuse."""
    shared_sandbox.forget()
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    for name, value in shared_sandbox.environment.items():
        if not name.startswith("LANGFUSE"):
            monkeypatch.setenv(name, value)
    yield shared_sandbox
    shared_sandbox.heal()


@pytest.fixture(scope="session")
def documents() -> list[dict[str, Any]]:
    """The OpenAPI document, once an app has made it, which takes half a second; refusals are
    worded by it, and it is the same for every app.
    """
    return []


@pytest.fixture(scope="session")
def routes() -> list[BaseRoute]:
    """The routes of the first app, for every other: each router of an app takes up to 0.2 s of processor time before
    its first answer, and keeps nothing of the app.
    """
    return []


@pytest.fixture
def opening(
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    documents: list[dict[str, Any]],
    routes: list[BaseRoute],
    default_database: None,
) -> Opening:
    """Open an app with these settings; `keys="a,b"` is short for the API keys."""

    @asynccontextmanager
    async def opened(keys: str = "", token: str = "", **variables: str) -> AsyncIterator[Served]:
        for name, value in {"API_KEYS": keys, **variables}.items():
            monkeypatch.setenv(f"LISTENPOST_{name}", value)
        app_context = await open_app_context(bootstrap.load_settings())
        if "LISTENPOST_LIMIT_REQUESTS_PER_MINUTE" in os.environ:
            within_one_minute(app_context)
        app = create_app(app_context)
        routes[:] = app.router.routes[:] = routes or app.router.routes
        make_document = app.openapi

        def document() -> dict[str, Any]:
            if not documents:
                documents.append(make_document())
            return documents[0]

        app.openapi = document  # type: ignore[method-assign]
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        transport = httpx.ASGITransport(app)
        client = httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers, timeout=30)
        async with client:
            yield Served(app, app_context, client, sandbox)
        await app_context.aclose()

    return opened


@pytest.fixture
async def served(opening: Opening) -> AsyncIterator[Served]:
    """An app without API keys."""
    async with opening() as made:
        yield made
