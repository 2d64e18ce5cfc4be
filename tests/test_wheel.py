"""The wheel holds all that the product needs: installed, from another folder, it runs the demo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from api.settings.source_group import SourceSettings
from api.sources import default_sources

BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
DATA = {
    "api/py.typed",
    "api/models/local/local_weights.json",
    "api/sandbox/data/products.json",
    "api/sandbox/data/posts/plaud.jsonl",
    "api/reports/keyless/aspects.toml",
    "api/core/prompts/relevance.md",
    "api/core/prompts/report.md",
}


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel as the locked backend builds it, without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)],
        cwd=root, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.split()[-1]


@dataclass(frozen=True)
class Installed:
    """A fresh environment that has the wheel and this one's libraries, but not this checkout."""

    bin: Path

    def run(self, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run one of its programs in a bare environment and another folder."""
        env = {"PATH": os.environ["PATH"], "HOME": str(cwd)}
        return subprocess.run(
            [str(self.bin / words[0]), *words[1:]],
            cwd=cwd, env=env, capture_output=True, text=True, timeout=120,
        )  # fmt: skip


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Libraries come by a `.pth`, whose folders' own `.pth` (the checkout's) are not read."""
    venv = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (site,) = venv.glob("lib/python3*/site-packages")
    (site / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    pip = [sys.executable, "-m", "pip", "--python", str(venv / "bin" / "python"), "install", "-qq"]
    offline = ["--no-deps", "--no-index", "--ignore-installed", "--disable-pip-version-check"]
    done = subprocess.run([*pip, *offline, str(wheel)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return Installed(venv / "bin")


def test_the_wheel_holds_the_package_and_its_data(wheel: Path, root: Path) -> None:
    """Every file of the package, the licence, and nothing beside them."""
    names = set(zipfile.ZipFile(wheel).namelist())
    there = {
        path.relative_to(root).as_posix()
        for path in (root / "api").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert there >= DATA
    assert there <= names
    assert {name.split("/")[0] for name in names - there} == {f"{wheel.name.split('-py3')[0]}.dist-info"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_demo_runs_from_the_wheel(installed: Installed, tmp_path: Path) -> None:
    """Another folder, an empty environment: a cited report of sample data about plaud.ai."""
    where = installed.run("python", "-c", "import api; print(api.__file__)", cwd=tmp_path)
    ended = installed.run("listenpost", "analyze", "plaud.ai", "--sandbox", "--format", "json", cwd=tmp_path)

    assert where.stdout.startswith(str(installed.bin.parent))
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    kept = {item["key"] for item in report["items"]}
    assert report["sample"] is True
    assert set(report["sources"]) == set(default_sources(SourceSettings(sources=None)))
    assert len(report["findings"]) >= 3
    assert all(kept >= set(finding["cites"]) for finding in report["findings"])


def test_the_local_judge_runs_from_the_wheel(installed: Installed, tmp_path: Path) -> None:
    """Its weights are there: own items are judged without a key."""
    (tmp_path / "own.jsonl").write_text('{"title": "Plaud Note", "body": "plaud transcripts"}\n')
    words = ("-m", "api", "analyze", "plaud", "--items", "own.jsonl", "--format", "json")
    ended = installed.run("python", *words, cwd=tmp_path)

    assert ended.stderr.startswith("Your items: 1 of 1 results were about it\nkept as ")
    gate = json.loads(ended.stdout)["sources"]["items"]["gate"]
    assert gate["status"] == "ok"
    assert gate["model"].startswith("local")


def test_every_module_of_the_wheel_can_be_imported(installed: Installed, tmp_path: Path) -> None:
    """Nothing in it needs the checkout or its tests."""
    code = (
        "import pkgutil, importlib, api\n"
        "for found in pkgutil.walk_packages(api.__path__, 'api.'):\n"
        "    if not found.name.endswith('__main__'): importlib.import_module(found.name)\n"
    )
    done = installed.run("python", "-c", code, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
