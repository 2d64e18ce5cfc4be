"""Every setting with its default and unit, read from the environment and `.env`.

Groups are frozen; each field is one variable, named group prefix + field. Names that start with
`LISTENPOST_` and are not here are refused by `load`, with the nearest valid name.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import AliasChoices, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, DotEnvSettingsSource, SettingsConfigDict

DepthName = Literal["quick", "standard", "deep"]
Window = Literal["day", "week", "month", "year", "all"]
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
Count = Annotated[int, Field(ge=1, le=10_000)]


def _group(prefix: str) -> SettingsConfigDict:
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

    model_config = _group("LISTENPOST_")

    mode: Literal["auto", "live", "sandbox"] = "auto"
    """`auto` is the offline sandbox until a source is configured."""
    judge: Literal["openai", "local"] | None = None
    """Which judge answers; unset: `openai` when there is a key, else `local`."""
    fail_open: Literal["all", "local"] = "all"
    """What a failed judge means: keep all items, or let the local judge answer."""
    database_url: str | None = None
    """SQLAlchemy async URL of the store; unset: an SQLite file in the user's data directory."""
    api_keys: SecretStr | None = None
    """Comma-separated keys that may call the HTTP API; unset: loopback only."""
    user_id: str | None = None
    """Written on every span as the user."""
    session_id: str | None = None
    """Written on every span as the session."""


class ModelSettings(BaseSettings):
    """The model server and how long it may take."""

    model_config = _group("LISTENPOST_")

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

    model_config = _group("LISTENPOST_")

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
    reddit_url: str | None = Field(None, validation_alias=_native("REDDIT_URL"))
    """One root for token and API; unset: Reddit's own two hosts."""
    youtube_api_key: SecretStr | None = Field(None, validation_alias=_native("YOUTUBE_API_KEY"))
    """Key of a Google project with YouTube Data API v3 on."""
    youtube_url: str = Field(
        "https://youtube.googleapis.com", validation_alias=_native("YOUTUBE_URL")
    )
    """Root to which `/youtube/v3/...` is appended."""
    amazon_provider: Literal["html", "openwebninja", "omkar"] | None = Field(
        None, validation_alias=_native("AMAZON_PROVIDER")
    )
    """Who answers for Amazon; unset: Amazon is not asked (reading its pages is opt-in)."""
    amazon_api_key: SecretStr | None = Field(None, validation_alias=_native("AMAZON_API_KEY"))
    """Key of a paid provider; `html` needs none."""
    amazon_url: str | None = Field(None, validation_alias=_native("AMAZON_URL"))
    """Root of the provider; unset: the provider's own host."""
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

    model_config = _group("LISTENPOST_")

    min_yield: Share = 0.5
    """Refetch when a smaller share of a full batch was relevant; 0: never."""
    refetch_factor: Annotated[int, Field(ge=2, le=4)] = 2
    """How many times wider the second fetch is."""


class RetrievalSettings(BaseSettings):
    """Floors, reranking and diversity; each has an off switch."""

    model_config = _group("LISTENPOST_RETRIEVAL_")

    guardrails_enable: bool = True
    """Off: floors, rerank and diversity do nothing."""
    min_content_tokens: Annotated[int, Field(ge=0, le=20)] = 3
    """Content words an archive question needs; 0: any."""
    score_floor: Share = 0.45
    """Combined score an archive hit needs; 0: off."""
    vector_floor: Share = 0.15
    """Vector score an archive hit needs; 0: off."""
    allow_keyword_top1_override: bool = True
    """The best keyword hit at 0.9 or more passes without the vector floor."""
    rerank_enable: bool = True
    """Opportunistic reranking in deep."""
    rerank_window: Count = 20
    """How many of the best are reranked."""
    rerank_trigger_max: Share = 0.60
    """Rerank only when the best relevance is below this (and at or above the floor)."""


class RankingSettings(BaseSettings):
    """How kept items are ordered and cut."""

    model_config = _group("LISTENPOST_")

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


class TracingSettings(BaseSettings):
    """Langfuse; without keys nothing is imported or sent."""

    model_config = _group("LISTENPOST_")

    langfuse_public_key: str | None = Field(None, validation_alias=_native("LANGFUSE_PUBLIC_KEY"))
    """Public key of the Langfuse project."""
    langfuse_secret_key: SecretStr | None = Field(
        None, validation_alias=_native("LANGFUSE_SECRET_KEY")
    )
    """Secret key of the Langfuse project."""
    langfuse_base_url: str = Field(
        "https://cloud.langfuse.com", validation_alias=_native("LANGFUSE_BASE_URL")
    )
    """Root of the Langfuse server."""
    trace_environment: str = "default"
    """Langfuse environment of the traces (lower case, no `langfuse` prefix)."""
    trace_flush_timeout: Seconds = 2.0
    """Seconds the exit waits for traces."""


class _Depth(BaseSettings):
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
        short, full, most = (
            self.min_sources_short_report,
            self.min_sources_full_report,
            self.max_evidence,
        )
        if not short <= full <= most:
            raise ValueError(
                "needs min_sources_short_report <= min_sources_full_report <= max_evidence"
            )
        return self


class QuickDepth(_Depth):
    """A look: five items a source, one query."""

    model_config = _group("LISTENPOST_QUICK_")
    limit: Count = 5
    max_evidence: Count = 15
    min_sources_full_report: Count = 3
    min_sources_short_report: Count = 1
    diversity: bool = False


class StandardDepth(_Depth):
    """The default of `analyze`."""

    model_config = _group("LISTENPOST_STANDARD_")
    retry_variants: Annotated[int, Field(ge=1, le=5)] = 3


class DeepDepth(_Depth):
    """Wide: three queries, sixty exhibits."""

    model_config = _group("LISTENPOST_DEEP_")
    limit: Count = 25
    max_evidence: Count = 60
    min_sources_full_report: Count = 5
    query_variants: Annotated[int, Field(ge=1, le=5)] = 3
    rerank: bool = True


Depth = _Depth

GROUPS: tuple[type[BaseSettings], ...] = (
    GeneralSettings, ModelSettings, SourceSettings, AdaptiveSettings, RetrievalSettings,
    RankingSettings, TracingSettings, QuickDepth, StandardDepth, DeepDepth,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """All groups together; see each for its fields."""

    general: GeneralSettings
    models: ModelSettings
    sources: SourceSettings
    adaptive: AdaptiveSettings
    retrieval: RetrievalSettings
    ranking: RankingSettings
    tracing: TracingSettings
    depths: Mapping[DepthName, Depth]


def variable(group: type[BaseSettings], field: str) -> str:
    """The environment variable of one field."""
    alias = group.model_fields[field].validation_alias
    if isinstance(alias, AliasChoices):
        return str(alias.choices[0])
    return (group.model_config.get("env_prefix", "") + field).upper()


def variables() -> dict[str, tuple[type[BaseSettings], str]]:
    """Every variable: name -> its group and field, in reading order."""
    return {
        variable(group, field): (group, field) for group in GROUPS for field in group.model_fields
    }


def load() -> Settings:
    """Read the environment and `.env` of the working directory; the environment wins.

    Raises:
        ValueError: an unknown `LISTENPOST_*` name or a malformed value, named with its remedy.
    """
    _refuse_unknown()
    try:
        return Settings(
            GeneralSettings(), ModelSettings(), SourceSettings(), AdaptiveSettings(),
            RetrievalSettings(), RankingSettings(), TracingSettings(),
            {"quick": QuickDepth(), "standard": StandardDepth(), "deep": DeepDepth()},
        )  # fmt: skip
    except ValidationError as error:
        raise ValueError(_explain(error)) from None


def _refuse_unknown() -> None:
    known = variables()
    dotenv = DotEnvSettingsSource(GeneralSettings, env_file=".env", case_sensitive=False)
    names = {*(str(name).upper() for name in dotenv.env_vars), *(n.upper() for n in os.environ)}
    for name in sorted(names):
        if name.startswith("LISTENPOST_") and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0)
            raise ValueError(f"`{name}` is no setting; the nearest is `{near[0]}`")


def _explain(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False)[0]
    group = next((g for g in GROUPS if g.__name__ == error.title), None)
    where = str(first["loc"][0]) if first["loc"] else ""
    if group is not None and where in group.model_fields:
        where = variable(group, where)
    elif not where and group is not None:
        where = str(group.model_config.get("env_prefix", "")) + "*"
    return f"`{where}`: {first['msg']}"
