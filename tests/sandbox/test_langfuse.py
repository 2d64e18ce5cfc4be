"""The sandbox's Langfuse."""

from __future__ import annotations

import gzip
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from tests.sandbox.conftest import Start

KEYS = ("pk", "sk")


def exported(**fields: Any) -> bytes:
    """A request of one whole span, unless a field says otherwise."""
    whole = {"trace_id": b"t" * 16, "span_id": b"s" * 8, "name": "analyze"}
    times = {"start_time_unix_nano": 1, "end_time_unix_nano": 2, "flags": 256}
    event = Span.Event(name="é", time_unix_nano=1)
    span = Span(**{**whole, **times, **fields}, events=[event])
    resource = ResourceSpans(scope_spans=[ScopeSpans(spans=[span])])
    return bytes(ExportTraceServiceRequest(resource_spans=[resource]).SerializeToString())


def exporting(sandbox: Sandbox, body: bytes, *, encoding: str) -> httpx.Response:
    """The answer to an export."""
    headers = {"content-type": "application/x-protobuf", "content-encoding": encoding}
    url = f"{sandbox.url}/api/public/otel/v1/traces"
    return httpx.post(url, content=body, headers=headers, auth=KEYS)


def test_traces_are_taken_and_kept_as_they_came(sandbox: Sandbox) -> None:
    """A protobuf is answered with an empty one and stays in the log, byte for byte."""
    body = gzip.compress(exported())
    answer = exporting(sandbox, body, encoding="gzip")

    assert (answer.status_code, answer.content) == (200, b"")
    kept = sandbox.requests("langfuse", "traces")[0].body
    assert kept == body


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        pytest.param(exported(trace_id=b"short"), "identity", id="trace id"),
        pytest.param(exported(span_id=b""), "identity", id="no span id"),
        pytest.param(exported(name=""), "identity", id="no name"),
        pytest.param(exported()[:-3], "identity", id="cut off"),
        pytest.param(exported() + b"\xff" * 12, "identity", id="a number without end"),
        pytest.param(exported() + b"\x0b", "identity", id="no wire type"),
        pytest.param(b"{}", "identity", id="json under a wrong name"),
        pytest.param(exported(), "gzip", id="not packed"),
        pytest.param(gzip.compress(exported())[:-9], "gzip", id="packed and cut off"),
    ],
)
def test_what_is_no_otlp_is_refused(sandbox: Sandbox, body: bytes, encoding: str) -> None:
    """With 400, as an exporter that is broken would learn."""
    assert exporting(sandbox, body, encoding=encoding).status_code == 400
    assert exporting(sandbox, exported(), encoding="identity").status_code == 200


def test_scores_are_accepted(sandbox: Sandbox) -> None:
    """Scores answer 202 and are in the log as JSON."""
    score = {"name": "relevance_yield", "value": 0.4, "traceId": "t"}
    answer = httpx.post(f"{sandbox.url}/api/public/scores", json=[score], auth=KEYS)

    assert (answer.status_code, answer.json()) == (202, {"message": "Accepted"})
    assert sandbox.requests("langfuse", "scores")[0].body == [score]


def test_ingestion_says_what_it_took(sandbox: Sandbox) -> None:
    """The older batch endpoint answers 207 with each event's id."""
    body = {"batch": [{"id": "e1", "type": "score-create", "body": {}}]}
    answer = httpx.post(f"{sandbox.url}/api/public/ingestion", json=body, auth=KEYS)

    assert answer.status_code == 207
    assert answer.json() == {"successes": [{"id": "e1", "status": 201}], "errors": []}


def test_a_prompt_is_missing_until_it_is_made(sandbox: Sandbox) -> None:
    """Prompts are stored with versions, also under a folder's name; none is in production."""
    url = f"{sandbox.url}/api/public/v2/prompts"
    missing = httpx.get(f"{url}/listenpost/gate", auth=KEYS)
    for _ in range(2):
        httpx.post(url, json={"name": "listenpost/gate", "prompt": "p"}, auth=KEYS)
    found = httpx.get(f"{url}/listenpost%2Fgate", params={"label": "latest"}, auth=KEYS).json()
    without_label = httpx.get(f"{url}/listenpost%2Fgate", auth=KEYS)

    assert (missing.status_code, without_label.status_code) == (404, 404)
    assert (found["prompt"], found["version"], found["type"]) == ("p", 2, "text")


@pytest.mark.parametrize("auth", [None, ("pk", ""), ("pk", "wrong")])
def test_keys_are_checked(start: Start, auth: tuple[str, str] | None) -> None:
    """Without both right keys nothing is told."""
    url = f"{start(options=Options(langfuse_keys=KEYS)).url}/api/public/projects"

    assert httpx.get(url, auth=auth).status_code == 401
    assert httpx.get(url, auth=KEYS).json()["data"][0]["name"] == "sandbox"


def test_a_failing_server_fails(start: Start) -> None:
    """The fault is a 500."""
    sandbox = start(faults=["langfuse=500"])

    assert httpx.post(f"{sandbox.url}/api/public/scores", json=[], auth=KEYS).status_code == 500
