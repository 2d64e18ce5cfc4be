"""The product as people use it, built against a sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from api import bootstrap
from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from api.services import product as product_service
from api.services.product import Ask, Product
from tests.services.kit import plain


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A sandbox of this test's own."""
    with Sandbox.start(options=Options(search_quota=10_000, reddit_limit=10_000)) as started:
        yield started


@pytest.fixture
async def built(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Product]:
    """The product against that sandbox, configured through the environment as live."""
    for name, value in sandbox.environment.items():
        monkeypatch.setenv(name, value)
    product = bootstrap.build(bootstrap.load_settings())
    yield product
    await product.aclose()


async def analyzed(built: Product, query: str, **wanted: Any) -> dict[str, Any]:
    """The `analyze` object."""
    return plain(await product_service.analyze(built, Ask(query, **wanted)))
