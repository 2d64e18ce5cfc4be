"""What tests of the judges share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from api.models.model_client import ModelClient
from tests.models.model_server import ModelServer, client_of, serving


@pytest.fixture
def anyio_backend() -> str:
    """Our clients run on asyncio."""
    return "asyncio"


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    """A server without a script yet."""
    async with serving() as server:
        yield server


@pytest.fixture
async def client(model: ModelServer) -> AsyncIterator[ModelClient]:
    """The real client of that server."""
    async with client_of(model) as made:
        yield made
