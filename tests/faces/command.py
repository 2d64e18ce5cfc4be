"""Running `listenpost` as people do: in its own process, or in this one, which is quicker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from api.faces.cli.main import run

COMMAND = str(Path(sys.executable).with_name("listenpost"))
SAMPLE = "Sample data: everything below is made up and served by the offline sandbox."


@dataclass(frozen=True)
class Ended:
    """A command that has run."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        """What it printed."""
        return self.raw.decode()

    @property
    def json(self) -> Any:
        """What it printed, which must be one JSON object on one line and nothing else."""
        assert self.out.count("\n") == 1
        found = json.loads(self.out, parse_constant=_no_json)
        assert isinstance(found, dict)
        return found


def _no_json(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def bare(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment that holds nothing but `env`, and a home that is this test's."""
    return {"PATH": os.environ["PATH"], "HOME": os.getcwd(), **(env or {})}


def process(*words: str | bytes, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> Ended:
    """The command in its own process and a bare environment."""
    command: Sequence[str | bytes] = [COMMAND, *words]
    done = subprocess.run(command, env=bare(env), input=stdin, capture_output=True, timeout=120)
    return Ended(done.returncode, done.stdout, done.stderr.decode())


class Here:
    """The command in this process: quicker, and the environment is the test's."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        """Read what is printed from `capture`."""
        self._capture = capture

    def __call__(self, *words: str) -> Ended:
        """Run it to its end."""
        self._capture.readouterr()
        with pytest.raises(SystemExit) as left:
            run(words)
        said = self._capture.readouterr()
        assert isinstance(left.value.code, int)
        return Ended(left.value.code, said.out.encode(), said.err)
