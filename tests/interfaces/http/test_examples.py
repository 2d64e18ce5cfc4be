"""The examples of `docs/http.md`, run as they stand there against a server."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.sandbox.server import Sandbox
from tests.interfaces.command import environment, inside
from tests.interfaces.http.process import ROOT, serving, threaded
from tests.snippets import blocks, commands, shown

README = (ROOT / "README.md").read_text("utf-8")
PAGE = (ROOT / "docs" / "http.md").read_text("utf-8")
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
        yield address


def curled(call: str, server: str) -> str:
    """What a line of the shell printed that was given the server's address and key."""
    env = {**os.environ, "URL": server, "KEY": KEY}
    done = subprocess.run(["sh", "-c", call], env=env, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout


def test_a_server_is_started_and_a_key_lets_in(tmp_path: Path) -> None:
    """By the page's commands, on a free port; with its first key it asks everybody for one."""
    serve, keys = commands("docs/http.md")
    variables = {
        "LISTENPOST_DATABASE_URL": f"sqlite:///{tmp_path / 'listenpost.db'}",
        "LISTENPOST_MODE": "sandbox",
    }
    key = inside(*keys, env=variables).out.strip()
    words = ["0" if word == "8420" else word for word in serve[1:]]
    with serving(tmp_path, variables, *words) as process, httpx.Client(base_url=process.url) as web:
        codes = [
            web.get("/v1/analyses", headers=headers).status_code for headers in ({}, {"Authorization": f"Bearer {key}"})
        ]

    assert serve[0] == "serve"
    assert codes == [401, 200]


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_readme_asks_over_http(server: str) -> None:
    """README.md's one call, at this server's address and with its key."""
    (call,) = [code for language, code in shown(README) if language == "bash"]
    here = call.replace("http://localhost:8420", "$URL").replace("curl -s", 'curl -s -H "Authorization: Bearer $KEY"')

    assert json.loads(curled(here, server))["decision"] == "full_report"


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_curl(server: str) -> None:
    """A report, a stream that ends in one, judged items, a comparison, and a watch."""
    calls = [block for block in blocks("http.md", "bash") if block.startswith("curl")]
    report, stream, judged, comparison, watch = (curled(call, server) for call in calls)

    assert json.loads(report)["decision"] == "full_report"
    assert stream.startswith("event: begun")
    assert "\nevent: report\n" in stream
    assert json.loads(judged)["relevant"] == [{"title": "My Ember mug died"}]
    assert comparison.startswith("# Oura and Whoop, compared")
    assert json.loads(watch)["due_at"]


def test_python(server: str) -> None:
    """Begun, followed and read to its end."""
    (code,) = [block for block in blocks("http.md", "python") if "httpx_sse" not in block]
    example: dict[str, Any] = {"__name__": "example"}
    with (
        environment({**os.environ, "URL": server, "KEY": KEY}),
        redirect_stdout(io.StringIO()) as out,
    ):
        exec(code.replace("time.sleep(", "time.sleep(0.1 * "), example)
    example["client"].close()  # a program's is closed by its end
    printed = out.getvalue()

    assert printed.startswith("full_report ")
    assert "\n- " in printed


def ended(place: Mapping[str, str], meanwhile: Callable[[int], object]) -> str:
    """How the page's program ends; `meanwhile` happens where it would sleep."""
    (code,) = [block for block in blocks("http.md", "python") if "httpx_sse" not in block]
    example: dict[str, Any] = {"__name__": "example", "meanwhile": meanwhile}
    with environment({**os.environ, **place}), pytest.raises(SystemExit) as caught:
        exec(code.replace("time.sleep(", "meanwhile("), example)
    example["client"].close()
    return str(caught.value)


def test_python_of_what_has_no_report(sandbox: Sandbox, tmp_path: Path) -> None:
    """It fails, it is deleted, or is looked at too often: the program says so, or waits."""
    sandbox.latency("openai=5s")
    database = tmp_path / "listenpost.db"
    variables = {
        "LISTENPOST_DATABASE_URL": f"sqlite:///{database}",
        "LISTENPOST_API_KEYS": "ann,ben,cleo",
        "LISTENPOST_LIMIT_REQUESTS_PER_MINUTE": "5",
    }
    with threaded(variables) as url, sqlite3.connect(database) as rows:

        def client(key: str) -> httpx.Client:
            return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"})

        def failed(seconds: int) -> None:
            """As the server's next start finds one whose process was lost."""
            rows.execute("UPDATE analyses SET state = 'failed', reason = 'its process is gone'")
            rows.commit()

        def deleted(seconds: int) -> None:
            with client("ben") as ben:
                (listed,) = ben.get("/v1/analyses").json()["analyses"]
                assert ben.delete(f"/v1/analyses/{listed['id']}").status_code == 204

        waits: list[int] = []

        def looked(seconds: int) -> None:
            """More often than it may; the second time as if the minute was over."""
            waits.append(seconds)
            if len(waits) == 2:
                raise SystemExit("it waits")
            with client("cleo") as cleo:
                while cleo.get("/v1/analyses/none").status_code != 429:
                    continue

        endings = [
            ended({"URL": url, "KEY": key}, meanwhile)
            for key, meanwhile in (("ann", failed), ("ben", deleted), ("cleo", looked))
        ]

    assert json.loads(endings[0])["reason"] == "its process is gone"
    assert json.loads(endings[1])["error"]["code"] == "not_found"
    assert endings[2] == "it waits"
    assert waits[0] == 2
    assert 1 <= waits[1] <= 60, "until the minute is over"


def test_the_routes_of_the_page_are_those_of_the_server(server: str) -> None:
    """Each one in the table, and none that is not there."""
    paths = httpx.get(f"{server}/openapi.json").json()["paths"]
    served = {
        f"{method.upper()} {re.sub(r'{[a-z]+_id}', '{id}', path)}"
        for path, methods in paths.items()
        for method in methods
        if path.startswith("/v1/")
    }

    assert set(re.findall(r"^\| `([A-Z]+ /v1/[^`]*)`", PAGE, re.M)) == served


def test_an_error_looks_as_the_page_shows_it(server: str) -> None:
    """The same fields, each of the same form."""
    (shown,) = (json.loads(block) for block in blocks("http.md", "json"))
    real = httpx.get(f"{server}/v1/analyses/none").json()

    assert shown.keys() == real.keys()
    assert shown["error"].keys() == real["error"].keys()
    assert len(shown["error"]["trace_id"]) == len(real["error"]["trace_id"])
