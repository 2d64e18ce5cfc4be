"""Starting and stopping."""

from __future__ import annotations

import time

import httpx
import pytest

from api.sandbox.server import Sandbox
from tests.sandbox.conftest import Start, reddit_row


def test_it_is_ready_at_once() -> None:
    """The shipped corpus is served for 0.3 seconds of processor time; the best of three."""
    spent = []
    for _ in range(3):
        began = time.process_time()
        with Sandbox.start() as sandbox:
            assert httpx.get(f"{sandbox.url}/_sandbox/health").json()["posts"] > 500
        spent.append(time.process_time() - began)

    assert min(spent) < 0.3


def test_two_run_side_by_side(start: Start) -> None:
    """Each sandbox has its own port, posts and log."""
    one, two = start([reddit_row(1, "a")]), start([reddit_row(1, "b"), reddit_row(2, "c")])
    counts = [httpx.get(f"{s.url}/_sandbox/health").json()["posts"] for s in (one, two)]

    assert counts == [1, 2]
    assert one.url != two.url


def test_a_stopped_sandbox_refuses() -> None:
    """Leaving the block closes the port; stopping twice is fine."""
    with Sandbox.start([]) as sandbox:
        assert httpx.get(f"{sandbox.url}/_sandbox/health").is_success
    sandbox.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{sandbox.url}/_sandbox/health")


def test_a_taken_port_is_an_error() -> None:
    """A second sandbox on the same port says so."""
    with Sandbox.start([]) as sandbox, pytest.raises(OSError, match="in use"):
        Sandbox.start([], port=int(sandbox.url.rsplit(":", 1)[1]))


def test_the_environment_points_everything_at_it(sandbox: Sandbox) -> None:
    """Each client's base URL is there, and each has a placeholder for a key."""
    given = sandbox.environment

    assert given["OPENAI_BASE_URL"] == f"{sandbox.url}/v1"
    assert {given[f"{name}_URL"] for name in ("REDDIT", "YOUTUBE", "AMAZON")} == {sandbox.url}
    assert all(given.values())
