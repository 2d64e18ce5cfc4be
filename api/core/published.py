"""The base of every value that goes out as JSON and is stored as it went out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


class Published(BaseModel):
    """A piece of an answer, by the keys of its JSON; what a newer one added is carried, unread."""

    model_config = ConfigDict(frozen=True, extra="allow")


Timestamp = Annotated[datetime, AfterValidator(lambda moment: moment.astimezone(UTC).replace(microsecond=0))]
"""Aware UTC, to the second."""


def without_default(schema: dict[str, Any]) -> None:
    """Take the default out of the JSON schema of a field."""
    schema.pop("default", None)


WHERE_THERE = Field(exclude_if=lambda value: value is None, json_schema_extra=without_default)
"""Of a `Published` field: where it is None its key is left out of the JSON."""
IF_SET = Field(exclude_if=lambda value: not value, json_schema_extra=without_default)
"""Of a `Published` field: where it is empty its key is left out of the JSON."""
