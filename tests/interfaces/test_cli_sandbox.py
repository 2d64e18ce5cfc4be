"""`sandbox`: the upstreams as a process of their own."""

from __future__ import annotations

import signal
import socket
import subprocess

import pytest

from api.sandbox.server import environment
from tests.interfaces.command import COMMAND, Here, bare


def test_what_it_prints_points_the_command_at_it(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exports make a live run of it; faults are obeyed; Ctrl-C ends it with 130."""
    with subprocess.Popen(
        [COMMAND, "sandbox", "--port", "0", "--fault", "youtube=search_quota"],
        env=bare(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        exports = [running.stdout.readline().split() for _ in environment("")]
        for word, pair in exports:
            assert word == "export"
            monkeypatch.setenv(*pair.split("=", 1))
        kept = here("fetch", "reddit", "plaud.ai", "--format", "json")
        spent = here("fetch", "youtube", "plaud.ai", "--format", "json")
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=120)

    assert (kept.code, kept.json["sample"]) == (0, False)
    assert (spent.code, spent.json["outcome"]) == (4, "quota_exhausted")
    assert (running.returncode, out, err) == (130, "", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--host", "0.0.0.0"), "`0.0.0.0` is no loopback address"),
        (("--host", "example.org"), "`example.org` is no loopback address"),
        (("--fault", "youtube=plague"), "quota"),
        (("--fault", "plague"), "plague"),
        (("--latency", "openai=soon"), "openai=soon"),
        (("--recordings", "nowhere"), "`nowhere` is no folder of recordings"),
        (("--port", "65536"), "--port"),
    ],
)
def test_what_cannot_be_served_is_two(here: Here, words: tuple[str, ...], said: str) -> None:
    """It is said on stderr, with what there is instead."""
    ended = here("sandbox", *words)

    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_a_port_that_is_taken_is_two(here: Here) -> None:
    """Somebody else listens there."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = here("sandbox", "--port", port)

    assert ended.code == 2
    assert f"`127.0.0.1:{port}` cannot be listened on: Address already in use" in ended.err
