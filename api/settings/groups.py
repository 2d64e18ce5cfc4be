"""The groups of settings, the three depths among them; each field is one variable.

How far back a question reaches.

The server that takes the e-mail of watches, as whom, and to whom.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from api.settings.addresses import (
    Forums,
    Header,
    MailAddress,
    MailServer,
    Root,
    Sites,
    is_mail_address,
)

Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
Count = Annotated[int, Field(ge=1, le=10_000)]


def named(prefix: str) -> SettingsConfigDict:
    """How a group reads its variables: frozen, from the environment and `.env`."""
    return SettingsConfigDict(
        env_prefix=prefix,
        env_file=".env",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
    )


def _native(name: str) -> AliasChoices:
    return AliasChoices(name)


class GeneralSettings(BaseSettings):
    """What runs, and against what."""

    model_config = named("LISTENPOST_")

    mode: Literal["auto", "live", "sandbox"] = "auto"
    """`sandbox` serves made-up posts on this machine; `auto` is `live`."""
    judge: Literal["openai", "local"] | None = None
    """Which judge answers; unset: `openai` when there is a key, else `local`."""
    fail_open: Literal["all", "local"] = "all"
    """What a failed judge means: keep all items, or let the local judge answer."""
    database_url: str | None = None
    """SQLAlchemy async URL of the store; unset: an SQLite file in the user's data directory."""
    api_keys: SecretStr | None = None
    """Comma-separated keys that may call the HTTP API; unset: loopback only."""
    cors_origins: str | None = None
    """Comma-separated origins whose pages may call the HTTP API; unset: this machine's, keyless."""
    notify_private: bool = False
    """Watches may also tell addresses within this network; anybody with a key could look there."""
    user_id: str | None = None
    """User on the spans of what nobody asks by name, see [Langfuse](langfuse.md)."""
    session_id: str | None = None
    """Session on the spans of what is no chat, see [Langfuse](langfuse.md)."""

    @field_validator("cors_origins")
    @classmethod
    def _origins(cls, origins: str | None) -> str | None:
        # what a browser sends: `https://app.example`, `http://localhost:5173`
        form = r"https?://(?:(?:[a-z0-9_-]+\.)*[a-z0-9_-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?"
        parts = origins.split(",") if origins else ()
        if not all(re.fullmatch(form, origin.strip()) for origin in parts):
            raise ValueError(
                "needs origins such as `https://app.example`, in small letters, without path or `*`"
            )
        return origins


class ModelSettings(BaseSettings):
    """The model server and how long it may take."""

    model_config = named("LISTENPOST_")

    openai_api_key: SecretStr | None = Field(None, validation_alias=_native("OPENAI_API_KEY"))
    """Key of the OpenAI-compatible server."""
    openai_base_url: str = Field(
        "https://api.openai.com/v1", validation_alias=_native("OPENAI_BASE_URL")
    )
    """Root of the server, `/v1` included."""
    filter_model: str = "gpt-4o-mini"
    """Judges relevance, grades and rewrites queries."""
    agent_model: str = "gpt-4o"
    """Writes the report and chats."""
    support_check: bool = True
    """Check each sentence of a report against the passages it cites, where there is a model."""
    support_model: str | None = None
    """Checks support; unset: the filter model."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    """How much a reasoning model thinks before it answers; unset: the server's own default."""
    model_concurrency: Count = 8
    """Model calls under way at once, over everything in the process."""
    scoring_timeout: Seconds = 15.0
    """Seconds for one relevance or grading call, retries included."""
    rewrite_timeout: Seconds = 30.0
    """Seconds for rewriting a query."""
    report_timeout: Seconds = 120.0
    """Seconds for the report writer, its follow-up calls included."""


class SourceSettings(BaseSettings):
    """Where the upstreams live and how long they may take."""

    model_config = named("LISTENPOST_")

    sources: str | None = None
    """Comma-separated places that a question is put to when it names none; unset: all."""
    reddit_client_id: SecretStr | None = Field(None, validation_alias=_native("REDDIT_CLIENT_ID"))
    """Id of a Reddit app."""
    reddit_client_secret: SecretStr | None = Field(
        None, validation_alias=_native("REDDIT_CLIENT_SECRET")
    )
    """Secret of that app."""
    reddit_user_agent: str = Field(
        "linux:listenpost:0.1 (product research)", validation_alias=_native("REDDIT_USER_AGENT")
    )
    """Sent with every Reddit request; Reddit wants it descriptive, 7 characters or more."""
    reddit_url: Root | None = Field(None, validation_alias=_native("REDDIT_URL"))
    """One root for token and API; unset: Reddit's own two hosts."""
    youtube_api_key: SecretStr | None = Field(None, validation_alias=_native("YOUTUBE_API_KEY"))
    """Key of a Google project with YouTube Data API v3 on."""
    youtube_url: Root = Field(
        "https://youtube.googleapis.com", validation_alias=_native("YOUTUBE_URL")
    )
    """Root to which `/youtube/v3/...` is appended."""
    youtube_searches_per_day: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    """Searches of the key's Google project in a day, by all processes on one database."""
    amazon_provider: Literal["html", "openwebninja", "omkar"] | None = Field(
        None, validation_alias=_native("AMAZON_PROVIDER")
    )
    """Who answers for Amazon; unset: Amazon is not asked (reading its pages is opt-in)."""
    amazon_api_key: SecretStr | None = Field(None, validation_alias=_native("AMAZON_API_KEY"))
    """Key of a paid provider; `html` needs none."""
    amazon_url: Root | None = Field(None, validation_alias=_native("AMAZON_URL"))
    """Root of the provider; unset: the provider's own host."""
    hackernews_url: Root = Field(
        "https://hn.algolia.com", validation_alias=_native("HACKERNEWS_URL")
    )
    """Root of Hacker News' search."""
    stackexchange_url: Root = Field(
        "https://api.stackexchange.com", validation_alias=_native("STACKEXCHANGE_URL")
    )
    """Root of Stack Exchange's API."""
    stackexchange_sites: Sites = "superuser,softwarerecs,hardwarerecs"
    """Comma-separated sites, three at most; each is one of 300 requests a day."""
    stackexchange_key: SecretStr | None = None
    """Free key of stackapps.com: 10,000 requests a day instead of 300."""
    github_url: Root = Field("https://api.github.com", validation_alias=_native("GITHUB_URL"))
    """Root of GitHub's API."""
    github_token: SecretStr | None = None
    """Any token of GitHub: 30 searches a minute instead of 10, and comments of all kept issues."""
    lemmy_url: Root = Field("https://lemmy.world", validation_alias=_native("LEMMY_URL"))
    """Root of the Lemmy server that is asked; large ones see most of the others."""
    discourse_forums: Forums = Field(None, validation_alias=_native("DISCOURSE_FORUMS"))
    """Comma-separated roots of Discourse forums, ten at most; unset: none is asked."""
    user_agent: Header = "listenpost (product research, on a person's question)"
    """Sent to places that need no key; put your page or contact there."""
    source_timeout: Seconds = 8.0
    """Seconds for one upstream request."""
    provider_timeout: Seconds = 30.0
    """Seconds for one request to a paid Amazon provider, which are slow."""
    crawl_timeout: Seconds = 45.0
    """Seconds for all sources together, refetch and comments included."""
    page_ttl: Annotated[float, Field(ge=60, le=86_400)] = 900.0
    """Seconds a fetched page may be reused, the refetch of one run included."""
    comments_per_item: Annotated[int, Field(ge=0, le=100)] = 20
    """Comments or reviews read per kept item."""


class AdaptiveSettings(BaseSettings):
    """When and how a source is fetched a second time."""

    model_config = named("LISTENPOST_")

    min_yield: Share = 0.5
    """Refetch when a smaller share of a full batch was relevant; 0: never."""
    refetch_factor: Annotated[int, Field(ge=2, le=4)] = 2
    """How many times wider the second fetch is."""
    second_look: bool = False
    """Read the comments of one dropped item when a source gave little: one request more."""


class RetrievalSettings(BaseSettings):
    """Searching the archive, and reranking and diversity everywhere; each has an off switch."""

    model_config = named("LISTENPOST_RETRIEVAL_")

    guardrails_enable: bool = True
    """Off: floors, rerank and diversity do nothing."""
    min_content_tokens: Annotated[int, Field(ge=0, le=10)] = 3
    """Words with a meaning that a text in a chat needs when it names nothing; 0: any will do."""
    k: Annotated[int, Field(ge=1, le=50)] = 8
    """Entries of the archive that a search shows at most."""
    vector_weight: Share = 0.65
    """Share of likeness of meaning in a combined score; the rest is that of words."""
    score_floor: Share = 0.45
    """Combined score a hit needs, and relevance from which reranking is worth it; 0: any."""
    vector_floor: Share = 0.15
    """Normalised likeness a hit needs; 0: any."""
    allow_keyword_top1_override: bool = True
    """The best hit by words passes that floor when its normalised score is 0.9 or more."""
    keyword_floor: Annotated[float, Field(ge=0, le=2)] = 0.5
    """Normalised score from which the strongest hit by words is kept; over 1: never."""
    evidence_floor: Share = 0.65
    """Share of a question's words, the rarer the heavier, that one entry must hold, and each of the
    others half of; 0: any."""
    min_cosine: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Raw likeness below which a hit must reach `min_bm25`; 0: none."""
    min_bm25: Annotated[float, Field(ge=0, le=1000)] = 0.0
    """Raw score by words below which a hit must reach `min_cosine`; 0: none."""
    rerank_enable: bool = True
    """Opportunistic reranking, in deep and in the archive."""
    rerank_window: Count = 20
    """How many of the best are reranked."""
    rerank_trigger_max: Share = 0.60
    """And only when the best is below this: when the order is in doubt."""
    rerank_timeout: Seconds = 2.0
    """Seconds after which the archive's order stays as it was."""
    low_relevance_below: Share = 0.50
    """Combined score below which a hit is marked `low_relevance`; 0: off."""
    cache_seconds: Annotated[float, Field(ge=0, le=3600)] = 180.0
    """Seconds for which the same search gives the same answer; 0: none."""


class RankingSettings(BaseSettings):
    """How kept items are ordered and cut."""

    model_config = named("LISTENPOST_")

    relevance_threshold: Share | None = None
    """Relevance (0 to 1) an item needs beside the cutoff; unset: off."""
    rerank_top_k: Count | None = None
    """Exhibits the writer sees; unset: the depth's `max_evidence`."""
    rerank_weight_source: Literal["auto", "low", "medium", "high"] = "auto"
    """How much a source's weight counts: low 1.0, medium 1.05, high 1.1, auto by host."""
    diversity_max: Annotated[int, Field(ge=0, le=50)] = 2
    """Items per thread, channel, product or author before others; 0: off."""
    diversity_delta: Share = 0.15
    """A larger drop in relevance is not bridged for diversity's sake."""
    duplicate_similarity: Annotated[float, Field(ge=0, le=100)] = 92.0
    """Text similarity (percent) from which two items are copies; 0: off."""
    low_relevance_below: Share = 0.51
    """Relevance below which an item is marked `low_relevance`; 0: off."""
    words_per_item: Count = 40
    """Words of report per surviving item; halved for a short report."""


class LimitSettings(BaseSettings):
    """What one API key may ask for; 0 switches a limit off."""

    model_config = named("LISTENPOST_LIMIT_")

    requests_per_minute: Annotated[int, Field(ge=0, le=100_000)] = 60
    """Requests of one key in one minute."""
    analyses_per_day: Annotated[int, Field(ge=0, le=1_000_000)] = 200
    """Analyses of one key in one day (UTC)."""
    usd_per_day: Annotated[float, Field(ge=0, le=100_000)] = 5.0
    """USD that models may cost one key in one day (UTC)."""
    at_once: Annotated[int, Field(ge=0, le=10_000)] = 8
    """Requests that work at once, of all keys; one key has half of them at most."""
    waiting: Annotated[int, Field(ge=0, le=100_000)] = 64
    """Requests of one key that wait for their turn."""


class StreamSettings(BaseSettings):
    """What a client that reads events over HTTP can rely on."""

    model_config = named("LISTENPOST_STREAM_")

    keepalive: Seconds = 15.0
    """Seconds between two comments that keep a silent connection open."""
    grace: Annotated[float, Field(ge=0, le=3600)] = 30.0
    """Seconds an analysis runs on after the last connection to it was lost; 0: none."""


class ChatSettings(BaseSettings):
    """How far one turn of a chat may go; what is found by then is what the answer rests on."""

    model_config = named("LISTENPOST_CHAT_")

    tool_calls: Annotated[int, Field(ge=1, le=50)] | None = None
    """Sources one turn may ask, an overview each of them; unset: each twice, six at least."""
    tokens: Annotated[int, Field(ge=1000, le=2_000_000)] = 60_000
    """Tokens of one turn, sent and received, judging included."""
    seconds: Seconds = 60.0
    """Seconds for one turn."""


class Depth(BaseSettings):
    """How far one question goes; the three depths differ in numbers only."""

    limit: Count = 10
    """Items asked per source at first."""
    max_evidence: Count = 30
    """Kept items the writer sees at most."""
    min_sources_full_report: Count = 4
    """Survivors for a full report."""
    min_sources_short_report: Count = 2
    """Survivors for a short report."""
    relevance_cutoff: Annotated[int, Field(ge=1, le=5)] = 3
    """Grade an item needs."""
    query_variants: Annotated[int, Field(ge=1, le=5)] = 1
    """Queries asked at once, the original included."""
    retry_variants: Annotated[int, Field(ge=1, le=5)] = 1
    """Queries asked when the first pass is insufficient, the original included; 1: none."""
    rerank: bool = False
    """Opportunistic reranking runs."""
    diversity: bool = True
    """Diversity runs."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        order = "min_sources_short_report", "min_sources_full_report", "max_evidence"
        numbers = [getattr(self, name) for name in order]
        if numbers != sorted(numbers):
            raise ValueError(f"needs {' <= '.join(order)}")
        return self


class QuickDepth(Depth):
    """A look: five items a source, one query."""

    model_config = named("LISTENPOST_QUICK_")
    limit: Count = 5
    max_evidence: Count = 15
    min_sources_full_report: Count = 3
    min_sources_short_report: Count = 1
    diversity: bool = False


class StandardDepth(Depth):
    """The default of `analyze`."""

    model_config = named("LISTENPOST_STANDARD_")
    retry_variants: Annotated[int, Field(ge=1, le=5)] = 3


class DeepDepth(Depth):
    """Wide: three queries, sixty exhibits."""

    model_config = named("LISTENPOST_DEEP_")
    limit: Count = 25
    max_evidence: Count = 60
    min_sources_full_report: Count = 5
    query_variants: Annotated[int, Field(ge=1, le=5)] = 3
    rerank: bool = True


_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


def _receivers(text: str) -> str:
    if not all(is_mail_address(f"a{name}" if name[0] == "@" else name) for name in _names(text)):
        raise ValueError("needs addresses or domains such as `ann@example.org, @example.com`")
    return text


def _names(text: str) -> list[str]:
    return [name.strip().lower() for name in text.split(",") if name.strip()]


class MailSettings(BaseSettings):
    """E-mail to those whom watches tell; without a host and a sender none is sent."""

    model_config = named("LISTENPOST_SMTP_")

    host: MailServer | None = None
    """Server that takes the mail; unset: none is sent."""
    port: Annotated[int, Field(ge=1, le=65_535)] | None = None
    """Its port; unset: 587, 465 with `implicit`, 25 with `none`."""
    tls: Literal["starttls", "implicit", "none"] = "starttls"
    """How the connection is encrypted; `none` only for a server that needs no password, or here."""
    user: str | None = None
    """Who logs in there; unset: nobody does."""
    password: SecretStr | None = None
    """Secret of that user."""
    sender: MailAddress | None = Field(None, validation_alias=AliasChoices("LISTENPOST_SMTP_FROM"))
    """Address that the mail comes from."""
    receivers: Annotated[str, AfterValidator(_receivers)] | None = Field(
        None, validation_alias=AliasChoices("LISTENPOST_SMTP_TO")
    )
    """Comma-separated addresses and `@domains` that may be told; unset: all."""

    def allows(self, address: str) -> bool:
        """Whether mail may go to this address."""
        names, lowered = _names(self.receivers or ""), address.lower()
        return not names or lowered in names or lowered[lowered.index("@") :] in names

    @model_validator(mode="after")
    def _logged_in(self) -> Self:
        names = "`LISTENPOST_SMTP_USER` and `LISTENPOST_SMTP_PASSWORD`"
        secret = self.password and self.password.get_secret_value()
        if bool(self.user) != bool(secret):
            raise ValueError(f"{names} come together; set both or none")
        if not f"{self.user}{secret}".isascii():
            raise ValueError(f"{names} take ASCII alone, as the servers do")
        if secret and self.tls == "none" and self.host not in _HERE:
            raise ValueError("`LISTENPOST_SMTP_TLS` of `none` would show the password to all")
        return self
