"""Environments of clients that others wrote: virtual environments and node projects, made once.

They are made below the folder that `LISTENPOST_TEST_CLIENTS` names, from `tests/clients/NAME`: a
`requirements.txt` or a `package.json` with exact versions. Without that variable, or where node is
missing, a test that needs one skips and says so; `.ci/run` sets it. `python -m
tests.clients.environments` makes all of them, as `scripts/test` does beside the first tests.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

NIGHTLY = "notebook"
"""The environment that no daily test needs."""
HERE = Path(__file__).parent
VARIABLE = "LISTENPOST_TEST_CLIENTS"
_NAMED = os.environ.get(VARIABLE)
"""Read with the module, since every test begins with an empty environment."""


def python_client(name: str) -> Path:
    """The Python of a virtual environment that holds what `NAME/requirements.txt` lists.

    Raises:
        Skipped: no folder for clients is named.
        CalledProcessError: the packages could not be installed; pip's reason is printed.
    """
    return _python(_folder(), name)


def node_client(name: str) -> Path:
    """A folder with `node_modules` as `NAME/package.json` lists them, beside copies of its files.

    Raises:
        Skipped: no folder for clients is named, or there is no node and npm.
        CalledProcessError: the packages could not be installed; npm's reason is printed.
    """
    folder = _folder()
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}")
    made = _node(folder, name)
    shutil.copytree(HERE / name, made, dirs_exist_ok=True)
    return made


def chromium() -> str:
    """The browser's path.

    Raises:
        Skipped: there is none.
    """
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("there is no Chromium")
    return path


def _folder() -> Path:
    if not _NAMED:
        pytest.skip(f"`{VARIABLE}` names no folder in which clients may be installed")
    return Path(_NAMED)


@cache
def _python(folder: Path, name: str) -> Path:
    made, wanted = folder / name, HERE / name / "requirements.txt"
    python = made / "bin" / "python"
    with _alone(made):
        if not _is_made(made, wanted):
            if not _made_by_uv(made, wanted):
                _run(sys.executable, "-m", "venv", "--clear", str(made))
                _run(str(python), "-m", "pip", "install", "-q", "-r", str(wanted))
            (made / "made-from").write_text(wanted.read_text("utf-8"), "utf-8")
    return python


def _made_by_uv(made: Path, wanted: Path) -> bool:
    """Uv takes seconds; False where our own environment lacks it, or it reaches no registry."""
    uv = Path(sys.executable).with_name("uv")
    system = {**os.environ, "UV_SYSTEM_CERTS": "1"}  # as pip trusts
    commands: tuple[list[str | Path], ...] = (
        [uv, "venv", "-q", "--clear", "--python", sys.executable, made],
        [uv, "pip", "install", "-q", "--python", made / "bin" / "python", "-r", wanted],
    )
    return uv.exists() and all(
        subprocess.run(command, env=system, timeout=600, check=False).returncode == 0 for command in commands
    )


@cache
def _node(folder: Path, name: str) -> Path:
    made, wanted = folder / name, HERE / name / "package.json"
    with _alone(made):
        if not _is_made(made, wanted):
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir(parents=True)
            shutil.copy(wanted, made)
            _run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", folder=made)
            (made / "made-from").write_text(wanted.read_text("utf-8"), "utf-8")
    return made


@contextmanager
def _alone(made: Path) -> Iterator[None]:
    """Wait for another process that makes the same environment."""
    made.parent.mkdir(parents=True, exist_ok=True)
    with made.with_name(f"{made.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_made(made: Path, wanted: Path) -> bool:
    record = made / "made-from"
    return record.is_file() and record.read_text("utf-8") == wanted.read_text("utf-8")


def _run(*command: str, folder: Path | None = None) -> None:
    subprocess.run(command, cwd=folder, check=True, timeout=600)


def _make_all() -> None:
    """All that daily tests need, one after the other; what fails is told by the test that needs it."""
    for make, kind in ((_python, "requirements.txt"), (_node, "package.json")):
        for wanted in sorted(HERE.glob(f"*/{kind}")):
            if wanted.parent.name == NIGHTLY:
                continue
            with suppress(subprocess.SubprocessError, OSError):
                make(_folder(), wanted.parent.name)


if __name__ == "__main__":
    _make_all()
