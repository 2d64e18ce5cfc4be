"""What is left of a span when no words of people or models may leave: pure functions.

Numbers stay whatever they are called, text only under a name that is known to quote nobody.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_QUOTES_NOBODY = frozenset(
    {"user.id", "session.id", "agent_name", "model_name", "exception.type"}
    | {f"langfuse.{name}" for name in ("environment", "release", "version")}
    | {f"langfuse.trace.{name}" for name in ("name", "tags", "metadata.tenant")}
    | {
        f"langfuse.observation.{name}"
        for name in (
            "type", "level", "status_message", "model.name", "usage_details", "cost_details",
            "prompt.name",
        )
    }
    | {
        f"langfuse.experiment.{name}"
        for name in ("id", "name", "dataset.id", "item.id", "item.root_observation_id")
    }
    | {
        f"gen_ai.{name}"
        for name in (
            "agent.name", "operation.name", "provider.name", "request.model",
            "response.finish_reasons", "response.model", "system", "tool.name", "tool.type",
        )
    }
)  # fmt: skip
_COUNTED = frozenset({"langfuse.observation.input", "langfuse.observation.output"})


def wordless(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes without what anybody wrote; of inputs and outputs the numbers remain."""
    left: dict[str, Any] = {}
    for name, value in attributes.items():
        if name in _QUOTES_NOBODY or isinstance(value, (bool, int, float)):
            left[name] = value
        elif name in _COUNTED and (figures := _figures_of(value)) is not None:
            left[name] = figures
    return left


def _figures_of(text: object) -> str | None:
    """`{"items": 20, "notes": ["a", "b"], "query": "mug"}` as `{"items": 20, "notes": 2}`.

    What lies deeper is left out: its names may be words of a post.
    """
    try:
        document = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
    if not isinstance(document, dict):
        figures = _figure(document)
    else:
        numbers = {name: _figure(part) for name, part in document.items()}
        figures = {name: number for name, number in numbers.items() if number is not None}
    return None if figures is None or figures == {} else json.dumps(figures)


def _figure(part: Any) -> Any:
    """A number or a list of verdicts as it is, of another list its length; of the rest nothing."""
    if isinstance(part, list):
        plain = all(entry is None or isinstance(entry, (bool, int, float)) for entry in part)
        return part if plain else len(part)
    return part if isinstance(part, (bool, int, float)) else None
