"""What a client hands in, read forgivingly and refused in sentences.

Null and empty text stand for the default, and a list may come as its JSON text, since clients fill
in forms and models write both. What nobody knows is refused: it would be lost without a word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError, model_validator

from api.errors import UsageError
from api.faces.web.schemas import (
    About,
    FetchRequest,
    Query,
    QuestionRequest,
    RelevanceRequest,
    RequestBody,
)
from api.services.listening import MAX_LIMIT
from api.services.text import clean, cut, one_line
from api.settings import DepthName

A = TypeVar("A", bound="Arguments")
_SHOWN, _FAULTS = 40, 5
"""Characters of a wrong value, and faults, that a message names."""
How = Annotated[
    DepthName, Field(description="How far to look: quick (seconds), standard or deep (minutes).")
]
Dropped = Annotated[
    bool, Field(description="Whether the structured answer also holds what was dropped, and why.")
]


class Arguments(RequestBody):
    """The arguments of one tool or prompt."""

    @model_validator(mode="before")
    @classmethod
    def _forgiven(cls, given: Any) -> Any:
        """What stands for a default is left out; a list's JSON text is the list."""
        if not isinstance(given, Mapping):
            return given
        read = {}
        for name, value in given.items():
            field = cls.model_fields.get(name)
            if field is not None and not field.is_required() and value in (None, ""):
                continue
            is_text = field is None or field.annotation is str
            read[name] = value if is_text else _listed(value)
        return read


class FetchArguments(Arguments, FetchRequest):
    """Of a tool that asks one source."""

    depth: How = "quick"
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] | None = None  # of models, `"5"` is one too
    include_dropped: Dropped = False


class AnalysisArguments(Arguments, QuestionRequest):
    """Of the tool that asks every source and reports."""

    depth: How = "standard"
    include_dropped: Dropped = False


class RelevanceArguments(Arguments, RelevanceRequest):
    """Of the tool that judges own items."""


class ProductArguments(Arguments):
    """Of the prompt that checks one product."""

    product: Query
    about: About = ""


class CompareArguments(Arguments):
    """Of the prompt that compares two products."""

    first: Query
    second: Query


def read(model: type[A], given: Mapping[str, Any] | None) -> A:
    """The arguments, checked.

    Raises:
        UsageError: a sentence for each fault, which names the argument and what it must be.
    """
    try:
        return model.model_validate(given or {})
    except ValidationError as error:
        schema, faults = model.model_json_schema(), []
        for fault in error.errors(include_url=False, include_context=False)[:_FAULTS]:
            name, *path = fault["loc"] or ("arguments",)
            if fault["type"] == "extra_forbidden":
                faults.append(_unknown(str(name), list(schema["properties"])))
                continue
            wanted = _named(schema["properties"].get(name, {}), path)
            where = f"`{name}{''.join(f'[{part}]' for part in path)}`"
            if fault["type"] == "value_error":
                faults.append(f"{where} holds `NaN` or `Infinity`, which are no JSON")
            elif fault["type"] == "missing":
                faults.append(f"{where} is missing; it must be {wanted}")
            else:
                faults.append(f"{where} must be {wanted}{_instead(fault['input'])}")
        raise UsageError("; ".join(dict.fromkeys(faults))) from None


def _listed(value: Any) -> Any:
    """A list that came as its JSON text; anything else as it is."""
    if not isinstance(value, str) or not value.startswith("["):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _unknown(name: str, known: list[str]) -> str:
    """That there is no such argument, which one may be meant, and which there are."""
    shown = cut(one_line(clean(name)), _SHOWN)
    near = get_close_matches(name, known, 1, cutoff=0.7)
    hint = f", did you mean `{near[0]}`?" if near else ";"
    return f"there is no argument `{shown}`{hint} known are " + _either(known, "and")


def _named(schema: Mapping[str, Any], path: list[Any]) -> str:
    """What a value must be, in words, as its published schema says."""
    for _ in path:
        schema = schema.get("items", {})
    kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]
    kind = kinds[0] if kinds else {}
    if "enum" in kind:
        return _either(kind["enum"], "or")
    match kind.get("type"):
        case "integer":
            return f"a whole number from {kind['minimum']} to {kind['maximum']}"
        case "string":
            most = kind.get("maxLength")
            return f"text of at most {most} characters" if most else "text"
        case "array":
            most, inner = kind.get("maxItems"), _named(kind, [0])
            return f"a list of at most {most}, each {inner}" if most else f"a list, each {inner}"
        case "boolean":
            return "true or false"
    return "an object"


def _either(words: list[str], last: str) -> str:
    *first, final = (f"`{word}`" for word in words)
    return f"{', '.join(first)} {last} {final}" if first else final


def _instead(value: Any) -> str:
    """What came, when it is short enough to be recognised by."""
    if value is None or isinstance(value, (bool, int, float)):
        return f", not `{json.dumps(value)}`"
    if isinstance(value, str) and len(value) <= _SHOWN:
        return f", not `{one_line(clean(value))}`"
    return ""
