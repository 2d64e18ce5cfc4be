"""What importing costs, what is public, and what the lock may hold."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

import api

HEAVY = tuple("googleapiclient httpx langfuse numpy openai praw pydantic_ai usearch uvicorn".split())
"""Libraries that cost a visible part of a second and are loaded by whoever needs them."""
SURFACE = {
    "Fetched",
    "Report",
    "analyze",
    "fetch",
    "fetch_amazon_tool",
    "fetch_reddit_tool",
    "fetch_youtube_tool",
    "listening_toolset",
    "relevance_filter",
}


def locked(root: Path) -> str:
    """The text of the lock."""
    return (root / "requirements.lock").read_text("utf-8")


def loaded(code: str, root: Path) -> set[str]:
    """The heavy libraries that a fresh Python has loaded after running this code."""
    told = "; import sys; print('loaded:', *sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code + told],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env=dict(os.environ) | {"PYTHONPATH": str(root)},
    )
    last = done.stderr.rstrip().rpartition("\n")[2]
    assert last.startswith("loaded: "), done.stderr
    return set(last.split()) & set(HEAVY)


@pytest.mark.parametrize(
    "code",
    [
        "import api; assert api.__all__ and dir(api) and api.__version__",
        "import api; assert api.analyze and api.fetch and api.Report and api.Fetched",
        "import api.settings, api.errors, api.sources, api.core.ports, api.core.domain",
        "from api.interfaces.cli.main import app; assert app.registered_commands",
        "from api.interfaces.cli.main import app; app(['--help'], standalone_mode=False)",
        "from api.interfaces.cli.main import app;app(['analyze', '--help'], standalone_mode=False)",
        "from api.interfaces.cli.main import app; app(['--version'], standalone_mode=False)",
        "from api.interfaces.cli.main import app;app(['langfuse', '--help'], standalone_mode=False)",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code: str, root: Path) -> None:
    """Importing the package and asking for help load no client library."""
    assert loaded(code, root) == set()


def test_the_check_for_heavy_imports_sees_one(root: Path) -> None:
    """A library that is loaded is reported, so the test above can fail."""
    assert loaded("import praw", root) == {"praw"}


def test_the_public_names_are_sorted_complete_and_exist() -> None:
    """`__all__` is what type checkers see, what the package promises, and nothing else."""
    tree = ast.parse(Path(str(api.__file__)).read_text("utf-8"))
    typed = {
        alias.asname or alias.name
        for block in tree.body
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in block.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("api.")
        for alias in node.names
    }

    assert api.__all__ == sorted(set(api.__all__))
    assert set(api.__all__) == typed
    assert set(api.__all__) >= SURFACE
    assert all(callable(getattr(api, name)) for name in api.__all__)
    assert set(dir(api)) == {*api.__all__, "__version__"}


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    """The lazy names answer like any module."""
    with pytest.raises(AttributeError, match="fetch_everything"):
        getattr(api, "fetch_everything")  # noqa: B009


def test_the_lock_pins_hashes_and_names_no_index(root: Path) -> None:
    """Every package has one version and a hash, and no line says where to download it."""
    lock = locked(root)
    pins = re.split(r"\n(?=\S)", lock.strip())

    assert len(pins) > 50
    assert all(re.match(r"[a-z0-9._-]+(\[[\w,-]+\])?==\S+", pin) for pin in pins)
    assert all("--hash=sha256:" in pin for pin in pins)
    assert "://" not in lock
    assert not (root / "uv.lock").exists()


def test_everything_that_is_needed_is_locked(root: Path) -> None:
    """Runtime, development and build requirements of `pyproject.toml` are in the lock."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    wanted = [
        *project["project"]["dependencies"],
        *chain.from_iterable(project["project"]["optional-dependencies"].values()),
        *project["dependency-groups"]["dev"],
        *project["dependency-groups"]["build"],
        *project["build-system"]["requires"],
    ]
    pinned = {"listenpost"} | set(re.findall(r"^([a-z0-9._-]+)(?:\[.*\])?==", locked(root), re.MULTILINE))

    assert {re.split(r"[\[<>=~! ]", requirement)[0].lower() for requirement in wanted} <= pinned
