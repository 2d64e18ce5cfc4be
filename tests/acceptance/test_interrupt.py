"""Ctrl-C while an upstream hangs."""

from __future__ import annotations

import signal
import subprocess
import threading
import time

import pytest

from api.sandbox.server import Sandbox
from tests.forked import COMMAND, Forked
from tests.interfaces.command import bare

TIMEOUTS = ("LISTENPOST_SOURCE_TIMEOUT", "LISTENPOST_CRAWL_TIMEOUT")


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_fetch_waits_for_nobody(sandbox: Sandbox, sign: signal.Signals, code: int) -> None:
    """A hung Reddit that may hang for an hour, and a signal: its exit code, no traceback."""
    sandbox.fault("reddit.search=hang")
    env = bare({**sandbox.environment, **dict.fromkeys(TIMEOUTS, "3600")})
    with Forked[str](
        [COMMAND, "fetch", "reddit", "plaud.ai"],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        deadline = time.monotonic() + 60
        while not sandbox.requests("reddit", "search"):
            assert time.monotonic() < deadline
            threading.Event().wait(0.02)
        process.send_signal(sign)
        _, said = process.communicate(timeout=60)

    assert process.returncode == code
    assert "Traceback" not in said
