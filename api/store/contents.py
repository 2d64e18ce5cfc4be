"""Writing a report's rows and reading them back, inside a transaction of the caller's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import delete, exists, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from api.store.database import Database
from api.store.reports import FACTS, Divided, Entry
from api.store.tables import analysis_sources, dumps, identity, items, verdicts

T = TypeVar("T")
_CHUNK = 400


def chunks(many: Iterable[T]) -> Iterator[list[T]]:
    """Few enough for one statement's parameters."""
    listed = list(many)
    return (listed[start : start + _CHUNK] for start in range(0, len(listed), _CHUNK))


async def write(
    database: Database,
    connection: AsyncConnection,
    tenant: str,
    analysis_id: str,
    parts: Divided,
    now: datetime,
) -> None:
    """Put a report in the place of what the analysis had; its own row is there already."""
    await clear(connection, tenant, analysis_id)
    facts = await _item_rows(database, connection, tenant, parts.entries, now)
    rows = [
        {
            "tenant": tenant, "analysis_id": analysis_id, "part": entry.part,
            "position": entry.position, "key": entry.key, **_split(entry, facts[entry.key]),
        }
        for entry in parts.entries
    ]  # fmt: skip
    if rows:
        await connection.execute(insert(verdicts), rows)
    sources = parts.body.get("sources")
    if isinstance(sources, Mapping) and sources:
        named = [{"tenant": tenant, "analysis_id": analysis_id, "source": name} for name in sources]
        await connection.execute(insert(analysis_sources), named)


async def _item_rows(
    database: Database,
    connection: AsyncConnection,
    tenant: str,
    entries: Sequence[Entry],
    now: datetime,
) -> Mapping[str, Mapping[str, Any]]:
    """Every item's facts as they are stored now: those of its first sight, and what was missing."""
    seen: dict[str, dict[str, Any]] = {}
    for entry in entries:
        seen[entry.key] = {**entry.facts, **seen.get(entry.key, {})}
    known = await _known(connection, tenant, seen)
    facts = {key: {**fresh, **known.get(identity(key), {})} for key, fresh in seen.items()}
    rows = [
        {"tenant": tenant, "key": key, "facts": stored, "seen_at": now}
        for key, stored in facts.items()
        if stored.keys() != known.get(identity(key), {}).keys()
    ]
    if rows:
        row = database.insert(items)
        upsert = row.on_conflict_do_update(
            index_elements=[items.c.tenant, items.c.key], set_={"facts": row.excluded.facts}
        )
        await connection.execute(upsert, rows)
    return facts


async def _known(
    connection: AsyncConnection, tenant: str, keys: Iterable[str]
) -> dict[str, Mapping[str, Any]]:
    known: dict[str, Mapping[str, Any]] = {}
    for some in chunks(keys):
        wanted = select(items.c.key, items.c.facts)
        wanted = wanted.where(items.c.tenant == tenant, items.c.key.in_(some))
        known.update({row.key: row.facts or {} for row in await connection.execute(wanted)})
    return known


def _split(entry: Entry, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Which facts are the item's row, to the last character, and what only this analysis has."""
    shared = [name for name, value in entry.facts.items() if dumps(value) == dumps(stored[name])]
    differing = {name: value for name, value in entry.facts.items() if name not in shared}
    return {"shared": shared, "own": {**differing, **entry.own}}


async def read(connection: AsyncConnection, tenant: str, analysis_id: str) -> list[Entry]:
    """A report's entries, in their order within each part; without those that are damaged."""
    both = (verdicts.c.tenant == items.c.tenant) & (verdicts.c.key == items.c.key)
    wanted = (
        select(verdicts.c.part, verdicts.c.position, verdicts.c.shared, verdicts.c.own)
        .add_columns(items.c.facts)
        .join_from(verdicts, items, both)
        .where(verdicts.c.tenant == tenant, verdicts.c.analysis_id == analysis_id)
        .order_by(verdicts.c.part, verdicts.c.position)
    )
    return [
        Entry(row.part, row.position, *_joined(row.shared, row.own, row.facts))
        for row in await connection.execute(wanted)
        if None not in (row.shared, row.own, row.facts)
    ]


def _joined(
    shared: Sequence[str], own: Mapping[str, Any], stored: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    facts = {
        name: stored[name] if name in shared else own[name]
        for name in FACTS
        if name in shared or name in own
    }
    return facts, {name: value for name, value in own.items() if name not in facts}


async def clear(connection: AsyncConnection, tenant: str, analysis_id: str) -> None:
    """Delete a report's rows, and the items that nothing else holds."""
    mine = (verdicts.c.tenant == tenant) & (verdicts.c.analysis_id == analysis_id)
    keys = (await connection.scalars(select(verdicts.c.key).where(mine).distinct())).all()
    await connection.execute(delete(verdicts).where(mine))
    named = analysis_sources.c.tenant == tenant, analysis_sources.c.analysis_id == analysis_id
    await connection.execute(delete(analysis_sources).where(*named))
    held = exists().where(verdicts.c.tenant == items.c.tenant, verdicts.c.key == items.c.key)
    for some in chunks(keys):
        mine_alone = items.c.tenant == tenant, items.c.key.in_(some), ~held
        await connection.execute(delete(items).where(*mine_alone))
