"""Imports of files: what each holds, how far it is stored, and how it is removed."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, Update, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from api.core.items import Item
from api.errors import Conflict
from api.features.archive.import_file import Merged, comment_ids, merged, without_comments
from api.features.archive.imports import (
    MOST_REFUSALS,
    FileIdentity,
    Import,
    ImportBatch,
    ImportPosition,
    ImportProgress,
    Refusal,
)
from api.store.analysis_repository import AnalysisRepository
from api.store.database import unbroken
from api.store.item_rows import drop_unheld, stored_facts
from api.store.tables import as_stored, batches, identity, imported, imports, items, refusals, replies, verdicts

# Items that are read together: one may have hundreds of comments.
_STEP = 100
# Items that are looked through in one transaction.
_PAGE = 1_000
# The digest of an import that is being removed, so that no process continues it; no file has it.
_REMOVING = "removing"
_UNDER_WAY = "another process goes on with this import, or has removed it; look: `listenpost import list`"


class ImportRepository(AnalysisRepository):
    """Imports and their entries in the database."""

    @unbroken
    async def begin_import(self, tenant: str, identity: FileIdentity) -> Import:
        now = datetime.now(UTC)
        new = Import(f"imp_{secrets.token_hex(6)}", identity, ImportPosition(), ImportProgress(), now, None)
        row = {
            "tenant": tenant, "id": new.id, "name": identity.name, "form": identity.form,
            "digest": identity.digest, "offset": 0, "line": 0, "intake": asdict(ImportProgress()),
            "created_at": now,
        }  # fmt: skip
        same = select(imports).where(imports.c.tenant == tenant, imports.c.digest == identity.digest)
        async with self._database.writing(alone=True) as connection:
            known = (await connection.execute(same.limit(1))).one_or_none() if identity.digest else None
            if known is not None:
                return _import(known)
            await connection.execute(insert(imports), row)
        return new

    @unbroken
    async def keep_batch(self, tenant: str, begun: Import, batch: ImportBatch) -> Import:
        async with self._database.writing(alone=True) as connection:
            progress = await self._keep(connection, tenant, begun.id, batch.items)
            before = begun.progress.refused
            kept = batch.refusals[: max(MOST_REFUSALS - before, 0)]
            aside = [
                {"tenant": tenant, "import_id": begun.id, "number": number, "line": refusal.line,
                 "reason": refusal.reason, "start": refusal.start}
                for number, refusal in enumerate(kept, before)
            ]  # fmt: skip
            if aside:
                await connection.execute(insert(refusals), aside)
            progress += begun.progress
            progress += ImportProgress(refused=len(batch.refusals), left_out=batch.left_out)
            moved = update(imports).where(*_is(tenant, begun.id), imports.c.digest != _REMOVING)
            moved = moved.where(imports.c.offset == begun.position.offset)
            moved = moved.where(imports.c.line == begun.position.line)
            moved = moved.values(offset=batch.position.offset, line=batch.position.line, intake=asdict(progress))
            if not (await connection.execute(moved)).rowcount:
                raise Conflict(_UNDER_WAY)
        if self._vectors is not None:
            self._vectors.follow(tenant)
        return replace(begun, position=batch.position, progress=progress, finished_at=None)

    async def finish_import(self, tenant: str, begun: Import) -> Import:
        now = datetime.now(UTC)
        await self._write(update(imports).where(*_is(tenant, begun.id)).values(finished_at=now))
        if self.embedding is not None:
            self.embedding.follow(tenant)
        return replace(begun, finished_at=now)

    async def hold_posts(
        self, connection: AsyncConnection, tenant: str, holder: FileIdentity, posts: Sequence[Item], *, sample: bool
    ) -> None:
        """Store posts in the archive under a permanent import, whose id is the holder's digest."""
        now, id_ = datetime.now(UTC), holder.digest
        row = self._database.insert(imports).values(
            tenant=tenant, id=id_, name=holder.name, form=holder.form, digest="", offset=0, line=0,
            intake=asdict(ImportProgress()), created_at=now, finished_at=now,
        )  # fmt: skip
        await connection.execute(row.on_conflict_do_nothing())
        known = (await connection.execute(select(imports).where(*_is(tenant, id_)))).one()
        progress = await self._keep(connection, tenant, id_, posts, sample=sample)
        progress += _import(known).progress
        counted = update(imports).where(*_is(tenant, id_)).values(intake=asdict(progress), finished_at=now)
        await connection.execute(counted)

    async def imports(self, tenant: str) -> Sequence[Import]:
        newest = imports.c.created_at.desc(), imports.c.id
        wanted = select(imports).where(imports.c.tenant == tenant).order_by(*newest)
        return [_import(row) for row in await self._rows(wanted)]

    async def refusals(self, tenant: str, import_id: str) -> Sequence[Refusal]:
        mine = refusals.c.tenant == tenant, refusals.c.import_id == import_id
        wanted = select(refusals).where(*mine).order_by(refusals.c.number)
        return [Refusal(row.line, row.reason, row.start) for row in await self._rows(wanted)]

    async def remove_import(self, tenant: str, import_id: str) -> int | None:
        # marked first, so that no process continues it; then some items at a time
        if not await self._mark_removing(tenant, import_id):
            return None
        gone, rest = 0, True
        while rest:
            removed, rest = await self._remove_some(tenant, import_id)
            gone += removed
        return gone

    async def _mark_removing(self, tenant: str, import_id: str) -> int:
        removing = update(imports).where(*_is(tenant, import_id)).values(digest=_REMOVING)
        return await self._write(removing)

    @unbroken
    async def _remove_some(self, tenant: str, import_id: str) -> tuple[int, bool]:
        """Remove some items of an import; returns their number, and whether there are more."""
        mine = imported.c.tenant == tenant, imported.c.import_id == import_id
        some = select(imported.c.key, imported.c.comments).where(*mine).limit(_STEP * 4)
        async with self._database.writing(alone=True) as connection:
            brought = {row.key: row.comments or [] for row in await connection.execute(some)}
            if not brought:
                await connection.execute(delete(imports).where(*_is(tenant, import_id)))
                return 0, False
            these = *mine, as_stored(imported.c.key).in_(brought)
            await connection.execute(delete(imported).where(*these))
            gone = await drop_unheld(connection, tenant, brought)
            await self._take_comments(connection, tenant, brought)
        return gone, True

    async def _take_comments(
        self, connection: AsyncConnection, tenant: str, brought: Mapping[str, Sequence[str]]
    ) -> None:
        """Remove comments that only this import brought from items that other imports or reports hold."""
        named = {key for key, ids in brought.items() if ids}
        facts = await stored_facts(connection, tenant, named)
        left = {
            stored.get("key", key): without_comments(stored, frozenset(brought[key])) for key, stored in facts.items()
        }
        await _keep_reports(connection, tenant, facts)
        await self._writer.put(connection, tenant, left)

    async def keys_of(self, tenant: str, ids: Iterable[str]) -> Sequence[str]:
        wanted = frozenset(ids)
        keys: list[str] = []
        after = ""
        while page := await self._page(tenant, after):
            for key, facts in page:
                known = {facts.get("key"), facts.get("id"), str(facts.get("key")).split(":", 1)[-1]}
                if known & wanted:
                    keys.append(str(facts.get("key", key)))
            after = page[-1][0]
        return keys

    async def forget_comments(self, tenant: str, ids: Iterable[str]) -> int:
        wanted = frozenset(id_.removeprefix("t1_") for id_ in ids)
        gone, after = 0, ""
        while page := await self._page(tenant, after):
            keys = [key for key, facts in page if not wanted.isdisjoint(comment_ids(facts))]
            for some in batches(keys):
                gone += await self._drop_comments(tenant, some, wanted)
            after = page[-1][0]
        return gone

    async def forget_replies(self, keys: Sequence[str]) -> int:
        gone = 0
        for some in batches(keys):
            rows = await self._rows(select(replies.c.tenant, replies.c.key).where(replies.c.reply.in_(some)).distinct())
            ids = frozenset(key.partition(":")[2] for key in some)
            for tenant in {row.tenant for row in rows}:
                gone += await self._drop_comments(tenant, [row.key for row in rows if row.tenant == tenant], ids)
        return gone

    @unbroken
    async def _drop_comments(self, tenant: str, keys: list[str], ids: frozenset[str]) -> int:
        held = verdicts.c.tenant == tenant, as_stored(verdicts.c.key).in_(keys)
        async with self._database.writing(alone=True) as connection:
            stored = await stored_facts(connection, tenant, keys)
            left = {str(facts.get("key", key)): without_comments(facts, ids) for key, facts in stored.items()}
            await self._writer.put(connection, tenant, left)
            for row in (await connection.execute(select(verdicts).where(*held))).all():
                if isinstance(row.own, dict) and not ids.isdisjoint(comment_ids(row.own)):
                    own = without_comments(row.own, ids)
                    await connection.execute(_same(row).values(own=own))
        return sum(len(ids.intersection(comment_ids(facts))) for facts in stored.values())

    async def _page(self, tenant: str, after: str) -> list[tuple[str, Mapping[str, Any]]]:
        wanted = select(items.c.key, items.c.facts).where(items.c.tenant == tenant)
        wanted = wanted.where(as_stored(items.c.key) > after)
        wanted = wanted.order_by(items.c.key).limit(_PAGE)
        return [(row.key, row.facts if isinstance(row.facts, dict) else {}) for row in await self._rows(wanted)]

    async def _keep(
        self, connection: AsyncConnection, tenant: str, import_id: str, batch: Sequence[Item], *, sample: bool = False
    ) -> ImportProgress:
        """Each item once, merged with what is stored of it, a few at a time."""
        joined: dict[str, dict[str, Any]] = {}
        progress = ImportProgress()
        for item in batch:
            fresh = item.model_dump(mode="json")
            earlier = joined.get(item.key)
            if earlier is None:
                joined[item.key] = fresh
            else:
                both = merged(earlier, fresh)
                joined[item.key] = both.facts
                progress += ImportProgress(merged=both.again, over=both.over)
        keys = list(joined)
        for start in range(0, len(keys), _STEP):
            some = keys[start : start + _STEP]
            stored = await stored_facts(connection, tenant, map(identity, some))
            results = {key: merged(stored.get(identity(key)), joined[key]) for key in some}
            changed = {
                key: result.facts for key, result in results.items() if result.facts != stored.get(identity(key))
            }
            before = {key: stored[identity(key)] for key in changed if identity(key) in stored}
            await _keep_reports(connection, tenant, {identity(key): facts for key, facts in before.items()})
            await self._writer.put(connection, tenant, changed, before=before, sample=sample)
            await self._hold(connection, tenant, import_id, results)
            for result in results.values():
                progress += ImportProgress(int(result.new), result.gain, result.again, result.over)
        return progress

    async def _hold(
        self,
        connection: AsyncConnection,
        tenant: str,
        import_id: str,
        results: Mapping[str, Merged],
    ) -> None:
        """Note what the import holds, with the comments that it brought before."""
        mine = imported.c.tenant == tenant, imported.c.import_id == import_id
        known = select(imported.c.key, imported.c.comments).where(*mine, imported.c.key.in_(list(results)))
        brought = {row.key: row.comments or [] for row in await connection.execute(known)}
        rows = [
            {
                "tenant": tenant, "import_id": import_id, "key": key,
                "comments": result.brought(brought.get(identity(key), ())),
            }
            for key, result in results.items()
            if result.comments or identity(key) not in brought
        ]  # fmt: skip
        if rows:
            row = self._database.insert(imported)
            keys = [imported.c.tenant, imported.c.import_id, imported.c.key]
            upsert = row.on_conflict_do_update(index_elements=keys, set_={"comments": row.excluded.comments})
            await connection.execute(upsert, rows)


def _is(tenant: str, import_id: str) -> tuple[Any, Any]:
    return imports.c.tenant == tenant, imports.c.id == import_id


async def _keep_reports(connection: AsyncConnection, tenant: str, before: Mapping[str, Mapping[str, Any]]) -> None:
    """Before items change: what reports share with them as it is now becomes the reports' own.

    `before` are facts by the items' keys as they are stored, of those that are about to change.
    """
    for some in batches(before):
        mine = verdicts.c.tenant == tenant, as_stored(verdicts.c.key).in_(some)
        for row in (await connection.execute(select(verdicts).where(*mine))).all():
            if not (isinstance(row.shared, list) and isinstance(row.own, dict)):
                continue
            facts = before[row.key]
            own = {**{name: facts[name] for name in row.shared if name in facts}, **row.own}
            await connection.execute(_same(row).values(shared=[], own=own))


def _same(row: Row[*tuple[Any, ...]]) -> Update:
    """An update of this row of `verdicts`."""
    return update(verdicts).where(
        verdicts.c.tenant == row.tenant,
        verdicts.c.analysis_id == row.analysis_id,
        verdicts.c.part == row.part,
        verdicts.c.position == row.position,
    )


def _import(row: Row[*tuple[Any, ...]]) -> Import:
    known = row.intake if isinstance(row.intake, dict) else {}
    progress = ImportProgress(**{name: known[name] for name in asdict(ImportProgress()) if name in known})
    identity, position = (
        FileIdentity(row.name, row.form, row.digest),
        ImportPosition(row.offset, row.line),
    )
    return Import(row.id, identity, position, progress, row.created_at, row.finished_at)
