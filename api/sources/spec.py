"""What the house knows of a place before its client is loaded: `SourceSpec`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from api.errors import NotConfigured
from api.services.places import Place

if TYPE_CHECKING:  # help names every place, and needs none of these
    from api.services.keeping.ledger import Ledger
    from api.services.keeping.storage import SourceMemory
    from api.services.ports import Source
    from api.settings import SourceSettings


class Build(Protocol):
    """How a module makes its source; it never asks the network."""

    def __call__(self, settings: SourceSettings, memory: SourceMemory | None = None) -> Source:
        """The source; `memory` is what it remembers between runs.

        Raises:
            NotConfigured: a setting holds what cannot be used.
            ConfigurationError: the same, for a setting that has a default.
        """
        ...


@dataclass(frozen=True, slots=True)
class Price:
    """What asking a place costs, in requests, while none fails."""

    entries: int
    """What a page of results holds at least, while there are more."""
    token: int = 0
    """Requests before the first search."""
    quotes: bool = True
    """A quoted query that finds nothing is asked once more without its quotes."""
    phrases: bool = False
    """A name of several words is quoted there, whether or not the person did."""
    details: int = 0
    """Kept items that share one request for their full texts; 0: their comments bring them."""
    counted: bool = False
    """Each page of a search is one of so many a day."""
    searches: int = 1
    """Requests of one page of a search, where several sites or kinds of text are asked apart."""
    threads: int | None = None
    """Requests for comments of up to `entries` kept items at most; None: one per item."""


@dataclass(frozen=True, slots=True)
class SourceSpec(Place):
    """One place: how it is called, what it needs, how it is made and what asking it costs."""

    page: str
    """Where it is documented, from the root of the project."""
    variables: tuple[str, ...]
    """Settings it cannot do without."""
    address: str
    """The setting that puts another server in its place."""
    module: str
    """The module with its `Build`, called `build`; only there its client library is imported."""
    price: Callable[[SourceSettings], Price]
    further: Callable[[SourceSettings], tuple[str, ...]] = lambda settings: ()
    """Settings it needs besides, as the others are."""
    counter: str = ""
    """The module whose `searches_of` counts its searches by the day, where there are so many."""

    def needs(self, settings: SourceSettings) -> tuple[str, ...]:
        """Every setting that must be set."""
        return (*self.variables, *self.further(settings))

    def missing(self, settings: SourceSettings) -> tuple[str, ...]:
        """Those that are not."""
        return tuple(name for name in self.needs(settings) if not value_of(settings, name))

    def configured(self, settings: SourceSettings) -> bool:
        """Whether it can be built."""
        return not self.missing(settings)

    async def left(self, settings: SourceSettings, ledger: Ledger) -> int | None:
        """Searches left today by the ledger, None where nobody counts; the place is not asked."""
        if not self.counter:
            return None
        left: int | None = await import_module(self.counter).searches_of(settings, ledger).left()
        return left

    def build(self, settings: SourceSettings, memory: SourceMemory | None = None) -> Source:
        """The source, which asks nothing yet; see `Build`.

        Raises:
            NotConfigured: naming what is not set, or cannot be used.
            ConfigurationError: a setting that has a default cannot be used.
        """
        if missing := self.missing(settings):
            raise NotConfigured(
                self.name, " and ".join(f"`{name}`" for name in missing) + " not set"
            )
        return cast(Build, import_module(self.module).build)(settings, memory)


def value_of(settings: SourceSettings, variable: str) -> str:
    """What a variable is set to, without blanks around it; empty when it is not set."""
    from pydantic import SecretStr

    value = getattr(settings, variable.lower())
    text: str | None = value.get_secret_value() if isinstance(value, SecretStr) else value
    return (text or "").strip()
