"""A report taken apart into rows, put together again, and without items that are to be forgotten.

Its items stand on their own, once per tenant; what is left of its JSON is the body. Transactions
are the caller's.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from operator import is_
from typing import Any

from sqlalchemy import Row, delete, exists, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from api.reports.report import ItemFacts
from api.store.archive_index import ArchiveIndex
from api.store.tables import (
    analysis_sources,
    as_stored,
    batches,
    dumps,
    identity,
    imported,
    items,
    verdicts,
)

_log = logging.getLogger(__name__)
REMOVED = "[removed]"
FACTS = tuple(ItemFacts.model_fields)
"""What is the item's own, whoever asked; every other field belongs to the analysis."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One place where an item stands in a report."""

    part: str
    """`items`, `dropped`, or the name of a source after a colon: its own dropped items."""
    position: int
    facts: Mapping[str, Any]
    own: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The item's key."""
        return str(self.facts["key"])


@dataclass(frozen=True, slots=True)
class Divided:
    """A report as it is stored."""

    body: Mapping[str, Any]
    """The report with a number where a list of items was."""
    entries: tuple[Entry, ...]


def divided(document: Mapping[str, Any]) -> Divided:
    """Take the items out; a list that holds anything without a key stays where it is."""
    body = dict(document)
    entries: list[Entry] = []
    for part in ("items", "dropped"):
        _taken(body, part, part, entries)
    sources = body.get("sources")
    if isinstance(sources, Mapping):
        body["sources"] = dict(sources)
        for name, source in sources.items():
            if isinstance(source, Mapping):
                body["sources"][name] = dict(source)
                _taken(body["sources"][name], "dropped", f":{name}", entries)
    return Divided(body, tuple(entries))


def _taken(holder: dict[str, Any], field: str, part: str, entries: list[Entry]) -> None:
    listed = holder.get(field)
    if not isinstance(listed, Sequence) or not all(
        isinstance(item, Mapping) and isinstance(item.get("key"), str) for item in listed
    ):
        return
    for position, item in enumerate(listed):
        facts = {name: item[name] for name in FACTS if name in item}
        own = {name: value for name, value in item.items() if name not in facts}
        entries.append(Entry(part, position, facts, own))
    holder[field] = len(listed)


def united(body: Mapping[str, Any], entries: Iterable[Entry]) -> dict[str, Any]:
    """The report's JSON again; `entries` come in their order within each part."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        parts.setdefault(entry.part, []).append({**entry.facts, **entry.own})
    document = dict(body)
    for part in ("items", "dropped"):
        _put_back(document, part, parts.get(part))
    sources = document.get("sources")
    if isinstance(sources, Mapping):
        for name, source in sources.items():
            if isinstance(source, dict):
                _put_back(source, "dropped", parts.get(f":{name}"))
    return document


def _put_back(holder: dict[str, Any], field: str, listed: list[dict[str, Any]] | None) -> None:
    if isinstance(holder.get(field), int):
        holder[field] = listed or []


async def write(
    index: ArchiveIndex,
    connection: AsyncConnection,
    tenant: str,
    analysis_id: str,
    parts: Divided,
    now: datetime,
) -> None:
    """Put a report in the place of what the analysis had; its own row is there already."""
    await clear(connection, tenant, analysis_id)
    seen = ((entry.key, entry.facts) for entry in parts.entries)
    sample = parts.body.get("sample") is True
    facts = await keep_items(index, connection, tenant, seen, now, sample=sample)
    rows = []
    for entry in parts.entries:
        stored = facts[entry.key]
        shared = _shared(entry.facts, stored)
        differing = {name: fact for name, fact in entry.facts.items() if name not in shared}
        rows.append(
            {
                "tenant": tenant, "analysis_id": analysis_id, "part": entry.part,
                "position": entry.position, "key": entry.key, "shared": shared,
                "own": {**differing, **entry.own},
            }
        )  # fmt: skip
    if rows:
        await connection.execute(insert(verdicts), rows)
    sources = parts.body.get("sources")
    if isinstance(sources, Mapping) and sources:
        named = [{"tenant": tenant, "analysis_id": analysis_id, "source": name} for name in sources]
        await connection.execute(insert(analysis_sources), named)


def _shared(facts: Mapping[str, Any], stored: Mapping[str, Any]) -> list[str]:
    """Names of the facts that are stored just so; to Python `1`, `1.0` and `True` are the same."""
    same = {name: stored[name] for name in facts}
    if all(map(is_, facts.values(), same.values())) or dumps(facts) == dumps(same):
        return list(facts)
    return [name for name, fact in facts.items() if dumps(fact) == dumps(same[name])]


async def keep_items(
    index: ArchiveIndex,
    connection: AsyncConnection,
    tenant: str,
    seen: Iterable[tuple[str, Mapping[str, Any]]],
    now: datetime,
    *,
    sample: bool = False,
) -> Mapping[str, Mapping[str, Any]]:
    """Store items and index them; every one's facts as they are stored now.

    These are those of its first sight, and what was missing then.

    Args:
        index: writes what is searched.
        connection: in a transaction that writes.
        tenant: whose they are.
        seen: keys and facts.
        now: when.
        sample: whether they are made up.
    """
    fresh: dict[str, dict[str, Any]] = {}
    for key, facts in seen:
        fresh[key] = {**facts, **fresh.get(key, {})}
    known: dict[str, Mapping[str, Any]] = {}
    for some in batches(fresh):
        wanted = select(items.c.key, items.c.facts)
        wanted = wanted.where(items.c.tenant == tenant, items.c.key.in_(some))
        for key, stored in await connection.execute(wanted):
            known[key] = stored if isinstance(stored, dict) else {}
    whole = {key: {**facts, **known.get(identity(key), {})} for key, facts in fresh.items()}
    changed = {
        key: facts
        for key, facts in whole.items()
        if facts.keys() != known.get(identity(key), {}).keys()
    }
    await put_items(index, connection, tenant, changed, now, sample=sample)
    return whole


async def put_items(
    index: ArchiveIndex,
    connection: AsyncConnection,
    tenant: str,
    facts: Mapping[str, Mapping[str, Any]],
    now: datetime,
    *,
    sample: bool = False,
    before: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Write items' facts, by key, in the place of what is stored of them, and index them.

    `before` is what was stored of them, see `ArchiveIndex.put`.
    """
    if facts:
        row = index.database.insert(items)
        upsert = row.on_conflict_do_update(
            index_elements=[items.c.tenant, items.c.key], set_={"facts": row.excluded.facts}
        )
        rows = [
            {"tenant": tenant, "key": key, "facts": stored, "seen_at": now}
            for key, stored in facts.items()
        ]
        await connection.execute(upsert, rows)
        await index.put(connection, tenant, facts, facts if sample else (), before or {})


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
    entries = []
    for row in await connection.execute(wanted):
        if not _is_whole(row):
            _log.warning("`%s` %s of %s is damaged, left out", row.part, row.position, analysis_id)
            continue
        whole = {**row.own, **{name: row.facts[name] for name in row.shared}}
        facts = {name: whole[name] for name in FACTS if name in whole}
        own = {name: value for name, value in row.own.items() if name not in facts}
        entries.append(Entry(row.part, row.position, facts, own))
    return entries


def _is_whole(row: Row[*tuple[Any, ...]]) -> bool:
    """Whether a row holds what was written, so that it makes an entry with a key."""
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
    """Delete those of the items that no report and no import holds; how many.

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


def forgotten(report: Mapping[str, Any], keys: Set[str]) -> dict[str, Any]:
    """The report without these items: entries, quotes, findings that cite nothing else, mentions.

    Counts and figures stay as they were counted, and words that a model wrote stay but for the
    keys in them; a note says so.
    """
    left = _unnamed(without(report, keys), _mention(keys))
    gone = len(_held(report) & keys)
    was = "1 item was" if gone == 1 else f"{gone} items were"
    note = f"{was} removed here because the source deleted them; figures and text still count them."
    if gone == 1:
        note = note.replace("them", "it")
    left["quality_notes"] = [*left.get("quality_notes", ()), note]
    return dict(left)


def _held(value: Any) -> set[str]:
    """Every key that an entry of any list has."""
    if isinstance(value, Mapping):
        own = {value["key"]} if isinstance(value.get("key"), str) else set()
        return own.union(*map(_held, value.values()))
    return set().union(*map(_held, value)) if isinstance(value, list | tuple) else set()


def without(value: Any, keys: Set[str]) -> Any:
    """Any JSON value without the entries of its lists that are, or only cite, one of the keys."""
    if isinstance(value, Mapping):
        return {name: without(inner, keys) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without(inner, keys) for inner in value if not _rests_on(inner, keys)]
    return value


def _rests_on(value: Any, keys: Set[str]) -> bool:
    if not isinstance(value, Mapping):
        return isinstance(value, str) and value in keys
    cites = value.get("cites")
    if "text" in value and isinstance(cites, list | tuple) and cites:
        return all(cite in keys for cite in cites)
    return value.get("key") in keys


def mentioned(text: str, keys: Set[str]) -> bool:
    """Whether a text names one of the keys."""
    return bool(_mention(keys).search(text))


def unmentioned(text: str, keys: Set[str]) -> str:
    """The text with `REMOVED` in the place of each of the keys."""
    return _mention(keys).sub(REMOVED, text)


def _mention(keys: Set[str]) -> re.Pattern[str]:
    """A key that is not the beginning or end of another: `reddit:t3_a` but not `reddit:t3_ab`."""
    names = "|".join(re.escape(key) for key in sorted(keys))
    return re.compile(rf"(?<![\w:-])(?:{names})(?![\w-])")


def _unnamed(value: Any, mention: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return mention.sub(REMOVED, value)
    if isinstance(value, Mapping):
        return {name: _unnamed(inner, mention) for name, inner in value.items()}
    return [_unnamed(inner, mention) for inner in value] if isinstance(value, list) else value
