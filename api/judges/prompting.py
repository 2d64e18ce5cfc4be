"""Putting a prompt together: our words from `prompts/*.md`, everybody else's behind the fence."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from typing import Any

from api.services.schemas import Question
from api.services.text import Fence, clean, cut


def system(name: str, fence: Fence) -> str:
    """The prompt `prompts/<name>.md` and the fence's rule."""
    return f"{_prompt(name).strip()}\n{fence.rule}"


def digest(name: str) -> str:
    """Eight characters that are others when the prompt `prompts/<name>.md` is."""
    return sha256(_prompt(name).encode()).hexdigest()[:8]


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


def _prompt(name: str) -> str:
    return files("api.judges").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")
