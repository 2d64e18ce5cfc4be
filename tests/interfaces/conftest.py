"""What tests of the interfaces have: the command in this process, a sandbox, and a served app."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from tests.interfaces.command import Here, inside
from tests.interfaces.http.conftest import documents, opening, routes, sandbox, served, shared_sandbox

__all__ = ["documents", "here", "opening", "routes", "sandbox", "served", "shared_sandbox", "upstream"]


@pytest.fixture
def here(default_database: None) -> Here:
    """The command in this process."""
    return inside


@pytest.fixture
def upstream(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """A sandbox of the test's own that the environment names as if it were live."""
    with Sandbox.start(options=Options(search_quota=10_000, reddit_limit=10_000)) as started:
        for name, value in started.environment.items():
            monkeypatch.setenv(name, value)
        yield started
