"""The settings of tracing; variables of Langfuse's SDK are read or refused, never ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings

from api.settings.value_types import Seconds, Share, group_config


class TracingSettings(BaseSettings):
    """Langfuse; without keys nothing is imported or sent."""

    model_config = group_config(
        "LISTENPOST_",
        "langfuse_public_key langfuse_secret_key langfuse_base_url langfuse_host "
        "langfuse_tracing_enabled langfuse_sample_rate langfuse_release "
        "langfuse_tracing_environment",
        prompt_ttl="LANGFUSE_PROMPT_CACHE_DEFAULT_TTL_SECONDS",
    )

    langfuse_public_key: str | None = None
    """Public key of the Langfuse project."""
    langfuse_secret_key: SecretStr | None = None
    """Secret key of the Langfuse project."""
    langfuse_base_url: str = "https://cloud.langfuse.com"
    """Root of the Langfuse server."""
    langfuse_host: str | None = None
    """Older name of `LANGFUSE_BASE_URL`."""
    langfuse_tracing_enabled: bool = True
    """Whether traces are sent; off: nothing is imported or sent, even with both keys."""
    langfuse_sample_rate: Share = 1.0
    """Share of the traces that are sent, whole and with their scores; the others are not begun."""
    langfuse_release: str | None = None
    """Release on every span; unset: the version of this package."""
    trace_environment: str = "default"
    """Langfuse environment of the traces (lower case, no `langfuse` prefix)."""
    langfuse_tracing_environment: str | None = None
    """The SDK's name for `LISTENPOST_TRACE_ENVIRONMENT`."""
    trace_content: bool = True
    """Whether texts of questions, items, prompts and answers are sent; numbers always are."""
    trace_old_scores: bool = False
    """Write a trace's scores under their older names too, for older charts; gone in 0.2.0."""
    trace_flush_timeout: Seconds = 2.0
    """Seconds for which the exit of the program waits until traces are sent."""
    prompts: Literal["files", "langfuse"] = "files"
    """Source of the prompts: the package's files, or the Langfuse project."""
    prompt_label: Annotated[str, Field(pattern=r"^[a-z0-9_.-]{1,36}$")] = "production"
    """Label of the prompt versions in Langfuse that are used."""
    prompt_timeout: Seconds = 2.0
    """Seconds for Langfuse to answer with all prompts together."""
    prompt_ttl: Annotated[int, Field(ge=0, le=86_400)] = 60
    """Seconds for which prompts are not read again, also after a failed reading."""

    @property
    def is_on(self) -> bool:
        """Whether anything is sent: both keys are set, and tracing is not switched off."""
        keys = self.langfuse_public_key and self.langfuse_secret_key
        return bool(keys) and self.langfuse_tracing_enabled

    @model_validator(mode="before")
    @classmethod
    def _merge_names(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Read the SDK's names as ours; refuse two names with two values.

        Also refuse an address without its scheme, which no client can use: `langfuse.example:3000`.
        """
        for theirs, ours, field in (
            ("LANGFUSE_HOST", "LANGFUSE_BASE_URL", "langfuse_base_url"),
            ("LANGFUSE_TRACING_ENVIRONMENT", "LISTENPOST_TRACE_ENVIRONMENT", "trace_environment"),
        ):
            # by the variable when the environment is read, by the field when code builds the group
            other = given.get(theirs) or given.get(theirs.lower())
            own = given.get(ours) or given.get(field)
            if other and own and other.rstrip("/") != own.rstrip("/"):
                raise ValueError(f"`{theirs}` and `{ours}` differ; unset one")
            url = (other or own) if ours == "LANGFUSE_BASE_URL" else None
            if url and not url.lower().startswith(("http://", "https://")):
                name = theirs if other else ours
                raise ValueError(f"`{name}` must begin with `https://` or `http://`")
            if other:
                given = {**given, ours: other, field: other}
        return given
