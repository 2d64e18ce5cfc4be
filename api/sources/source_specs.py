"""What the house knows of a place before its client is loaded: `SourceSpec`.

Hacker News: stories and comments, by Algolia's search.

Stack Exchange: questions of up to three of its sites, with their answers.

GitHub: issues of everything that has a repository, with their comments.

Lemmy: posts and comments of the federation, as one of its servers sees them.

Discourse: the forums that the person names, each a server of its own.

Reddit: submissions of all of it, and their comments.

YouTube: videos and their comments, by the Data API.

Amazon: products and their buyers' reviews, from its own pages or a paid provider.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from api.core.display_names import SourceLabel
from api.errors import NotConfigured

if TYPE_CHECKING:
    from api.core.ports import Source
    from api.features.analyses.store_ports import SourceMemory
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
class SourceSpec(SourceLabel):
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
        return tuple(name for name in self.needs(settings) if not setting_value(settings, name))

    def configured(self, settings: SourceSettings) -> bool:
        """Whether it can be built."""
        return not self.missing(settings)

    async def left(self, settings: SourceSettings, memory: SourceMemory) -> int | None:
        """Searches left today, None where nobody counts; the place is not asked."""
        if not self.counter:
            return None
        left: int | None = await import_module(self.counter).searches_of(settings, memory).left()
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


def setting_value(settings: SourceSettings, variable: str) -> str:
    """What a variable is set to, without blanks around it; empty when it is not set."""
    from pydantic import SecretStr

    value = getattr(settings, variable.lower())
    text: str | None = value.get_secret_value() if isinstance(value, SecretStr) else value
    return (text or "").strip()


HACKERNEWS_NAME = "hackernews"
HACKERNEWS = SourceSpec(
    name=HACKERNEWS_NAME,
    title="Hacker News",
    description="Stories and comments on Hacker News about a technical product or a launch.",
    page="docs/sources/hackernews.md",
    variables=(),
    address="HACKERNEWS_URL",
    module="api.sources.hackernews",
    price=lambda settings: Price(entries=100, phrases=True),
)


STACKEXCHANGE_NAME = "stackexchange"
SITES = "LISTENPOST_STACKEXCHANGE_SITES"
"""The setting that names the sites."""


def key_of(settings: SourceSettings) -> str:
    """The key without blanks around it; empty when there is none."""
    key = settings.stackexchange_key
    return key.get_secret_value().strip() if key else ""


def _stackexchange_price(settings: SourceSettings) -> Price:
    from api.settings.value_types import sites_in

    sites = len(sites_in(settings.stackexchange_sites))
    return Price(entries=100, phrases=True, searches=sites, threads=sites)


STACKEXCHANGE = SourceSpec(
    name=STACKEXCHANGE_NAME,
    title="Stack Exchange",
    description="Questions and answers on Stack Exchange: problems with devices and software.",
    page="docs/sources/stackexchange.md",
    variables=(),
    address="STACKEXCHANGE_URL",
    module="api.sources.stackexchange",
    price=_stackexchange_price,
)


GITHUB_NAME = "github"
TOKEN = "LISTENPOST_GITHUB_TOKEN"
"""The setting that holds a token."""
THREADS = 5
"""Issues whose comments are read without a token: each takes one of 60 requests an hour."""


def token_of(settings: SourceSettings) -> str:
    """The token without blanks around it; empty when there is none."""
    token = settings.github_token
    return token.get_secret_value().strip() if token else ""


GITHUB = SourceSpec(
    name=GITHUB_NAME,
    title="GitHub",
    description="GitHub issues with their comments: bugs and wishes of whatever has a repository.",
    page="docs/sources/github.md",
    variables=(),
    address="GITHUB_URL",
    module="api.sources.github",
    price=lambda settings: Price(
        entries=100, phrases=True, threads=None if token_of(settings) else THREADS
    ),
)


LEMMY_NAME = "lemmy"
LEMMY = SourceSpec(
    name=LEMMY_NAME,
    title="Lemmy",
    description="Posts and comments about a product on Lemmy, a federation of forums.",
    page="docs/sources/lemmy.md",
    variables=(),
    address="LEMMY_URL",
    module="api.sources.lemmy",
    price=lambda settings: Price(entries=50, token=1, quotes=False, searches=2),
)


DISCOURSE_NAME = "discourse"


def _discourse_price(settings: SourceSettings) -> Price:
    from api.settings.value_types import forums_in

    return Price(entries=50, phrases=True, searches=len(forums_in(settings.discourse_forums)))


DISCOURSE = SourceSpec(
    name=DISCOURSE_NAME,
    title="Discourse",
    description="Topics and posts about a product in the Discourse forums of the settings.",
    page="docs/sources/discourse.md",
    variables=("DISCOURSE_FORUMS",),
    address="DISCOURSE_FORUMS",
    module="api.sources.discourse",
    price=_discourse_price,
)


REDDIT_NAME = "reddit"
REDDIT = SourceSpec(
    name=REDDIT_NAME,
    title="Reddit",
    description="Reddit posts about a product, with their best voted comments.",
    page="docs/sources/reddit.md",
    variables=("REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET"),
    address="REDDIT_URL",
    module="api.sources.reddit",
    price=lambda settings: Price(entries=100, token=1),
)


YOUTUBE_NAME = "youtube"
YOUTUBE = SourceSpec(
    name=YOUTUBE_NAME,
    title="YouTube",
    description="Videos about a product, with comments; a call may cost one of 100 daily searches.",
    page="docs/sources/youtube.md",
    variables=("YOUTUBE_API_KEY",),
    address="YOUTUBE_URL",
    module="api.sources.youtube",
    price=lambda settings: Price(entries=50, details=50, counted=True),
    counter="api.sources.youtube_answers",
)


AMAZON_NAME = "amazon"


def _key(settings: SourceSettings) -> tuple[str, ...]:
    """Every provider but Amazon's own pages is paid, and knows its customers by a key."""
    free = settings.amazon_provider in {None, "html"}
    return () if free else ("AMAZON_API_KEY",)


AMAZON = SourceSpec(
    name=AMAZON_NAME,
    title="Amazon",
    description="Ratings and buyers' reviews of products on Amazon. Not for topics nobody sells.",
    page="docs/sources/amazon.md",
    variables=("AMAZON_PROVIDER",),
    address="AMAZON_URL",
    module="api.sources.amazon",
    price=lambda settings: Price(entries=10, quotes=False),
    further=_key,
)
