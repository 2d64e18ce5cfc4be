"""What is left of attributes when no words may leave."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.langfuse.tracing.spans import wordless

INPUT, OUTPUT = "langfuse.observation.input", "langfuse.observation.output"


@pytest.mark.parametrize(
    "attributes",
    [
        {"user.id": "env_1", "langfuse.trace.tags": ("cli", "reddit")},
        {"langfuse.observation.usage_details": '{"input": 1}', "gen_ai.request.model": "gpt-4o"},
        {"gen_ai.usage.input_tokens": 50, "operation.cost": 0.5, "whatever": True},
    ],
)
def test_names_and_numbers_stay(attributes: dict[str, Any]) -> None:
    """Under known names text stays, under any name a number."""
    assert wordless(attributes) == attributes


@pytest.mark.parametrize(
    "name",
    [
        "gen_ai.input.messages", "gen_ai.system_instructions", "pydantic_ai.all_messages",
        "final_result", "logfire.msg", "exception.message", "exception.stacktrace",
        "langfuse.trace.input", "langfuse.observation.metadata.about",
        "langfuse.experiment.item.expected_output", "of.a.library.to.come",
    ],
)  # fmt: skip
def test_other_text_goes(name: str) -> None:
    """Whatever a library calls it."""
    assert wordless({name: "mug"}) == {}


@pytest.mark.parametrize(
    ("document", "left"),
    [
        ({"query": "mug", "limit": 5, "full": False, "notes": ["a"]},
         {"limit": 5, "full": False, "notes": 1}),
        ({"usd": None, "answer": {"mug": 3}}, None),
        ([True, False], [True, False]),
        ([5, None], [5, None]),
        (["mug", "cup"], 2),
        ("mug", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", [INPUT, OUTPUT])
def test_figures_of_what_went_in_and_came_out(name: str, document: Any, left: Any) -> None:
    """Numbers and verdicts as they are, lists of texts as their length, nothing that is deeper."""
    sent = wordless({name: json.dumps(document)})
    assert sent == ({} if left is None else {name: json.dumps(left)})


def test_what_is_no_json_goes() -> None:
    """It may be anybody's words."""
    assert wordless({INPUT: "a mug", OUTPUT: ("mug",)}) == {}
