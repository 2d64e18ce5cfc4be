"""The sources: `SOURCES` describes each one without loading its client library."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

from api.core.display_names import SourceLabel
from api.errors import (
    ConfigurationError,
    MissingExtra,
    NotConfigured,
    NotInstalled,
    UsageError,
    extras_named,
    missing_module,
)

if TYPE_CHECKING:
    from api.core.ports import Source
    from api.features.analyses.store_ports import SourceMemory
    from api.settings import SourceSettings


@dataclass(frozen=True, slots=True)
class Price:
    """What asking a source costs, in requests, while none fails."""

    entries: int
    """Entries that a page of results holds at least, while there are more."""
    token: int = 0
    """Requests before the first search."""
    quotes: bool = True
    """A quoted query that finds nothing is asked once more without its quotes."""
    phrases: bool = False
    """A product's name of several words is quoted, whether or not the person did."""
    details: int = 0
    """Number of kept items whose full texts one request brings; 0: the requests for comments bring them."""
    counted: bool = False
    """Each page of a search is one of a daily number of searches."""
    searches: int = 1
    """Requests of one page of a search: one for each site, forum or kind of text."""
    more_searches: int = 0
    """Further requests of such a page, at most: parts of a stream, and details of what it held."""
    threads: int | None = None
    """Most requests for the comments of one page, however many items are kept; None: one request per item."""


def _always(settings: SourceSettings) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class SourceSpec(SourceLabel):
    """One source: its label, its settings, its price, and how it is built."""

    price: Callable[[SourceSettings], Price]
    variables: tuple[str, ...] = ()
    """Settings that must be set."""
    more_variables: Callable[[SourceSettings], tuple[str, ...]] = lambda settings: ()
    """Settings that must be set because of others."""
    address_variable: str = ""
    switched_on: Callable[[SourceSettings], bool] = _always
    """Whether a question that names no source is put to it."""
    counter: str = ""
    """The module whose `searches_of` counts its daily searches, if they are counted."""

    @property
    def address(self) -> str:
        """The setting that holds its server's address."""
        return self.address_variable or f"{self.name.upper()}_URL"

    @property
    def module(self) -> str:
        """The module with its `build`, which alone imports its client library."""
        return f"api.sources.{self.name}"

    @property
    def page(self) -> str:
        """Path of its documentation page, from the root of the project."""
        return f"docs/sources/{self.name}.md"

    def needs(self, settings: SourceSettings) -> tuple[str, ...]:
        """Every setting that must be set."""
        return (*self.variables, *self.more_variables(settings))

    def missing(self, settings: SourceSettings) -> tuple[str, ...]:
        """Required variables that are not set."""
        return tuple(name for name in self.needs(settings) if not setting_value(settings, name))

    def configured(self, settings: SourceSettings) -> bool:
        """Whether the settings hold what the source needs, and its client is installed."""
        return not self.missing(settings) and not missing_module(self.name)

    def off_note(self, settings: SourceSettings) -> str:
        """How a disabled source can be asked; empty for an enabled one."""
        if self.switched_on(settings):
            return ""
        if self.address_variable:
            return f"off: follow one with `listenpost {self.name} add ADDRESS`, or set `{self.address_variable}`"
        return f"off: set `{self.name.upper()}=on`, or ask with `--source {self.name}`"

    async def left(self, settings: SourceSettings, memory: SourceMemory) -> int | None:
        """Searches left today, read without a request; None when they are not counted."""
        if not self.counter:
            return None
        left: int | None = await import_module(self.counter).searches_of(settings, memory).left()
        return left

    def build(self, settings: SourceSettings, memory: SourceMemory | None = None) -> Source:
        """The source, without a request; raises `NotConfigured`, `NotInstalled` or `ConfigurationError`."""
        if missing := " and ".join(f"`{name}`" for name in self.missing(settings)):
            raise NotConfigured(self.name, f"{missing} not set")
        try:
            with extras_named():
                module = import_module(self.module)
        except MissingExtra as error:
            raise NotInstalled(self.name, str(error)) from None
        source: Source = module.build(settings, memory)
        return source


def setting_value(settings: SourceSettings, variable: str) -> str:
    """Value of a variable without surrounding blanks; empty when it is not set."""
    from pydantic import SecretStr

    value = getattr(settings, variable.lower().removeprefix("listenpost_"))
    text: str | None = value.get_secret_value() if isinstance(value, SecretStr) else value
    return (text or "").strip()


BLUESKY_ACCOUNT = ("BLUESKY_HANDLE", "BLUESKY_APP_PASSWORD")
"""Handle and app password of the account whose search is used."""
GITHUB_TOKEN = "LISTENPOST_GITHUB_TOKEN"
GITHUB_THREADS = 5
"""Issues whose comments are read without a token: each takes one of 60 requests an hour."""

SOURCES: Mapping[str, SourceSpec] = MappingProxyType({spec.name: spec for spec in (
    SourceSpec(
        "reddit", "Reddit", "Reddit posts about a product, with their best voted comments.",
        price=lambda settings: Price(entries=100, token=1),
        variables=("REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET"),
    ),
    SourceSpec(
        "youtube", "YouTube",
        "Videos about a product, with comments; a call may cost one of 100 daily searches.",
        price=lambda settings: Price(entries=50, details=50, counted=True),
        variables=("YOUTUBE_API_KEY",), counter="api.sources.youtube_answers",
    ),
    SourceSpec(
        "amazon", "Amazon",
        "Ratings and buyers' reviews of products on Amazon. Not for topics nobody sells.",
        price=lambda settings: Price(entries=10, quotes=False),
        variables=("AMAZON_PROVIDER",),
        # every provider but Amazon's own pages is paid
        more_variables=lambda settings: (
            () if settings.amazon_provider in {None, "html"} else ("AMAZON_API_KEY",)
        ),
    ),
    SourceSpec(
        "hackernews", "Hacker News",
        "Stories and comments on Hacker News about a technical product or a launch.",
        price=lambda settings: Price(entries=100, phrases=True),
    ),
    SourceSpec(
        "stackexchange", "Stack Exchange",
        "Questions and answers on Stack Exchange: problems with devices and software.",
        price=lambda settings: Price(
            entries=100, phrases=True, searches=len(settings.sites), threads=len(settings.sites)
        ),
    ),
    SourceSpec(
        "github", "GitHub",
        "GitHub issues with their comments: bugs and wishes of whatever has a repository.",
        price=lambda settings: Price(
            entries=100, phrases=True,
            threads=None if setting_value(settings, GITHUB_TOKEN) else GITHUB_THREADS,
        ),
    ),
    SourceSpec(
        "lemmy", "Lemmy", "Posts and comments about a product on Lemmy, a federation of forums.",
        price=lambda settings: Price(entries=50, token=1, quotes=False, searches=2), by_name=True,
        # every further word would have to stand behind the name in the same text
    ),
    SourceSpec(
        "discourse", "Discourse",
        "Topics and posts about a product in the Discourse forums of the settings.",
        price=lambda settings: Price(entries=50, phrases=True, searches=len(settings.forums)),
        variables=("DISCOURSE_FORUMS",), address_variable="DISCOURSE_FORUMS",
    ),
    SourceSpec(
        "feeds", "Feeds", "Entries about a product in the feeds that are followed: RSS, Atom, JSON Feed.",
        price=lambda settings: Price(
            entries=1_000, quotes=False, searches=(settings.feeds or "").count(",") + 1, threads=0
        ),
        address_variable="FEEDS", switched_on=lambda settings: bool(settings.feeds),
    ),
    SourceSpec(
        "bluesky", "Bluesky",
        "Posts and replies on Bluesky about a product, of the last hours: short and recent.",
        # further parts of one read; the posts of 100 hits, and those that they reply to; a login and a search
        price=lambda settings: Price(
            entries=100, quotes=False, more_searches=7 + 8 + 2 * has_bluesky_account(settings)
        ),
        switched_on=lambda settings: settings.bluesky, by_name=True,
        more_variables=lambda settings: BLUESKY_ACCOUNT if has_bluesky_account(settings) else (),
    ),
    SourceSpec(
        "steam", "Steam", "Players' reviews of a game on Steam, found by the game's exact name.",
        price=lambda settings: Price(entries=100, token=1, quotes=False, threads=0),
        switched_on=lambda settings: settings.steam, by_name=True,
    ),
    SourceSpec(
        "news", "News", "Headlines of the last hours that name a product, from news sites in many languages.",
        # the feed, and every minute at which a list may be
        price=lambda settings: Price(entries=500, quotes=False, searches=1 + 4 * 8 * settings.news_hours, threads=0),
        switched_on=lambda settings: settings.news, by_name=True,
    ),
)})  # fmt: skip
"""Every source by its name, in the order of display."""
OWN_ITEMS = SourceLabel("items", "Your items", "Items that you handed in.")
"""Label of a caller's own items, see `api/sources/own_items.py`."""
ITEM_SOURCES: Mapping[str, SourceLabel] = MappingProxyType({**SOURCES, OWN_ITEMS.name: OWN_ITEMS})
"""Labels of everything that an item can come from."""
ARCHIVE = SourceLabel("archive", "The archive", "What is stored: earlier items, and imports.")
"""Label of the stored items, see `api/sources/archive_source.py`."""
ALL_SOURCES: Mapping[str, SourceLabel] = MappingProxyType({**ITEM_SOURCES, ARCHIVE.name: ARCHIVE})
"""Labels of everything that a report can name as a source."""
ASKABLE_SOURCES: tuple[str, ...] = (*SOURCES, ARCHIVE.name)
"""Names of the sources that a question can be put to."""
SOURCE_TITLES: Mapping[str, str] = MappingProxyType({name: label.title for name, label in ALL_SOURCES.items()})
*_others, _last = (spec.title for spec in SOURCES.values() if spec.switched_on is _always)
SOURCE_LIST = f"{', '.join(_others)} and {_last}"
"""The titles of those that need no switch, as text."""


def has_bluesky_account(settings: SourceSettings) -> bool:
    """Whether an account of Bluesky is named; then handle and app password must both be."""
    return any(setting_value(settings, name) for name in BLUESKY_ACCOUNT)


def check_askable(names: Iterable[str], known: Sequence[str] = ASKABLE_SOURCES) -> None:
    """Raise `UsageError` for a name that a question cannot be put to."""
    if unknown := _unknown(names, known):
        raise UsageError(unknown, field="sources")


def default_sources(settings: SourceSettings) -> tuple[str, ...]:
    """Sources of `LISTENPOST_SOURCES`, else the enabled ones; raises `ConfigurationError`."""
    names = {name.strip().lower() for name in (settings.sources or "").split(",")} - {""}
    if unknown := _unknown(sorted(names), tuple(SOURCES)):
        raise ConfigurationError(f"`LISTENPOST_SOURCES`: {unknown}")
    return tuple(name for name, spec in SOURCES.items() if (name in names if names else spec.switched_on(settings)))


def _unknown(names: Iterable[str], known: Sequence[str]) -> str:
    wrong = next((name for name in names if name not in known), None)
    listed = ", ".join(f"`{name}`" for name in known)
    return "" if wrong is None else f"there is no source `{wrong[:40]}`; there are {listed}"
