"""Clients generated from the OpenAPI document: `docs/clients.md`, run and type-checked."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.clients.environments import node_client, python_client
from tests.interfaces.http.process import threaded
from tests.snippets import blocks

PAGES = ("clients.md", "http.md")
KEY = "a-key-of-a-test"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a key, on sample data."""
    folder: Path = tmp_path_factory.mktemp("served")
    variables = {
        "LISTENPOST_DATABASE_URL": f"sqlite:///{folder / 'listenpost.db'}",
        "LISTENPOST_MODE": "sandbox",
        "LISTENPOST_API_KEYS": KEY,
    }
    with threaded(variables) as address:
        # the first request makes the document, for which a generator waits 5 s at most
        httpx.get(f"{address}/openapi.json", timeout=120)
        yield address


def ran(folder: Path, server: str, programs: Path, *command: str) -> str:
    """What a command printed, with the address, the key and these programs."""
    env = {**os.environ, "URL": server, "KEY": KEY, "PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_python_client(server: str, tmp_path: Path) -> None:
    """It is generated without a warning, all of it is typed, and its calls work."""
    programs = python_client("openapi_python").parent
    generate = next(block for block in blocks("clients.md", "bash") if "python" in block)
    (code,) = blocks("clients.md", "python")
    (tmp_path / "calls.py").write_text(code, "utf-8")

    said = ran(tmp_path, server, programs, "sh", "-c", generate)
    # the models and calls are ours; its `client.py` is the generator's own and has faults in every client
    whole = ("calls.py", "listenpost_client/models", "listenpost_client/api")
    ran(tmp_path, server, programs, "mypy", "--strict", "--follow-imports=silent", *whole)
    printed = ran(tmp_path, server, programs, "python", "calls.py")

    assert said == "Generating listenpost_client\n"
    assert printed.startswith("full_report ")
    assert "\nreddit ok " in printed
    assert " [E" in printed
    assert "\ninvalid_request `query` must be text of at most 500 characters" in printed


@pytest.mark.nightly
def test_typescript_types(server: str, tmp_path: Path) -> None:
    """They are generated, every example passes `tsc --strict` with them, and the first one runs."""
    node = node_client("openapi_node")
    programs = node / "node_modules" / ".bin"
    (generate,) = (block for block in blocks("clients.md", "bash") if "typescript" in block)
    (tmp_path / "node_modules").symlink_to(node / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}', "utf-8")
    options = {
        "strict": True, "target": "es2022", "module": "nodenext", "types": ["node"],
        "allowJs": True, "checkJs": True, "skipLibCheck": True, "noUncheckedIndexedAccess": True,
        "allowImportingTsExtensions": True, "rewriteRelativeImportExtensions": True,
        "outDir": "built",
    }  # fmt: skip
    config = {"compilerOptions": options, "include": ["*.ts", "*.js"]}
    (tmp_path / "tsconfig.json").write_text(json.dumps(config), "utf-8")
    for page in PAGES:
        for number, code in enumerate(blocks(page, "ts", "js")):
            (tmp_path / f"{Path(page).stem}{number}.ts").write_text(code, "utf-8")

    ran(tmp_path, server, programs, "sh", "-c", generate)
    ran(tmp_path, server, programs, "tsc", "--project", ".")
    printed = ran(tmp_path, server, programs, "node", "built/clients0.js")

    assert printed.startswith("full_report ")
    assert "\nreddit ok " in printed
    assert "\n200\n" in printed
    assert " [E" in printed
