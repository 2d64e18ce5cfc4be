"""Analyses that have ended: each stored, read and deleted in one transaction."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, get_args

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Row, Text, and_, delete, exists, or_, select, type_coerce
from sqlalchemy import update as updating
from sqlalchemy.ext.asyncio import AsyncConnection

from api.features.analyses.store_ports import (
    COMPARISON,
    WATCH,
    AnalysisSummary,
    Counted,
    Filters,
    Listing,
    Purpose,
    State,
    StoredAnalysis,
    Tally,
)
from api.features.archive.search_values import Embed
from api.reports.report import Report
from api.store.database import Database, unbroken
from api.store.entry_embedding import EntryEmbedding
from api.store.item_rows import ItemWriter, clear, no_vectors, read_items
from api.store.record_repository import (
    below,
    cursor_at,
    dated,
    forget_corrections,
    forget_feedback,
    forget_findings,
    text_of,
)
from api.store.report_json import (
    READER,
    ReportParts,
    ReportReader,
    Unreadable,
    join_report,
    mentions,
    split_report,
    version_of,
    without_entries,
    without_items,
)
from api.store.running_repository import BEAT, RunningRepository
from api.store.tables import (
    analyses,
    analysis_sources,
    batches,
    dumps,
    idempotency,
    identity,
    items,
    pages,
    sessions,
    stream_posts,
    verdicts,
    watch_runs,
    watches,
)
from api.store.vectors import StoredVectors
from api.store.watch_repository import forget_watched

AnyRow = Row[*tuple[Any, ...]]
_log = logging.getLogger(__name__)
UNREADABLE = "the stored report cannot be read by this version of listenpost"
DAMAGED = "its stored row is damaged"
NEWEST_FIRST = analyses.c.created_at.desc(), analyses.c.id.desc()
_LISTED = (
    analyses.c.tenant, analyses.c.id, analyses.c.state, analyses.c.created_at, analyses.c.query,
    analyses.c.reason, analyses.c.report_version, analyses.c.summary,
)  # fmt: skip
# Rows of statistics that are read between two chances for other tasks to run.
_ROWS_AT_ONCE = 100
# A watch's run is stored under the time when it began; its analysis may have waited in the queue.
_LONGEST_QUEUED = timedelta(days=1)


class AnalysisRepository(RunningRepository):
    """Implements the part of `Store` that concerns analyses."""

    def __init__(
        self,
        database: Database,
        reader: ReportReader = READER,
        beat: float = BEAT,
        embed: Embed = no_vectors,
        vectors: StoredVectors | None = None,
        embedding: EntryEmbedding | None = None,
    ) -> None:
        """Set how reports are read and items indexed.

        Args:
            database: with its tables.
            reader: reads stored reports.
            beat: seconds between two heartbeats.
            embed: makes the vectors of what is stored.
            vectors: finds the nearest vectors; None: the archive is searched by words alone.
            embedding: makes vectors of a server beside them; None: there is no such server.
        """
        super().__init__(database, beat)
        self._writer, self._vectors = ItemWriter(database, embed, vectors is not None), vectors
        self._reader, self.embedding = reader, embedding

    @unbroken
    async def finish(self, tenant: str, report: Report, work_id: str | None = None) -> bool:
        document = report.model_dump(mode="json")
        parts = split_report(document)
        columns = self._columns(document, parts)
        columns |= {"query": report.query, "tally": Tally.of(report).model_dump(mode="json")}
        row = self._database.insert(analyses).values(
            tenant=tenant, id=report.id, created_at=report.created_at, **columns
        )
        upsert = row.on_conflict_do_update(
            index_elements=[analyses.c.tenant, analyses.c.id], set_={name: row.excluded[name] for name in columns}
        )
        as_begun = updating(analyses).where(*_is(tenant, report.id), *self._as_begun(work_id)).values(**columns)
        async with self._database.writing(alone=True) as connection:
            written = await connection.execute(upsert if work_id is None else as_begun)
            stored = work_id is None or written.rowcount > 0
            if stored:
                await self._writer.write_report(connection, tenant, report.id, parts)
        if stored and self.embedding is not None and not report.sample:
            self.embedding.follow(tenant)
        return stored

    @unbroken
    async def get(self, tenant: str, analysis_id: str) -> StoredAnalysis | None:
        wanted = select(*_LISTED).where(*_is(tenant, analysis_id))
        async with self._database.reading() as connection:
            row = (await connection.execute(wanted)).one_or_none()
            if row is None:
                return None
            state, reason = state_of(row)
            kept = StoredAnalysis(row.id, row.tenant, state, row.created_at, row.query, None, reason)
            if state != "done":
                return kept
            document = await _document(connection, tenant, analysis_id)
        try:
            return replace(kept, report=self._reader.report(document))
        except Unreadable as error:
            _log.warning("the report %s cannot be read: %s", analysis_id, error)
            return replace(kept, state="failed", reason=f"{UNREADABLE} ({error})")

    @unbroken
    async def listing(self, tenant: str, filters: Filters, limit: int, cursor: str | None = None) -> Listing:
        where: list[ColumnElement[bool]] = [analyses.c.tenant == tenant]
        if filters.decision is not None:
            where.append(analyses.c.decision == filters.decision)
        if filters.source is not None:
            mine = and_(
                analysis_sources.c.tenant == analyses.c.tenant,
                analysis_sources.c.analysis_id == analyses.c.id,
            )
            where.append(exists().where(mine, analysis_sources.c.source == filters.source))
        if filters.since is not None:
            where.append(analyses.c.created_at >= filters.since)
        if filters.until is not None:
            where.append(analyses.c.created_at < filters.until)
        if filters.prefix:
            where.append(analyses.c.id.startswith(filters.prefix, autoescape=True))
        after = () if cursor is None else (below(cursor, analyses.c.created_at, analyses.c.id),)
        wanted = select(*_LISTED).where(*where, *after).order_by(*NEWEST_FIRST).limit(max(limit, 1) + 1)
        if self._database.sqlite:
            wanted = wanted.where(dated(analyses.c.created_at))
        async with self._database.reading() as connection:
            rows = (await connection.execute(wanted)).all()
            shown = rows[: max(limit, 1)]
            if self._database.sqlite:  # where they would stand, since to look through all takes longer with each
                until = (analyses.c.created_at >= shown[-1].created_at,) if len(rows) > len(shown) else ()
                await _name_undated(connection, tenant, *after, *until)
            listed = tuple([await self._listed(connection, row) for row in shown])
        if len(rows) == len(shown):
            return Listing(listed, None)
        return Listing(listed, cursor_at(shown[-1].created_at, shown[-1].id))

    @unbroken
    async def delete(self, tenant: str, analysis_id: str) -> bool:
        claims = idempotency.c.tenant == tenant, idempotency.c.analysis_id == analysis_id
        async with self._database.writing(alone=True) as connection:
            await clear(connection, tenant, analysis_id)
            await connection.execute(delete(idempotency).where(*claims))
            gone = await connection.execute(delete(analyses).where(*_is(tenant, analysis_id)))
        return gone.rowcount > 0

    @unbroken
    async def forget(self, keys: Iterable[str]) -> int:
        named = frozenset(keys)
        gone: set[str] = set()
        async with self._database.writing(alone=True) as connection:
            for some in batches(named):  # first, so that nobody puts one that waits into the archive behind this
                await connection.execute(delete(stream_posts).where(stream_posts.c.key.in_(some)))
            for some in batches(named):
                held = select(items.c.key).where(items.c.key.in_(some))
                gone.update(await connection.scalars(held))
                await self._rewrite(connection, some, named)
                await connection.execute(delete(items).where(items.c.key.in_(some)))
            for key in named:
                await connection.execute(delete(pages).where(_holds(pages.c.text, key)))
                await _forget_in_sessions(connection, key, named)
            await forget_feedback(connection, named)
            await forget_corrections(connection, named)
            await forget_watched(connection, named)
        return len(gone)

    async def _rewrite(self, connection: AsyncConnection, some: list[str], named: frozenset[str]) -> None:
        """Save every analysis that holds one of `some` without any of `named`."""
        touched = select(verdicts.c.tenant, verdicts.c.analysis_id)
        touched = touched.where(verdicts.c.key.in_(some)).distinct()
        for tenant, analysis_id in (await connection.execute(touched)).all():
            document = await _document(connection, tenant, analysis_id)
            with suppress(Unreadable):  # then it loses the items in the version it has
                document = self._reader.upgraded(document)
            left = without_items(document, named)
            if len(left.get("findings", ())) != len(document.get("findings", ())):
                await forget_findings(connection, tenant, analysis_id)
            parts = split_report(left)
            same = updating(analyses).where(*_is(tenant, analysis_id))
            await connection.execute(same.values(**self._columns(left, parts)))
            await self._writer.write_report(connection, tenant, analysis_id, parts)

    async def _listed(self, connection: AsyncConnection, row: AnyRow) -> AnalysisSummary:
        """The analysis with its stored summary, which is made from the report when an older version stored it."""
        summary = None
        state, reason = state_of(row)
        if state == "done":
            version = row.report_version
            older = isinstance(version, int) and version < self._reader.version
            document = await _document(connection, row.tenant, row.id) if older else row.summary
            try:
                summary = self._reader.summary(document if isinstance(document, Mapping) else {})
            except Unreadable as error:
                _log.warning("the summary of %s cannot be read: %s", row.id, error)
        return AnalysisSummary(row.id, row.tenant, state, row.created_at, row.query, summary, reason)

    def _columns(self, document: Mapping[str, Any], parts: ReportParts) -> dict[str, Any]:
        decision = document.get("decision")
        try:
            summary = self._reader.summary(document).model_dump(mode="json")
        except Unreadable:
            summary = None
        return {
            "state": "done",
            "run_id": None,
            "reason": None,
            "decision": decision if isinstance(decision, str) else None,
            "report_version": version_of(document),
            "summary": summary,
            "body": parts.body,
        }

    @unbroken
    async def each_counted(
        self, tenant: str, since: datetime | None, most: int, take: Callable[[Counted], None]
    ) -> bool:
        where: list[ColumnElement[bool]] = [analyses.c.tenant == tenant]
        if since is not None:
            where.append(analyses.c.created_at >= since)
        async with self._database.reading() as connection:
            if self._database.sqlite:
                where.append(dated(analyses.c.created_at))
                await _name_undated(connection, tenant)
            wanted = select(
                analyses.c.id, analyses.c.state, analyses.c.reason, analyses.c.created_at,
                analyses.c.tally,
            )  # fmt: skip
            wanted = wanted.where(*where).order_by(*NEWEST_FIRST).limit(most + 1)
            left = most
            async with connection.stream(wanted) as rows:
                async for page in rows.partitions(_ROWS_AT_ONCE):
                    for row in page[:left]:
                        take(_counted(row))
                    left -= len(page)
        return left < 0

    @unbroken
    async def reports_with(self, tenant: str, keys: Iterable[str]) -> Mapping[str, str]:
        named = {identity(key): key for key in keys}
        newest: dict[str, str] = {}
        same = and_(analyses.c.tenant == verdicts.c.tenant, analyses.c.id == verdicts.c.analysis_id)
        wanted = select(verdicts.c.key, verdicts.c.analysis_id).join_from(verdicts, analyses, same)
        wanted = wanted.where(verdicts.c.tenant == tenant, verdicts.c.part == "items").order_by(*NEWEST_FIRST)
        async with self._database.reading() as connection:
            for some in batches(named):
                for key, analysis_id in await connection.execute(wanted.where(verdicts.c.key.in_(some))):
                    newest.setdefault(named[key], analysis_id)
        return newest

    @unbroken
    async def purposes(self, tenant: str, begun: Mapping[str, datetime]) -> Mapping[str, Purpose]:
        known: dict[str, Purpose] = {}
        if not begun:
            return known
        first, last = min(begun.values()), max(begun.values())
        async with self._database.reading() as connection:
            for some in batches(begun):
                claims = select(idempotency.c.key, idempotency.c.analysis_id).where(
                    idempotency.c.tenant == tenant, idempotency.c.analysis_id.in_(some)
                )
                for key, analysis_id in await connection.execute(claims):
                    if key.startswith(COMPARISON):
                        known[analysis_id] = Purpose("comparison")
                    elif key.startswith(WATCH):
                        known[analysis_id] = Purpose("watch")
            # a run that has ended knows its watch
            same = and_(watches.c.tenant == watch_runs.c.tenant, watches.c.id == watch_runs.c.watch_id)
            span = first - _LONGEST_QUEUED, last + _LONGEST_QUEUED
            runs = select(watches.c.id, watches.c.name, watch_runs.c.body)
            runs = runs.join_from(watch_runs, watches, same)
            runs = runs.where(watch_runs.c.tenant == tenant, watch_runs.c.created_at.between(*span))
            for watch_id, name, body in await connection.execute(runs):
                report_id = body.get("report_id") if isinstance(body, Mapping) else None
                if isinstance(report_id, str) and report_id in begun:
                    known[report_id] = Purpose("watch", watch_id, name)
        return known


def _is(tenant: str, analysis_id: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return analyses.c.tenant == tenant, analyses.c.id == analysis_id


async def _name_undated(connection: AsyncConnection, tenant: str, *within: ColumnElement[bool]) -> None:
    """Log the rows whose time SQLite cannot read, which no listing shows."""
    lost = select(analyses.c.id).where(analyses.c.tenant == tenant, ~dated(analyses.c.created_at), *within)
    for analysis_id in await connection.scalars(lost):
        _log.warning("the analysis `%s` is damaged and is not listed", analysis_id)


async def _document(connection: AsyncConnection, tenant: str, analysis_id: str) -> dict[str, Any]:
    """A report's JSON in the version it was stored in; empty when that is damaged."""
    body = await connection.scalar(select(analyses.c.body).where(*_is(tenant, analysis_id)))
    entries = await read_items(connection, tenant, analysis_id)
    return join_report(body, entries) if isinstance(body, Mapping) else {}


def state_of(row: AnyRow) -> tuple[State, str | None]:
    """The state of an analysis and its reason; any unknown state is a damaged row."""
    return (row.state, row.reason) if row.state in get_args(State) else ("failed", DAMAGED)


def _counted(row: AnyRow) -> Counted:
    state, _ = state_of(row)
    tally = None
    if state == "done":
        try:
            tally = Tally.model_validate(row.tally)
        except ValidationError:
            _log.warning("the report %s cannot be read and is not counted", row.id)
            state = "failed"
    return Counted(row.id, state, row.created_at, tally)


def _holds(column: Any, key: str) -> ColumnElement[bool]:
    """Whether a stored text names a key: it is JSON within JSON, or plain text."""
    once = dumps(key)[1:-1]
    twice = dumps(once)[1:-1]
    text = type_coerce(column, Text)
    return or_(*(text.contains(form, autoescape=True) for form in {once, twice}))


async def _forget_in_sessions(connection: AsyncConnection, key: str, named: frozenset[str]) -> None:
    """Take the items' entries out of sessions; delete those whose words still name one."""
    naming = select(sessions).where(_holds(sessions.c.text, key))
    for row in (await connection.execute(naming)).all():
        same = sessions.c.tenant == row.tenant, sessions.c.id == row.id
        left = None
        with suppress(ValueError, RecursionError):
            left = dumps(without_entries(json.loads(text_of(row.text) or ""), named))
        if left is None or mentions(left, named):
            await connection.execute(delete(sessions).where(*same))
        else:
            await connection.execute(updating(sessions).where(*same).values(text=left))
