"""The conditions under which every other test runs."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from api import settings
from tests.usual import USUAL


def test_no_setting_of_the_developer_reaches_a_test() -> None:
    """Every variable but the tests' own is unset."""
    assert set(settings.variables()) & set(os.environ) == set(USUAL)
    assert settings.load().general.mode == "sandbox"


def test_a_test_stands_in_an_empty_folder_of_its_own(tmp_path: Path) -> None:
    """A `.env` in the checkout cannot be read by accident."""
    assert Path.cwd() == tmp_path.resolve()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("host", ["192.0.2.1", "example.org", "2001:db8::1"])
def test_the_network_ends_at_loopback(host: str) -> None:
    """A connection to anywhere else fails at once, as without a network."""
    with pytest.raises(socket.gaierror, match="loopback only"):
        socket.create_connection((host, 9), timeout=1)
