"""What a place is called and what is found there: all that help and a model are told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """What a reader and a model are told about a source."""

    name: str
    """As in keys and settings: `reddit`."""
    title: str
    """As a person writes it: `Reddit`."""
    says: str
    """What is found there, in one line: the description of its tool."""


Places = Mapping[str, Place]
"""Places by their names."""


def title_of(places: Places, source: str) -> str:
    """What a person calls a source; a name that nobody introduced is its own title."""
    return places[source].title if source in places else source


def place_of(key: str) -> str:
    """The name of the place that an item is from, out of its key `reddit:t3_1abc`."""
    return key.partition(":")[0]
