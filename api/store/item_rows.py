"""Items as rows: what a report and an import hold of them, and the entries the archive searches.

An item's facts are stored when it is first seen, later what was missing then. A report's row of an
item says which facts it shares with that, and holds the others itself. Entries of the archive are
written in the same transaction; they are deleted with their item, by the tables' own rules.
Transactions are the caller's.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest
from operator import is_
from typing import Any

from pydantic import ValidationError
from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    MetaData,
    Row,
    Table,
    Text,
    cast,
    delete,
    exists,
    insert,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import UserDefinedType

from api.core.display_names import source_of_key
from api.core.items import Item
from api.core.words import index_tokens
from api.features.archive.import_file import comment_ids
from api.features.archive.index_words import Chunk, chunked
from api.features.archive.search_values import DIMENSIONS, Embed
from api.store.database import Database
from api.store.report_json import FACTS, ReportItem, ReportParts
from api.store.tables import (
    analysis_sources,
    as_stored,
    batches,
    chunks,
    dumps,
    identity,
    imported,
    items,
    replies,
    verdicts,
)

Facts = Mapping[str, Any]
_log = logging.getLogger(__name__)
# Words of an entry that are indexed: PostgreSQL counts positions up to 16,383.
_MOST_TOKENS = 2000
# Positions of one word that are indexed: PostgreSQL keeps 256.
_MOST_POSITIONS = 200
# An address of AT Protocol, whose streams say what is deleted.
_AT = "at://"
# Facts that a dropped item does not keep.
_BLANK: Facts = {"id": "", "title": ""}
_NO_FACTS: Mapping[str, Facts] = {}


class Halfvec(UserDefinedType[str]):
    """Type of PostgreSQL's extension `vector`; written as text, `[1,-2,3]`."""

    cache_ok = True

    def __init__(self, dimensions: int | None = None) -> None:
        """Column type; `dimensions` of each vector, None for any number."""
        self.dimensions = dimensions

    def get_col_spec(self, **_: object) -> str:
        """The type's name in SQL."""
        return f"HALFVEC({self.dimensions})" if self.dimensions else "HALFVEC"

    def bind_expression(self, bindvalue: BindParameter[str]) -> ColumnElement[str]:
        """Casts from text: the driver does not know the type."""
        return cast(cast(bindvalue, Text), self)


HALFVEC = Halfvec(DIMENSIONS)
# The table of entries on PostgreSQL, where words and vectors are indexed as columns.
_INDEXED_CHUNKS = Table(
    chunks.name, MetaData(), *(Column(column.name, column.type) for column in chunks.c),
    Column("words", TSVECTOR), Column("embedding", HALFVEC),
)  # fmt: skip


def vector_text(vector: bytes | None) -> str | None:
    """A vector in the extension's text form; None without a vector."""
    return None if vector is None else str(list(memoryview(vector).cast("b")))


def no_vectors(texts: Sequence[str]) -> None:
    """An `Embed` that makes no vectors: the archive is searched by words alone."""


def tenant_token(tenant: str, *, sample: bool) -> str:
    """A token that all real, or all made-up, entries of a tenant hold: a search reads no other's.

    It begins with a character that no word has, so that no text can hold one.
    """
    digest = hashlib.sha256(tenant.encode("utf-8", "surrogatepass")).hexdigest()
    return f"\ue000{'sample' if sample else 'heard'}{digest[:16]}"


def own_key(key: str, stored: object) -> str | None:
    """An item's original key, from its facts, before `identity` shortened it; None when they are damaged."""
    own = stored.get("key", key) if isinstance(stored, Mapping) else None
    return own if isinstance(own, str) and identity(own) == key else None


def facts_of(key: str, stored: object) -> Item | None:
    """A stored item with defaults for missing fields; None when it is damaged."""
    if not isinstance(stored, Mapping):
        return None
    try:
        facts = {**_BLANK, "source": source_of_key(key), **stored, "key": key}
        return Item.model_validate(facts)
    except ValidationError:
        _log.warning("the item `%s` is damaged and is not searched", key)
        return None


@dataclass(frozen=True, slots=True)
class ItemWriter:
    """Stores items and the archive's entries of them."""

    database: Database
    embed: Embed = no_vectors
    extension: bool = False
    """Vectors are also written for PostgreSQL's extension, see `api/store/vectors.py`."""

    async def write_report(
        self, connection: AsyncConnection, tenant: str, analysis_id: str, parts: ReportParts
    ) -> None:
        """Replace the rows of a report; the analysis's own row must exist."""
        await clear(connection, tenant, analysis_id)
        seen = ((item.key, item.facts) for item in parts.items)
        sample = parts.body.get("sample") is True
        facts = await self.keep(connection, tenant, seen, sample=sample)
        rows = []
        for item in parts.items:
            shared = _shared(item.facts, facts[item.key])
            differing = {name: fact for name, fact in item.facts.items() if name not in shared}
            rows.append(
                {
                    "tenant": tenant, "analysis_id": analysis_id, "part": item.part,
                    "position": item.position, "key": item.key, "shared": shared,
                    "own": {**differing, **item.own},
                }
            )  # fmt: skip
        if rows:
            await connection.execute(insert(verdicts), rows)
        sources = parts.body.get("sources")
        if isinstance(sources, Mapping) and sources:
            named = [{"tenant": tenant, "analysis_id": analysis_id, "source": name} for name in sources]
            await connection.execute(insert(analysis_sources), named)

    async def keep(
        self,
        connection: AsyncConnection,
        tenant: str,
        seen: Iterable[tuple[str, Facts]],
        *,
        sample: bool = False,
    ) -> Mapping[str, Facts]:
        """Store items that are not stored yet; returns the stored facts of each, by key.

        `sample`: they are made up.
        """
        fresh: dict[str, dict[str, Any]] = {}
        for key, facts in seen:
            fresh[key] = {**facts, **fresh.get(key, {})}
        known = await stored_facts(connection, tenant, map(identity, fresh))
        whole = {key: {**facts, **known.get(identity(key), {})} for key, facts in fresh.items()}
        changed = {key: facts for key, facts in whole.items() if facts.keys() != known.get(identity(key), {}).keys()}
        await self.put(connection, tenant, changed, sample=sample)
        return whole

    async def put(
        self,
        connection: AsyncConnection,
        tenant: str,
        facts: Mapping[str, Facts],
        *,
        sample: bool = False,
        before: Mapping[str, Facts] = _NO_FACTS,
    ) -> None:
        """Replace items' facts, by key, and the archive's entries of them.

        `before` are the facts of which entries may stay where they are the same: one more of
        hundreds of comments costs one entry.
        """
        if not facts:
            return
        row, now = self.database.insert(items), datetime.now(UTC)
        upsert = row.on_conflict_do_update(
            index_elements=[items.c.tenant, items.c.key], set_={"facts": row.excluded.facts}
        )
        rows = [{"tenant": tenant, "key": key, "facts": stored, "seen_at": now} for key, stored in facts.items()]
        await connection.execute(upsert, rows)
        await self._note_replies(connection, tenant, facts)
        await self.index(connection, tenant, facts, facts.keys() if sample else (), before)

    async def _note_replies(self, connection: AsyncConnection, tenant: str, facts: Mapping[str, Facts]) -> None:
        """Note the comments of which a stream says when they are deleted."""
        rows = [
            {"tenant": tenant, "key": key, "reply": f"{source_of_key(key)}:{reply}"}
            for key, stored in facts.items()
            for reply in dict.fromkeys(comment_ids(stored))
            if isinstance(reply, str) and reply.startswith(_AT)
        ]
        before = [key for key in facts if _AT in key]
        for some in batches(before):
            await connection.execute(delete(replies).where(replies.c.tenant == tenant, replies.c.key.in_(some)))
        if rows:
            await connection.execute(self.database.insert(replies).on_conflict_do_nothing(), rows)

    async def index(
        self,
        connection: AsyncConnection,
        tenant: str,
        facts: Mapping[str, Facts],
        samples: Iterable[str] = (),
        before: Mapping[str, Facts] = _NO_FACTS,
    ) -> None:
        """Replace the archive's entries of items, by key; `samples` are those made up."""
        made_up = frozenset(samples)
        known = await self._known(connection, tenant, facts)

        def fresh_rows() -> list[tuple[dict[str, Any], str]]:
            fresh: list[tuple[dict[str, Any], str]] = []
            for key, stored in facts.items():
                item, old = facts_of(key, stored), facts_of(key, before.get(key))
                same = set(chunked(old)) if old is not None else set()
                for chunk in chunked(item) if item is not None else ():
                    place = identity(key), identity(chunk.comment), chunk.part
                    if chunk in same and place in known and known[place].complete:
                        del known[place]
                    elif item is not None:
                        row = _chunk_row(tenant, item, chunk, sample=key in made_up)
                        fresh.append((row, chunk.full_text))
            return fresh

        fresh = await asyncio.to_thread(fresh_rows)  # posts are as long as strangers make them
        vectors = await asyncio.to_thread(self.embed, [whole for _, whole in fresh]) or ()
        rows = [{**row, "vector": vector} for (row, _), vector in zip_longest(fresh, vectors)]
        for some in batches(chunk.number for chunk in known.values()):
            await connection.execute(delete(chunks).where(chunks.c.number.in_(some)))
        if rows and self.database.sqlite:
            await connection.execute(insert(chunks), rows)
        elif rows:
            indexed = [{**row, "words": _lexemes(row["tokens"].split())} for row in rows]
            if self.extension:
                indexed = [{**row, "embedding": vector_text(row["vector"])} for row in indexed]
            await connection.execute(insert(_INDEXED_CHUNKS), indexed)

    async def _known(
        self, connection: AsyncConnection, tenant: str, keys: Iterable[str]
    ) -> dict[tuple[str, str, int], Row[*tuple[Any, ...]]]:
        # where there are vectors, an entry without one is written again
        bare = await asyncio.to_thread(self.embed, [""]) is None
        complete = true() if bare else chunks.c.vector.is_not(None)
        wanted = select(
            chunks.c.number, chunks.c.key, chunks.c.comment, chunks.c.part,
            complete.label("complete"),
        )  # fmt: skip
        known = {}
        for some in batches(keys):
            mine = wanted.where(chunks.c.tenant == tenant, chunks.c.key.in_(some))
            for row in await connection.execute(mine):
                known[row.key, row.comment, row.part] = row
        return known


def _shared(facts: Facts, stored: Facts) -> list[str]:
    """Names of the facts that are stored just so; to Python `1`, `1.0` and `True` are the same."""
    same = {name: stored[name] for name in facts}
    if all(map(is_, facts.values(), same.values())) or dumps(facts) == dumps(same):
        return list(facts)
    return [name for name, fact in facts.items() if dumps(fact) == dumps(same[name])]


def _chunk_row(tenant: str, item: Item, chunk: Chunk, *, sample: bool) -> dict[str, Any]:
    words = [tenant_token(tenant, sample=sample), *index_tokens(chunk.index_text)[:_MOST_TOKENS]]
    return {
        "tenant": tenant, "key": item.key, "comment": chunk.comment, "part": chunk.part,
        "source": item.source, "thread": item.thread or item.key, "sample": sample,
        "created_at": chunk.created_at, "tokens": " ".join(words),
    }  # fmt: skip


def _lexemes(words: Sequence[str]) -> str:
    """Words with their positions, as PostgreSQL reads a `tsvector`: `'mug':1,4 'lid':2`."""
    positions: dict[str, list[str]] = {}
    for position, word in enumerate(words, 1):
        positions.setdefault(word, []).append(str(position))
    return " ".join(f"'{word}':{','.join(at[:_MOST_POSITIONS])}" for word, at in positions.items())


async def stored_facts(connection: AsyncConnection, tenant: str, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Facts of the items that are stored; keys are as they are stored, here and there."""
    facts: dict[str, dict[str, Any]] = {}
    wanted = select(items.c.key, items.c.facts).where(items.c.tenant == tenant)
    for some in batches(keys):
        for row in await connection.execute(wanted.where(as_stored(items.c.key).in_(some))):
            facts[row.key] = row.facts if isinstance(row.facts, dict) else {}
    return facts


async def read_items(connection: AsyncConnection, tenant: str, analysis_id: str) -> list[ReportItem]:
    """A report's items, in their order within each part; without those that are damaged."""
    both = (verdicts.c.tenant == items.c.tenant) & (verdicts.c.key == items.c.key)
    wanted = (
        select(verdicts.c.part, verdicts.c.position, verdicts.c.shared, verdicts.c.own)
        .add_columns(items.c.facts)
        .join_from(verdicts, items, both)
        .where(verdicts.c.tenant == tenant, verdicts.c.analysis_id == analysis_id)
        .order_by(verdicts.c.part, verdicts.c.position)
    )
    listed = []
    for row in await connection.execute(wanted):
        if not _is_whole(row):
            _log.warning("`%s` %s of %s is damaged, left out", row.part, row.position, analysis_id)
            continue
        whole = {**row.own, **{name: row.facts[name] for name in row.shared}}
        facts = {name: whole[name] for name in FACTS if name in whole}
        own = {name: value for name, value in row.own.items() if name not in facts}
        listed.append(ReportItem(row.part, row.position, facts, own))
    return listed


def _is_whole(row: Row[*tuple[Any, ...]]) -> bool:
    """Whether a row holds what was written, so that it makes an item with a key."""
    own, shared, facts = row.own, row.shared, row.facts
    if not (isinstance(own, dict) and isinstance(shared, list) and isinstance(facts, dict)):
        return False
    there = all(isinstance(name, str) and name in facts for name in shared)
    return there and ("key" in own or "key" in shared)


async def clear(connection: AsyncConnection, tenant: str, analysis_id: str) -> None:
    """Delete a report's rows, and the items that nothing else holds."""
    mine = (verdicts.c.tenant == tenant) & (verdicts.c.analysis_id == analysis_id)
    keys = (await connection.scalars(select(verdicts.c.key).where(mine).distinct())).all()
    await connection.execute(delete(verdicts).where(mine))
    named = analysis_sources.c.tenant == tenant, analysis_sources.c.analysis_id == analysis_id
    await connection.execute(delete(analysis_sources).where(*named))
    await drop_unheld(connection, tenant, keys)


async def drop_unheld(connection: AsyncConnection, tenant: str, keys: Iterable[str]) -> int:
    """Delete those of the items that no report and no import holds; returns how many.

    `keys` are as they are stored.
    """
    gone = 0
    for some in batches(keys):
        held = (
            exists().where(holder.c.tenant == items.c.tenant, holder.c.key == items.c.key)
            for holder in (verdicts, imported)
        )
        unheld = items.c.tenant == tenant, as_stored(items.c.key).in_(some), *(~h for h in held)
        gone += (await connection.execute(delete(items).where(*unheld))).rowcount
    return gone
