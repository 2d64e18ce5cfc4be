"""An empty store for the runs of watches."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from api.features.analyses.store_ports import Store
from api.store import open_store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store."""
    opened = await open_store(f"sqlite:///{tmp_path / 'watches.db'}")
    yield opened
    await opened.aclose()
