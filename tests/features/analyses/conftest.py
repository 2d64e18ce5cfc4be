"""What the tests of this room share."""

from __future__ import annotations

import pytest

from tests.features.analyses.desk import Desk


@pytest.fixture
def desk() -> Desk:
    """A fresh one."""
    return Desk()
