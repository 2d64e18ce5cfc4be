"""What a form or an address holds, in the terms of the model that the API reads the same with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from api.errors import UsageError
from api.faces.refusals import Form

M = TypeVar("M", bound=BaseModel)
SPANS = (
    ("1d", "the last day"), ("7d", "the last week"), ("30d", "the last 30 days"),
    ("365d", "the last year"), ("all", "any time"),
)  # fmt: skip
"""How far back something stored is looked at."""


def validated(model: type[M], fields: Mapping[str, object]) -> M:
    """The fields as the model has them; what is left empty stands as its default.

    Raises:
        UsageError: a field holds what none of ours offers.
    """
    try:
        return model.model_validate({name: value for name, value in fields.items() if value})
    except ValidationError as error:
        faults, schema = error.errors(), model.model_json_schema()
        words = Form(schema, "the form", "field", schema).refusal(faults[:1])
        raise UsageError(words, field=str(faults[0]["loc"][0])) from None
