"""The Langfuse client: spans, scores, agents, and a shutdown that no server can delay.

The only file that imports langfuse. A client has a tracer provider of its own and is not in Langfuse's registry of
clients by key: spans of the program around it are not sent here, and ours are not sent by its client. Where that
program has a current span, of whatever provider, it is the parent of ours.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from importlib.metadata import version as installed
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast
from urllib.parse import urlsplit

import requests
from langfuse import Langfuse, propagate_attributes
from langfuse._client.resource_manager import LangfuseResourceManager
from langfuse.span_filter import is_default_export_span

from api.core.addresses import points_here
from api.core.context import current_caller
from api.core.domain import Usage
from api.core.http_limits import no_connection
from api.core.model_batches import UnusableAnswer
from api.core.prompts import Prompt
from api.errors import ListenpostError, ModelError
from api.langfuse.tracing.library_logs import LogFilter, Notice, in_one_line, quiet
from api.langfuse.tracing.masking import HomeSession, ScoreClient, mask
from api.langfuse.tracing.spans import LabelledSpans, MaskedExporter, Parent, linked, note_agents, provider_of
from api.settings import TracingSettings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from pydantic_ai.models import Model


def probe(settings: TracingSettings) -> tuple[str, str]:
    """Outcome and detail of one request that asks whether the keys are valid; blocks."""
    url = f"{settings.langfuse_base_url.rstrip('/')}/api/public/projects"
    with HomeSession(settings) as session:
        try:
            with session.get(url, timeout=REQUEST_SECONDS, stream=True) as response:
                status = response.status_code
        except requests.Timeout:
            return "timed_out", f"no answer within {REQUEST_SECONDS} s"
        except (OSError, ValueError) as error:
            return "unreachable", f"{no_connection(error, url)}; check `LANGFUSE_BASE_URL`"
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return "refused", "check `LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY`"
    if status != HTTPStatus.OK:
        return "unreachable", f"HTTP {status}; check `LANGFUSE_BASE_URL`"
    return "ok", "it answers and takes the keys"


Kind = Literal["agent", "span", "retriever", "generation", "evaluator"]
REQUEST_SECONDS = 5
"""Timeout of a request; most run in the background, so it may exceed the wait at exit."""
# Characters of a user or session (Langfuse's limit), and of the digest in place of their rest.
_LABEL, _DIGEST = 200, 16
BATCH = 200  # most spans or scores in one request: enough for the scores of a run


class Observation(Protocol):
    """A span or generation of Langfuse that has not ended."""

    id: str
    trace_id: str

    def update(self, **fields: Any) -> Any:
        """Set `output`, `level`, `status_message`, `usage_details` and so on."""


class Client:
    """A connection to one Langfuse project, for any thread and event loop."""

    def __init__(self, settings: TracingSettings, user_id: str | None, session_id: str | None, version: str) -> None:
        owner = {"user.id": _label(user_id), "session.id": _label(session_id)}
        ours = {"langfuse.release": _release(settings), "langfuse.version": _label(version)}
        self._settings = settings
        notice = Notice(urlsplit(settings.langfuse_base_url).netloc.rpartition("@")[2])
        log_filter, before = LogFilter(notice), set(threading.enumerate())
        exporter = MaskedExporter(settings, REQUEST_SECONDS, notice)
        with in_one_line():
            self._provider = provider_of(settings, LabelledSpans(owner, ours))
            self._langfuse, resources = _client(settings, self._provider, exporter)
        end = partial(_end, self._langfuse, resources, self._provider, log_filter)
        self._closer = ShutdownThread(end, settings.trace_flush_timeout, notice)
        log_filter.cover(set(threading.enumerate()) - before)
        weakref.finalize(self, self._closer.ask).atexit = False

    @property
    def trace_id(self) -> str | None:
        """The current trace of this context, if it is one of ours."""
        parent = Parent()
        return parent.trace_id if parent.is_open else None

    @property
    def is_guest(self) -> bool:
        """Whether a span that begins now belongs to a trace of the program around us."""
        return Parent().is_foreign

    @contextmanager
    def observation(self, name: str, kind: Kind, tags: Sequence[str] = (), **fields: Any) -> Iterator[Observation]:
        """A span with tags below the current one, ours or not; without one it begins a trace."""
        parent = Parent()
        attributes: dict[str, Any] = {"tags": list(tags)}
        if not parent.is_open:
            attributes = _trace_attributes(name, parent, tags)
        with ExitStack() as opening, quiet():
            if any(attributes.values()):
                opening.enter_context(parent.untouched(has_root=self._sent_by_program(parent)))
                opening.enter_context(propagate_attributes(**attributes))
            start: Any = self._langfuse.start_as_current_observation
            span = opening.enter_context(start(name=name, as_type=kind, **fields))
            opened = opening.pop_all()

        def close(kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
            _set_failure(span, error)
            with quiet():
                opened.__exit__(kind, error, trace)

        with ExitStack() as closing:
            closing.push(close)
            yield span

    @staticmethod
    def usage_fields(usage: Usage) -> dict[str, Any]:
        """Tokens and cost as fields of a generation; an unknown cost is left out, not zero."""
        total = usage.input_tokens + usage.output_tokens
        tokens = {"input": usage.input_tokens, "output": usage.output_tokens, "total": total}
        cost = {} if usage.usd is None else {"cost_details": {"total": usage.usd}}
        return {"usage_details": tokens, **cost}

    def score(
        self, name: str, value: bool | float | str, span: Observation,
        metadata: Mapping[str, str] | None = None, *, whole_trace: bool = False,
        comment: str | None = None,
    ) -> None:  # fmt: skip
        """Queue a score of a span or its whole trace; its type follows from the value.

        Its time is the span's start, since a score of the same id, name and day replaces it.
        """
        kind: Any = {bool: "BOOLEAN", str: "CATEGORICAL"}.get(type(value), "NUMERIC")
        if self.trace_id is None:  # nothing is recorded: sampled out, or by the program around us
            return
        target = span.trace_id if whole_trace else span.id
        began = cast(Any, span)._otel_span.start_time / 1e9
        with quiet():
            self._langfuse.create_score(
                name=name, value=value, data_type=kind, comment=comment,
                trace_id=span.trace_id, observation_id=None if whole_trace else span.id,
                score_id=f"{target}-{name}",
                metadata=metadata, timestamp=datetime.fromtimestamp(began, UTC),
            )  # fmt: skip

    def score_run(self, run: str, name: str, value: float) -> None:
        """Queue a score of an experiment as a whole."""
        with quiet():
            self._langfuse.create_score(
                name=name, value=value, data_type="NUMERIC", dataset_run_id=run,
                score_id=f"{run}-{name}",
            )  # fmt: skip

    def flush(self) -> None:
        """Send what is queued and wait for it, since a full queue drops what follows."""
        with quiet():
            self._langfuse.flush()

    def linked(self, prompt: Prompt) -> AbstractContextManager[None]:
        """Link generations in the block to their prompt; see `linked`."""
        return linked(prompt)

    def note_agents(self, ids: list[str] | None) -> None:
        """See `note_agents`."""
        note_agents(ids)

    def watched(self, model: Model) -> Model:
        """The model, with the spans of its agents, by pydantic-ai, sent here."""
        # slow to import; pydantic-ai's global instrumentation would trace the program's agents, too
        from pydantic_ai.models.instrumented import InstrumentationSettings, InstrumentedModel

        settings = InstrumentationSettings(
            tracer_provider=self._provider, include_binary_content=False,
            include_model_request_parameters=False,
        )  # fmt: skip
        return InstrumentedModel(model, settings)

    def _sent_by_program(self, parent: Parent) -> bool:
        """Whether the program's own Langfuse client sends this span to the same project."""
        known = self._settings.langfuse_public_key in LangfuseResourceManager._instances
        return known and parent.passes(is_default_export_span)

    def probe(self) -> tuple[str, str]:
        """See `probe`."""
        return probe(self._settings)

    def shutdown(self) -> None:
        """Send what is queued; returns after `trace_flush_timeout` at the latest."""
        self._closer.ask()
        self._closer.wait()


def _set_failure(span: Observation, error: BaseException | None) -> None:
    """The status of a span whose block ended with this error."""
    if isinstance(error, (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt)):
        span.update(level="WARNING", status_message="cancelled")
    elif error is not None:
        reason = type(error).__name__
        if isinstance(error, ListenpostError):
            reason = error.reason if isinstance(error, ModelError) else error.code
        cost = Client.usage_fields(error.usage) if isinstance(error, UnusableAnswer) else {}
        span.update(level="ERROR", status_message=reason, **cost)


def _trace_attributes(name: str, parent: Parent, tags: Sequence[str]) -> dict[str, Any]:
    """Tags, trace name, user, session and tenant of all spans below.

    A trace of the outer program keeps its name, and its user and session unless ours has its own.
    """
    caller = current_caller()
    attributes: dict[str, Any] = {"tags": [caller.interface, *tags]}
    if not parent.is_foreign:
        attributes["trace_name"] = name
    if user := caller.user or caller.tenant:
        attributes["user_id"] = _label(mask(user))
    if caller.session:
        attributes["session_id"] = _label(mask(caller.session))
    if caller.tenant:
        attributes["metadata"] = {"tenant": caller.tenant}
    return attributes


def _label(value: str | None) -> str | None:
    """A user or session in ASCII, its end replaced by a digest beyond 200 characters."""
    label = (value or "").encode("ascii", "backslashreplace").decode()
    if len(label) <= _LABEL:
        return label or None
    digest = hashlib.sha256(label.encode()).hexdigest()[:_DIGEST]
    return f"{label[: _LABEL - _DIGEST - 1]}-{digest}"


def _release(settings: TracingSettings) -> str | None:
    return _label(settings.langfuse_release or installed("listenpost"))


def _client(
    settings: TracingSettings, provider: TracerProvider, exporter: SpanExporter
) -> tuple[Langfuse, LangfuseResourceManager]:
    """A client that shares nothing with others of the same key, without its own exit hook."""
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
                release=_release(settings),
                sample_rate=settings.langfuse_sample_rate,
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
    langfuse: Langfuse, resources: LangfuseResourceManager, provider: TracerProvider,
    log_filter: LogFilter,
) -> None:  # fmt: skip
    """Shut everything down; without a reference to `Client`, so that one can be collected."""
    langfuse.shutdown()
    provider.shutdown()
    resources.httpx_client.close()
    resources.prompt_cache._task_manager.shutdown()
    log_filter.remove()


class ShutdownThread(threading.Thread):
    """Runs `close` in a daemon thread that is started early, since none can be started at exit."""

    def __init__(self, close: Callable[[], None], seconds: float, late: Callable[[], None]) -> None:
        super().__init__(name="langfuse-closer", daemon=True)
        self._close, self._seconds, self._late = close, seconds, late
        self._requested, self._done = threading.Event(), threading.Event()
        self._until = 0.0
        atexit.register(self._at_exit)
        self.start()

    def run(self) -> None:
        """See `Thread.run`."""
        self._requested.wait()
        try:
            self._close()
        finally:
            self._done.set()
            atexit.unregister(self._at_exit)

    def ask(self) -> None:
        """Begin to close in the thread, without waiting for it."""
        if not self._requested.is_set():
            self._until = time.monotonic() + self._seconds
            self._requested.set()

    def wait(self) -> None:
        """Wait until closed, at most `seconds` after the first `ask`."""
        if not self._done.wait(max(0.0, self._until - time.monotonic())):
            self._late()

    def _at_exit(self) -> None:
        """Close all of them at the same time, so that the exit waits once."""
        for thread in threading.enumerate():
            if isinstance(thread, ShutdownThread):
                thread.ask()
        with suppress(KeyboardInterrupt):
            self.wait()
