"""An empty store for the runs of watches."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from api.features.analyses.store_ports import Store
from api.store import open_store


@pytest.fixture
async def store(sqlite_url: str) -> AsyncIterator[Store]:
    """An empty store."""
    opened = await open_store(sqlite_url)
    yield opened
    await opened.aclose()
