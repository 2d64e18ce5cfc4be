"""Spans of OpenTelemetry: under which they begin, what stands on them, and how they leave, masked.

The only file that imports OpenTelemetry, with the HTTP client it takes.

What is left of a span when no words of people or models may leave: pure functions.

Numbers stay whatever they are called, text only under a name that is known to quote nobody.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry.baggage import set_baggage
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
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import (
    NonRecordingSpan,
    Status,
    format_span_id,
    format_trace_id,
    get_current_span,
    set_span_in_context,
)

from api.core.context import current_trace_id
from api.core.prompts import Prompt
from api.langfuse.tracing.library_threads import quiet
from api.langfuse.tracing.masking import SpanSession, basic, mask
from api.settings import TracingSettings

_QUOTES_NOBODY = frozenset(
    {"user.id", "session.id", "agent_name", "model_name", "exception.type"}
    | {f"langfuse.{name}" for name in ("environment", "release", "version")}
    | {f"langfuse.trace.{name}" for name in ("name", "tags", "metadata.tenant")}
    | {
        f"langfuse.observation.{name}"
        for name in (
            "type", "level", "status_message", "model.name", "usage_details", "cost_details",
            "prompt.name",
        )
    }
    | {
        f"langfuse.experiment.{name}"
        for name in ("id", "name", "dataset.id", "item.id", "item.root_observation_id")
    }
    | {
        f"gen_ai.{name}"
        for name in (
            "agent.name", "operation.name", "provider.name", "request.model",
            "response.finish_reasons", "response.model", "system", "tool.name", "tool.type",
        )
    }
)  # fmt: skip
_COUNTED = frozenset({"langfuse.observation.input", "langfuse.observation.output"})


def wordless(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes without what anybody wrote; of inputs and outputs the numbers remain."""
    left: dict[str, Any] = {}
    for name, value in attributes.items():
        if name in _QUOTES_NOBODY or isinstance(value, (bool, int, float)):
            left[name] = value
        elif name in _COUNTED and (figures := _figures_of(value)) is not None:
            left[name] = figures
    return left


def _figures_of(text: object) -> str | None:
    """`{"items": 20, "notes": ["a", "b"], "query": "mug"}` as `{"items": 20, "notes": 2}`.

    What lies deeper is left out: its names may be words of a post.
    """
    try:
        document = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
    if not isinstance(document, dict):
        figures = _figure(document)
    else:
        numbers = {name: _figure(part) for name, part in document.items()}
        figures = {name: number for name, number in numbers.items() if number is not None}
    return None if figures is None or figures == {} else json.dumps(figures)


def _figure(part: Any) -> Any:
    """A number or a list of verdicts as it is, of another list its length; of the rest nothing."""
    if isinstance(part, list):
        plain = all(entry is None or isinstance(entry, (bool, int, float)) for entry in part)
        return part if plain else len(part)
    return part if isinstance(part, (bool, int, float)) else None


_DISTRO, _OURS = "telemetry.distro.name", "listenpost"
_TYPE = "langfuse.observation.type"
# Baggage by which Langfuse's clients tell each other so.
_HAS_ROOT = "langfuse_trace_id"
# Labels of the spans that begin in this context.
_below: ContextVar[Mapping[str, str]] = ContextVar("below", default=MappingProxyType({}))
# The version of a prompt by which agents of ours ask in this context.
_link: ContextVar[Mapping[str, str | int]] = ContextVar("link", default=MappingProxyType({}))
# Takes the ids of the agents' spans that begin in this context.
_agents: ContextVar[list[str] | None] = ContextVar("agents", default=None)
# Attributes that the owner's settings or program may set: sent as they are. What a caller over
# the network says is masked before it gets there.
_OWNER_SET = frozenset({"user.id", "session.id"})


class _Ids(RandomIdGenerator):
    """A trace that a request of a server begins has the request's id; every other a random one."""

    def generate_trace_id(self) -> int:
        return int(current_trace_id() or "0", 16) or super().generate_trace_id()


def provider_of(settings: TracingSettings, spans: SynchronousMultiSpanProcessor) -> TracerProvider:
    """A provider that records the sampled questions, but what the program around us does not.

    Whether one is sampled follows from its trace id, as in Langfuse's own clients: a trace is sent
    whole or not at all, and by both or by neither.
    """
    resource = Resource.create(
        {
            _DISTRO: _OURS,
            "service.name": _OURS,
            "service.version": version(_OURS),
            "langfuse.environment": settings.trace_environment,
        }
    )
    share = TraceIdRatioBased(settings.langfuse_sample_rate)
    return TracerProvider(
        sampler=ParentBased(share, remote_parent_sampled=share, local_parent_sampled=share),
        id_generator=_Ids(),
        resource=resource,
        shutdown_on_exit=False,
        active_span_processor=spans,
    )


class Parent:
    """The span that is current when the next one begins: one of ours, the program's, or none."""

    def __init__(self) -> None:
        """Of this context."""
        self._span = get_current_span()
        self._context = self._span.get_span_context()
        resource = self._span.resource if isinstance(self._span, ReadableSpan) else None
        self._is_ours = resource is not None and resource.attributes.get(_DISTRO) == _OURS

    @property
    def trace_id(self) -> str:
        """Of its trace, in hexadecimal digits."""
        return format_trace_id(self._context.trace_id)

    @property
    def is_open(self) -> bool:
        """Whether it is one of ours that has not ended."""
        return self._is_ours and self._span.is_recording()

    @property
    def is_foreign(self) -> bool:
        """Whether it is the program's, whether that records it or not."""
        return self._context.is_valid and not self._is_ours

    def label(self, labels: Mapping[str, str]) -> None:
        """Write on it, which is for one of ours."""
        self._span.set_attributes(labels)

    def passes(self, test: Callable[[ReadableSpan], bool]) -> bool:
        """What a test of spans says of it; False when it cannot be read."""
        return isinstance(self._span, ReadableSpan) and test(self._span)

    def name_prompt(self, link: Mapping[str, str | int]) -> None:
        """Write by which prompt it was made, where it is one of our generations."""
        attributes = self._span.attributes if isinstance(self._span, Span) else None
        if self.is_open and (attributes or {}).get(_TYPE) == "generation":
            self._span.set_attributes(link)

    @contextmanager
    def untouched(self, *, has_root: bool) -> Iterator[None]:
        """In the block it is the parent still, but nothing can be written to it.

        What Langfuse propagates it also writes to the current span, which may be the program's, or
        have tags of its own. After one of ours that has ended a trace begins. With `has_root` it is
        said that Langfuse knows the root of the trace; else the next span is shown as another.
        """
        context = otel_context.Context()
        if self.is_open or not self._is_ours:
            context = set_span_in_context(NonRecordingSpan(self._context))
        if has_root:
            context = set_baggage(_HAS_ROOT, self.trace_id, context)
        token = otel_context.attach(context)
        try:
            yield
        finally:
            otel_context.detach(token)


@contextmanager
def labelled(labels: Mapping[str, str]) -> Iterator[None]:
    """Every span of ours that begins in the block bears these."""
    token = _below.set(labels)
    try:
        yield
    finally:
        _below.reset(token)


@contextmanager
def linked(prompt: Prompt) -> Iterator[None]:
    """What models are asked in the block is asked by this prompt.

    So says the generation under way, and each that an agent begins. A prompt of the package is no
    version in Langfuse, and none is named.
    """
    link: dict[str, str | int] = {}
    if prompt.version is not None:
        link = {
            "langfuse.observation.prompt.name": prompt.title,
            "langfuse.observation.prompt.version": prompt.version,
        }
    Parent().name_prompt(link)
    token = _link.set(link)
    try:
        yield
    finally:
        _link.reset(token)


def note_agents(ids: list[str] | None) -> None:
    """From now on every agent that begins in this context adds the id of its span."""
    _agents.set(ids)


class LabelledSpans(SynchronousMultiSpanProcessor):
    """The same labels on every span, agents' included; a full queue is not worth a word."""

    def __init__(self, owner: Mapping[str, str | None], ours: Mapping[str, str | None]) -> None:
        """`owner` gives way to what is propagated, `ours` does not."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._owner, self._ours = (
            {name: label for name, label in labels.items() if label} for labels in (owner, ours)
        )

    def on_start(self, span: Span, parent_context: otel_context.Context | None = None) -> None:
        """Label it."""
        span.set_attributes(self._owner)
        super().on_start(span, parent_context)
        span.set_attributes({**self._ours, **_below.get()})
        operation = (span.attributes or {}).get("gen_ai.operation.name")  # of pydantic-ai
        if operation == "chat":
            span.set_attributes(_link.get())
        elif operation == "invoke_agent" and (agents := _agents.get()) is not None:
            agents.append(format_span_id(span.context.span_id))

    def on_end(self, span: ReadableSpan) -> None:
        """Queue it."""
        with quiet():
            super().on_end(span)


class MaskedExporter(SpanExporter):
    """Sends spans with everything masked, attributes, names, events, status; or without words."""

    def __init__(self, settings: TracingSettings, seconds: int, notice: Callable[[], None]) -> None:
        """A request may take so many seconds; `notice` is called for each that fails."""
        self._notice, self._content = notice, settings.trace_content
        self._inner = OTLPSpanExporter(
            endpoint=f"{settings.langfuse_base_url.rstrip('/')}/api/public/otel/v1/traces",
            headers={
                "Authorization": basic(settings),
                "x-langfuse-sdk-name": "python",
                "x-langfuse-sdk-version": version("langfuse"),
                "x-langfuse-public-key": settings.langfuse_public_key or "",
                "x-langfuse-ingestion-version": "4",
            },
            timeout=seconds,
            compression=Compression.Gzip,
            session=SpanSession(settings),
        )

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send copies."""
        masked = [
            ReadableSpan(
                name=mask(span.name),
                context=span.context,
                parent=span.parent,
                resource=span.resource,
                attributes=self._attributes(span.attributes),
                events=[
                    Event(event.name, self._attributes(event.attributes), event.timestamp)
                    for event in span.events
                ],
                links=span.links,
                kind=span.kind,
                instrumentation_scope=span.instrumentation_scope,
                status=Status(
                    span.status.status_code,
                    mask(span.status.description) if self._content else None,
                ),
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
        """Send nothing more."""
        self._inner.shutdown()  # type: ignore[no-untyped-call]

    def _attributes(self, attributes: Mapping[str, Any] | None) -> dict[str, Any]:
        sent = attributes or {}
        return {
            name: value if name in _OWNER_SET else mask(value)
            for name, value in (sent if self._content else wordless(sent)).items()
        }
