"""Arguments of MCP tools: read forgivingly, refused in sentences.

Null and empty text stand for the default, and a list may come as its JSON text, since clients fill in forms and
models write both. An unknown argument is refused: it would be ignored without a word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar, get_args

from pydantic import Field, ValidationError, model_validator

from api.errors import UsageError
from api.interfaces.shared.listing_requests import AgainRequest, SearchRequest
from api.interfaces.shared.requests import (
    About,
    ComparisonRequest,
    FetchRequest,
    Query,
    QuestionRequest,
    RelevanceRequest,
    RequestBody,
)
from api.interfaces.shared.validation_messages import Form
from api.interfaces.shared.watch_requests import WatchOptions

A = TypeVar("A", bound="Arguments")
Dropped = Annotated[bool, Field(description="Whether the structured answer also holds what was dropped, and why.")]


class Arguments(RequestBody):
    """The arguments of one tool or prompt."""

    @model_validator(mode="before")
    @classmethod
    def _forgiven(cls, given: Any) -> Any:
        """Drop values that stand for a default, and parse lists and numbers given as text."""
        if not isinstance(given, Mapping):
            return given
        read = {}
        for name, value in given.items():
            field = cls.model_fields.get(name)
            if field is not None and not field.is_required() and value in (None, ""):
                continue
            is_text = field is None or str in (field.annotation, *get_args(field.annotation))
            read[name] = value if is_text else _unquoted(value)
        return read


class FetchArguments(Arguments, FetchRequest):
    """Arguments of a tool that asks one source."""

    include_dropped: Dropped = False


class AnalysisArguments(Arguments, QuestionRequest):
    """Arguments of the tool that asks every source and reports."""

    include_dropped: Dropped = False


class ComparisonArguments(Arguments, ComparisonRequest):
    """Arguments of the tool that compares products."""


class SearchArguments(Arguments, SearchRequest):
    """Arguments of the tool that searches what is stored."""


class WatchArguments(Arguments, WatchOptions):
    """Arguments of the tool that watches a product; a person decides who is notified."""


class NoArguments(Arguments):
    """Arguments of a tool that needs none."""


class RelevanceArguments(Arguments, RelevanceRequest):
    """Arguments of the tool that judges own items."""


class CorrectionArguments(Arguments):
    """Arguments of the tool that corrects the verdict on an item."""

    report_id: Annotated[str, Field(description="`id` of a report.", min_length=1, max_length=64)]
    key: Annotated[
        str,
        Field(description="Key of an item of it, kept or dropped.", min_length=1, max_length=5_000),
    ]
    # Without a default: who forgets it must not remove a correction.
    relevant: Annotated[
        bool | None,
        Field(description="Whether it is about the product; null removes the correction."),
    ]


class AgainArguments(Arguments, AgainRequest):
    """Arguments of the tool that judges the items of a report again."""

    report_id: Annotated[str, Field(description="`id` of a report.", min_length=1, max_length=64)]
    include_dropped: Dropped = False


class ProductArguments(Arguments):
    """Arguments of the prompt that checks one product."""

    product: Query
    about: About = ""


class CompareArguments(Arguments):
    """Arguments of the prompt that compares two products."""

    first: Query
    second: Query


def read(model: type[A], given: Mapping[str, Any] | None) -> A:
    """The checked arguments.

    Raises:
        UsageError: a sentence for each fault, which names the argument and what it must be.
    """
    try:
        return model.model_validate(given or {})
    except ValidationError as error:
        schema = model.model_json_schema()
        form = Form(schema, "`arguments`", "argument", schema)
        raise UsageError(form.refusal(error.errors(include_url=False))) from None


def _unquoted(value: Any) -> Any:
    """What a text says in JSON, a list, number or truth value; anything else as it came."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
