"""The places where people talk: `SOURCES`, which knows them without loading a client library."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from api.errors import ConfigurationError
from api.services.ports import Place
from api.settings import SourceSettings
from api.sources.amazon import AMAZON
from api.sources.discourse import DISCOURSE
from api.sources.github import GITHUB
from api.sources.hackernews import HACKERNEWS
from api.sources.items import OWN_ITEMS
from api.sources.lemmy import LEMMY
from api.sources.reddit import REDDIT
from api.sources.spec import SourceSpec
from api.sources.stackexchange import STACKEXCHANGE
from api.sources.youtube import YOUTUBE

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
PLACES: Mapping[str, Place] = MappingProxyType({**SOURCES, OWN_ITEMS.name: OWN_ITEMS})
"""The same, and a person's own items: everything that an item can be from."""
TITLES: Mapping[str, str] = MappingProxyType({name: place.title for name, place in PLACES.items()})
"""What a person calls each of them."""
*_others, _last = (spec.title for spec in SOURCES.values())
NAMED = f"{', '.join(_others)} and {_last}"
"""All places in one phrase."""


def chosen(settings: SourceSettings) -> tuple[str, ...]:
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
