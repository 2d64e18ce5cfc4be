"""Vectors of a server: what makes them, what is recorded of them, and the vector of a question."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from api.errors import ModelError
from api.features.archive.search_values import DIMENSIONS, Embed

_log = logging.getLogger(__name__)
MOST_UNASKED = 5_000
"""Most entries of a tenant without a vector that are embedded unasked; more wait for the command, which states the
price."""


@dataclass(frozen=True, slots=True)
class ModelVectors:
    """Vectors of one model, in the order of their texts."""

    model: str
    """Model name and dimensions (`text-embedding-3-small 1536`) that stored vectors belong to; empty: local word
    vectors."""
    vectors: tuple[bytes, ...]
    """Signed bytes, as many as the model has dimensions."""
    tokens: int = 0
    """Tokens that the server counted."""


def dimensions_of(model: str) -> int:
    """Bytes of a vector of this model, see `ModelVectors.model`."""
    return int(model.rpartition(" ")[2]) if model else DIMENSIONS


class Embedder(Protocol):
    """Makes vectors by a server. Its methods raise `ModelError`."""

    @property
    def name(self) -> str:
        """Name of the model, without its dimensions."""
        ...

    @property
    def dimensions(self) -> int | None:
        """Dimensions requested from the server; None: the model's own number."""
        ...

    async def of_question(self, text: str) -> ModelVectors:
        """The vector of a question."""
        ...

    async def of_entries(self, texts: Sequence[str]) -> ModelVectors:
        """Vectors of entries; zeros for one that the server refuses while it takes others."""
        ...

    def usd(self, tokens: int) -> float | None:
        """Price of this many tokens in USD; None when unknown."""
        ...

    async def aclose(self) -> None:
        """Close the connections to the server."""
        ...


@dataclass(frozen=True, slots=True)
class Waiting:
    """Entries of a tenant that have no vector of a model."""

    entries: int
    tokens: int
    """Estimated tokens of their texts, from the first thousand."""


class ArchiveEmbedding(Protocol):
    """The vectors of a server beside the entries. All methods raise `StoreUnavailable`."""

    @property
    def embedder(self) -> Embedder:
        """Makes the vectors of entries and questions."""
        ...

    async def tenants(self) -> Sequence[str]:
        """Ids of the tenants that have entries."""
        ...

    async def waiting(self, tenant: str) -> Waiting:
        """Number of entries without a vector; sends nothing."""
        ...

    async def embed(self, tenant: str, listener: Callable[[int, int], None]) -> None:
        """Embed what waits; `listener` hears entries and tokens of each step, which then is stored.

        Raises:
            ModelError: the server gave no vectors; what was heard before is stored.
        """
        ...


async def question_vector(text: str, embed: Embed, embedder: Embedder | None) -> tuple[ModelVectors | None, str | None]:
    """The vector of a question, by the embedder where there is one; or None, and why the embedder failed."""
    if embedder is None:
        vectors = await asyncio.to_thread(embed, [text])
        return (ModelVectors("", tuple(vectors)) if vectors else None), None
    try:
        return await embedder.of_question(text), None
    except ModelError as error:
        _log.warning("a question has no vector, words alone are searched: %s", error)
        return None, error.reason
