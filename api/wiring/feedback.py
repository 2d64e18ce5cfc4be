"""Whether feedback is told to Langfuse, and how."""

from __future__ import annotations

import asyncio
import os

from api.services.keeping.feedback import Send
from api.services.keeping.storage import Feedback
from api.services.reporting.report import Report
from api.settings import Settings
from api.wiring import mode_of

_SWITCH = "LANGFUSE_TRACING_ENABLED"


def feedback_sender(settings: Settings) -> Send | None:
    """Sends a score while tracing is on; None without keys, switched off, and in the sandbox."""
    tracing = settings.tracing
    off = os.environ.get(_SWITCH, "").strip().lower() in {"false", "0"}
    keyed = tracing.langfuse_public_key and tracing.langfuse_secret_key
    if off or not keyed or mode_of(settings) == "sandbox":
        return None

    async def send(report: Report, feedback: Feedback) -> str:
        from api.tracing.feedback import send_feedback  # loads an HTTP client

        return await asyncio.to_thread(send_feedback, tracing, report, feedback)

    return send
