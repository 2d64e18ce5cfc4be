"""What a client hands in, read forgivingly and refused in sentences.

Null and empty text stand for the default, and a list may come as its JSON text, since clients fill
in forms and models write both. What nobody knows is refused: it would be lost without a word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError, model_validator

from api.choices import DepthName
from api.errors import UsageError
from api.interfaces.http.comparison_routes import ComparisonRequest
from api.interfaces.http.gate_routes import SearchRequest
from api.interfaces.http.schemas import (
    About,
    FetchRequest,
    Query,
    QuestionRequest,
    RelevanceRequest,
    RequestBody,
)
from api.interfaces.http.watch_routes import Every, Places, Zone
from api.interfaces.shared.validation_messages import Form
from api.services.product import MAX_LIMIT

A = TypeVar("A", bound="Arguments")
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


class ComparisonArguments(Arguments, ComparisonRequest):
    """Of the tool that sets products side by side."""

    depth: How = "standard"


class SearchArguments(Arguments, SearchRequest):
    """Of the tool that searches what is stored."""


class WatchArguments(Arguments):
    """Of the tool that watches a product; whom to tell is nothing that a model decides."""

    query: Query
    every: Every = "mon 08:00"
    tz: Zone = "UTC"
    about: About = ""
    sources: Places = ()
    depth: How = "standard"


class NoArguments(Arguments):
    """Of a tool that needs none."""


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
        schema = model.model_json_schema()
        form = Form(schema, "`arguments`", "argument", schema)
        raise UsageError(form.refusal(error.errors(include_url=False))) from None


def _listed(value: Any) -> Any:
    """A list that came as its JSON text; anything else as it is."""
    if not isinstance(value, str) or not value.startswith("["):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
