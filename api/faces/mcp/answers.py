"""What a tool is, and its two answers: a text for a model and a record for a program."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from api.faces.mcp.arguments import Arguments
from api.services.keeping.keys import Tenant
from api.services.progress import Listener

_NOTE = 100
"""Characters for the note of how much was cut."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answers."""

    text: str
    """For a model."""
    record: Mapping[str, Any]
    """For a program, as the tool's output schema says."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as a client sees it, and what it does."""

    name: str
    title: str
    says: str
    """When to use it, for a model."""
    arguments: type[Arguments]
    output: Mapping[str, Any]
    """JSON schema of the record."""
    work: Callable[[Tenant, Any, Listener], Coroutine[Any, Any, Answer]]
    """Gets the checked arguments. Raises `ListenpostError`s alone, defects apart."""
    asks: bool = True
    """Whether it asks the world outside; else it sees its arguments alone."""
    keeps: bool = False
    """Whether something goes on after its answer."""


def bounded(text: str, room: int, rest: str) -> str:
    """The text, or the lines that fit and how much was cut; `rest` says where the whole is."""
    if len(text) <= room:
        return text
    end = text.rfind("\n", 0, room - len(rest) - _NOTE)
    return f"{text[:end]}\n\nCut: {len(text) - end} of {len(text)} characters are not shown. {rest}"
