"""Every setting with its default and unit, read from the environment and `.env`.

Groups are frozen; each field is one variable, named group prefix + field. Names that start with
`LISTENPOST_` and are not here are refused by `load`, with the nearest valid name.
"""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

import platformdirs
from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, DotEnvSettingsSource

from api.choices import DepthName, ReplayJudge
from api.settings.langfuse_group import TracingSettings as TracingSettings
from api.settings.source_group import SourceSettings as SourceSettings
from api.settings.value_types import (
    Count,
    MailAddress,
    MailServer,
    MailTargets,
    ModelPrices,
    Networks,
    Origins,
    Root,
    RootPath,
    Seconds,
    Share,
    group_config,
    model_prices_in,
    names_in,
)

_log = logging.getLogger(__name__)


class GeneralSettings(BaseSettings):
    """Mode, judge, database and access."""

    model_config = group_config("LISTENPOST_")

    mode: Literal["auto", "live", "sandbox"] = "auto"
    """`live` asks the sources, `sandbox` made-up ones on this machine; `auto` is `live`."""
    judge: Literal["openai", "local"] | None = None
    """Judge of relevance; unset: `openai` when there is a key, else `local`."""
    fail_open: Literal["all", "local"] = "all"
    """What happens when the judge fails: keep all items, or use the local judge."""
    database_url: str | None = None
    """`sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/NAME`; unset: a file of the user."""
    api_keys: SecretStr | None = None
    """Comma-separated keys that may call the HTTP API; unset: loopback only."""
    cors_origins: Origins | None = None
    """Comma-separated origins whose pages may call the HTTP API; unset: this machine's."""
    trusted_proxies: Networks | None = None
    """Comma-separated addresses or networks of proxies whose `X-Forwarded-For` is believed; unset: none."""
    notify_private: bool = False
    """Let watches notify addresses in this network, which lets anybody with a key probe it."""
    root_path: RootPath | None = None
    """Path below which a proxy serves this server, whether the proxy removes it or not; unset: none."""
    public_url: Root | None = None
    """Address of this server for readers of Slack and mail; unset: their messages have no links to correct posts."""
    user_id: str | None = None
    """Langfuse user of requests that name none, see [Langfuse](langfuse.md)."""
    session_id: str | None = None
    """Langfuse session of requests outside a chat, see [Langfuse](langfuse.md)."""


class ModelSettings(BaseSettings):
    """The model server, its models and their deadlines."""

    model_config = group_config("LISTENPOST_", "openai_api_key openai_base_url")

    openai_api_key: SecretStr | None = None
    """Key of the OpenAI-compatible server; unset: no model is used."""
    openai_base_url: str = "https://api.openai.com/v1"
    """Root of that server, `/v1` included."""
    filter_model: str = "gpt-4o-mini"
    """Model that judges relevance, grades items and rewrites queries."""
    correction_examples: Annotated[int, Field(ge=0, le=20)] = 8
    """Corrections of the same question shown to the model as examples, in one call; 0: none."""
    agent_model: str = "gpt-4o"
    """Model that writes reports and chats."""
    support_check: bool = True
    """Check each sentence of a report against the passages it cites, if there is a model."""
    support_model: str | None = None
    """Model for that check; unset: the filter model."""
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    """Reasoning effort that is asked of the model; unset: the server's default."""
    model_context: Annotated[int, Field(ge=512, le=10_000_000)] | None = None
    """Tokens of prompt and answer together that the server takes; unset: learnt from a refusal."""
    model_prices: ModelPrices | None = None
    """`MODEL=IN/OUT, ...` in USD per million tokens, `*` for all others; unset: list prices."""
    order_check: Share = 0.0
    """Share of the judged pages that are judged again in another order, as a Langfuse score."""
    agreement: Annotated[float, Field(ge=0.7, le=0.99)] | None = None
    """Least share of the local judge's and the model's verdicts together that equal the model's; see
    `api/pipeline/gate/cascade.py`. Unset: the model judges every item."""
    agreement_risk: Annotated[float, Field(gt=0, le=0.5)] = 0.05
    """Probability with which that share may be missed."""
    model_concurrency: Count = 8
    """Model calls at once in the whole process."""
    scoring_timeout: Seconds = 15.0
    """Seconds for one relevance or grading call, retries included."""
    rewrite_timeout: Seconds = 30.0
    """Seconds for rewriting a query."""
    report_timeout: Seconds = 120.0
    """Seconds for the report writer, its follow-up calls included."""

    @property
    def stated_prices(self) -> dict[str, tuple[float, float]]:
        """USD per million tokens in and out, by model; `*` for all others."""
        return model_prices_in(self.model_prices)


class EmbeddingSettings(BaseSettings):
    """A server whose vectors compare entries of the archive with questions."""

    model_config = group_config("LISTENPOST_EMBEDDINGS_")

    model: Annotated[str, Field(pattern=r"^[A-Za-z0-9._/:@+-]{1,150}$")] | None = None
    """Model that makes the archive's vectors; unset: the word vectors of this machine."""
    url: Root | None = None
    """Root of an OpenAI-compatible server of embeddings, `/v1` included; unset: that of the models, with its key."""
    key: SecretStr | None = None
    """Key of that server; unset: none is sent to an address that is set here."""
    dimensions: Annotated[int, Field(ge=64, le=3_968, multiple_of=64)] | None = None
    """Dimensions that the server is asked for; unset: those that the model has."""
    timeout: Seconds = 5.0
    """Seconds for the vector of a question, retries included; later words alone are searched."""


class AdaptiveSettings(BaseSettings):
    """When and how a source is fetched a second time."""

    model_config = group_config("LISTENPOST_")

    min_yield: Share = 0.5
    """Fetch again when a smaller share of a full batch was relevant; 0: never."""
    refetch_factor: Annotated[int, Field(ge=2, le=4)] = 2
    """Items asked for by the second fetch, as a multiple of the first."""
    second_look: bool = False
    """Read the comments of one dropped item when a source gave little; costs one request."""


class RetrievalSettings(BaseSettings):
    """Search of the archive, and reranking and diversity everywhere."""

    model_config = group_config("LISTENPOST_RETRIEVAL_")

    guardrails_enable: bool = True
    """Use floors, reranking and diversity."""
    min_content_tokens: Annotated[int, Field(ge=0, le=10)] = 3
    """Content words that a chat text without a name needs to be searched for; 0: none."""
    k: Annotated[int, Field(ge=1, le=50)] = 8
    """Most entries that a search of the archive shows."""
    vector_weight: Share = 0.65
    """Share of vector similarity in the combined score; the rest is the keyword score."""
    score_floor: Share = 0.45
    """Combined score a hit needs, and least relevance for reranking; 0: any."""
    vector_floor: Share = 0.15
    """Normalised vector similarity a hit needs; 0: any."""
    allow_keyword_top1_override: bool = True
    """Let the best keyword hit pass that floor when its normalised score is 0.9 or more."""
    keyword_floor: Annotated[float, Field(ge=0, le=2)] = 0.5
    """Normalised score from which the best keyword hit is kept; above 1: never."""
    evidence_floor: Share = 0.7
    """Share of a question's words (by rarity) that one hit must hold, the others half; 0: any."""
    min_cosine: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Cosine similarity below which a hit must reach `min_bm25`; 0: none."""
    min_bm25: Annotated[float, Field(ge=0, le=1000)] = 0.0
    """BM25 score below which a hit must reach `min_cosine`; 0: none."""
    rerank_enable: bool = True
    """Rerank at depth `deep` and in the archive, when the order is in doubt."""
    rerank_window: Count = 20
    """Best entries that are reranked."""
    rerank_trigger_max: Share = 0.60
    """Rerank only when the best entry's score is below this."""
    rerank_timeout: Seconds = 2.0
    """Seconds for reranking the archive's hits; later the order stays."""
    answer_check: bool = True
    """Ask the model, if there is one, about the eight best entries where none holds enough of the words."""
    low_relevance_below: Share = 0.50
    """Combined score below which a hit is marked `low_relevance`; 0: off."""
    cache_seconds: Annotated[float, Field(ge=0, le=3600)] = 180.0
    """Seconds for which the answer to the same search is reused; 0: none."""


class RankingSettings(BaseSettings):
    """Order and selection of kept items."""

    model_config = group_config("LISTENPOST_")

    relevance_threshold: Share | None = None
    """Relevance (0 to 1) that an item needs beside the cutoff; unset: any."""
    rerank_top_k: Count | None = None
    """Most exhibits for the writer; unset: the depth's `max_evidence`."""
    rerank_weight_source: Literal["auto", "low", "medium", "high"] = "auto"
    """Weight of sources in the order: low 1.0, medium 1.05, high 1.1, auto by host."""
    diversity_max: Annotated[int, Field(ge=0, le=50)] = 2
    """Most items of one thread, channel, product or author before others; 0: any."""
    diversity_delta: Share = 0.15
    """Most relevance that diversity may cost a place in the order."""
    duplicate_similarity: Annotated[float, Field(ge=0, le=100)] = 92.0
    """Text similarity in percent from which two items are copies; 0: never."""
    low_relevance_below: Share = 0.51
    """Relevance below which an item is marked `low_relevance`; 0: none."""
    words_per_item: Count = 40
    """Words of report for each surviving item; half of it in a short report."""


class LimitSettings(BaseSettings):
    """Limits of one API key; 0 turns a limit off."""

    model_config = group_config("LISTENPOST_LIMIT_")

    requests_per_minute: Annotated[int, Field(ge=0, le=100_000)] = 60
    """Requests of one key a minute."""
    analyses_per_day: Annotated[int, Field(ge=0, le=1_000_000)] = 200
    """Analyses of one key a day (UTC)."""
    usd_per_day: Annotated[float, Field(ge=0, le=100_000)] = 5.0
    """USD for models of one key a day (UTC)."""
    at_once: Annotated[int, Field(ge=0, le=10_000)] = 8
    """Requests of all keys that are worked on at once; one key has half of them at most."""
    waiting: Annotated[int, Field(ge=0, le=100_000)] = 64
    """Requests of one key that may wait for their turn."""


class StreamSettings(BaseSettings):
    """Limits and pings of server-sent events over HTTP."""

    model_config = group_config("LISTENPOST_STREAM_")

    keepalive: Seconds = 15.0
    """Seconds between two comments that keep a silent connection open."""
    grace: Annotated[float, Field(ge=0, le=3600)] = 30.0
    """Seconds for which an analysis runs on after its last connection was lost; 0: none."""


class ChatSettings(BaseSettings):
    """Limits of one chat turn; the answer rests on what was found until one is reached."""

    model_config = group_config("LISTENPOST_CHAT_")

    tool_calls: Annotated[int, Field(ge=1, le=50)] | None = None
    """Tool calls of one turn; unset: two for each source, six at least."""
    tokens: Annotated[int, Field(ge=1000, le=2_000_000)] = 60_000
    """Tokens of one turn, sent and received, also for judging."""
    seconds: Seconds = 60.0
    """Seconds for one turn."""


class Depth(BaseSettings):
    """Limits of one question; the three depths differ in numbers only."""

    limit: Count = 10
    """Items that are asked of each source at first."""
    max_evidence: Count = 30
    """Most kept items for the writer."""
    min_sources_full_report: Count = 4
    """Surviving items that a full report needs."""
    min_sources_short_report: Count = 2
    """Surviving items that a short report needs."""
    relevance_cutoff: Annotated[int, Field(ge=1, le=5)] = 3
    """Grade (1 to 5) that an item needs."""
    query_variants: Annotated[int, Field(ge=1, le=5)] = 1
    """Queries asked at once, the original included."""
    retry_variants: Annotated[int, Field(ge=1, le=5)] = 1
    """Queries asked after a first pass that gave too little, original included; 1: none."""
    rerank: bool = False
    """Whether reranking may run."""
    diversity: bool = True
    """Whether diversity is applied."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        order = "min_sources_short_report", "min_sources_full_report", "max_evidence"
        numbers = [getattr(self, name) for name in order]
        if numbers != sorted(numbers):
            raise ValueError(f"needs {' <= '.join(order)}")
        return self


class QuickDepth(Depth):
    """Five items a source, one query."""

    model_config = group_config("LISTENPOST_QUICK_")
    limit: Count = 5
    max_evidence: Count = 15
    min_sources_full_report: Count = 3
    min_sources_short_report: Count = 1
    diversity: bool = False


class StandardDepth(Depth):
    """Depth of `analyze` where none is named: one query first, more when it finds too little."""

    model_config = group_config("LISTENPOST_STANDARD_")
    retry_variants: Annotated[int, Field(ge=1, le=5)] = 3


class DeepDepth(Depth):
    """Depth with three queries from the start, and up to sixty exhibits."""

    model_config = group_config("LISTENPOST_DEEP_")
    limit: Count = 25
    max_evidence: Count = 60
    min_sources_full_report: Count = 5
    query_variants: Annotated[int, Field(ge=1, le=5)] = 3
    rerank: bool = True


class MailSettings(BaseSettings):
    """E-mail of watches; none is sent without a host and a sender."""

    model_config = group_config("LISTENPOST_SMTP_", sender="LISTENPOST_SMTP_FROM", receivers="LISTENPOST_SMTP_TO")

    host: MailServer | None = None
    """Server that takes the mail; unset: none is sent."""
    port: Annotated[int, Field(ge=1, le=65_535)] | None = None
    """Port of that server; unset: 587, 465 with `implicit`, 25 with `none`."""
    tls: Literal["starttls", "implicit", "none"] = "starttls"
    """Encryption of the connection; `none` needs a server without password, or this machine."""
    user: str | None = None
    """User name for logging in to that server; unset: no login."""
    password: SecretStr | None = None
    """Password of that user."""
    sender: MailAddress | None = None
    """Address that the mail comes from; unset: none is sent."""
    receivers: MailTargets | None = None
    """Comma-separated addresses and `@domains` that mail may go to, `*` for all; unset: for watches of a key, the
    domain of the sender alone."""

    def allows(self, address: str, *, keyed: bool) -> bool:
        """Whether mail may go to this address; `keyed`: for the watch of an API key's holder."""
        names, lowered = names_in(self.receivers or ""), address.lower()
        if not names:
            names = (f"@{(self.sender or '').lower().rpartition('@')[2]}",) if keyed else ("*",)
        return "*" in names or lowered in names or lowered[lowered.index("@") :] in names

    @property
    def refusal(self) -> str:
        """Why mail goes to no address that `allows` refuses, and what allows it."""
        if self.receivers:
            return "`LISTENPOST_SMTP_TO` does not name it"
        domain = (self.sender or "").rpartition("@")[2]
        return f"mail of API keys' watches goes to `{domain}` alone; `LISTENPOST_SMTP_TO` can name others"

    @model_validator(mode="after")
    def _check_login(self) -> Self:
        names = "`LISTENPOST_SMTP_USER` and `LISTENPOST_SMTP_PASSWORD`"
        secret = self.password and self.password.get_secret_value()
        if bool(self.user) != bool(secret):
            raise ValueError(f"{names} come together; set both or none")
        if not f"{self.user}{secret}".isascii():
            raise ValueError(f"{names} take ASCII alone, as the servers do")
        if secret and self.tls == "none" and self.host not in {"localhost", "127.0.0.1", "::1"}:
            raise ValueError("`LISTENPOST_SMTP_TLS` of `none` would show the password to all")
        return self


GROUPS: tuple[type[BaseSettings], ...] = (
    GeneralSettings, ModelSettings, EmbeddingSettings, SourceSettings, AdaptiveSettings,
    RetrievalSettings, RankingSettings, TracingSettings, LimitSettings, StreamSettings, ChatSettings, MailSettings,
    QuickDepth, StandardDepth, DeepDepth,
)  # fmt: skip
# variables of the test suite begin so: they are no settings, and `load` does not refuse them
_TEST_PREFIX = "LISTENPOST_TEST_"


@dataclass(frozen=True, slots=True)
class Settings:
    """All groups together; see each for its fields."""

    general: GeneralSettings
    models: ModelSettings
    embeddings: EmbeddingSettings
    sources: SourceSettings
    adaptive: AdaptiveSettings
    retrieval: RetrievalSettings
    ranking: RankingSettings
    tracing: TracingSettings
    limits: LimitSettings
    streams: StreamSettings
    chat: ChatSettings
    mail: MailSettings
    depths: Mapping[DepthName, Depth]

    def judged_by(self, judge: ReplayJudge | None, model: str | None) -> Settings:
        """The same with another judge of relevance, or another model as judge; what is None stays."""
        general, models = {"judge": judge or "openai"}, {"filter_model": model}
        return replace(
            self,
            general=self.general.model_copy(update=general if judge or model else {}),
            models=self.models.model_copy(update=models if model else {}),
        )


def data_folder() -> Path:
    """Folder for this user's data of the program, by the rules of the operating system."""
    return platformdirs.user_data_path("listenpost", appauthor=False)


def variable(group: type[BaseSettings], field: str) -> str:
    """The environment variable of one field."""
    return str(group.model_fields[field].validation_alias)


@cache
def variables() -> Mapping[str, tuple[type[BaseSettings], str]]:
    """Every variable: name -> its group and field, in reading order."""
    return {variable(group, field): (group, field) for group in GROUPS for field in group.model_fields}


def _tracing() -> TracingSettings:
    """The settings of tracing; off, with a warning, where a `LANGFUSE_` variable, shared with others, is wrong."""
    try:
        return TracingSettings()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        if not "".join(map(str, first["loc"][:1])).startswith("LANGFUSE_"):
            raise
        _warn_untraced(f"`{first['loc'][0]}`: {first['msg']}; correct or unset it. Nothing is traced")
        return TracingSettings.model_construct(langfuse_tracing_enabled=False)


@cache
def _warn_untraced(message: str) -> None:
    _log.warning(message)  # once for each process


def load() -> Settings:
    """Read the environment, then `.env`; raises `ValueError` for a wrong or unknown variable."""
    known = variables()
    dotenv = DotEnvSettingsSource(GeneralSettings, env_file=".env", case_sensitive=False)
    names = {str(name).upper() for name in (*dotenv.env_vars, *os.environ)}
    for name in sorted(names - known.keys()):
        if name.startswith("LISTENPOST_") and not name.startswith(_TEST_PREFIX):
            near = difflib.get_close_matches(name, known, n=1, cutoff=0)
            raise ValueError(f"`{name}` is no setting; the nearest is `{near[0]}`")
    try:
        return Settings(
            GeneralSettings(), ModelSettings(), EmbeddingSettings(), SourceSettings(), AdaptiveSettings(),
            RetrievalSettings(), RankingSettings(), _tracing(), LimitSettings(),
            StreamSettings(), ChatSettings(), MailSettings(),
            {"quick": QuickDepth(), "standard": StandardDepth(), "deep": DeepDepth()},
        )  # fmt: skip
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        group = next(group for group in GROUPS if group.__name__ == error.title)
        name, message = "".join(map(str, first["loc"][:1])), first["msg"]
        message = message.removeprefix("Value error, ")
        if message.startswith("`"):  # of several fields together, which it names
            raise ValueError(message) from None
        name = name or f"{group.model_config.get('env_prefix', '')}*"
        raise ValueError(f"`{name}`: {message}") from None
