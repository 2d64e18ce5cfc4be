"""The settings of the sources."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings

from api.settings.value_types import (
    Feeds,
    Forums,
    Header,
    Root,
    Seconds,
    Servers,
    Sites,
    forums_in,
    group_config,
    names_in,
)


class SourceSettings(BaseSettings):
    """Addresses, keys, deadlines and page sizes of the sources."""

    model_config = group_config(
        "LISTENPOST_",
        "reddit_client_id reddit_client_secret reddit_user_agent reddit_url youtube_api_key "
        "youtube_url amazon_provider amazon_api_key amazon_url hackernews_url stackexchange_url "
        "github_url lemmy_url discourse_forums feeds bluesky bluesky_url bluesky_appview_url "
        "bluesky_handle bluesky_app_password bluesky_login_url steam steam_url news news_url",
    )

    sources: str | None = None
    """Comma-separated sources of a question that names none; unset: all that are switched on."""
    reddit_client_id: SecretStr | None = None
    """Id of a Reddit app; unset: Reddit is not asked."""
    reddit_client_secret: SecretStr | None = None
    """Secret of that app."""
    reddit_user_agent: str = "linux:listenpost:0.1 (product research)"
    """User agent of every Reddit request: program and contact, 7 characters or more."""
    reddit_url: Root | None = None
    """Root for both token and API; unset: Reddit's own two hosts."""
    youtube_api_key: SecretStr | None = None
    """Key of a Google project with YouTube Data API v3 on; unset: YouTube is not asked."""
    youtube_url: Root = "https://youtube.googleapis.com"
    """Root to which `/youtube/v3/...` is appended."""
    youtube_searches_per_day: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    """Searches a day of the key's Google project, counted over all processes on one database."""
    amazon_provider: Literal["html", "openwebninja", "omkar"] | None = None
    """Provider of Amazon's data; `html` reads its pages, against its terms; unset: none."""
    amazon_api_key: SecretStr | None = None
    """Key of a paid provider; `html` needs none."""
    amazon_url: Root | None = None
    """Root of the provider; unset: the provider's own host."""
    hackernews_url: Root = "https://hn.algolia.com"
    """Root of Algolia's search of Hacker News."""
    stackexchange_url: Root = "https://api.stackexchange.com"
    """Root of Stack Exchange's API."""
    stackexchange_sites: Sites = "superuser,softwarerecs,hardwarerecs"
    """Comma-separated sites, three at most; each costs one of 300 requests a day."""
    stackexchange_key: SecretStr | None = None
    """Free key of stackapps.com: 10,000 requests a day instead of 300."""
    github_url: Root = "https://api.github.com"
    """Root of GitHub's API."""
    github_token: SecretStr | None = None
    """Any token of GitHub: 30 searches a minute instead of 10, and comments of all kept issues."""
    lemmy_url: Root = "https://lemmy.world"
    """Root of the Lemmy server that is asked; a large one knows posts of most others."""
    discourse_forums: Forums = None
    """Comma-separated roots of Discourse forums, ten at most; unset: Discourse is not asked."""
    feeds: Feeds = None
    """Comma-separated addresses of feeds that everybody's questions read, 50 at most; unset: none."""
    bluesky: bool = False
    """Ask Bluesky also when a question names no source."""
    bluesky_url: Servers = "https://jetstream.us-east.bsky.network,https://jetstream.us-west.bsky.network"
    """Comma-separated roots of Jetstream servers; the next one is read where one is silent."""
    bluesky_version: Literal["v2", "v1"] | None = None
    """Version of Jetstream's frames; unset: v2, or v1 where a server does not know it."""
    bluesky_appview_url: Root = "https://public.api.bsky.app"
    """Root of the AppView, which has counts and replies of what was found."""
    bluesky_handle: str | None = None
    """Handle of an account of Bluesky, with whose app password questions of people are searched for, too."""
    bluesky_app_password: SecretStr | None = None
    """App password of that account."""
    bluesky_login_url: Root = "https://bsky.social"
    """Root of the server where that account logs in."""
    bluesky_seconds: Annotated[float, Field(ge=1, le=3600)] = 12.0
    """Seconds for which one question reads the stream; two fifths of the crawl's timeout at most."""
    bluesky_megabytes: Annotated[int, Field(ge=1, le=100_000)] = 256
    """MB of the stream that one question reads at most."""
    steam: bool = False
    """Ask Steam for reviews of games also when a question names no source."""
    steam_url: Root | None = None
    """Root for both the shop's search and the reviews; unset: Steam's own two hosts."""
    news: bool = False
    """Look for news articles also when a question names no source."""
    news_url: Root = "https://data.gdeltproject.org"
    """Root of the GDELT Project's files."""
    news_hours: Annotated[int, Field(ge=1, le=24)] = 6
    """Hours for which one question reads lists of articles back from the newest; about 12 of 200 KB an hour."""
    user_agent: Header = "listenpost (product research, on a person's question)"
    """User agent for sources that need no key; put your page or contact there."""
    source_timeout: Seconds = 8.0
    """Seconds for one request to a source."""
    provider_timeout: Seconds = 30.0
    """Seconds for one request to a paid Amazon provider, which answers slowly."""
    crawl_timeout: Seconds = 45.0
    """Seconds for all sources together, refetch and comments included."""
    page_ttl: Annotated[float, Field(ge=60, le=86_400)] = 900.0
    """Seconds for which a fetched page is reused, also by the refetch of the same run."""
    comments_per_item: Annotated[int, Field(ge=0, le=100)] = 20
    """Most comments or reviews that are read of a kept item; 0: none."""

    @property
    def forums(self) -> tuple[str, ...]:
        """Roots of the Discourse forums, each once."""
        return forums_in(self.discourse_forums)

    @property
    def jetstreams(self) -> tuple[str, ...]:
        """Roots of the Jetstream servers, each once."""
        return forums_in(self.bluesky_url)

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of the sites of Stack Exchange, each once."""
        return names_in(self.stackexchange_sites)
