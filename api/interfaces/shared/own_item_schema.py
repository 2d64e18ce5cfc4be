"""The JSON of items that callers send, as the API describes it; the product checks them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from numbers import Number
from types import NoneType
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema, with_config
from typing_extensions import TypedDict

from api.choices import MAX_OWN_ITEMS
from api.pipeline.gate.caller_items import FIELDS, TEXT_FIELD_NAMES

_JSON: Mapping[type, dict[str, Any]] = {
    str: {"type": "string"},
    Number: {"type": "number"},
    list: {"type": "array"},
    NoneType: {"type": "null"},
    Mapping: {"type": "object", "properties": {"body": {"description": "Or another text."}}},
}


def _field(name: str, description: str = "") -> WithJsonSchema:
    """What `FIELDS` lets a field of an item hold, as it is published; the product checks it."""
    holding = FIELDS[name]
    each = {"anyOf": [_JSON[part] for part in holding.each]}
    kinds = []
    for kind in (*holding.types, NoneType):
        if kind is list:
            kinds.append({"type": "array", "items": each})
        elif kind is Mapping:
            kinds.append({"type": "object", "additionalProperties": each})
        elif kind in _JSON:  # Python's tuples and dates do not exist in JSON
            kinds.append(_JSON[kind])
    return WithJsonSchema({"anyOf": kinds, **({"description": description} if description else {})})


@with_config(ConfigDict(extra="allow"))
class OwnItem(TypedDict, total=False):
    """A post, video or review of yours: a text, and what else is known of it."""

    title: Annotated[Any, _field("title")]
    body: Annotated[Any, _field("body", f"Or another text: {TEXT_FIELD_NAMES}.")]
    id: Annotated[Any, _field("id")]
    source: Annotated[Any, _field("source", "Where it is from.")]
    url: Annotated[Any, _field("url")]
    author: Annotated[Any, _field("author", "Stored as a pseudonym only.")]
    created_at: Annotated[Any, _field("created_at", "ISO 8601, or seconds since 1970.")]
    place: Annotated[Any, _field("place", "A subreddit, channel or brand.")]
    engagement: Annotated[Any, _field("engagement", "Numbers by name, such as votes.")]
    comments: Annotated[Any, _field("comments", "Texts, or objects like this one.")]


def _strict_json(items: list[Any]) -> list[Any]:
    """Python reads `NaN` and `Infinity`, which could not be sent back."""
    try:
        json.dumps(items, allow_nan=False)
    except ValueError:
        raise ValueError("holds `NaN` or `Infinity`, which are no JSON") from None
    return items


OwnItems = Annotated[list[OwnItem], Field(max_length=MAX_OWN_ITEMS), AfterValidator(_strict_json)]
