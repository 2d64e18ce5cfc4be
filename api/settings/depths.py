"""The three depths: how far one question goes, as data."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings

from api.settings.groups import Count, named


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
