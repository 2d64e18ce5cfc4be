"""Spans of OpenTelemetry: their parents, their attributes, and their masked export.

The only file that imports OpenTelemetry. Without `trace_content` a span keeps numbers, and text of
the attributes in `_SAFE` alone, which never quote a person or a model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry.baggage import set_baggage
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, Span, SynchronousMultiSpanProcessor, TracerProvider
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
from api.langfuse.tracing.library_logs import assigned, quiet
from api.langfuse.tracing.masking import SpanSession, basic, mask
from api.settings import TracingSettings

_SAFE = frozenset(
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
_SUMMARISED = frozenset({"langfuse.observation.input", "langfuse.observation.output"})


def wordless(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes without text by people or models; only numbers remain of inputs and outputs.

    `{"items": 20, "notes": ["a", "b"], "query": "mug"}` becomes `{"items": 20, "notes": 2}`; deeper
    levels are left out, since their names may be words of a post.
    """
    kept: dict[str, Any] = {}
    for name, value in attributes.items():
        if name in _SAFE or isinstance(value, (bool, int, float)):
            kept[name] = value
        elif name in _SUMMARISED and isinstance(value, str):
            with suppress(ValueError):
                document = json.loads(value)
                if isinstance(document, dict):
                    numbers = {key: _figure(part) for key, part in document.items()}
                    figures = {key: n for key, n in numbers.items() if n is not None} or None
                else:
                    figures = _figure(document)
                if figures is not None:
                    kept[name] = json.dumps(figures)
    return kept


def _figure(part: Any) -> Any:
    """A number or list of verdicts unchanged, the length of any other list, otherwise None."""
    if isinstance(part, list):
        plain = all(entry is None or isinstance(entry, (bool, int, float)) for entry in part)
        return part if plain else len(part)
    return part if isinstance(part, (bool, int, float)) else None


_DISTRO, _OURS = "telemetry.distro.name", "listenpost"
_TYPE = "langfuse.observation.type"
# baggage by which Langfuse's clients tell each other that the root of a trace is known
_HAS_ROOT = "langfuse_trace_id"
# attributes of the spans that begin in this context
_below: ContextVar[Mapping[str, str]] = ContextVar("below", default=MappingProxyType({}))
# attributes that link our agents' calls in this context to their prompt
_link: ContextVar[Mapping[str, str | int]] = ContextVar("link", default=MappingProxyType({}))
# collects the ids of the agents' spans that begin in this context
_agents: ContextVar[list[str] | None] = ContextVar("agents", default=None)
# not masked: set by the owner's settings or program; what a caller sends is masked before
_OWNER_SET = frozenset({"user.id", "session.id"})


class _Ids(RandomIdGenerator):
    """Trace ids: that of the HTTP request, if there is one, else random."""

    def generate_trace_id(self) -> int:
        return int(current_trace_id() or "0", 16) or super().generate_trace_id()


def provider_of(settings: TracingSettings, spans: SynchronousMultiSpanProcessor) -> TracerProvider:
    """A provider that records the sampled traces, except those that the outer program drops.

    Sampling depends on the trace id, as in Langfuse's own clients, so that both programs send a trace or neither.
    """
    facts = {_DISTRO: _OURS, "service.name": _OURS, "service.version": version(_OURS)}
    resource = Resource.create(facts | {"langfuse.environment": settings.trace_environment})
    share = TraceIdRatioBased(settings.langfuse_sample_rate)
    return TracerProvider(
        sampler=ParentBased(share, remote_parent_sampled=share, local_parent_sampled=share),
        id_generator=_Ids(), resource=resource, shutdown_on_exit=False, active_span_processor=spans,
    )  # fmt: skip


class Parent:
    """The current span of this context: one of ours, the outer program's, or none."""

    def __init__(self) -> None:
        self._span = get_current_span()
        self._context = self._span.get_span_context()
        resource = self._span.resource if isinstance(self._span, ReadableSpan) else None
        self._is_ours = resource is not None and resource.attributes.get(_DISTRO) == _OURS

    @property
    def trace_id(self) -> str:
        """Id of its trace, in hexadecimal digits."""
        return format_trace_id(self._context.trace_id)

    @property
    def is_open(self) -> bool:
        """Whether it is ours and has not ended."""
        return self._is_ours and self._span.is_recording()

    @property
    def is_foreign(self) -> bool:
        """Whether it is the outer program's, recorded or not."""
        return self._context.is_valid and not self._is_ours

    def label(self, labels: Mapping[str, str]) -> None:
        """Set attributes; only for a span of ours."""
        self._span.set_attributes(labels)

    def passes(self, test: Callable[[ReadableSpan], bool]) -> bool:
        """Whether it passes a test of spans; False if it cannot be read."""
        return isinstance(self._span, ReadableSpan) and test(self._span)

    def name_prompt(self, link: Mapping[str, str | int]) -> None:
        """Set the link to its prompt, if it is one of our generations."""
        attributes = self._span.attributes if isinstance(self._span, Span) else None
        if self.is_open and (attributes or {}).get(_TYPE) == "generation":
            self._span.set_attributes(link)

    @contextmanager
    def untouched(self, *, has_root: bool) -> Iterator[None]:
        """Keep it as the parent in the block, but read-only; a span of ours that has ended is none.

        Langfuse also writes what it propagates to the current span, which may be the outer
        program's or have tags of its own. `has_root` says that Langfuse knows the root of the
        trace; else it shows the next span as a root.
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


def labelled(labels: Mapping[str, str]) -> AbstractContextManager[None]:
    """Give these attributes to all our spans that begin in the block."""
    return assigned(_below, labels)


def linked(prompt: Prompt) -> AbstractContextManager[None]:
    """Link the current generation, and those of agents in the block, to this prompt's version.

    A prompt of the package has no version in Langfuse, hence no link.
    """
    link: dict[str, str | int] = {}
    if prompt.version is not None:
        link = {
            "langfuse.observation.prompt.name": prompt.title,
            "langfuse.observation.prompt.version": prompt.version,
        }
    Parent().name_prompt(link)
    return assigned(_link, link)


def note_agents(ids: list[str] | None) -> None:
    """Collect the span ids of agents that begin in this context in `ids`."""
    _agents.set(ids)


class LabelledSpans(SynchronousMultiSpanProcessor):
    """Adds our attributes to every span, agents' included; a full queue is not logged."""

    def __init__(self, owner: Mapping[str, str | None], ours: Mapping[str, str | None]) -> None:
        """Propagated attributes override `owner`, but not `ours`."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._owner, self._ours = ({name: label for name, label in labels.items() if label} for labels in (owner, ours))

    def on_start(self, span: Span, parent_context: otel_context.Context | None = None) -> None:
        span.set_attributes(self._owner)
        super().on_start(span, parent_context)
        span.set_attributes({**self._ours, **_below.get()})
        operation = (span.attributes or {}).get("gen_ai.operation.name")  # of pydantic-ai
        if operation == "chat":
            span.set_attributes(_link.get())
        elif operation == "invoke_agent" and (agents := _agents.get()) is not None:
            agents.append(format_span_id(span.context.span_id))

    def on_end(self, span: ReadableSpan) -> None:
        with quiet():
            super().on_end(span)


class MaskedExporter(SpanExporter):
    """Exports spans masked (attributes, names, events, status), or without any text by people."""

    def __init__(self, settings: TracingSettings, seconds: int, notice: Callable[[], None]) -> None:
        """`seconds` is the timeout of a request; `notice` is called for each that fails."""
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
        masked = [
            ReadableSpan(
                name=mask(span.name), context=span.context, parent=span.parent,
                resource=span.resource, attributes=self._attributes(span.attributes),
                events=[
                    Event(event.name, self._attributes(event.attributes), event.timestamp)
                    for event in span.events
                ],
                links=span.links, kind=span.kind, start_time=span.start_time,
                end_time=span.end_time, instrumentation_scope=span.instrumentation_scope,
                status=Status(
                    span.status.status_code,
                    mask(span.status.description) if self._content else None,
                ),
            )
            for span in spans
        ]  # fmt: skip
        result = self._inner.export(masked)
        if result is not SpanExportResult.SUCCESS:
            self._notice()
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()  # type: ignore[no-untyped-call]

    def _attributes(self, attributes: Mapping[str, Any] | None) -> dict[str, Any]:
        sent = attributes or {}
        return {
            name: value if name in _OWNER_SET else mask(value)
            for name, value in (sent if self._content else wordless(sent)).items()
        }
