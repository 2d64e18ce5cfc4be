"""Vectors of an OpenAI-compatible server of embeddings, as signed bytes."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field, SecretStr, ValidationError

from api.core.text import clean
from api.errors import ModelError
from api.features.archive.embedding import ModelVectors
from api.models.answer_parsing import Tokens
from api.models.model_client import ModelClient
from api.settings import EmbeddingSettings, Settings

AT_ONCE = 32
"""Most texts of one request: the default of servers with the lowest limit."""
# Seconds for one request of entries, retries included; a refusal for a minute's limit is waited for.
_SECONDS = 70.0
# Most dimensions that PostgreSQL indexes, as a multiple of `_STEP`, in which signs of numbers are packed.
_MOST, _STEP = 3_968, 64
# A refused text is cut in half down to so many characters.
_SHORTEST = 200
_LARGEST_BYTE = 127
# What models of a family expect before a question and before an entry, by a part of their names.
_PREFIXES = {
    "nomic-embed-text": ("search_query: ", "search_document: "),
    "e5-": ("query: ", "passage: "),
}


class _Embedding(BaseModel):
    index: int | None = None
    embedding: list[Annotated[float, Field(allow_inf_nan=False)]]


class _EmbeddingUsage(BaseModel):
    prompt_tokens: int = Field(default=0, ge=0, le=10**9)


class _EmbeddingAnswer(BaseModel):
    data: list[_Embedding]
    usage: _EmbeddingUsage | None = None


@dataclass(frozen=True, slots=True)
class ServerEmbedder:
    """Asks a server for vectors; implements `Embedder`."""

    client: ModelClient
    settings: EmbeddingSettings

    @property
    def name(self) -> str:
        """As the settings say; see `Embedder.name`."""
        return self.settings.model or ""

    @property
    def dimensions(self) -> int | None:
        """As the settings say; see `Embedder.dimensions`."""
        return self.settings.dimensions

    async def of_question(self, text: str) -> ModelVectors:
        """See `Embedder.of_question`; one request, some ten tokens."""
        made = await self._ask([self._prefixes[0] + clean(text)], self.settings.timeout)
        if not any(made.vectors[0]):
            raise ModelError("malformed", "the vector is all zeros, which is like nothing")
        return made

    async def of_entries(self, texts: Sequence[str]) -> ModelVectors:
        """See `Embedder.of_entries`; `AT_ONCE` texts a request."""
        written = [self._prefixes[1] + clean(text) for text in texts]
        starts = range(0, len(written), AT_ONCE)
        parts = await asyncio.gather(*(self._accepted(written[start : start + AT_ONCE]) for start in starts))
        return _joined(parts)

    def usd(self, tokens: int) -> float | None:
        """By the prices of models; see `Embedder.usd`."""
        return self.client.price(Tokens(prompt_tokens=tokens, completion_tokens=0), self.name)

    async def aclose(self) -> None:
        """Closes the client; see `Embedder.aclose`."""
        await self.client.aclose()

    @property
    def _prefixes(self) -> tuple[str, str]:
        name = self.name.lower()
        known = (prefixes for part, prefixes in _PREFIXES.items() if part in name and "instruct" not in name)
        return next(known, ("", ""))

    async def _accepted(self, texts: Sequence[str]) -> ModelVectors:
        """Vectors of the texts; where the server refuses them together, in halves, and one text cut in half."""
        try:
            return await self._ask(texts, _SECONDS)
        except ModelError as error:
            if error.reason != "too_long":
                raise
            refusal = error
        half = len(texts) // 2
        if half:
            return _joined([await self._accepted(texts[:half]), await self._accepted(texts[half:])])
        if len(texts[0]) > _SHORTEST:
            return await self._accepted([texts[0][: len(texts[0]) // 2]])
        try:  # the text, or everything?
            other = await self._ask(["text"], _SECONDS)
        except ModelError:
            remedy = "check `LISTENPOST_EMBEDDINGS_MODEL` and `LISTENPOST_EMBEDDINGS_DIMENSIONS`"
            raise ModelError("http_error", f"{refusal.detail}; {remedy}") from None
        return ModelVectors(other.model, (bytes(len(other.vectors[0])),), other.tokens)

    async def _ask(self, texts: Sequence[str], seconds: float) -> ModelVectors:
        try:
            body = await self.client.embed(texts, self.name, self.dimensions, seconds)
        except ModelError as error:
            if self.settings.url is None:
                raise
            # the client speaks of the server that judges
            detail = error.detail.replace("OPENAI_BASE_URL", "LISTENPOST_EMBEDDINGS_URL")
            detail = detail.replace("OPENAI_API_KEY", "LISTENPOST_EMBEDDINGS_KEY")
            raise ModelError(error.reason, detail.replace("LISTENPOST_MODEL_CONCURRENCY", "the load")) from None
        return await asyncio.to_thread(self._read, body, len(texts))

    def _read(self, body: bytes, count: int) -> ModelVectors:
        try:
            answer = _EmbeddingAnswer.model_validate_json(body)
        except ValidationError:
            raise ModelError("malformed", "the answer holds no vectors") from None
        data = answer.data
        if sorted(entry.index if entry.index is not None else -1 for entry in data) == list(range(len(data))):
            data = sorted(data, key=lambda entry: entry.index or 0)
        if len(data) != count:
            raise ModelError("count_mismatch", f"{len(data)} vectors for {count} texts")
        size = len(data[0].embedding)
        if any(len(entry.embedding) != size for entry in data) or (self.dimensions or size) != size:
            raise ModelError("malformed", f"vectors of {size:,} dimensions, not all as {self.dimensions or size:,}")
        if size % _STEP or not 0 < size <= _MOST:
            remedy = f"set `LISTENPOST_EMBEDDINGS_DIMENSIONS` to a multiple of {_STEP} up to {_MOST:,}"
            raise ModelError("malformed", f"vectors of {size:,} dimensions; {remedy}")
        tokens = answer.usage.prompt_tokens if answer.usage else 0
        return ModelVectors(f"{self.name} {size}", tuple(_signed_bytes(entry.embedding) for entry in data), tokens)


def _signed_bytes(vector: Sequence[float]) -> bytes:
    """The vector with 127 as its largest number: a cosine does not depend on the length."""
    largest = max(map(abs, vector)) or 1.0
    # divided first: 127 by a number that is nearly 0 is infinite
    return array("b", [round(number / largest * _LARGEST_BYTE) for number in vector]).tobytes()


def _joined(parts: Sequence[ModelVectors]) -> ModelVectors:
    models = {part.model for part in parts}
    if len(models) != 1:
        raise ModelError("malformed", "the number of dimensions changes from answer to answer")
    vectors = tuple(vector for part in parts for vector in part.vectors)
    return ModelVectors(models.pop(), vectors, sum(part.tokens for part in parts))


def server_embedder(settings: Settings) -> ServerEmbedder | None:
    """The embedder of `LISTENPOST_EMBEDDINGS_MODEL`; None when it is unset.

    The key of the models, and headers of the environment, are sent to their own server alone.
    """
    chosen, models = settings.embeddings, settings.models
    if chosen.model is None:
        return None
    update: dict[str, object] = {}
    if chosen.url is not None:
        update = {"openai_base_url": chosen.url, "openai_api_key": SecretStr("none")}
    if chosen.key is not None:
        update["openai_api_key"] = chosen.key
    client = ModelClient(models.model_copy(update=update), key_alone=chosen.url is not None)
    return ServerEmbedder(client, chosen)
