"""Every setting with its default and unit, read from the environment and `.env`.

Groups are frozen; each field is one variable, named group prefix + field. Names that start with
`LISTENPOST_` and are not here are refused by `load`, with the nearest valid name.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from pydantic import AliasChoices, ValidationError
from pydantic_settings import BaseSettings, DotEnvSettingsSource

from api.choices import WINDOW_DAYS, DepthName, Window
from api.settings.groups import (
    AdaptiveSettings,
    ChatSettings,
    Count,
    DeepDepth,
    Depth,
    GeneralSettings,
    LimitSettings,
    MailSettings,
    ModelSettings,
    QuickDepth,
    RankingSettings,
    RetrievalSettings,
    Seconds,
    Share,
    SourceSettings,
    StandardDepth,
    StreamSettings,
)
from api.settings.langfuse_group import TracingSettings

__all__ = [
    "GROUPS", "WINDOW_DAYS", "AdaptiveSettings", "ChatSettings", "Count", "DeepDepth", "Depth",
    "DepthName", "GeneralSettings", "LimitSettings", "MailSettings", "ModelSettings", "QuickDepth",
    "RankingSettings", "RetrievalSettings", "Seconds", "Settings", "Share", "SourceSettings",
    "StandardDepth", "StreamSettings", "TracingSettings", "Window", "data_folder", "load",
    "variable", "variables",
]  # fmt: skip

GROUPS: tuple[type[BaseSettings], ...] = (
    GeneralSettings, ModelSettings, SourceSettings, AdaptiveSettings, RetrievalSettings,
    RankingSettings, TracingSettings, LimitSettings, StreamSettings, ChatSettings, MailSettings,
    QuickDepth, StandardDepth, DeepDepth,
)  # fmt: skip

FOR_TESTS = "LISTENPOST_TEST_"
"""How variables of the tests begin: no settings, but none that are refused either."""


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
    limits: LimitSettings
    streams: StreamSettings
    chat: ChatSettings
    mail: MailSettings
    depths: Mapping[DepthName, Depth]


def data_folder() -> Path:
    """Where this program keeps what it keeps of a person's, by the rules of the system."""
    return platformdirs.user_data_path("listenpost", appauthor=False)


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
    known = variables()
    dotenv = DotEnvSettingsSource(GeneralSettings, env_file=".env", case_sensitive=False)
    names = {*(str(name).upper() for name in dotenv.env_vars), *(n.upper() for n in os.environ)}
    for name in sorted(names):
        if name.startswith("LISTENPOST_") and name not in known and not name.startswith(FOR_TESTS):
            near = difflib.get_close_matches(name, known, n=1, cutoff=0)
            raise ValueError(f"`{name}` is no setting; the nearest is `{near[0]}`")
    try:
        return Settings(
            GeneralSettings(), ModelSettings(), SourceSettings(), AdaptiveSettings(),
            RetrievalSettings(), RankingSettings(), TracingSettings(), LimitSettings(),
            StreamSettings(), ChatSettings(), MailSettings(),
            {"quick": QuickDepth(), "standard": StandardDepth(), "deep": DeepDepth()},
        )  # fmt: skip
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        group = next(group for group in GROUPS if group.__name__ == error.title)
        field = str(first["loc"][0]) if first["loc"] else ""
        message = first["msg"].removeprefix("Value error, ")
        if field in group.model_fields:
            field = variable(group, field)
        elif message.startswith("`"):  # of several fields together, which it names
            raise ValueError(message) from None
        elif not field:  # or their prefix
            field = str(group.model_config.get("env_prefix", "")) + "*"
        raise ValueError(f"`{field}`: {message}") from None
