"""The base installation works without any extra, and what needs one says in one sentence how to install it."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import httpx
import pytest

from api.errors import EXTRAS, MissingExtra, extras_named, missing_module

BARE = """
import sys
sys.path.insert(0, sys.argv[1])
from api.errors import EXTRAS

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

absent = {module for modules in EXTRAS.values() for module in modules}
sys.meta_path.insert(0, Absent())
import importlib.util
whole = importlib.util.find_spec
import api.errors
api.errors.find_spec = lambda name: None if name in absent else whole(name)
from api.interfaces.cli.main import run
run(sys.argv[2:])
"""
"""The command where no module of an extra can be found."""


def bare(folder: Path, root: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command without extras."""
    database = {"LISTENPOST_DATABASE_URL": f"sqlite:///{folder}/listenpost.db", "HOME": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", BARE, str(root), *words],
        cwd=folder, env={"PATH": os.environ["PATH"], **database, **variables},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def names(requirements: list[str]) -> set[str]:
    """The packages that requirements name."""
    return {re.split(r"[\[<>=~! ;]", requirement)[0].lower() for requirement in requirements}


def test_the_table_of_extras_is_that_of_the_package(root: Path) -> None:
    """`pyproject.toml` has each extra and `all`; what is imported is of the base, or in the table."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    extras, base = project["optional-dependencies"], names(project["dependencies"])
    owners = {
        module: {name.lower().replace("_", "-") for name in found} for module, found in packages_distributions().items()
    }

    assert [*EXTRAS, "all"] == list(extras)
    assert extras["all"] == [f"listenpost[{','.join(EXTRAS)}]"]
    for extra, modules in EXTRAS.items():
        brought = base | names(extras[extra]) | {"prawcore", "mcp-types", "ag-ui-protocol"}
        assert [module for module in modules if not owners[module] & brought] == []
    imported = {
        name.partition(".")[0]
        for file in (root / "api").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import)
            else [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        )
    } - sys.stdlib_module_names - {"api"}  # fmt: skip
    known = set(chain.from_iterable(EXTRAS.values()))
    through = {"h11", "opentelemetry", "pydantic_core", "requests", "typing_extensions", "urllib3"}  # of what is there
    assert {name for name in imported - known - through if not owners[name] & base} <= {"markdown_it"}


def test_only_a_module_of_an_extra_is_named() -> None:
    """Any other missing module is a defect, and stays what it is."""
    with pytest.raises(ModuleNotFoundError), extras_named():
        import nothing_of_this_name  # type: ignore[import-not-found] # noqa: F401
    with (
        pytest.raises(MissingExtra, match=r"`praw` is not installed; `pip install 'listenpost\[reddit\]'` installs it"),
        extras_named(),
    ):
        raise ModuleNotFoundError("No module named 'praw.models'", name="praw.models")
    assert missing_module("reddit") == missing_module("hackernews") == ""


def test_a_question_is_answered_without_any_extra(root: Path, tmp_path: Path) -> None:
    """By the places whose client is there; Reddit and YouTube name their commands."""
    ended = bare(tmp_path, root, "analyze", "plaud.ai", "--sandbox", "--format", "json")

    assert ended.returncode == 0, ended.stderr
    sources = json.loads(ended.stdout)["sources"]
    lacking = {name: part for name, part in sources.items() if part["outcome"] == "not_configured"}
    assert set(lacking) == {"reddit", "youtube"}
    assert all(f"`pip install 'listenpost[{name}]'`" in str(part) for name, part in lacking.items())
    assert any(part["outcome"] == "ok" for part in sources.values())
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("serve", "--port", "0"), "serve"),
        (("mcp",), "mcp"),
        (("work",), "durable"),
        (("reports",), "postgres"),
        (("doctor",), "youtube"),
        (("doctor",), "langfuse"),
    ],
)
@pytest.mark.nightly
def test_what_lacks_its_extra_says_so(root: Path, tmp_path: Path, words: tuple[str, ...], extra: str) -> None:
    """One sentence with the command that installs it, and no traceback."""
    variables = {"LANGFUSE_PUBLIC_KEY": "pk-lf-x", "LANGFUSE_SECRET_KEY": "sk-lf-x", "YOUTUBE_API_KEY": "x"}
    variables |= {"LISTENPOST_SOURCES": "youtube", "LANGFUSE_BASE_URL": "http://127.0.0.1:9"}
    if extra == "postgres":
        variables["LISTENPOST_DATABASE_URL"] = "postgresql://listenpost@127.0.0.1:9/listenpost"
    ended = bare(tmp_path, root, *words, **variables)

    text = ended.stdout + ended.stderr
    assert ended.returncode == (4 if words == ("doctor",) else 2), text
    assert text.count(f"`pip install 'listenpost[{extra}]'`") >= 1
    assert "Traceback" not in text


INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip

ALONE: dict[str, tuple[tuple[str, ...], str]] = {
    "reddit": (("fetch", "reddit", "plaud.ai", "--sandbox"), r"^Reddit .* ok$"),
    "youtube": (("fetch", "youtube", "plaud.ai", "--sandbox"), r"^YouTube .* ok$"),
    "serve": (("serve", "--port", "0", "--sandbox"), r"^Listenpost on http"),
    "mcp": (("mcp", "--sandbox"), r'"id":1,"result":.*"tools"'),
    "langfuse": (("doctor",), r"^Langfuse +ok "),
    "postgres": (("reports",), r"PostgreSQL of `LISTENPOST_DATABASE_URL` cannot be used: connection refused"),
    "durable": (("work", "--sandbox"), r"^Listenpost works"),
    "search": (("search", "how long it lasts", "--sandbox"), r"^\[E1\]"),
}
"""Of each extra a command that needs it, and a line that it prints."""


def the_server_names_what_it_lacks(address: str) -> None:
    """On the page beside a source, and in the API with a code."""
    page = httpx.get(address, timeout=60).text
    refused = httpx.post(f"{address}/mcp", json={}, timeout=60)

    assert "listenpost[reddit]" in page
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "missing_extra")
    assert "`pip install 'listenpost[mcp]'`" in refused.text


@pytest.mark.nightly
@pytest.mark.parametrize("extra", EXTRAS)
def test_each_extra_alone_runs_its_command(root: Path, tmp_path: Path, extra: str) -> None:
    """In a new environment with nothing but the base and this extra; each takes a minute or two to install."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    program = tmp_path / "venv" / "bin"
    subprocess.run([program / "pip", "install", "-qq", f"{root}[{extra}]"], check=True, timeout=900)
    words, printed = ALONE[extra]
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    variables |= {"LISTENPOST_MODE": "sandbox"} if extra == "langfuse" else {}
    if extra == "postgres":
        variables["LISTENPOST_DATABASE_URL"] = "postgresql://listenpost@127.0.0.1:9/listenpost"
    if extra == "search":  # there must be something to find
        asked = [str(program / "listenpost"), "analyze", "plaud.ai", "--sandbox"]
        subprocess.run(asked, cwd=tmp_path, env=variables, check=True, capture_output=True, timeout=120)
    with subprocess.Popen(
        [program / "listenpost", *words],
        cwd=tmp_path, env=variables, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        if extra in {"serve", "durable"}:  # they stay
            text = process.stdout.readline()
            if extra == "serve":
                the_server_names_what_it_lacks(text.split()[2])
            process.terminate()
        else:
            text, _ = process.communicate(f"{json.dumps(INITIALIZE)}\n" if extra == "mcp" else "", timeout=120)

    assert re.search(printed, text, re.M), text
    assert "Traceback" not in text
    assert "by words alone" not in text
    assert f"listenpost[{extra}]" not in text
