"""What tests of tracing share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from api.langfuse.tracing import Tracing, start
from tests.langfuse.tracing.collector import Collector, collecting, settings_for


@pytest.fixture
def anyio_backend() -> str:
    """Our clients run on asyncio."""
    return "asyncio"


@pytest.fixture
def langfuse() -> Iterator[Collector]:
    """A Langfuse that behaves."""
    with collecting() as collector:
        yield collector


@pytest.fixture
def tracing(langfuse: Collector) -> Iterator[Tracing]:
    """Tracing to it; `shutdown` hands over everything."""
    made = start(settings_for(langfuse.url), user_id="ada", session_id="s-1")
    assert made is not None
    yield made
    made.shutdown()
