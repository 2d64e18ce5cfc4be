"""The base of every value that goes out as JSON and is stored as it went out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


class Published(BaseModel):
    """Part of an answer with the keys of its JSON; keys added by a newer version are kept without being read."""

    model_config = ConfigDict(frozen=True, extra="allow")


Timestamp = Annotated[datetime, AfterValidator(lambda moment: moment.astimezone(UTC).replace(microsecond=0))]
"""Aware UTC, to the second."""


def without_default(schema: dict[str, Any]) -> None:
    """Take the default out of the JSON schema of a field."""
    schema.pop("default", None)


WHERE_THERE = Field(exclude_if=lambda value: value is None, json_schema_extra=without_default)
"""Field of a `Published` model whose key is left out of the JSON when its value is None."""
IF_SET = Field(exclude_if=lambda value: not value, json_schema_extra=without_default)
"""Field of a `Published` model whose key is left out of the JSON when its value is empty."""
