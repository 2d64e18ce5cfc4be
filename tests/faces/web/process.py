"""`listenpost serve` as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
COMMAND = (sys.executable, "-c", "from api.faces.cli.main import run; run()")


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


def command(
    *words: str, folder: Path, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Another command of the same installation, to its end."""
    return subprocess.run(
        [*COMMAND, *words],
        env=environment(variables),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The test's environment, where the package is found."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **variables}


@contextmanager
def serving(folder: Path, variables: Mapping[str, str], *words: str) -> Iterator[Process]:
    """A server on a free port; it is terminated at the end."""
    with subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", *words],
        env=environment(variables),
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
