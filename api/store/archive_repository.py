"""The archive: what a tenant has stored, found by words and by likeness of meaning.

A word that very many entries hold says little: of those the newest `_RANKED` are looked at, so that
a search takes as long over a million entries as over ten thousand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    case,
    cast,
    column,
    delete,
    exists,
    literal,
    literal_column,
    or_,
    select,
    table,
    text,
)
from sqlalchemy import func as sql
from sqlalchemy.dialects.postgresql import TSQUERY
from sqlalchemy.ext.asyncio import AsyncConnection

from api.core.items import Item
from api.core.words import canonical
from api.features.archive.index_words import bm25, rarity, with_forms_as, word_forms
from api.features.archive.search_values import MOST_COUNTED, ArchiveFilters, Match, Matches
from api.store.analysis_repository import NEWEST_FIRST, AnalysisRepository
from api.store.database import unbroken
from api.store.item_rows import facts_of, own_key, tenant_token
from api.store.tables import (
    Conditions,
    Identity,
    analyses,
    batches,
    chunks,
    embeddings,
    identity,
    imported,
    items,
    verdicts,
)

# Entries without a vector whose items are indexed again in one transaction.
_PAGE = 200
COMMON = 2000
"""Entries up to which a word's are counted."""
# Entries up to which those with a word are ranked.
_RANKED = 1000
# Times as many entries are taken by the database's own rank as are wanted by ours.
_POOL = 4
_INDEX = table("chunk_words", column("rowid"), column("chunk_words"))
# So that SQLite looks up the words first, and not all that a tenant has.
_UNINDEXED: ColumnElement[str] = literal_column("+chunks.tenant", Identity())
_WORDS: ColumnElement[Any] = literal_column("chunks.words")
_COLUMNS = (
    chunks.c.number, chunks.c.key, chunks.c.comment, chunks.c.part, chunks.c.thread,
    chunks.c.tokens,
)  # fmt: skip


class ArchiveRepository(AnalysisRepository):
    """The archive of all tenants in the database."""

    @unbroken
    async def matches(
        self, tenant: str, words: Sequence[str], vector: bytes | None, filters: ArchiveFilters,
        most: int, model: str = "",
    ) -> Matches:  # fmt: skip
        await self._add_vectors(tenant)
        mine = _UNINDEXED if self._database.sqlite else chunks.c.tenant
        own = tenant_token(tenant, sample=filters.sample)
        async with self._database.reading() as connection:
            spellings = await self._spellings(connection, tenant, filters.product)
            where = [mine == tenant, *_filtered(tenant, filters, spellings)]
            there = chunks.c.tenant == tenant, chunks.c.sample == filters.sample
            counted = select(literal(1).label("entry")).where(*there).limit(MOST_COUNTED).subquery()
            entries = await connection.scalar(select(sql.count()).select_from(counted)) or 0
            frequencies = {word: await self._count(connection, own, word) for word in dict.fromkeys(words)}
            pool = await self._by_words(connection, own, frequencies, where, most * _POOL)
            rows = {row.number: row for row in await self._entries(connection, pool, where, model)}
            scores = {
                number: score
                for number, row in rows.items()
                if (score := bm25(words, with_forms_as(words, row.tokens.split()[1:]), frequencies, entries))
            }
            best = set(sorted(scores, key=lambda number: (-scores[number], number))[:most])
            near, unread = None, 0
            if vector is not None and self._vectors is not None:
                near, unread = await self._vectors.nearest(
                    connection, tenant, vector, most, where, sample=filters.sample, model=model
                )
                if model and self.embedding is not None:
                    unread += await self.embedding.unmade(connection, tenant, model)
                    near = near or (None if unread else near)  # none is made yet
            nearest = set(near or ())
            further = [number for number in near or () if number not in rows]
            rows |= {row.number: row for row in await self._entries(connection, further, where, model)}
        matches = [
            Match(
                id=(row.key, row.comment, row.part),
                thread=row.thread,
                tokens=tuple(row.tokens.split()[1:]),
                vector=row.vector,
                by_words=number in best,
                by_vector=number in nearest,
            )
            for number, row in rows.items()
            if number in best or number in nearest
        ]
        matches.sort(key=lambda match: match.id)
        return Matches(tuple(matches), frequencies, entries, near is not None, unread)

    @unbroken
    async def facts(self, tenant: str, keys: Iterable[str]) -> Mapping[str, Item]:
        named = {identity(key): key for key in keys}
        facts: dict[str, Item] = {}
        async with self._database.reading() as connection:
            for some in batches(named):
                wanted = select(items.c.key, items.c.facts)
                wanted = wanted.where(items.c.tenant == tenant, items.c.key.in_(some))
                for key, stored in await connection.execute(wanted):
                    if item := facts_of(own_key(key, stored) or key, stored):
                        facts[named[key]] = item
        return facts

    async def queries(self, tenant: str, most: int) -> Sequence[str]:
        wanted = select(analyses.c.query).where(analyses.c.tenant == tenant)
        rows = await self._rows(wanted.order_by(*NEWEST_FIRST).limit(most))
        return tuple(dict.fromkeys(row.query for row in rows if row.query))

    async def _add_vectors(self, tenant: str) -> None:
        """Index again what was stored while there were no vectors, if there are some now."""
        if await asyncio.to_thread(self._writer.embed, [""]) is None:
            return
        bare = chunks.c.tenant == tenant, chunks.c.vector.is_(None)
        wanted = select(chunks.c.key, chunks.c.sample).where(*bare).limit(_PAGE)
        stored = select(items.c.key, items.c.facts).where(items.c.tenant == tenant)
        while True:
            async with self._database.reading() as connection:
                rows = (await connection.execute(wanted)).all()
            if not rows:
                return
            keys = {row.key for row in rows}
            async with self._database.writing(alone=True) as connection:
                mine = chunks.c.tenant == tenant, chunks.c.key.in_(keys)
                await connection.execute(delete(chunks).where(*mine))
                held = await connection.execute(stored.where(items.c.key.in_(keys)))
                # one that is damaged is not searched
                facts = {own: row.facts for row in held if (own := own_key(row.key, row.facts))}
                made_up = {row.key for row in rows if row.sample}
                samples = {own for own in facts if identity(own) in made_up}
                await self._writer.index(connection, tenant, facts, samples)

    async def _spellings(self, connection: AsyncConnection, tenant: str, product: str | None) -> list[str]:
        """The spellings of a product in this tenant's queries, since SQLite folds only ASCII."""
        if product is None:
            return []
        wanted = select(analyses.c.query).where(analyses.c.tenant == tenant).distinct()
        name = canonical(product)
        return [query for query in await connection.scalars(wanted) if canonical(query) == name]

    async def _count(self, connection: AsyncConnection, own: str, word: str) -> int:
        """Number of entries with a mark that hold a word, counted up to `COMMON`."""
        held = select(literal(1).label("held")).where(self._holds(own, [word], "&"))
        held = held.select_from(_INDEX if self._database.sqlite else chunks)
        limited = held.limit(COMMON).subquery()
        return await connection.scalar(select(sql.count()).select_from(limited)) or 0

    async def _by_words(
        self,
        connection: AsyncConnection,
        own: str,
        frequencies: Mapping[str, int],
        where: Conditions,
        most: int,
    ) -> list[int]:
        """The best by a rough rank: with any rarer word, then with all words.

        Only when that finds nothing, with any common word.
        """
        known = sorted((count, word) for word, count in frequencies.items() if count)
        rare, sum_ = [], 0
        for count, word in known:
            sum_ += count
            if sum_ <= _RANKED:
                rare.append(word)
        every = [word for _, word in known]
        numbers: dict[int, None] = {}
        for some, joined in ((rare, "|"), (every, "&"), (every, "|")):
            if some and not (joined == "|" and some is every and numbers):
                holding = {word: frequencies[word] for word in some}
                ranked = self._ranked(own, holding, joined, where, most)
                numbers |= dict.fromkeys(await connection.scalars(ranked))
        return list(numbers)

    def _ranked(
        self,
        own: str,
        holding: Mapping[str, int],
        joined: str,
        where: Conditions,
        most: int,
    ) -> Select[tuple[int]]:
        """Numbers of the best of the newest `_RANKED` entries with these words.

        `holding` says how many entries hold each. FTS5's own rank is not asked: it counts every
        word, and `own`, in the whole index, which takes the longer the more there is.
        """
        words = list(holding)
        if self._database.sqlite:
            newest = select(_INDEX.c.rowid.label("number"), chunks.c.tokens)
            newest = newest.join_from(_INDEX, chunks, chunks.c.number == _INDEX.c.rowid)
        else:
            query = cast(_tsquery(own, words, joined), TSQUERY)
            newest = select(chunks.c.number, (-sql.ts_rank(_WORDS, query)).label("rank"))
        newest = newest.where(self._holds(own, words, joined), *where)
        cut = newest.order_by(text("number DESC")).limit(_RANKED).subquery()
        ranked = select(cut.c.number).limit(most)
        if not self._database.sqlite:
            return ranked.order_by(cut.c.rank, cut.c.number)
        spaced = literal(" ").concat(cut.c.tokens).concat(" ")
        held = [
            case((or_(*(sql.instr(spaced, f" {form} ") > 0 for form in word_forms(word))), weight), else_=0.0)
            for word, weight in ((word, rarity(count, MOST_COUNTED)) for word, count in holding.items())
        ]  # where all are held, the shorter ones are better
        rarest = [] if joined == "&" else [sum(held, literal(0.0)).desc()]
        return ranked.order_by(*rarest, sql.length(cut.c.tokens), cut.c.number)

    def _holds(self, own: str, words: Sequence[str], joined: str) -> ColumnElement[bool]:
        """Whether an entry with this mark holds the words: any (`|`) or all (`&`)."""
        if self._database.sqlite:
            operator = " OR " if joined == "|" else " AND "
            query = operator.join(_any_form(word, '"', " OR ") for word in words)
            return _INDEX.c.chunk_words.op("MATCH")(f'"{own}" AND ({query})')
        return _WORDS.op("@@")(cast(_tsquery(own, words, joined), TSQUERY))

    async def _entries(
        self, connection: AsyncConnection, numbers: Sequence[int], where: Conditions, model: str
    ) -> list[Any]:
        rows: list[Any] = []
        entries = select(*_COLUMNS, chunks.c.vector)
        if model:
            made = (embeddings.c.chunk == chunks.c.number) & (embeddings.c.model == model)
            entries = select(*_COLUMNS, embeddings.c.vector).outerjoin_from(chunks, embeddings, made)
        for some in batches(numbers):
            wanted = entries.where(chunks.c.number.in_(some), *where)
            rows += (await connection.execute(wanted)).all()
        return rows


def _any_form(word: str, mark: str, either: str) -> str:
    """A word's inflections, any of which will do: `("crash" OR "crashing")`."""
    return f"({either.join(f'{mark}{form}{mark}' for form in word_forms(word))})"


def _tsquery(own: str, words: Sequence[str], joined: str) -> str:
    """Query in PostgreSQL's syntax: `'heard1' & ('mug' | 'lid')`."""
    query = f" {joined} ".join(_any_form(word, "'", " | ") for word in words)
    return f"'{own}' & ({query})"


def _filtered(tenant: str, filters: ArchiveFilters, spellings: Sequence[str]) -> Iterator[ColumnElement[bool]]:
    yield chunks.c.sample == filters.sample
    if filters.source is not None:
        yield chunks.c.source == filters.source
    if filters.since is not None:
        yield chunks.c.created_at >= filters.since
    if filters.until is not None:
        yield chunks.c.created_at < filters.until
    seen = verdicts.c.tenant == tenant, verdicts.c.key == chunks.c.key
    if filters.kept is not None:
        brought = imported.c.tenant == tenant, imported.c.key == chunks.c.key
        kept = or_(exists().where(*seen, verdicts.c.part == "items"), exists().where(*brought))
        yield kept if filters.kept else ~kept
    if filters.product is not None:
        same = and_(
            analyses.c.tenant == verdicts.c.tenant,
            analyses.c.id == verdicts.c.analysis_id,
            analyses.c.query.in_(spellings),
        )
        yield exists().where(*seen, same)
