"""The spans of our own agents; imported with the first, never before pydantic-ai is.

What pydantic-ai instruments for all agents would be the agents of the program around us, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai.models import Model
from pydantic_ai.models.instrumented import InstrumentationSettings, InstrumentedModel

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider


class AgentSpans:
    """Sends to one provider what an agent does whose model is `watched`."""

    def __init__(self, provider: TracerProvider) -> None:
        """Change nothing yet."""
        self._settings = InstrumentationSettings(
            tracer_provider=provider,
            include_binary_content=False,
            include_model_request_parameters=False,
        )

    def watched(self, model: Model) -> Model:
        """The same model; an agent takes it as its own setting, before the process's."""
        return InstrumentedModel(model, self._settings)
