"""Whether feedback is told to Langfuse, and how."""

from __future__ import annotations

import asyncio

from api.services.keeping.feedback import Rated, Send
from api.settings import Settings
from api.wiring import mode_of

_AT_ONCE = 2
"""Scores on their way: each holds a thread, and a server that hangs must not hold all there are."""
PATIENCE = 10.0
"""Seconds that one waits for its turn."""


def feedback_sender(settings: Settings, patience: float = PATIENCE) -> Send | None:
    """Sends a score while tracing is on; None without keys, switched off, and in the sandbox.

    One for a server: few scores are sent at once, and one that waits too long is not sent.
    """
    tracing = settings.tracing
    if not tracing.is_on or mode_of(settings) == "sandbox":
        return None
    turns = asyncio.Semaphore(_AT_ONCE)

    async def send(rated: Rated) -> str:
        from api.tracing.feedback import send_feedback  # loads an HTTP client

        try:
            async with asyncio.timeout(patience):
                await turns.acquire()
        except TimeoutError:
            return "Langfuse is slow, and others wait for it already"
        try:
            return await asyncio.to_thread(send_feedback, tracing, rated)
        finally:
            turns.release()

    return send
