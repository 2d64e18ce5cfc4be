"""The commands of the README set themselves up, or say why they cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

TOOLS = ("bash", "cat", "dirname", "find", "ls", "mkdir", "mv", "rm")


@pytest.fixture
def pythonless(tmp_path: Path) -> Path:
    """A folder of programs, without Python, to be the whole PATH."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in TOOLS:
        (folder / name).symlink_to(str(shutil.which(name)))
    return folder


def run(script: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """One script with exactly this environment."""
    return subprocess.run([script], capture_output=True, text=True, env=environment, timeout=120, check=False)


@pytest.mark.parametrize("name", ["demo", "test", "check"])
def test_without_python_the_remedy_is_named(root: Path, tmp_path: Path, pythonless: Path, name: str) -> None:
    """No Python 3.11: exit code 1 and one line that says what to install."""
    venv = str(tmp_path / "no such venv")
    done = run(root / "scripts" / name, PATH=str(pythonless), VENV=venv)

    assert done.returncode == 1
    assert done.stderr.startswith("error: no Python 3.11 or newer")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_folder_with_something_else_in_it_is_left_alone(root: Path, tmp_path: Path, pythonless: Path) -> None:
    """A mistyped VENV costs no files."""
    letter = tmp_path / "letters" / "letter"
    letter.parent.mkdir()
    letter.write_text("dear")

    done = run(root / "scripts" / "demo", PATH=str(pythonless), VENV=str(letter.parent))

    assert done.returncode == 1
    assert "is no virtual environment and not empty" in done.stderr
    assert list(letter.parent.iterdir()) == [letter]
    assert letter.read_text() == "dear"


@pytest.mark.parametrize(("fails", "code"), [(False, 0), (True, 1)])
def test_setting_up_shows_progress(root: Path, tmp_path: Path, fails: bool, code: int) -> None:
    """What pip does is counted on stderr; when it fails, that is said; stdout is the command's."""
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").write_text("")
    lines = [f"echo Collecting package{n}" for n in range(45)]
    lines += ["echo Requirement already satisfied: x"] * 15
    lines += ["echo Installing collected packages: a, b", "echo Requirement already satisfied: y"]
    lines.append(f"exit {int(fails)}")
    stamp = '[ "$1" = -c ] && { [ -z "$3" ] || echo made; exit; }'
    (programs / "python").write_text("\n".join(("#!/bin/sh", stamp, *lines)))
    (programs / "pip").write_text(f"#!/bin/sh\necho pip 1 from {tmp_path / 'venv'}/lib\n")
    (programs / "listenpost").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "python3").write_text("#!/bin/sh\n")
    for program in (*programs.iterdir(), tmp_path / "programs" / "python3"):
        program.chmod(0o755)

    done = run(
        root / "scripts" / "demo",
        PATH=f"{tmp_path / 'programs'}:{os.environ['PATH']}", VENV=str(tmp_path / "venv"),
    )  # fmt: skip

    lock = (root / "requirements.lock").read_text("utf-8")
    packages = sum("==" in line for line in lock.splitlines())
    assert done.returncode == code
    assert f"  20 of {packages} packages ...\n  40 of {packages} packages" in done.stderr
    assert f"  60 of {packages} packages ...\n  all {packages} are there" in done.stderr
    assert ("could not be installed" in done.stderr) is fails
    assert done.stdout == ("" if fails else "analyze --sandbox plaud.ai\n")


@pytest.mark.parametrize(
    "name", ["scripts/demo", "scripts/test", "scripts/check", "scripts/nightly", "scripts/release", ".ci/run"]
)
def test_scripts_are_executable_bash(root: Path, name: str) -> None:
    """Each can be started as the README writes it, and parses."""
    script = root / name

    assert script.stat().st_mode & 0o111
    assert script.read_text("utf-8").startswith("#!/usr/bin/env bash\n")
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0


@pytest.mark.parametrize(
    ("words", "handed"),
    [
        (("sources", "-k", "cases"), "-m pytest tests/sources -k cases"),
        (("tests/pipeline/gate", "evaluation"), "-m pytest tests/pipeline/gate tests/evaluation"),
        (("test_docs.py", "-x"), "-m pytest tests/test_docs.py -x"),
        (("--co",), "-m pytest --co"),
    ],
)
def test_areas_are_folders_of_the_tests(root: Path, tmp_path: Path, words: tuple[str, ...], handed: str) -> None:
    """`scripts/test sources` runs tests/sources; what follows the areas is pytest's."""
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    (tmp_path / "venv" / "stamp").write_text("made")
    for name in ("python", "listenpost"):
        (programs / name).write_text('#!/bin/sh\n[ "$1" = -c ] && echo made || echo "$@"\n')
        (programs / name).chmod(0o755)

    done = subprocess.run(
        [root / "scripts" / "test", *words], capture_output=True, text=True, timeout=120,
        env={"PATH": os.environ["PATH"], "VENV": str(tmp_path / "venv")}, check=True,
    )  # fmt: skip

    assert done.stdout == f"{handed}\n"


@pytest.mark.parametrize(
    ("first", "second", "code", "runs"),
    [(0, 0, 0, 1), (1, 0, 0, 2), (1, 1, 1, 2), (2, 0, 1, 1)],
    ids=["all pass", "one fails once", "one fails twice", "pytest itself fails"],
)
def test_what_fails_runs_again(root: Path, tmp_path: Path, first: int, second: int, code: int, runs: int) -> None:
    """A failed test counts where it fails by itself, too; an interrupted run is not repeated."""
    programs, scripts = tmp_path / "venv" / "bin", tmp_path / "scripts"
    for folder in (programs, scripts):
        folder.mkdir(parents=True)
    (tmp_path / "venv" / "stamp").write_text("made")
    python = (
        f'#!/bin/sh\n[ "$1" = -c ] && echo made && exit\necho "$@"\n[ "$4" = --last-failed ] && exit {second}\n'
        f"exit {first}\n"
    )
    for file, text in ((programs / "python", python), (programs / "listenpost", "#!/bin/sh\n"),
                       (scripts / "check", "#!/bin/sh\n")):  # fmt: skip
        file.write_text(text)
        file.chmod(0o755)
    for name in ("test", "_venv"):
        shutil.copy(root / "scripts" / name, scripts / name)

    done = subprocess.run(
        [scripts / "test"], capture_output=True, text=True, timeout=120, check=False,
        env={"PATH": os.environ["PATH"], "VENV": str(tmp_path / "venv")},
    )  # fmt: skip

    assert done.returncode == code
    assert done.stdout.count("-m pytest") == runs
