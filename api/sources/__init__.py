"""The places where people talk: `SOURCES`, which knows them without loading a client library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from api.core.display_names import SourceLabel
from api.errors import ConfigurationError, UsageError
from api.sources.source_specs import (
    AMAZON,
    DISCOURSE,
    GITHUB,
    HACKERNEWS,
    LEMMY,
    REDDIT,
    STACKEXCHANGE,
    YOUTUBE,
    SourceSpec,
)

if TYPE_CHECKING:
    from api.settings import SourceSettings


SOURCES: Mapping[str, SourceSpec] = MappingProxyType(
    {
        spec.name: spec
        for spec in (
            REDDIT,
            YOUTUBE,
            AMAZON,
            HACKERNEWS,
            STACKEXCHANGE,
            GITHUB,
            LEMMY,
            DISCOURSE,
        )
    }
)
"""Every place by its name, in the order in which they are shown."""
OWN_ITEMS = SourceLabel("items", "Your items", "Items that you handed in.")
"""See `api/sources/own_items.py`."""
ITEM_SOURCES: Mapping[str, SourceLabel] = MappingProxyType({**SOURCES, OWN_ITEMS.name: OWN_ITEMS})
"""The same, and a person's own items: everything that an item can be from."""
ARCHIVE = SourceLabel(
    "archive", "The archive", "What is stored: what was heard before, and imports."
)
"""See `api/sources/archive_source.py`."""
ALL_SOURCES: Mapping[str, SourceLabel] = MappingProxyType({**ITEM_SOURCES, ARCHIVE.name: ARCHIVE})
"""The same, and what is stored: everything that a report can name as a source."""
ASKABLE_SOURCES: tuple[str, ...] = (*SOURCES, ARCHIVE.name)
"""Names that a question can be put to."""
SOURCE_TITLES: Mapping[str, str] = MappingProxyType(
    {name: place.title for name, place in ALL_SOURCES.items()}
)
"""What a person calls each of them."""
*_others, _last = (spec.title for spec in SOURCES.values())
SOURCE_LIST = f"{', '.join(_others)} and {_last}"
"""All places in one phrase."""


def check_askable(names: Iterable[str], known: Sequence[str] = ASKABLE_SOURCES) -> None:
    """Refuse a name that a question cannot be put to.

    Raises:
        UsageError: it names those that there are.
    """
    for name in names:
        if name not in known:
            listed = ", ".join(f"`{other}`" for other in known)
            wrong = f"there is no source `{name[:40]}`; there are {listed}"
            raise UsageError(wrong, field="sources")


def default_sources(settings: SourceSettings) -> tuple[str, ...]:
    """Places that a question is put to when it names none, in the order of `SOURCES`.

    Raises:
        ConfigurationError: there is no such place.
    """
    names = {name.strip().lower() for name in (settings.sources or "").split(",")} - {""}
    if unknown := sorted(names - set(SOURCES)):
        raise ConfigurationError(
            f"`LISTENPOST_SOURCES`: there is no source `{unknown[0][:40]}`; there are "
            + ", ".join(f"`{name}`" for name in SOURCES)
        )
    return tuple(name for name in SOURCES if not names or name in names)
