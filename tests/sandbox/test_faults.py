"""Faults, latency, the log, and steering both over HTTP."""

from __future__ import annotations

import socket
import threading
import time

import httpx
import pytest

from api.sandbox.faults import Faults, fault, latency
from api.sandbox.server import Sandbox
from tests.sandbox.conftest import Start


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("youtube", "is no fault"),
        ("myspace=500", "no upstream `myspace`"),
        ("youtube=captcha", "no fault `captcha`"),
        ("youtube.token=500", "no endpoint `token`"),
    ],
)
def test_an_unknown_fault_says_what_there_is(text: str, named: str) -> None:
    """A misspelt fault is refused with what is wrong in it."""
    with pytest.raises(ValueError, match=named):
        fault(text)


def test_a_latency_is_read_in_both_units() -> None:
    """Milliseconds and seconds, for an upstream or an endpoint."""
    assert latency("openai=800ms") == (("openai", None), 0.8)
    assert latency("reddit.search=1.5s") == (("reddit", "search"), 1.5)
    with pytest.raises(ValueError, match="is no latency"):
        latency("openai=fast")


def test_a_fault_can_wait_and_end() -> None:
    """`@2x1` hits the second matching request only; other endpoints are not counted."""
    faults = Faults(["openai.judge=500@2x1"])

    hits = [faults.strike("openai", name) for name in ("judge", "grades", "judge", "judge")]

    assert hits == [None, None, "500", None]


def test_the_nearest_latency_counts() -> None:
    """An endpoint's own latency stands before its upstream's."""
    faults = Faults([], ["reddit=2s", "reddit.search=10ms"])

    assert faults.seconds("reddit", "search") == 0.01
    assert faults.seconds("reddit", "comments") == 2.0
    assert faults.seconds("amazon", "search") == 0.0


def test_the_log_holds_what_was_asked_without_keys(sandbox: Sandbox) -> None:
    """Entries have an order, names, a status and times; keys in the address are starred."""
    httpx.get(f"{sandbox.url}/youtube/v3/search?part=snippet&q=caf%C3%A9&key=very-secret")
    httpx.get(f"{sandbox.url}/s?k=glow")

    first, second = sandbox.log
    assert (first.number, first.upstream, first.endpoint, first.status) == (
        1,
        "youtube",
        "search",
        200,
    )
    assert "very-secret" not in repr(sandbox.log)
    assert first.query["q"] == "café"
    assert first.started <= first.ended <= second.ended
    assert sandbox.requests("amazon") == (second,)


def test_steering_over_http(sandbox: Sandbox) -> None:
    """Faults and latency are set by POST, bad ones are refused, and the log is JSON."""
    steer = f"{sandbox.url}/_sandbox/fault"
    assert httpx.post(steer, json={"faults": ["amazon=captcha"]}).status_code == 200
    assert "validateCaptcha" in httpx.get(f"{sandbox.url}/s?k=glow").text
    assert httpx.post(steer, json={"clear": True, "latency": ["amazon=80ms"]}).json() == {"ok": True}
    began = time.monotonic()
    assert "validateCaptcha" not in httpx.get(f"{sandbox.url}/s?k=glow").text
    assert time.monotonic() - began >= 0.08
    refused = httpx.post(steer, json={"faults": ["amazon=gremlins"]})

    entries = httpx.get(f"{sandbox.url}/_sandbox/log?since=1").json()["entries"]
    assert refused.status_code == 422
    assert "gremlins" in refused.json()["error"]["message"]
    assert [(e["number"], e["fault"], e["status"]) for e in entries] == [(2, None, 200)]


def test_a_hanging_server_does_not_hold_up_the_end(start: Start) -> None:
    """A hung request is in the log with status 0; stopping does not wait for who still waits."""
    sandbox = start(faults=["reddit=hang"])
    host, port = sandbox.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as waiting:
        waiting.sendall(b"GET /r/all/search/?q=glow HTTP/1.1\r\nHost: x\r\n\r\n")
        while not sandbox.log:
            threading.Event().wait(0.01)
        assert [(e.status, e.fault) for e in sandbox.log] == [(0, "hang")]

        stopping = threading.Thread(target=sandbox.stop, daemon=True)
        stopping.start()
        stopping.join(60)
        assert not stopping.is_alive()


def test_a_dripping_server_never_finishes(start: Start) -> None:
    """The answer begins and goes on without an end."""
    sandbox = start(faults=["youtube=drip"])
    url = f"{sandbox.url}/youtube/v3/videos?part=snippet&key=k"
    with httpx.stream("GET", url, timeout=60) as answer:
        drops = answer.iter_raw(1)
        assert [next(drops) for _ in range(3)] == [b" "] * 3
