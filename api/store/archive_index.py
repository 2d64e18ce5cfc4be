"""The archive's index of what is stored, written in the transaction that stores it.

Entries go with their item, by the tables' own rules.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from pydantic import ValidationError
from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    MetaData,
    Table,
    Text,
    cast,
    delete,
    insert,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import UserDefinedType

from api.core.display_names import source_of_key
from api.core.words import index_tokens
from api.features.archive.entries import DIMENSIONS, Embed
from api.features.archive.index_words import Chunk, chunked
from api.reports.report import ItemFacts
from api.store.database import Database
from api.store.tables import batches, chunks, identity

_log = logging.getLogger(__name__)
# Of an entry; PostgreSQL counts positions up to 16,383.
_MOST_TOKENS = 2000
# Of one word, of which PostgreSQL keeps 256.
_PLACES = 200


class Halfvec(UserDefinedType[str]):
    """The extension's type; written as text, `[1,-2,3]`."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        """As in SQL."""
        return f"HALFVEC({DIMENSIONS})"

    def bind_expression(self, bindvalue: BindParameter[str]) -> ColumnElement[str]:
        """The driver knows no such type: it sends text, of which the database makes one."""
        return cast(cast(bindvalue, Text), self)


HALFVEC = Halfvec()


def written(vector: bytes | None) -> str | None:
    """A vector as the extension reads it; lengths do not count."""
    return None if vector is None else str(list(memoryview(vector).cast("b")))


# The same table on PostgreSQL, where what is indexed are columns.
_WITH_WORDS = Table(
    chunks.name, MetaData(), *(Column(column.name, column.type) for column in chunks.c),
    Column("words", TSVECTOR), Column("embedding", HALFVEC),
)  # fmt: skip
# What a dropped item does not keep.
_BLANK: Mapping[str, Any] = {
    "id": "", "source": "", "title": "", "body": "", "url": "", "created_at": None,
    "engagement": {}, "place": None, "places": (), "comments": (), "notes": (),
}  # fmt: skip
_NOTHING: Mapping[str, Mapping[str, Any]] = {}


def no_vectors(texts: Sequence[str]) -> None:
    """Where words are all there is."""


def mark(tenant: str, *, sample: bool) -> str:
    """A token that all real, or all made-up, entries of a tenant hold: a search reads no other's.

    It begins with a sign that no word has, so that no text can hold one.
    """
    digest = hashlib.sha256(tenant.encode("utf-8", "surrogatepass")).hexdigest()
    return f"\ue000{'sample' if sample else 'heard'}{digest[:16]}"


def lexemes(words: Sequence[str]) -> str:
    """Words with where they stand, as PostgreSQL reads a `tsvector`: `'mug':1,4 'lid':2`."""
    places: dict[str, list[str]] = {}
    for place, word in enumerate(words, 1):
        places.setdefault(word, []).append(str(place))
    return " ".join(f"'{word}':{','.join(at[:_PLACES])}" for word, at in places.items())


def own_key(key: str, stored: object) -> str | None:
    """An item's key as it was before `identity`, out of its facts; None when they are damaged."""
    own = stored.get("key", key) if isinstance(stored, Mapping) else None
    return own if isinstance(own, str) and identity(own) == key else None


def facts_of(key: str, stored: object) -> ItemFacts | None:
    """An item as it is stored, what it lacks being empty; None when that is damaged."""
    if not isinstance(stored, Mapping):
        return None
    try:
        facts = {**_BLANK, "source": source_of_key(key), **stored, "key": key}
        return ItemFacts.model_validate(facts)
    except ValidationError:
        _log.warning("the item `%s` is damaged and is not searched", key)
        return None


@dataclass(frozen=True, slots=True)
class ArchiveIndex:
    """Writes entries; see `api/store/archive_repository.py` for how they are found."""

    database: Database
    embed: Embed = no_vectors
    nearest: bool = False
    """PostgreSQL looks for the nearest, see `api/store/vectors.py`."""

    async def put(
        self,
        connection: AsyncConnection,
        tenant: str,
        facts: Mapping[str, Mapping[str, Any]],
        samples: Container[str] = (),
        before: Mapping[str, Mapping[str, Any]] = _NOTHING,
    ) -> None:
        """Index these items, by their keys, in the place of what was indexed of them.

        `before` are their facts as they are indexed, of those of which what is the same may stay:
        one more of hundreds of comments costs one entry.
        `samples` are the keys of those that are made up.
        """
        known = await self._known(connection, tenant, facts)
        fresh: list[tuple[dict[str, Any], str]] = []
        for key, stored in facts.items():
            item, old = facts_of(key, stored), facts_of(key, before.get(key))
            same = set(chunked(old)) if old is not None else set()
            for chunk in chunked(item) if item is not None else ():
                place = identity(key), identity(chunk.comment), chunk.part
                if chunk in same and place in known and known[place].whole:
                    del known[place]
                elif item is not None:
                    row = _row(tenant, item, chunk, sample=key in samples)
                    fresh.append((row, chunk.whole))
        vectors = await asyncio.to_thread(self.embed, [whole for _, whole in fresh]) or ()
        rows = [{**row, "vector": vector} for (row, _), vector in zip_longest(fresh, vectors)]
        for some in batches(entry.number for entry in known.values()):
            await connection.execute(delete(chunks).where(chunks.c.number.in_(some)))
        if rows and self.database.sqlite:
            await connection.execute(insert(chunks), rows)
        elif rows:
            indexed = [{**row, "words": lexemes(row["tokens"].split())} for row in rows]
            if self.nearest:
                indexed = [{**row, "embedding": written(row["vector"])} for row in indexed]
            await connection.execute(insert(_WITH_WORDS), indexed)

    async def _known(
        self, connection: AsyncConnection, tenant: str, keys: Iterable[str]
    ) -> dict[tuple[str, str, int], _Known]:
        """What is indexed of these items."""
        # where there are vectors, an entry without one is indexed again
        bare = await asyncio.to_thread(self.embed, [""]) is None
        whole = true() if bare else chunks.c.vector.is_not(None)
        wanted = select(
            chunks.c.number, chunks.c.key, chunks.c.comment, chunks.c.part, whole.label("whole")
        )
        known = {}
        for some in batches(keys):
            mine = wanted.where(chunks.c.tenant == tenant, chunks.c.key.in_(some))
            for row in await connection.execute(mine):
                known[row.key, row.comment, row.part] = _Known(row.number, bool(row.whole))
        return known


@dataclass(frozen=True, slots=True)
class _Known:
    """An entry that is indexed."""

    number: int
    whole: bool


def _row(tenant: str, item: ItemFacts, chunk: Chunk, *, sample: bool) -> dict[str, Any]:
    words = [mark(tenant, sample=sample), *index_tokens(chunk.worded)[:_MOST_TOKENS]]
    return {
        "tenant": tenant, "key": item.key, "comment": chunk.comment, "part": chunk.part,
        "source": item.source, "thread": item.thread or item.key, "sample": sample,
        "created_at": chunk.created_at, "tokens": " ".join(words),
    }  # fmt: skip
