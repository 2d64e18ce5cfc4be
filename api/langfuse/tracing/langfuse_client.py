"""The Langfuse client: spans, scores, agents, and an end that no server can hold up.

The only file that imports langfuse. A client has its own tracer provider and stays out of
Langfuse's registry by key, so that the program around it is left alone: nothing of that program is
sent, and none of its spans is written to. Where it traces, by whatever provider, our spans hang
under its current one.

What a generation used, in Langfuse's words.

Asking Langfuse whether the keys fit, for `listenpost doctor`.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from importlib.metadata import version as installed
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast
from urllib.parse import urlsplit

import requests
from langfuse import Langfuse, propagate_attributes
from langfuse._client.resource_manager import LangfuseResourceManager
from langfuse.span_filter import is_default_export_span

from api.core.context import current_caller
from api.core.domain import Usage
from api.core.http_limits import REDIRECTS, no_connection, points_here
from api.core.model_cost import UnusableAnswer
from api.core.prompts import Prompt
from api.errors import ListenpostError, ModelError
from api.langfuse.tracing.library_threads import (
    LogFilter,
    Notice,
    ShutdownThread,
    in_one_line,
    quiet,
)
from api.langfuse.tracing.masking import HomeSession, ScoreClient, basic, mask
from api.langfuse.tracing.spans import (
    LabelledSpans,
    MaskedExporter,
    Parent,
    linked,
    note_agents,
    provider_of,
)
from api.settings import TracingSettings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from pydantic_ai.models import Model

    from api.langfuse.tracing.agent_spans import AgentSpans


def spent(usage: Usage) -> dict[str, Any]:
    """Tokens and cost; an unknown cost is left out, not zero."""
    total = usage.input_tokens + usage.output_tokens
    tokens = {"input": usage.input_tokens, "output": usage.output_tokens, "total": total}
    cost = {} if usage.usd is None else {"cost_details": {"total": usage.usd}}
    return {"usage_details": tokens, **cost}


_SECONDS = 5.0


def probe(settings: TracingSettings) -> tuple[str, str]:
    """Outcome and detail of one request; blocks."""
    url = f"{settings.langfuse_base_url.rstrip('/')}/api/public/projects"
    headers = {"Authorization": basic(settings)}
    with HomeSession(settings) as session:
        session.max_redirects = REDIRECTS
        try:
            with session.get(url, headers=headers, timeout=_SECONDS, stream=True) as response:
                status = response.status_code
        except requests.Timeout:
            return "timed_out", f"no answer within {_SECONDS:g} s"
        except (OSError, ValueError) as error:
            return "unreachable", f"{no_connection(error, url)}; check `LANGFUSE_BASE_URL`"
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return "refused", "check `LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY`"
    if status != HTTPStatus.OK:
        return "unreachable", f"HTTP {status}; check `LANGFUSE_BASE_URL`"
    return "ok", "it answers and takes the keys"


Kind = Literal["agent", "span", "retriever", "generation", "evaluator"]
REQUEST_SECONDS = 5
"""For one request to Langfuse; made in the background, so it may be longer than the exit waits."""
# Characters of a user or session, and of the digest at the end of a longer one.
_LABEL, _DIGEST = 200, 16
BATCH = 200
"""Spans or scores in one request at most: a run's scores fit into one."""


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
        self, settings: TracingSettings, user_id: str | None, session_id: str | None, version: str
    ) -> None:
        """Start the background threads; the network is asked when there is something to send."""
        owner = {"user.id": _label(user_id), "session.id": _label(session_id)}
        ours = {"langfuse.release": _release(settings), "langfuse.version": _label(version)}
        self._settings = settings
        notice = Notice(urlsplit(settings.langfuse_base_url).netloc.rpartition("@")[2])
        hush, before = LogFilter(notice), set(threading.enumerate())
        exporter = MaskedExporter(settings, REQUEST_SECONDS, notice)
        with in_one_line():
            self._provider = provider_of(settings, LabelledSpans(owner, ours))
            self._langfuse, resources = _client(settings, self._provider, exporter)
        self._agents: AgentSpans | None = None
        end = partial(_end, self._langfuse, resources, self._provider, hush)
        self._closer = ShutdownThread(end, settings.trace_flush_timeout, notice)
        hush.cover(set(threading.enumerate()) - before)
        weakref.finalize(self, self._closer.ask).atexit = False

    @property
    def trace_id(self) -> str | None:
        """The trace under way in this context, if it is one of ours."""
        parent = Parent()
        return parent.trace_id if parent.is_open else None

    @property
    def is_guest(self) -> bool:
        """Whether what begins here is part of a trace of the program around us."""
        return Parent().is_foreign

    def observation(
        self, name: str, kind: Kind, tags: Sequence[str] = (), **fields: Any
    ) -> _Observing:
        """A span under the current one, whoever's it is; where there is none it begins a trace.

        Tags stand on it and on all that is below it.
        """
        return _Observing(self._langfuse, self._sent_by_program, name, kind, tags, fields)

    def score(
        self,
        name: str,
        value: bool | float | str,
        span: Observation,
        metadata: Mapping[str, str] | None = None,
        *,
        whole_trace: bool = False,
        comment: str | None = None,
    ) -> None:
        """Queue a score of one span or of its whole trace; the type follows the value.

        It bears the time at which the span began: Langfuse knows a score by id, name and day, and
        one that is written again takes the place of the first.
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
        """Send what is queued, and wait for it; a full queue would drop what comes next."""
        with quiet():
            self._langfuse.flush()

    def linked(self, prompt: Prompt) -> AbstractContextManager[None]:
        """Generations of the block name the prompt by which they are made."""
        return linked(prompt)

    def note_agents(self, ids: list[str] | None) -> None:
        """From now on every agent of ours that begins in this context adds the id of its span."""
        note_agents(ids)

    def watched(self, model: Model) -> Model:
        """The model of an agent whose spans come here."""
        from api.langfuse.tracing.agent_spans import AgentSpans

        if self._agents is None:
            self._agents = AgentSpans(self._provider)
        return self._agents.watched(model)

    def _sent_by_program(self, parent: Parent) -> bool:
        """Whether a Langfuse client of the program itself sends it to the same project."""
        known = self._settings.langfuse_public_key in LangfuseResourceManager._instances
        return known and parent.passes(is_default_export_span)

    def probe(self) -> tuple[str, str]:
        """Outcome and detail of asking whether the keys fit; blocks for one request."""
        return probe(self._settings)

    def shutdown(self) -> None:
        """Hand over what is queued; returns after `trace_flush_timeout` at the latest."""
        self._closer.ask()
        self._closer.wait()


class _Observing:
    """Opens a span as the current one, and closes it with the reason it ended."""

    def __init__(
        self,
        langfuse: Langfuse,
        sent_by_program: Callable[[Parent], bool],
        name: str,
        kind: Kind,
        tags: Sequence[str],
        fields: dict[str, Any],
    ) -> None:
        self._langfuse, self._sent_by_program = langfuse, sent_by_program
        self._name, self._kind = name, kind
        self._tags, self._fields = tags, fields

    def __enter__(self) -> Observation:
        parent = Parent()
        filed: dict[str, Any] = {"tags": list(self._tags)}
        if not parent.is_open:
            filed = _filed(self._name, parent, self._tags)
        with ExitStack() as stack, quiet():
            if any(filed.values()):
                stack.enter_context(parent.untouched(has_root=self._sent_by_program(parent)))
                stack.enter_context(propagate_attributes(**filed))
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
            if isinstance(error, UnusableAnswer):
                self._span.update(**spent(error.usage))
        with quiet():
            self._stack.__exit__(kind, error, trace)


def _filed(name: str, parent: Parent, tags: Sequence[str]) -> dict[str, Any]:
    """What all spans below are filed under: who asks, how, and for what.

    A trace of the program around us keeps its name, and its user and session unless a caller of
    ours has his own.
    """
    asker = current_caller()
    filed: dict[str, Any] = {"tags": [asker.interface, *tags]}
    if not parent.is_foreign:
        filed["trace_name"] = name
    if user := asker.user or asker.tenant:
        filed["user_id"] = _label(mask(user))
    if asker.session:
        filed["session_id"] = _label(mask(asker.session))
    if asker.tenant:
        filed["metadata"] = {"tenant": asker.tenant}
    return filed


def _label(value: str | None) -> str | None:
    """A user or session as Langfuse takes it: ASCII, at most 200 characters.

    A longer one ends in its digest, so that two with one beginning stay two.
    """
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
    langfuse: Langfuse,
    resources: LangfuseResourceManager,
    provider: TracerProvider,
    hush: LogFilter,
) -> None:
    """What closing means; it knows no client of ours, so that a dropped one can be collected."""
    langfuse.shutdown()
    provider.shutdown()
    resources.httpx_client.close()
    resources.prompt_cache._task_manager.shutdown()
    hush.lift()
