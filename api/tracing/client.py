"""The Langfuse client: spans, scores, agents, and an end that no server can hold up.

The only file that imports langfuse and OpenTelemetry, with the HTTP clients they take. A client has
its own tracer provider and stays out of Langfuse's registry by key, so that the program around it
is left alone.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast
from urllib.parse import urlsplit

from langfuse import Langfuse, propagate_attributes
from langfuse._client.resource_manager import LangfuseResourceManager
from opentelemetry import context as otel_context
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import (
    Event,
    ReadableSpan,
    Span,
    SynchronousMultiSpanProcessor,
    TracerProvider,
)
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Status, format_trace_id, get_current_span

from api.errors import ListenpostError, ModelError
from api.services.bills import Wasted
from api.services.wire import points_here
from api.settings import TracingSettings
from api.tracing.background import Closer, Hush, Notice, in_one_line, quiet
from api.tracing.costs import spent
from api.tracing.masking import mask
from api.tracing.probing import probe
from api.tracing.sending import ScoreClient, SpanSession, basic

if TYPE_CHECKING:
    from api.tracing.agents import AgentSpans

Kind = Literal["agent", "span", "retriever", "generation"]
REQUEST_SECONDS = 5
"""For one request to Langfuse; made in the background, so it may be longer than the exit waits."""
_LABEL, _DIGEST = 200, 16
"""Characters of a user or session, and of the digest at the end of a longer one."""
BATCH = 200
"""Spans or scores in one request at most: a run's scores fit into one."""
_DISTRO, _OURS = "telemetry.distro.name", "listenpost"
_OWNER_SET = frozenset({"user.id", "session.id"})
"""Attributes whose value is the owner's own setting: sent as it is."""


class Observation(Protocol):
    """An open span."""

    id: str
    trace_id: str

    def update(self, **fields: Any) -> Any:
        """Set `output`, `level`, `status_message`, `usage_details` and so on."""
        ...


class Client:
    """One connection to one Langfuse project; belongs to no thread or event loop."""

    def __init__(
        self, settings: TracingSettings, user_id: str | None, session_id: str | None
    ) -> None:
        """Start the background threads; the network is asked when there is something to send."""
        labels = {"user_id": _label(user_id), "session_id": _label(session_id)}
        self._labels = {name: label for name, label in labels.items() if label}
        self._settings = settings
        notice = Notice(urlsplit(settings.langfuse_base_url).netloc.rpartition("@")[2])
        hush, before = Hush(notice), set(threading.enumerate())
        exporter = _Exporter(settings, notice)
        with in_one_line():
            self._provider = _provider(settings.trace_environment, self._labels)
            self._langfuse, resources = _client(settings, self._provider, exporter)
        self._agents: AgentSpans | None = None
        end = partial(_end, self._langfuse, resources, self._provider, hush)
        self._closer = Closer(end, settings.trace_flush_timeout, notice)
        hush.cover(set(threading.enumerate()) - before)
        weakref.finalize(self, self._closer.ask).atexit = False

    @property
    def trace_id(self) -> str | None:
        """The trace under way in this context, if it is one of ours."""
        span = get_current_span()
        return format_trace_id(span.get_span_context().trace_id) if _open(span) else None

    def observation(self, name: str, kind: Kind, **fields: Any) -> _Observing:
        """A span under the current one of ours; where there is none it begins a trace."""
        return _Observing(self._langfuse, self._labels, name, kind, fields)

    def score(
        self,
        name: str,
        value: bool | float | str,
        span: Observation,
        *,
        whole_trace: bool = False,
        comment: str | None = None,
    ) -> None:
        """Queue a score of one span or of its whole trace; the type follows the value."""
        kind: Any = {bool: "BOOLEAN", str: "CATEGORICAL"}.get(type(value), "NUMERIC")
        target = span.trace_id if whole_trace else span.id
        if not target.strip("0"):
            return
        with quiet():
            self._langfuse.create_score(
                name=name, value=value, data_type=kind, comment=comment,
                trace_id=span.trace_id, observation_id=None if whole_trace else span.id,
                score_id=f"{target}-{name}",
            )  # fmt: skip

    def instrument(self) -> None:
        """Agents of pydantic-ai write their spans here, unless the program sends them elsewhere."""
        from api.tracing.agents import AgentSpans

        if self._agents is None:
            self._agents = AgentSpans(self._provider)
        self._agents.begin(is_ours)

    def instrument_if_loaded(self) -> None:
        """The same, without importing pydantic-ai for a run that has no agent."""
        if "pydantic_ai" in sys.modules:
            self.instrument()

    def probe(self) -> tuple[str, str]:
        """Outcome and detail of asking whether the keys fit; blocks for one request."""
        return probe(self._settings)

    def shutdown(self) -> None:
        """Hand over what is queued; returns after `trace_flush_timeout` at the latest."""
        if self._agents is not None:
            self._agents.end()
        self._closer.ask()
        self._closer.wait()


class _Observing:
    """Opens a span as the current one, and closes it with the reason it ended."""

    def __init__(
        self,
        langfuse: Langfuse,
        labels: Mapping[str, str],
        name: str,
        kind: Kind,
        fields: dict[str, Any],
    ) -> None:
        self._langfuse, self._labels = langfuse, labels
        self._name, self._kind, self._fields = name, kind, fields

    def __enter__(self) -> Observation:
        with ExitStack() as stack, quiet():
            if not _open(get_current_span()):
                stack.callback(otel_context.detach, otel_context.attach(otel_context.Context()))
                labels: Any = self._labels
                stack.enter_context(propagate_attributes(trace_name=self._name, **labels))
            start: Any = self._langfuse.start_as_current_observation
            self._span = stack.enter_context(
                start(name=self._name, as_type=self._kind, **self._fields)
            )
            self._stack = stack.pop_all()
        return cast(Observation, self._span)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt)):
            self._span.update(level="WARNING", status_message="cancelled")
        elif error is not None:
            reason = type(error).__name__
            if isinstance(error, ListenpostError):
                reason = error.reason if isinstance(error, ModelError) else error.code
            self._span.update(level="ERROR", status_message=reason)
            if isinstance(error, Wasted):
                self._span.update(**spent(error.usage))
        with quiet():
            self._stack.__exit__(kind, error, trace)


def is_ours(made: object) -> bool:
    """Whether a span or tracer comes from a provider of ours."""
    resource = getattr(made, "resource", None)
    return resource is not None and resource.attributes.get(_DISTRO) == _OURS


def _open(span: object) -> bool:
    return isinstance(span, Span) and span.is_recording() and is_ours(span)


def _label(value: str | None) -> str | None:
    """A user or session as Langfuse takes it: ASCII, at most 200 characters.

    A longer one ends in its digest, so that two with one beginning stay two.
    """
    label = (value or "").encode("ascii", "backslashreplace").decode()
    if len(label) <= _LABEL:
        return label or None
    digest = hashlib.sha256(label.encode()).hexdigest()[:_DIGEST]
    return f"{label[: _LABEL - _DIGEST - 1]}-{digest}"


def _provider(environment: str, labels: Mapping[str, str]) -> TracerProvider:
    resource = Resource.create(
        {_DISTRO: _OURS, "service.name": _OURS, "langfuse.environment": environment}
    )
    return TracerProvider(
        sampler=ALWAYS_ON,
        resource=resource,
        shutdown_on_exit=False,
        active_span_processor=_Spans({name.replace("_", "."): v for name, v in labels.items()}),
    )


def _client(
    settings: TracingSettings, provider: TracerProvider, exporter: SpanExporter
) -> tuple[Langfuse, LangfuseResourceManager]:
    """A client that shares nothing with another of the same key, and whose exit hook is ours."""
    secret, public = settings.langfuse_secret_key, settings.langfuse_public_key or ""
    known = LangfuseResourceManager._instances
    with LangfuseResourceManager._lock:
        theirs = known.pop(public, None)
        try:
            client = Langfuse(
                public_key=public,
                secret_key=secret.get_secret_value() if secret else "",
                base_url=settings.langfuse_base_url.rstrip("/"),
                timeout=REQUEST_SECONDS,
                httpx_client=ScoreClient(
                    timeout=REQUEST_SECONDS, trust_env=not points_here(settings.langfuse_base_url)
                ),
                flush_at=BATCH,
                environment=settings.trace_environment,
                tracer_provider=provider,
                span_exporter=exporter,
            )
            resources = known.pop(public)
        finally:
            if theirs is not None:
                known[public] = theirs
    atexit.unregister(resources.shutdown)
    return client, resources


def _end(
    langfuse: Langfuse, resources: LangfuseResourceManager, provider: TracerProvider, hush: Hush
) -> None:
    """What closing means; it knows no client of ours, so that a dropped one can be collected."""
    langfuse.shutdown()
    provider.shutdown()
    resources.httpx_client.close()
    resources.prompt_cache._task_manager.shutdown()
    hush.lift()


class _Spans(SynchronousMultiSpanProcessor):
    """User and session on every span, agents' included; a full queue is not worth a word."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._labels = dict(labels)

    def on_start(self, span: Span, parent_context: otel_context.Context | None = None) -> None:
        span.set_attributes(self._labels)
        super().on_start(span, parent_context)

    def on_end(self, span: ReadableSpan) -> None:
        with quiet():
            super().on_end(span)


class _Exporter(SpanExporter):
    """Sends spans with everything masked: attributes, names, events, status."""

    def __init__(self, settings: TracingSettings, notice: Callable[[], None]) -> None:
        self._notice = notice
        self._inner = OTLPSpanExporter(
            endpoint=f"{settings.langfuse_base_url.rstrip('/')}/api/public/otel/v1/traces",
            headers={
                "Authorization": basic(settings),
                "x-langfuse-sdk-name": "python",
                "x-langfuse-public-key": settings.langfuse_public_key or "",
                "x-langfuse-ingestion-version": "4",
            },
            timeout=REQUEST_SECONDS,
            compression=Compression.Gzip,
            session=SpanSession(settings),
        )

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        masked = [
            ReadableSpan(
                name=mask(span.name),
                context=span.context,
                parent=span.parent,
                resource=span.resource,
                attributes=_attributes(span.attributes),
                events=[
                    Event(event.name, _attributes(event.attributes), event.timestamp)
                    for event in span.events
                ],
                links=span.links,
                kind=span.kind,
                instrumentation_scope=span.instrumentation_scope,
                status=Status(span.status.status_code, mask(span.status.description)),
                start_time=span.start_time,
                end_time=span.end_time,
            )
            for span in spans
        ]
        result = self._inner.export(masked)
        if result is not SpanExportResult.SUCCESS:
            self._notice()
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()  # type: ignore[no-untyped-call]


def _attributes(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        name: value if name in _OWNER_SET else mask(value)
        for name, value in (attributes or {}).items()
    }
