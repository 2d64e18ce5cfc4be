"""The base of every value that goes out as JSON and is stored as it went out."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Published(BaseModel):
    """A piece of an answer, by the keys of its JSON; what a newer one added is carried, unread."""

    model_config = ConfigDict(frozen=True, extra="allow")
