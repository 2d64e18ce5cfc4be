"""What the models of an answer have in common, so that their fields are the keys of its JSON."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

PUBLISHED_VALUE = ConfigDict(extra="ignore")
"""Of a dataclass within a `Published`, which has no room for what it does not know."""


class Published(BaseModel):
    """A piece of what `analyze` and `fetch` answer; its fields are the keys of the JSON.

    Fields that a newer version added are carried along, unread.
    """

    model_config = ConfigDict(frozen=True, extra="allow")


def _undefaulted(schema: dict[str, Any]) -> None:
    del schema["default"]


WHERE_THERE = Field(exclude_if=lambda value: value is None, json_schema_extra=_undefaulted)
"""Of a `Published` field: where it is None its key is left out."""
