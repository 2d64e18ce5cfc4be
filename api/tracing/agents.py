"""The spans of pydantic-ai's agents; imported with the first agent, never before the library is.

The library has one setting for all agents and no public way to read it, so a private one is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider


class AgentSpans:
    """Sends the spans of every agent in the process to one provider."""

    def __init__(self, provider: TracerProvider) -> None:
        """Change nothing yet."""
        self._settings = InstrumentationSettings(
            tracer_provider=provider,
            include_binary_content=False,
            include_model_request_parameters=False,
        )

    def begin(self, replaceable: Callable[[object], bool]) -> None:
        """Take the spans, unless a tracer has them already that is not `replaceable`."""
        current = Agent._instrument_default
        if not current or replaceable(getattr(current, "tracer", None)):
            Agent.instrument_all(self._settings)

    def end(self) -> None:
        """Leave the spans, if they still come here."""
        if Agent._instrument_default is self._settings:
            Agent.instrument_all(False)
