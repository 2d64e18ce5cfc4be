"""`listenpost serve` on a real port: as a process of its own, or in a thread, which is quicker."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from api import bootstrap
from api.bootstrap.app_context import open_app_context
from api.interfaces.http.app import create_app
from api.interfaces.http.connections import bounded_config
from api.settings import Settings
from tests.forked import COMMAND, Forked
from tests.interfaces.command import environment

ROOT = Path(__file__).resolve().parents[3]
FEW = (sys.executable, "-c", "from api.interfaces.cli.main import run; run()")
"""The command in a shell, which forks cannot be."""


@dataclass
class Process:
    """A running server: where it listens, and what it said."""

    process: subprocess.Popen[str]
    url: str
    said: list[str]

    def kill(self) -> None:
        """At once, as `kill -9` does."""
        self.process.kill()
        self.process.wait()


@contextmanager
def serving(
    folder: Path, variables: Mapping[str, str], *words: str, descriptors: int | None = None
) -> Iterator[Process]:
    """A server on a free port; it is terminated at the end."""
    kind: type[subprocess.Popen[str]]
    command, kind = [COMMAND], Forked
    if descriptors is not None:
        command, kind = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *FEW], subprocess.Popen
    with kind(
        [*command, "serve", "--port", "0", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = [process.stderr.readline()]
        assert said[0].startswith("Listenpost on http"), said
        reading = threading.Thread(target=said.extend, args=(process.stderr,), daemon=True)
        reading.start()
        try:
            yield Process(process, said[0].split()[2], said)
        finally:
            process.terminate()
            process.wait(20)
            reading.join()


@contextmanager
def threaded(variables: Mapping[str, str]) -> Iterator[str]:
    """The HTTP app with these settings in a thread of this process; its address."""
    with environment({**os.environ, **variables}):
        settings = bootstrap.load_settings()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ready, over = threading.Event(), threading.Event()
        serving = threading.Thread(target=lambda: asyncio.run(_serve(settings, listener, ready, over)), daemon=True)
        serving.start()
        assert ready.wait(60)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            serving.join(60)
            assert not serving.is_alive()


async def _serve(settings: Settings, listener: socket.socket, ready: threading.Event, over: threading.Event) -> None:
    """Serve until it is over, as `listenpost serve` does until a signal."""
    app_context = await open_app_context(settings)
    server = uvicorn.Server(bounded_config(create_app(app_context)))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve([listener]))
        ready.set()
        await asyncio.to_thread(over.wait)
        server.should_exit = True
