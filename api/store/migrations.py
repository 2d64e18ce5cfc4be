"""Steps from what was stored once to today's: of the tables at open, of a report when it is read.

A step that was released is never edited: a change is a new step. All missing steps of the tables
run in one transaction, alone, so that a process killed in the middle leaves the version that was
there, and of two that open at once one migrates and the other finds it done. A report that cannot
be read says so; one of a newer program is tried as it is, since unknown fields are carried along.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import ValidationError
from sqlalchemy import func as sql
from sqlalchemy import insert, inspect, select
from sqlalchemy.ext.asyncio import AsyncConnection

from api.errors import StoreUnavailable
from api.services.evidence.figures import Timeline, filled
from api.services.reporting.report import VERSION, Report, Summary
from api.services.schemas import Published, passed_unjudged
from api.store.database import VARIABLE, Database
from api.store.tables import schema_version

Step = Callable[[dict[str, Any]], dict[str, Any]]
P = TypeVar("P", bound=Published)

_VERSIONS = """
CREATE TABLE IF NOT EXISTS schema_version (
    version INTEGER PRIMARY KEY, applied_at {moment} NOT NULL
)
"""

_SQLITE = {
    "moment": "DATETIME",
    "bytes": "BLOB",
    "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "words": """
        CREATE VIRTUAL TABLE chunk_words USING fts5 (
            tokens, content='chunks', content_rowid='number',
            tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* Co'"
        )
        """,
    "words_index": "",
    "words_added": """
        CREATE TRIGGER chunks_added AFTER INSERT ON chunks BEGIN
            INSERT INTO chunk_words (rowid, tokens) VALUES (new.number, new.tokens);
        END
        """,
    "words_removed": """
        CREATE TRIGGER chunks_removed AFTER DELETE ON chunks BEGIN
            INSERT INTO chunk_words (chunk_words, rowid, tokens)
            VALUES ('delete', old.number, old.tokens);
        END
        """,
}
_POSTGRESQL = {
    "moment": "TIMESTAMP WITH TIME ZONE",
    "bytes": "BYTEA",
    "serial": "BIGSERIAL PRIMARY KEY",
    "words": "ALTER TABLE chunks ADD COLUMN words TSVECTOR",
    # without `fastupdate`: what waits to be put in its place is read whole by every search
    "words_index": "CREATE INDEX chunks_by_words ON chunks USING gin (words) WITH (fastupdate=off)",
    "words_added": "",
    "words_removed": "",
}
"""What the two databases write differently."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (  # 1: analyses, their items and verdicts, the ledger, pages
        """
        CREATE TABLE runs (
            id TEXT PRIMARY KEY, place TEXT NOT NULL, pid BIGINT NOT NULL, started TEXT NOT NULL,
            seen_at {moment} NOT NULL
        )
        """,
        """
        CREATE TABLE analyses (
            tenant TEXT NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL, run_id TEXT,
            created_at {moment} NOT NULL, query TEXT NOT NULL, reason TEXT, decision TEXT,
            report_version INTEGER, summary TEXT, body TEXT,
            PRIMARY KEY (tenant, id)
        )
        """,
        "CREATE INDEX analyses_newest ON analyses (tenant, created_at, id)",
        "CREATE INDEX analyses_running ON analyses (run_id) WHERE state = 'running'",
        """
        CREATE TABLE analysis_sources (
            tenant TEXT NOT NULL, analysis_id TEXT NOT NULL, source TEXT NOT NULL,
            PRIMARY KEY (tenant, analysis_id, source),
            FOREIGN KEY (tenant, analysis_id) REFERENCES analyses (tenant, id) ON DELETE CASCADE
        )
        """,
        """
        CREATE TABLE items (
            tenant TEXT NOT NULL, key TEXT NOT NULL, facts TEXT NOT NULL, seen_at {moment} NOT NULL,
            PRIMARY KEY (tenant, key)
        )
        """,
        """
        CREATE TABLE verdicts (
            tenant TEXT NOT NULL, analysis_id TEXT NOT NULL, part TEXT NOT NULL,
            position INTEGER NOT NULL, key TEXT NOT NULL, shared TEXT NOT NULL, own TEXT NOT NULL,
            PRIMARY KEY (tenant, analysis_id, part, position),
            FOREIGN KEY (tenant, analysis_id) REFERENCES analyses (tenant, id) ON DELETE CASCADE,
            FOREIGN KEY (tenant, key) REFERENCES items (tenant, key)
        )
        """,
        "CREATE INDEX verdicts_of_item ON verdicts (key, tenant)",
        """
        CREATE TABLE ledger (
            scope TEXT NOT NULL, day DATE NOT NULL, units BIGINT NOT NULL,
            PRIMARY KEY (scope, day)
        )
        """,
        """
        CREATE TABLE pages (key TEXT PRIMARY KEY, text TEXT NOT NULL, stored_at {moment} NOT NULL)
        """,
    ),
    (  # 2: API keys, chat sessions, idempotency keys
        """
        CREATE TABLE keys (
            id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, digest TEXT NOT NULL UNIQUE,
            created_at {moment} NOT NULL, revoked BOOLEAN NOT NULL
        )
        """,
        """
        CREATE TABLE sessions (
            tenant TEXT NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL, saved_at {moment} NOT NULL,
            PRIMARY KEY (tenant, id)
        )
        """,
        """
        CREATE TABLE idempotency (
            tenant TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL,
            analysis_id TEXT NOT NULL, claimed_at {moment} NOT NULL,
            PRIMARY KEY (tenant, key)
        )
        """,
    ),
    (  # 3: what is counted of a report, and what people thought of it
        "ALTER TABLE analyses ADD COLUMN tally TEXT",
        """
        CREATE TABLE feedback (
            tenant TEXT NOT NULL, analysis_id TEXT NOT NULL, author TEXT NOT NULL,
            subject TEXT NOT NULL, target TEXT NOT NULL, item_key TEXT, rating TEXT NOT NULL,
            comment TEXT NOT NULL, created_at {moment} NOT NULL,
            PRIMARY KEY (tenant, analysis_id, subject, target, author),
            FOREIGN KEY (tenant, analysis_id) REFERENCES analyses (tenant, id) ON DELETE CASCADE
        )
        """,
        "CREATE INDEX feedback_on_item ON feedback (target) WHERE subject = 'item'",
    ),
    (  # 4: the archive; `words` is a virtual table on SQLite and a column on PostgreSQL
        """
        CREATE TABLE chunks (
            number {serial}, tenant TEXT NOT NULL, key TEXT NOT NULL,
            comment TEXT NOT NULL, part INTEGER NOT NULL, source TEXT NOT NULL,
            thread TEXT NOT NULL, sample BOOLEAN NOT NULL, created_at {moment},
            tokens TEXT NOT NULL, vector {bytes},
            FOREIGN KEY (tenant, key) REFERENCES items (tenant, key) ON DELETE CASCADE
        )
        """,
        "CREATE UNIQUE INDEX chunks_of_item ON chunks (tenant, key, comment, part)",
        "CREATE INDEX chunks_of_tenant ON chunks (tenant, sample, number)",
        "CREATE INDEX chunks_unread ON chunks (tenant) WHERE vector IS NULL",
        "{words}",
        "{words_index}",
        "{words_added}",
        "{words_removed}",
        # what is there already is read by the first search, see `ArchivePart`
        """
        INSERT INTO chunks (tenant, key, comment, part, source, thread, sample, tokens)
        SELECT tenant, key, '', 0, '', key, FALSE, '' FROM items
        """,
    ),
    (  # 5: what was brought in from files
        """
        CREATE TABLE imports (
            tenant TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, form TEXT NOT NULL,
            digest TEXT NOT NULL, "offset" BIGINT NOT NULL, line BIGINT NOT NULL,
            intake TEXT NOT NULL, created_at {moment} NOT NULL, finished_at {moment},
            PRIMARY KEY (tenant, id)
        )
        """,
        """
        CREATE TABLE imported (
            tenant TEXT NOT NULL, import_id TEXT NOT NULL, key TEXT NOT NULL,
            comments TEXT NOT NULL,
            PRIMARY KEY (tenant, import_id, key),
            FOREIGN KEY (tenant, import_id) REFERENCES imports (tenant, id) ON DELETE CASCADE,
            FOREIGN KEY (tenant, key) REFERENCES items (tenant, key) ON DELETE CASCADE
        )
        """,
        "CREATE INDEX imported_of_item ON imported (key, tenant)",
        """
        CREATE TABLE refusals (
            tenant TEXT NOT NULL, import_id TEXT NOT NULL, number BIGINT NOT NULL,
            line BIGINT NOT NULL, reason TEXT NOT NULL, start TEXT NOT NULL,
            PRIMARY KEY (tenant, import_id, number),
            FOREIGN KEY (tenant, import_id) REFERENCES imports (tenant, id) ON DELETE CASCADE
        )
        """,
    ),
)

LATEST = len(MIGRATIONS)


async def migrate(database: Database, to: int = LATEST) -> None:
    """Bring the database to version `to`; nothing is written when it is there already.

    Raises:
        StoreUnavailable: it cannot be used, or was made by a newer version of this program, or by
            another one.
    """
    async with database.reading() as connection:
        version = await _version(connection)
    if version > LATEST:
        raise StoreUnavailable(
            f"the database of {VARIABLE} has schema version {version}, newer than {LATEST} of this "
            "program; upgrade listenpost"
        )
    if version >= to:
        return
    types = _SQLITE if database.sqlite else _POSTGRESQL
    async with database.writing(alone=True) as connection:
        await connection.exec_driver_sql(_VERSIONS.format(**types))
        for version in range(await _version(connection) + 1, to + 1):
            for statement in MIGRATIONS[version - 1]:
                if written := statement.format(**types):
                    await connection.exec_driver_sql(written)
            stamp = {"version": version, "applied_at": datetime.now(UTC)}
            await connection.execute(insert(schema_version), stamp)


async def _version(connection: AsyncConnection) -> int:
    """The newest step that was taken; 0 for an empty database."""
    if not await connection.run_sync(lambda sync: inspect(sync).has_table(schema_version.name)):
        return 0
    version = await connection.scalar(select(sql.max(schema_version.c.version)))
    if version is None:
        return 0
    if not isinstance(version, int) or version < 1:
        raise StoreUnavailable(
            f"the database of {VARIABLE} is another program's: its `schema_version` is none of "
            "ours; name another database"
        )
    return version


class Unreadable(Exception):
    """A stored report that this program cannot read; the text says where, not what is there."""


def version_of(document: Mapping[str, Any]) -> int:
    """The version a report says it has; 1 when it says nothing."""
    version = document.get("version")
    return version if isinstance(version, int) and version >= 1 else 1


@dataclass(frozen=True, slots=True)
class Upgrades:
    """How a report gets from the version it was written in to `to`."""

    steps: Mapping[int, Step]
    """Version -> what makes the next one of it; a step need not write `version` itself."""
    to: int

    def __call__(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The report's JSON as version `to`; that of a newer program as it is.

        Raises:
            Unreadable: a step found something else than its version has.
        """
        now = dict(document)
        for version in range(version_of(document), self.to):
            try:
                now = {**self.steps[version](now), "version": version + 1}
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise Unreadable(f"its version {version} cannot be upgraded") from error
        return now

    def report(self, document: Mapping[str, Any]) -> Report:
        """The report of today's version.

        Raises:
            Unreadable: it is none, or one of a newer program that changed too much.
        """
        return _read(Report, self(document))

    def summary(self, document: Mapping[str, Any]) -> Summary:
        """What a listing shows of it, whatever else it holds.

        Raises:
            Unreadable: see `report`.
        """
        return _read(Summary, self(document))


def _read(shape: type[P], document: Mapping[str, Any]) -> P:
    try:
        return shape.model_validate(document)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"])
        raise Unreadable(f"version {version_of(document)}, at `{where}`") from error


def _second(report: dict[str, Any]) -> dict[str, Any]:
    """Version 2: findings show the passages that carry them; those of version 1 kept none.

    And a timeline holds its empty periods, which version 1 left out.
    """
    unshown = {"evidence": [], "support": "unverified"}
    findings = [{**finding, **unshown} for finding in report["findings"]]
    figures = dict(report["figures"])
    if "timeline" in figures:
        short = Timeline.model_validate(figures["timeline"])
        figures["timeline"] = filled(short).model_dump(mode="json")
    return {**report, "findings": findings, "figures": figures}


def _third(report: dict[str, Any]) -> dict[str, Any]:
    """Version 3: what passed unjudged counts as relevant nowhere, and has no yield."""
    sources, figures = dict(report["sources"]), dict(report["figures"])
    counted = dict(figures.get("sources") or {})
    for name, source in sources.items():
        if passed_unjudged(source["gate"]["status"], source["gate"]["model"]):
            attempts = [
                {**attempt, "relevant": 0} if attempt["status"] == "degraded" else attempt
                for attempt in source["attempts"]
            ]
            sources[name] = {**source, "attempts": attempts, "yield_ratio": None}
            if name in counted:
                counted[name] = {**counted[name], "relevant": 0, "yield_ratio": None}
    if counted:
        figures["sources"] = counted
    return {**report, "sources": sources, "figures": figures}


TODAY = Upgrades(MappingProxyType({1: _second, 2: _third}), VERSION)
"""Every step there is; a version that is raised adds one here."""
