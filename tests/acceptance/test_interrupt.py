"""Ctrl-C while an upstream hangs."""

from __future__ import annotations

import signal
import subprocess
import threading
import time

import pytest

from api.sandbox.server import Sandbox
from tests.faces.command import COMMAND, bare


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_fetch_ends_within_a_second(
    sandbox: Sandbox, sign: signal.Signals, code: int
) -> None:
    """A hung Reddit and a signal: its exit code within a second, no traceback."""
    sandbox.fault("reddit.search=hang")
    with subprocess.Popen(
        [COMMAND, "fetch", "reddit", "plaud.ai"],
        env=bare(sandbox.environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        deadline = time.monotonic() + 60
        while not sandbox.requests("reddit", "search"):
            assert time.monotonic() < deadline
            threading.Event().wait(0.02)
        began = time.monotonic()
        process.send_signal(sign)
        _, said = process.communicate(timeout=30)

    assert process.returncode == code
    assert time.monotonic() - began < 1.0
    assert "Traceback" not in said
