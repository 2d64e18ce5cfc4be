"""What tracing uses of libraries without their promise: a new version that lacks it fails here."""

from __future__ import annotations

from typing import Any

from langfuse import Langfuse
from langfuse._client.resource_manager import LangfuseResourceManager

from api.langfuse.tracing import Tracing


def test_langfuse_keeps_its_clients_by_key() -> None:
    """Its registry, the lock around it, and what must be closed of a client."""
    with LangfuseResourceManager._lock:
        theirs = Langfuse(public_key="pk-lf-private", secret_key="sk-lf-private")
        resources = LangfuseResourceManager._instances.pop("pk-lf-private")

    assert type(LangfuseResourceManager._instances) is dict
    assert callable(resources.shutdown)
    assert callable(resources.prompt_cache._task_manager.shutdown)
    theirs.shutdown()
    resources.httpx_client.close()
    resources.prompt_cache._task_manager.shutdown()
    assert resources.httpx_client.is_closed


def test_a_span_knows_when_it_began(tracing: Tracing) -> None:
    """In nanoseconds of the clock, from the span of OpenTelemetry beneath."""
    with tracing.client.observation("fetch", "span") as span:
        beneath: Any = span
        assert type(beneath._otel_span.start_time) is int
