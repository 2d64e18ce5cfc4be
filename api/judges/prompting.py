"""What goes with a prompt: the question and excerpts behind the fence, the schema of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.services.schemas import Question
from api.services.text import Fence, clean, cut


def quote_question(question: Question, fence: Fence) -> str:
    """The question, fenced, and on a second line what it is about when the person said so."""
    lines = [fence.quote(question.text, "question")]
    if question.about:
        lines.append(fence.quote(question.about, "about"))
    return "\n".join(lines)


def excerpt(value: object, limit: int) -> str:
    """The first `limit` characters of any field, null and numbers included."""
    return cut(clean(value), limit)


def strict_object(properties: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of an object that has all of these properties and no other."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": dict(properties),
    }
