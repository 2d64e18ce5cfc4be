"""Running `listenpost` as people do: in this process, or in its own where the process matters.

Its own process matters for signals, closed streams, terminals, what is imported, words of wrong bytes
and the end of the interpreter; nowhere else. `tests/forked.py` spares it the imports, which take seconds.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from api.interfaces.cli.main import run
from tests.forked import forked
from tests.usual import USUAL

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
        answer = json.loads(self.out, parse_constant=_no_json)
        assert isinstance(answer, dict)
        return answer


def _no_json(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def bare(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment of `USUAL` and `env` alone, with a home that is this test's."""
    return {"PATH": os.environ["PATH"], "HOME": os.getcwd(), **USUAL, **(env or {})}


READ_AT_IMPORT = ("PYTHON", "PRAWCORE", "HTTPLIB2")
"""Beginnings of the variables that the interpreter or a library reads before a command begins."""


def process(*words: str | bytes, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> Ended:
    """The command in its own process and a bare environment.

    It is forked, but where words are bytes or a variable is read while modules are imported.
    """
    environment = bare(env)
    written = [word for word in words if isinstance(word, str)]
    if len(written) == len(words) and not any(name.startswith(READ_AT_IMPORT) for name in environment):
        done = forked(*written, env=environment, stdin=stdin)
    else:
        command: Sequence[str | bytes] = [COMMAND, *words]
        done = subprocess.run(command, env=environment, input=stdin, capture_output=True, timeout=120)
    return Ended(done.returncode, done.stdout, done.stderr.decode())


class Here(Protocol):
    """What the fixture `here` is: `inside`."""

    def __call__(self, *words: str, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> Ended:
        """Run the command to its end."""
        ...


def inside(*words: str, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> Ended:
    """The command in this process: in the test's environment, or in a bare one with `env`.

    Only in the main thread and outside of an event loop: it has signals and a loop of its own.
    """
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8") as err,
        _standing_in(stdin),
        redirect_stdout(out),
        redirect_stderr(err),
        environment(os.environ if env is None else bare(env)),
    ):
        with pytest.raises(SystemExit) as left:
            run(words)
        printed, told = (_written(stream.fileno()) for stream in (out, err))
    assert isinstance(left.value.code, int)
    return Ended(left.value.code, printed, told.decode())


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """These variables and no others, for a while."""
    wanted, before = dict(variables), dict(os.environ)
    os.environ.clear()
    os.environ.update(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _standing_in(stdin: bytes) -> Iterator[None]:
    """These bytes as the standard input."""
    before = sys.stdin
    with io.TextIOWrapper(io.BytesIO(stdin), "utf-8") as sys.stdin:
        try:
            yield
        finally:
            sys.stdin = before


def _written(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
