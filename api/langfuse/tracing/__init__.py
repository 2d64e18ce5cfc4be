"""Tracing with Langfuse: one trace per question, with scores; it never delays or fails a run.

Without keys nothing is imported or sent. docs/langfuse.md describes spans, scores and masking.
"""

from __future__ import annotations

from api.errors import ConfigurationError, construction_failures_as
from api.langfuse.tracing.traced_ports import Tracing
from api.settings import TracingSettings

__all__ = ["Tracing", "start"]


def start(
    settings: TracingSettings, *, user_id: str | None = None, session_id: str | None = None,
    version: str = "",
) -> Tracing | None:  # fmt: skip
    """Tracing to the Langfuse of the settings; None without keys or when it is switched off.

    `user_id` and `session_id` are defaults for callers without one; `version` names the judge.
    Sends nothing yet; one that is collected without `shutdown` sends what it has. Raises
    `ConfigurationError`, which names the variable that a library cannot read.
    """
    if not settings.is_on:
        return None
    with construction_failures_as(ConfigurationError):
        from api.langfuse.tracing.langfuse_client import Client

        client = Client(settings, user_id, session_id, version)
        return Tracing.over(client, old_scores=settings.trace_old_scores)
