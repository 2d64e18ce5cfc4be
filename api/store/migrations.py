"""The version of the tables, checked when a database is opened.

A new database gets the tables of `tables.py`, an older one the steps to them, in one transaction
that is alone: a process that is killed leaves what was there, and of two that open at once the
second finds it done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType

from sqlalchemy import Connection, insert, inspect, select
from sqlalchemy import func as sql
from sqlalchemy.engine.interfaces import ReflectedColumn
from sqlalchemy.ext.asyncio import AsyncConnection

from api.errors import StoreUnavailable
from api.store.database import VARIABLE, Database
from api.store.tables import (
    METADATA,
    agreement_samples,
    asking,
    corrections,
    embedded,
    embeddings,
    feed_entries,
    feeds,
    followed_feeds,
    inbox,
    inbox_settings,
    paces,
    replies,
    schema_version,
    senses,
    stream_posts,
    streams,
    watch_runs,
    watches,
)

Step = Callable[[AsyncConnection], Awaitable[object]]


async def _add_report_of_sessions(connection: AsyncConnection) -> None:
    await connection.exec_driver_sql("ALTER TABLE sessions ADD COLUMN report_id TEXT")
    await connection.exec_driver_sql("CREATE INDEX sessions_of_report ON sessions (tenant, report_id, saved_at)")


async def _add_streams(connection: AsyncConnection) -> None:
    kind = "TIMESTAMP WITH TIME ZONE" if connection.dialect.name == "postgresql" else "DATETIME"
    await connection.exec_driver_sql(f"ALTER TABLE watches ADD COLUMN streamed_at {kind}")
    await connection.exec_driver_sql("CREATE INDEX watches_streamed ON watches (streamed_at)")
    # a stream says every second what is deleted, whoever's it is
    await connection.exec_driver_sql("CREATE INDEX items_by_key ON items (key)")
    await connection.run_sync(streams.create)
    await connection.run_sync(stream_posts.create)


async def _add_feeds(connection: AsyncConnection) -> None:
    for table in (feeds, feed_entries, followed_feeds):
        await connection.run_sync(table.create)


async def _add_shared_answers(connection: AsyncConnection) -> None:
    await connection.exec_driver_sql("CREATE INDEX pages_by_age ON pages (stored_at)")
    for table in (asking, paces):
        await connection.run_sync(table.create)


# Indexes whose keys are also looked up by their beginning; see `tables.begins`.
_PREFIXED = frozenset({"items_by_key", "corrections_by_key", "watch_items_by_key", "stream_posts_by_key"})


async def _add_history(connection: AsyncConnection) -> None:
    postgresql = connection.dialect.name == "postgresql"
    kind = "TIMESTAMP WITH TIME ZONE" if postgresql else "DATETIME"
    columns = {"history_due": "BOOLEAN", "judged_from": kind, "unjudged": "INTEGER"}
    for column, type_ in columns.items():
        await connection.exec_driver_sql(f"ALTER TABLE watches ADD COLUMN {column} {type_}")
    held = await connection.run_sync(lambda sync: inspect(sync).get_columns(feed_entries.name))
    if all(column["name"] != "came_at" for column in held):  # the step of version 14 makes today's table
        await connection.exec_driver_sql(f"ALTER TABLE feed_entries ADD COLUMN came_at {kind}")
    await connection.run_sync(replies.create)
    made = {"watches_without_history", "feed_entries_came"}
    for name in _PREFIXED if postgresql else ():
        made.add(name)
        await connection.exec_driver_sql(f"DROP INDEX {name}")
    for table in METADATA.sorted_tables:
        for index in table.indexes:
            if index.name in made:
                await connection.run_sync(index.create, checkfirst=True)


async def _order_due_watches(connection: AsyncConnection) -> None:
    # many are due at the same minute, and the first of them is asked for again and again
    await connection.exec_driver_sql("DROP INDEX watches_due")
    await connection.exec_driver_sql("CREATE INDEX watches_due ON watches (due_at, id) WHERE NOT paused")


async def _add_inbox(connection: AsyncConnection) -> None:
    for table in (inbox, inbox_settings):
        await connection.run_sync(table.create)


def _columns_of(table: str, sync: Connection) -> Sequence[ReflectedColumn]:
    return inspect(sync).get_columns(table)


async def _add_digests(connection: AsyncConnection) -> None:
    added = [(watches, name) for name in ("digest_at", "digest_until", "digest_runs")]
    for table, name in (*added, (watch_runs, "held"), (inbox, "assigned")):
        held = await connection.run_sync(partial(_columns_of, table.name))
        if all(column["name"] != name for column in held):  # the step of version 19 makes today's inbox
            kind = table.c[name].type.compile(connection.dialect)
            await connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {name} {kind}")
    for index in (*watches.indexes, *watch_runs.indexes):
        if index.name in {"watches_with_digest", "watch_runs_held"}:
            await connection.run_sync(index.create)


async def _add_embeddings(connection: AsyncConnection) -> None:
    for table in (embeddings, embedded):
        await connection.run_sync(table.create)


LATEST = 21
"""Version of the tables. Those before it were used during development only."""
STEPS: Mapping[int, Step] = MappingProxyType(
    {
        10: lambda connection: connection.run_sync(corrections.create),
        11: lambda connection: connection.run_sync(senses.create),
        12: _add_report_of_sessions,
        13: _add_streams,
        14: _add_feeds,
        15: _order_due_watches,
        16: _add_shared_answers,
        17: _add_history,
        18: lambda connection: connection.run_sync(agreement_samples.create),
        19: _add_inbox,
        20: _add_digests,
        21: _add_embeddings,
    }
)
"""Version -> what makes its tables of those of the version before; never edited once released.

A change of `tables.py` raises `LATEST` and adds a step.
"""
# The index of words, which the two databases build differently.
_WORDS = {
    "sqlite": (
        """
        CREATE VIRTUAL TABLE chunk_words USING fts5 (
            tokens, content='chunks', content_rowid='number',
            tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* Co'"
        )
        """,
        """
        CREATE TRIGGER chunks_added AFTER INSERT ON chunks BEGIN
            INSERT INTO chunk_words (rowid, tokens) VALUES (new.number, new.tokens);
        END
        """,
        """
        CREATE TRIGGER chunks_removed AFTER DELETE ON chunks BEGIN
            INSERT INTO chunk_words (chunk_words, rowid, tokens)
            VALUES ('delete', old.number, old.tokens);
        END
        """,
    ),
    "postgresql": (
        "ALTER TABLE chunks ADD COLUMN words TSVECTOR",
        # without `fastupdate`: what waits to be sorted in is read whole by every search
        "CREATE INDEX chunks_by_words ON chunks USING gin (words) WITH (fastupdate=off)",
    ),
}


async def migrate(database: Database, latest: int = LATEST, steps: Mapping[int, Step] = STEPS) -> None:
    """Upgrade the tables to version `latest`; writes nothing when they have it.

    Raises:
        StoreUnavailable: the database cannot be used, or its tables are of a newer version, of one
            before the first release, or of another program.
    """
    async with database.reading() as connection:
        version = await _version(connection)
    if version > latest:
        raise StoreUnavailable(
            f"the database of {VARIABLE} has schema version {version}, newer than {latest} of this "
            "program; upgrade listenpost"
        )
    if version == latest:
        return
    async with database.writing(alone=True) as connection, database.patient(connection):
        version = await _version(connection)  # another process may have done it meanwhile
        if version == 0:
            await _create(connection)
        for number in range(version + 1, latest + 1) if version else ():
            if number not in steps:
                raise StoreUnavailable(
                    f"the database of {VARIABLE} has schema version {version}, of before the first "
                    "release; name another database"
                )
            await steps[number](connection)
        if version < latest:
            stamp = {"version": latest, "applied_at": datetime.now(UTC)}
            await connection.execute(insert(schema_version), stamp)


async def _version(connection: AsyncConnection) -> int:
    """Newest version that was applied; 0 for an empty database."""
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


async def _create(connection: AsyncConnection) -> None:
    """Create every table; a table of the same name from another program is an error."""
    ours = [table for table in METADATA.sorted_tables if table is not schema_version]
    await connection.run_sync(schema_version.create, checkfirst=True)
    await connection.run_sync(METADATA.create_all, tables=ours, checkfirst=False)
    for statement in _WORDS[connection.dialect.name]:
        await connection.exec_driver_sql(statement)
