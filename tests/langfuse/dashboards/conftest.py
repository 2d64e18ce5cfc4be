"""A Langfuse project of the test's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from api.sandbox.server import Sandbox
from tests.langfuse.dashboards.kit import Project


@pytest.fixture
def project() -> Iterator[Project]:
    """An empty one."""
    with Sandbox.start([]) as sandbox:
        yield Project(sandbox)
