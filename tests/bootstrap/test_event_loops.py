"""What is built for one event loop ends with it."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import weakref

from api.bootstrap import PerLoop
from api.sandbox.server import Sandbox

_PROGRAM = """
import asyncio, gc
from api import relevance_filter

async def ask():
    rows = [{"title": "Plaud Note", "body": "a recorder"}]
    return (await relevance_filter("plaud", rows, "reddit")).status

for _ in range(2):
    print(asyncio.run(ask()))
    gc.collect()
"""


def test_no_socket_stays_open() -> None:
    """Each `asyncio.run` closes its connections to the model server, and the next has its own."""
    with Sandbox.start() as sandbox:
        env = {**sandbox.environment, "PATH": os.environ["PATH"]}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", _PROGRAM],
            env=env, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        asked = sandbox.requests("openai")

    assert (done.stdout, done.stderr) == ("ok\nok\n", "")
    assert len(asked) == 2


def test_a_loop_has_one_product() -> None:
    """The same for two who ask, another in the next loop, even if one was closed by hand."""
    provider = PerLoop()

    async def twice() -> tuple[int, int]:
        return id(await provider.product()), id(await provider.product())

    by_hand = asyncio.new_event_loop()
    first = by_hand.run_until_complete(twice())
    by_hand.close()
    gone = weakref.ref(by_hand)
    del by_hand
    second = asyncio.run(twice())
    gc.collect()

    assert first[0] == first[1]
    assert second[0] == second[1]
    assert gone() is None
