"""A database with analyses of the past."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from api.features.analyses.api_keys import LOCAL
from api.store import open_store
from tests.store.made import typed


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database of this test, and nobody who watches."""
    url = f"sqlite:///{tmp_path / 'kept.db'}"
    monkeypatch.setenv("LISTENPOST_DATABASE_URL", url)
    monkeypatch.setenv("LISTENPOST_MODE", "sandbox")
    return url


def keep(url: str, reports: Sequence[dict[str, Any]]) -> None:
    """Put reports of the command line there."""

    async def kept() -> None:
        store = await open_store(url)
        for each in reports:
            await store.finish(LOCAL.id, typed(each))
        await store.aclose()

    asyncio.run(kept())
