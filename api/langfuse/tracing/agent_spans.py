"""Spans of our own agents, by pydantic-ai; imported with the first agent, since it is slow.

Its global instrumentation would also trace the agents of the program around us.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai.models import Model
from pydantic_ai.models.instrumented import InstrumentationSettings, InstrumentedModel

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider


class AgentSpans:
    """Instruments models with one tracer provider."""

    def __init__(self, provider: TracerProvider) -> None:
        self._settings = InstrumentationSettings(
            tracer_provider=provider,
            include_binary_content=False,
            include_model_request_parameters=False,
        )

    def watched(self, model: Model) -> Model:
        """The model whose agents are traced, whatever the process's setting is."""
        return InstrumentedModel(model, self._settings)
