"""Langfuse around the ports: one trace per question with scores, and nothing in the way of a run.

Without keys nothing is imported or sent. docs/langfuse.md tells the tree, the scores and the masks.
"""

from __future__ import annotations

from api.errors import ConfigurationError, construction_failures_as
from api.langfuse.tracing.traced_ports import Tracing
from api.settings import TracingSettings

__all__ = ["Tracing", "start"]


def start(
    settings: TracingSettings,
    *,
    user_id: str | None = None,
    session_id: str | None = None,
    version: str = "",
) -> Tracing | None:
    """Tracing to the Langfuse of the settings; None when a key is missing or it is switched off.

    `user_id` and `session_id` are for what no caller names; `version` says who judges, and how.
    Asks the network nothing. It belongs to no event loop, and several may live side by side; one
    that is dropped without `shutdown` hands over what it has and ends on its own. A server
    on this machine is asked past every proxy.

    Raises:
        ConfigurationError: the libraries cannot read a variable of theirs; it is named.
    """
    if not settings.is_on:
        return None
    with construction_failures_as(ConfigurationError):
        from api.langfuse.tracing.langfuse_client import Client

        client = Client(settings, user_id, session_id, version)
        return Tracing.over(client, old_scores=settings.trace_old_scores)
