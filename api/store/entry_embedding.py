"""Vectors of a server, made of stored entries behind the transaction that stores them.

A tenant's entries are embedded in the order of their numbers, and up to which number that is done is
written with the vectors: whatever ends a process, the next one goes on there. Entries are numbered in
the order in which they are committed, since whoever writes them is alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Column, MetaData, Table, false, select
from sqlalchemy import func as sql
from sqlalchemy.ext.asyncio import AsyncConnection

from api.core.text import estimated_tokens
from api.errors import ModelError, StoreUnavailable
from api.features.archive.embedding import MOST_UNASKED, Embedder, ModelVectors, Waiting, dimensions_of
from api.features.archive.index_words import chunked
from api.store.database import Database
from api.store.item_rows import Halfvec, facts_of, own_key, vector_text
from api.store.shared_repository import SharedRepository
from api.store.tables import Conditions, as_stored, batches, chunks, embedded, embeddings, items

_log = logging.getLogger(__name__)
# Entries of one step: some requests at once, then one transaction.
_PAGE = 128
# Entries whose texts are read to estimate the tokens of all.
_ESTIMATED = 1_000
# For which a process has a step to itself, how often another looks whether it is over, and for how long the end
# of a process waits for what is under way. A step that takes longer may be paid twice, and is stored once.
_CLAIM, _PAUSE, _LAST_SECONDS = timedelta(seconds=15), 1.0, 10.0
# On PostgreSQL, where vectors are indexed as a column.
_INDEXED = Table(
    embeddings.name, MetaData(), *(Column(column.name, column.type) for column in embeddings.c),
    Column("embedding", Halfvec()),
)  # fmt: skip


@dataclass(slots=True)
class EntryEmbedding:
    """Implements `ArchiveEmbedding`; belongs to one event loop."""

    database: Database
    embedder: Embedder
    most_unasked: int = MOST_UNASKED
    _model: str = ""
    """Model of the last vectors, see `ModelVectors.model`; empty when this process has made none."""
    _due: dict[str, None] = field(default_factory=dict)
    """Tenants with newly stored entries."""
    _task: asyncio.Task[None] | None = None

    async def tenants(self) -> Sequence[str]:
        """Tenants with entries, by one query; see `ArchiveEmbedding.tenants`."""
        async with self.database.reading() as connection:
            return (await connection.scalars(select(chunks.c.tenant).distinct())).all()

    async def waiting(self, tenant: str) -> Waiting:
        """In one snapshot; see `ArchiveEmbedding.waiting`."""
        async with self.database.reading() as connection:
            number = await self._done(connection, tenant)
            entries = await _behind(connection, tenant, number)
            texts = await _texts(connection, tenant, number, _ESTIMATED)
        tokens = sum(map(estimated_tokens, texts.values()))
        return Waiting(entries, tokens * entries // max(len(texts), 1))

    async def unmade(self, connection: AsyncConnection, tenant: str, model: str) -> int:
        """Number of entries that have no vector of this model yet."""
        return await _behind(connection, tenant, await _position(connection, tenant, model))

    async def embed(self, tenant: str, listener: Callable[[int, int], None]) -> None:
        """See `ArchiveEmbedding.embed`; a step that another process is at is waited for."""
        await self._embed(tenant, listener, math.inf)

    async def _embed(self, tenant: str, listener: Callable[[int, int], None], steps: float) -> None:
        """Embed what waits, in at most so many steps."""
        claims, key, asker = SharedRepository(self.database), f"embeddings {tenant}", secrets.token_hex(8)
        more = True
        while more and steps > 0:
            now = datetime.now(UTC)
            claimed, _ = await claims.claim_answer(key, asker, now, now + _CLAIM)
            if not claimed:
                await asyncio.sleep(_PAUSE)
                continue
            steps -= 1
            try:
                more = await self._step(tenant, listener)
            finally:
                await claims.keep_answer(key, asker, None)

    def follow(self, tenant: str) -> None:
        """Begin to embed the stored entries of a tenant in a task of its own; see `most_unasked`."""
        self._due[tenant] = None
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._embed_due())

    async def settle(self) -> None:
        """Wait until the task that `follow` began has ended."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def aclose(self) -> None:
        """Wait `_LAST_SECONDS` at most for the task under way, then leave the rest to the next process."""
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_LAST_SECONDS)
            self._task.cancel()
            await asyncio.wait({self._task})
        await self.embedder.aclose()

    async def _embed_due(self) -> None:
        while self._due:
            tenant = next(iter(self._due))
            del self._due[tenant]
            try:
                await self._embed_unasked(tenant)
            except (ModelError, StoreUnavailable) as error:
                _log.warning("entries are not embedded, the next that are stored try again: %s", error)

    async def _embed_unasked(self, tenant: str) -> None:
        """Embed what waits while it is `most_unasked` entries at most, those included that an import stores meanwhile.

        Where more wait, a warning names the command, and none of them is embedded.
        """
        left = self.most_unasked
        while True:
            async with self.database.reading() as connection:
                entries = await _behind(connection, tenant, await self._done(connection, tenant))
            if entries > left:
                _log.warning("%d entries have no vector: `listenpost archive embed`", entries)
            if not 0 < entries <= left:
                return
            await self._embed(tenant, lambda *_: None, -(-entries // _PAGE))
            left -= entries

    async def _done(self, connection: AsyncConnection, tenant: str) -> int:
        """Number of a tenant's last entry with a vector of the model, in any dimensions while these are unknown."""
        name, dimensions = self.embedder.name, self.embedder.dimensions
        if model := self._model or (f"{name} {dimensions}" if dimensions else ""):
            return await _position(connection, tenant, model)
        rows = await connection.execute(select(embedded.c.model, embedded.c.number).where(embedded.c.tenant == tenant))
        return max((row.number for row in rows if row.model.rpartition(" ")[0] == name), default=0)

    async def _step(self, tenant: str, listener: Callable[[int, int], None]) -> bool:
        """Embed the next entries, and return whether there were any."""
        async with self.database.reading() as connection:
            after = await self._done(connection, tenant)
            texts = await _texts(connection, tenant, after, _PAGE)
        if not texts:
            return False
        made = await self.embedder.of_entries([text for text in texts.values() if text] or ["text"])
        changed, self._model = self._model not in {"", made.model}, made.model
        if changed:  # a server that alternates would be paid without end
            raise ModelError("malformed", f"its vectors have {dimensions_of(made.model):,} dimensions, and had others")
        whole, empty = iter(made.vectors), bytes(dimensions_of(made.model))
        vectors = {number: next(whole) if text else empty for number, text in texts.items()}
        kept = await self.database.unbroken(self._keep(tenant, after, made, vectors))
        listener(kept, made.tokens)
        return True

    async def _keep(self, tenant: str, after: int, made: ModelVectors, vectors: dict[int, bytes]) -> int:
        """Store vectors of a tenant's next entries after a number; how many are still there.

        None are stored when the model has other dimensions than it had: of those the first entries come first.
        """
        async with self.database.writing(alone=True) as connection:
            position = await _position(connection, tenant, made.model)
            if position < after:
                return 0
            wanted = select(chunks.c.number).where(chunks.c.tenant == tenant)
            there = [
                number
                for some in batches(vectors)
                for number in await connection.scalars(wanted.where(chunks.c.number.in_(some)))
            ]
            rows: list[dict[str, Any]] = [{"chunk": n, "model": made.model, "vector": vectors[n]} for n in there]
            table = embeddings
            if not self.database.sqlite:
                table, rows = _INDEXED, [{**row, "embedding": vector_text(row["vector"])} for row in rows]
                if not position:
                    await connection.exec_driver_sql(_index_of(made.model))
            if rows:
                await connection.execute(self.database.insert(table).on_conflict_do_nothing(), rows)
            done = {"tenant": tenant, "model": made.model, "number": max(position, *vectors)}
            await connection.execute(self.database.upsert(embedded, ("tenant", "model"), **done))
        return len(rows)


def _index_of(model: str) -> str:
    """SQL of the index of a model's vectors; names of models hold no quotation marks."""
    name = hashlib.sha256(model.encode()).hexdigest()[:12]
    vector = f"(embedding::halfvec({dimensions_of(model)})) halfvec_cosine_ops"
    return f"CREATE INDEX IF NOT EXISTS embeddings_{name} ON embeddings USING hnsw ({vector}) WHERE model = '{model}'"


async def _position(connection: AsyncConnection, tenant: str, model: str) -> int:
    mine = embedded.c.tenant == tenant, embedded.c.model == model
    return await connection.scalar(select(embedded.c.number).where(*mine)) or 0


def _after(tenant: str, number: int) -> Conditions:
    """Condition for entries after a number; sample entries are excluded, since they are not sent to a server."""
    return chunks.c.tenant == tenant, chunks.c.sample == false(), chunks.c.number > number


async def _behind(connection: AsyncConnection, tenant: str, number: int) -> int:
    return await connection.scalar(select(sql.count()).select_from(chunks).where(*_after(tenant, number))) or 0


async def _texts(connection: AsyncConnection, tenant: str, number: int, most: int) -> dict[int, str]:
    """Texts of the next entries by number; empty text for an entry whose item is damaged."""
    wanted = select(chunks.c.number, chunks.c.key, chunks.c.comment, chunks.c.part).where(*_after(tenant, number))
    rows = (await connection.execute(wanted.order_by(chunks.c.number).limit(most))).all()
    pieces: dict[tuple[str, str, int], str] = {}
    stored = select(items.c.key, items.c.facts).where(items.c.tenant == tenant)
    for some in batches({row.key for row in rows}):
        for key, facts in await connection.execute(stored.where(as_stored(items.c.key).in_(some))):
            if item := facts_of(own_key(key, facts) or key, facts):
                for chunk in await asyncio.to_thread(chunked, item):
                    pieces[key, chunk.comment, chunk.part] = chunk.full_text
    return {row.number: pieces.get((row.key, row.comment, row.part), "") for row in rows}
