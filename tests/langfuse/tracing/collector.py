"""A loopback Langfuse: decodes what arrives, and can be slow, dumb or broken on request."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from pydantic import SecretStr

from api.settings import TracingSettings

TRACES, SCORES = "/api/public/otel/v1/traces", "/api/public/scores"
SECRET = "sk-lf-0123456789abcdef"
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Seen:
    """A span as it arrived."""

    name: str
    id: str
    parent: str
    trace: str
    attributes: dict[str, Any]
    events: tuple[dict[str, Any], ...]
    status: str
    resource: dict[str, Any]
    nanoseconds: int

    def told(self, what: str) -> Any:
        """An attribute of the observation, decoded when it is JSON."""
        value = self.attributes.get(f"langfuse.observation.{what}")
        try:
            return json.loads(value) if isinstance(value, str) else value
        except ValueError:
            return value


@dataclass
class Collector:
    """Everything received, in order of arrival."""

    url: str = ""
    spans: list[Seen] = field(default_factory=list)
    scores: list[dict[str, Any]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    """What each request carried, unpacked."""
    headers: list[dict[str, str]] = field(default_factory=list)
    """Of each request, by names in small letters."""
    arrivals: list[float] = field(default_factory=list)
    """When each request came, in monotonic seconds."""
    arrived: threading.Event = field(default_factory=threading.Event)
    """Set by the first request."""
    authorizations: set[str] = field(default_factory=set)
    status: int = 200
    accepted: bytes = b'{"message": "Accepted"}'
    """The answer to scores."""
    delay: float = 0.0
    """Seconds before the answer."""
    over: threading.Event = field(default_factory=threading.Event)
    """Set at the end: nobody waits any longer."""

    def named(self, name: str) -> list[Seen]:
        """Spans of that name."""
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> Seen:
        """The only span of that name."""
        (span,) = self.named(name)
        return span

    def path(self, span: Seen) -> str:
        """Names from the root down to the span."""
        parent = next((one for one in self.spans if one.id == span.parent), None)
        if parent is None:
            return span.name if not span.parent else f"? > {span.name}"
        return f"{self.path(parent)} > {span.name}"

    def scored(self, span: Seen | None = None) -> dict[str, tuple[str, Any]]:
        """Type and value by name: of one observation, or of the trace as a whole."""
        wanted = span.id if span else None
        found = [score for score in self.scores if score.get("observationId") == wanted]
        assert len({score["name"] for score in found}) == len(found), "a score was written twice"
        return {score["name"]: (score["dataType"], score["value"]) for score in found}

    def marked(self, span: Seen | None = None) -> dict[str, Any]:
        """Metadata of scores by name: of one observation, or of the trace as a whole."""
        wanted = span.id if span else None
        return {score["name"]: score.get("metadata") for score in self.scores if score.get("observationId") == wanted}

    def receive(self, path: str, body: bytes) -> bytes:
        """Take one request; returns the answer's body."""
        self.requests.append(path)
        self.bodies.append(body)
        self.arrivals.append(time.monotonic())
        self.arrived.set()
        if path == TRACES:
            request = ExportTraceServiceRequest.FromString(body)
            for resource in request.resource_spans:
                about = _plain(resource.resource.attributes)
                for scope in resource.scope_spans:
                    self.spans.extend(_seen(span, about) for span in scope.spans)
            return bytes(ExportTraceServiceResponse().SerializeToString())
        if path == SCORES:
            self.scores.extend(json.loads(body))
            return self.accepted
        return b'{"data": []}'


class Server(ThreadingHTTPServer):
    """The port of one collector."""

    daemon_threads = True

    def __init__(self, collector: Collector) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.collector = collector

    def handle_error(self, *_: object) -> None:
        """A client that has gone is no news."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self._answer(self.server.collector.receive(self.path, body))

    def do_GET(self) -> None:
        self._answer(self.server.collector.receive(self.path, b""))

    def _answer(self, answer: bytes) -> None:
        collector = self.server.collector
        collector.headers.append({name.lower(): value for name, value in self.headers.items()})
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        collector.authorizations.add(f"{scheme} {base64.b64decode(token).decode()}")
        collector.over.wait(collector.delay)
        status = 202 if (collector.status, self.path) == (200, SCORES) else collector.status
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Stay silent."""


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a free port."""
    collector = Collector()
    server = Server(collector)
    collector.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield collector
    finally:
        collector.over.set()
        server.shutdown()
        server.server_close()


def settings_for(url: str, **more: Any) -> TracingSettings:
    """Settings with a public key that no other test uses."""
    return TracingSettings.model_validate(
        {
            "langfuse_public_key": f"pk-lf-test-{next(_numbers)}",
            "langfuse_secret_key": SecretStr(SECRET),
            "langfuse_base_url": url,
            **more,
        }
    )


def _seen(span: Any, resource: dict[str, Any]) -> Seen:
    return Seen(
        name=span.name,
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        trace=span.trace_id.hex(),
        attributes=_plain(span.attributes),
        events=tuple(_plain(event.attributes) for event in span.events),
        status=span.status.message,
        resource=resource,
        nanoseconds=span.end_time_unix_nano - span.start_time_unix_nano,
    )


def _plain(attributes: Any) -> dict[str, Any]:
    found: list[KeyValue] = list(attributes)
    return {pair.key: _value(pair.value) for pair in found}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind) if kind else None
