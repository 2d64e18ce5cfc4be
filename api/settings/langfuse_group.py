"""The settings of tracing; variables of Langfuse's SDK are read or refused, never ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings

from api.settings.groups import Seconds, Share, named


class TracingSettings(BaseSettings):
    """Langfuse; without keys nothing is imported or sent."""

    model_config = named("LISTENPOST_")

    langfuse_public_key: str | None = Field(
        None, validation_alias=AliasChoices("LANGFUSE_PUBLIC_KEY")
    )
    """Public key of the Langfuse project."""
    langfuse_secret_key: SecretStr | None = Field(
        None, validation_alias=AliasChoices("LANGFUSE_SECRET_KEY")
    )
    """Secret key of the Langfuse project."""
    langfuse_base_url: str = Field(
        "https://cloud.langfuse.com", validation_alias=AliasChoices("LANGFUSE_BASE_URL")
    )
    """Root of the Langfuse server."""
    langfuse_host: str | None = Field(None, validation_alias=AliasChoices("LANGFUSE_HOST"))
    """Its older name; read into `langfuse_base_url`."""
    langfuse_tracing_enabled: bool = Field(
        True, validation_alias=AliasChoices("LANGFUSE_TRACING_ENABLED")
    )
    """Off: nothing is imported or sent, with both keys in place."""
    langfuse_sample_rate: Share = Field(1.0, validation_alias=AliasChoices("LANGFUSE_SAMPLE_RATE"))
    """Share of the traces that are sent, whole and with their scores; the others are not begun."""
    langfuse_release: str | None = Field(None, validation_alias=AliasChoices("LANGFUSE_RELEASE"))
    """Release on every span; unset: the version of this package."""
    trace_environment: str = "default"
    """Langfuse environment of the traces (lower case, no `langfuse` prefix)."""
    langfuse_tracing_environment: str | None = Field(
        None, validation_alias=AliasChoices("LANGFUSE_TRACING_ENVIRONMENT")
    )
    """The SDK's name for it; read into `trace_environment`."""
    trace_content: bool = True
    """Off: no word of questions, items, prompts and answers leaves; numbers and scores do."""
    trace_old_scores: bool = False
    """Write a trace's scores under their older names, too, for older charts; gone in 0.2.0."""
    trace_flush_timeout: Seconds = 2.0
    """Seconds the exit waits for traces."""
    prompts: Literal["files", "langfuse"] = "files"
    """Where prompts come from: the package's files, or the Langfuse project."""
    prompt_label: Annotated[str, Field(pattern=r"^[a-z0-9_.-]{1,36}$")] = "production"
    """Label of the versions that are used."""
    prompt_timeout: Seconds = 2.0
    """Seconds that Langfuse may take to answer, for all prompts together."""
    prompt_ttl: Annotated[int, Field(ge=0, le=86_400)] = Field(
        60, validation_alias=AliasChoices("LANGFUSE_PROMPT_CACHE_DEFAULT_TTL_SECONDS")
    )
    """Seconds for which prompts are not read again, an answer that did not come included."""

    @property
    def is_on(self) -> bool:
        """Whether anything is sent: both keys are there, and nobody switched it off."""
        keys = self.langfuse_public_key and self.langfuse_secret_key
        return bool(keys) and self.langfuse_tracing_enabled

    @model_validator(mode="before")
    @classmethod
    def _agreed(cls, given: dict[str, Any]) -> dict[str, Any]:
        """What the SDK names otherwise is read; two names for two values are refused.

        So is an address without its scheme, which no client can ask: `langfuse.example:3000`.
        """
        for theirs, ours in (
            ("langfuse_host", "langfuse_base_url"),
            ("langfuse_tracing_environment", "trace_environment"),
        ):
            other, own = (
                next((given[key] for key in (field, field.upper()) if given.get(key)), None)
                for field in (theirs, ours)
            )
            if other and own and other.rstrip("/") != own.rstrip("/"):
                name = ours if ours.startswith("langfuse") else f"listenpost_{ours}"
                raise ValueError(f"`{theirs.upper()}` and `{name.upper()}` differ; unset one")
            url = (other or own) if ours == "langfuse_base_url" else None
            if url and not url.lower().startswith(("http://", "https://")):
                name = theirs if other else ours
                raise ValueError(f"`{name.upper()}` must begin with `https://` or `http://`")
            if other:
                given = {**given, ours: other}
        return given
