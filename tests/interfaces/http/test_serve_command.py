"""`listenpost serve`: streams, hanging up, being killed, and where it listens."""

from __future__ import annotations

import http.client
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.sandbox.server import Sandbox
from tests.interfaces.command import Ended, inside
from tests.interfaces.http.conftest import QUESTION
from tests.interfaces.http.process import ROOT, serving, threaded

STREAM = {"Accept": "text/event-stream"}
ASYNC = {"Prefer": "respond-async"}
NEVER = threading.Event()
"""Waiting for it with a timeout lets the sandbox's thread work meanwhile."""


@pytest.fixture
def variables(sandbox: Sandbox, tmp_path: Path) -> dict[str, str]:
    """One database, and the sandbox of the test for everything upstream."""
    return {"LISTENPOST_DATABASE_URL": f"sqlite:///{tmp_path / 'listenpost.db'}"}


@pytest.fixture
def url(variables: Mapping[str, str]) -> Iterator[str]:
    """A server without keys."""
    with threaded(variables) as address:
        yield address


def until_done(client: httpx.Client, address: str) -> dict[str, Any]:
    """An analysis that runs no more."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        shown: dict[str, Any] = client.get(address).json()
        if shown["state"] != "running":
            return shown
        NEVER.wait(0.05)
    raise AssertionError(f"{address} still runs")


def refused(variables: Mapping[str, str], *words: str) -> Ended:
    """A server that cannot be started."""
    return inside("serve", *words, env={**os.environ, **variables})


def asked(sandbox: Sandbox, count: int) -> None:
    """Wait until the sandbox has served so many requests."""
    deadline = time.monotonic() + 30
    while len(sandbox.log) < count:
        assert time.monotonic() < deadline, sandbox.log
        NEVER.wait(0.01)


def test_events_arrive_while_the_work_goes_on(url: str, sandbox: Sandbox) -> None:
    """The first one long before the last: nothing is held back."""
    sandbox.latency("openai=300ms")
    kinds, times = list[str](), list[float]()
    with httpx.stream("POST", f"{url}/v1/analyses", json=QUESTION, headers=STREAM, timeout=60) as answer:
        for line in answer.iter_lines():
            if line.startswith("event: "):
                kinds.append(line.removeprefix("event: "))
                times.append(time.monotonic())

    assert (kinds[0], kinds[-1]) == ("begun", "report")
    assert times[-1] - times[0] > 0.5


@contextmanager
def posted(url: str, path: str, headers: Mapping[str, str]) -> Iterator[http.client.HTTPConnection]:
    """The question on its way; who leaves the block hangs up, whether it is answered or not."""
    with closing(http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)) as calling:
        content = {"Content-Type": "application/json", **headers}
        calling.request("POST", path, json.dumps(QUESTION), content)
        yield calling


@pytest.mark.parametrize("headers", [STREAM, {}])
def test_who_hangs_up_stops_the_work(variables: Mapping[str, str], sandbox: Sandbox, headers: dict[str, str]) -> None:
    """The analysis is failed, and from then on no further request reaches the sandbox."""
    sandbox.latency("reddit=1s", "youtube=1s", "amazon=1s", "openai=1s")
    short = {**variables, "LISTENPOST_STREAM_GRACE": "0.1"}
    with threaded(short) as url, httpx.Client(base_url=url, timeout=60) as client:
        with posted(url, "/v1/analyses", headers) as calling:
            if headers:
                assert calling.getresponse().readline() == b"event: begun\n"
            while not (kept := client.get("/v1/analyses").json()["analyses"]):
                NEVER.wait(0.01)
        shown = until_done(client, f"/v1/analyses/{kept[0]['id']}")
        failed = time.monotonic()
        NEVER.wait(2.5)

    assert (shown["state"], shown["reason"]) == ("failed", "cancelled")
    assert [entry for entry in sandbox.log if entry.started > failed] == []
    assert {entry.upstream for entry in sandbox.log} <= {"reddit", "youtube", "amazon"}


def test_who_hangs_up_on_a_fetch_stops_it_too(url: str, sandbox: Sandbox) -> None:
    """At most the request under way is answered, and the judge is not asked any more."""
    sandbox.latency("youtube.videos=1s")
    with posted(url, "/v1/fetch/youtube", {}):
        asked(sandbox, 1)
    NEVER.wait(2.5)

    assert {entry.endpoint for entry in sandbox.log} <= {"search", "videos"}


def test_killed_in_the_middle(variables: Mapping[str, str], sandbox: Sandbox, tmp_path: Path) -> None:
    """After a restart nothing is half-written, the limits are right, and what ran goes on."""
    keyed = {**variables, "LISTENPOST_API_KEYS": "ann", "LISTENPOST_LIMIT_ANALYSES_PER_DAY": "3"}
    bearer = {"Authorization": "Bearer ann"}
    with (
        serving(tmp_path, keyed) as server,
        httpx.Client(base_url=server.url, headers=bearer) as client,
    ):
        done = client.post("/v1/analyses", json=QUESTION, timeout=60).json()
        sandbox.forget()
        sandbox.latency("openai=5s")
        other = {**QUESTION, "query": "ember mug"}
        running = [
            client.post("/v1/analyses", json=question, headers=ASYNC).json()["id"]
            for question in (other, {**other, "query": "monday"})
        ]
        asked(sandbox, 6)
        server.kill()
    sandbox.latency("openai=2s")  # longer than who waits for a flight looks away

    with (
        serving(tmp_path, keyed) as server,
        httpx.Client(base_url=server.url, headers=bearer, timeout=60) as client,
    ):
        followed = [client.get(f"/v1/analyses/{each}", headers=STREAM).text for each in running]
        listed = client.get("/v1/analyses").json()["analyses"]
        again = client.get(f"/v1/analyses/{done['id']}").json()
        refused = client.post("/v1/analyses", json=QUESTION)

    assert {one["id"]: one["state"] for one in listed} == dict.fromkeys([done["id"], *running], "done")
    assert followed[0].removeprefix(": ping\n").startswith("event: begun\n")  # a busy machine pings first
    assert "event: source.kept\n" in followed[0]
    assert all("event: report\n" in text for text in followed)
    assert again["items"] == done["items"]
    assert refused.status_code == 429
    with closing(sqlite3.connect(tmp_path / "listenpost.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (units,) = database.execute("SELECT units FROM ledger WHERE scope LIKE 'key:%:analyses'").fetchone()
    assert units == 3


def test_getting_ready_loads_no_client_library(tmp_path: Path) -> None:
    """They load in the background, once it listens: that is what makes the start quick."""
    heavy = "googleapiclient httpx langfuse mcp openai praw prometheus_client pydantic_ai wordllama"
    code = "import sys, api.interfaces.cli.server_commands, api.interfaces.http.app as app; "
    code += "print(*{*sys.argv[1:]} & {*sys.modules})"
    ended = subprocess.run(
        [sys.executable, "-c", code, "fastapi", *heavy.split()],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path,
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip

    assert ended.stdout.split() == ["fastapi"]


def test_after_a_polite_stop_the_next_server_goes_on(
    variables: Mapping[str, str], sandbox: Sandbox, tmp_path: Path
) -> None:
    """SIGTERM: an analysis on its own is left to it, under the same id."""
    sandbox.latency("openai=20s")
    with serving(tmp_path, variables) as server:
        began = httpx.post(f"{server.url}/v1/analyses", json=QUESTION, headers=ASYNC, timeout=30).json()
        asked(sandbox, 3)
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(20)
    sandbox.heal()
    with serving(tmp_path, variables) as server, httpx.Client(base_url=server.url) as client:
        shown = until_done(client, f"/v1/analyses/{began['id']}")

    assert (shown["state"], shown["id"]) == ("done", began["id"])


def test_ctrl_c_is_no_crash(variables: Mapping[str, str], tmp_path: Path) -> None:
    """Exit code 130, and nothing more is said."""
    with serving(tmp_path, variables) as server:
        httpx.get(f"{server.url}/healthz")
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(20) == 130

    assert len(server.said) == 1


def test_it_says_where_it_listens_and_to_whom(variables: Mapping[str, str], tmp_path: Path) -> None:
    """Without keys: this machine only; with one: whoever has it."""
    with serving(tmp_path, variables) as server:
        assert "only this machine may call" in server.said[0]
        assert server.url.startswith("http://127.0.0.1:")
        assert httpx.get(f"{server.url}/v1/analyses", headers={"Host": "a.example"}).status_code == 403
    with serving(tmp_path, {**variables, "LISTENPOST_API_KEYS": "k"}, "--host", "0.0.0.0") as server:
        port = server.url.rpartition(":")[2]
        assert "with an API key" in server.said[0]
        assert httpx.get(f"http://127.0.0.1:{port}/v1/analyses").status_code == 401


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--host", "0.0.0.0"), "without API keys only this machine is served"),
        (("--host", "192.0.2.7"), "without API keys only this machine is served"),
        (("--port", "{taken}"), "cannot be listened on"),
    ],
)
def test_where_it_cannot_listen(
    variables: Mapping[str, str], shared_sandbox: Sandbox, words: tuple[str, ...], said: str
) -> None:
    """Exit code 2 and a remedy."""
    taken = shared_sandbox.url.rpartition(":")[2]
    ended = refused(variables, *(word.format(taken=taken) for word in words))

    assert ended.code == 2
    assert said in ended.err


def test_a_database_that_cannot_be_used(tmp_path: Path) -> None:
    """Exit code 2, named."""
    broken = {"LISTENPOST_DATABASE_URL": f"sqlite:///{tmp_path / 'no' / 'such' / 'listenpost.db'}"}
    ended = refused(broken)

    assert ended.code == 2
    assert "LISTENPOST_DATABASE_URL" in ended.err
    assert "Traceback" not in ended.err
