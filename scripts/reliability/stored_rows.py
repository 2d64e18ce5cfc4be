"""Rows that the database holds after a piece of work, read without the product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, create_engine, make_url, text

from api.store.database import work_url

_COUNTS = {
    "items of no report": """
        SELECT count(*) FROM items WHERE tenant = :tenant AND NOT EXISTS (
            SELECT 1 FROM verdicts WHERE verdicts.tenant = items.tenant AND verdicts.key = items.key
        )""",
    "verdicts of no analysis": """
        SELECT count(*) FROM verdicts WHERE tenant = :tenant AND NOT EXISTS (
            SELECT 1 FROM analyses
            WHERE analyses.tenant = verdicts.tenant AND analyses.id = verdicts.analysis_id
        )""",
    "analyses that run": """
        SELECT count(*) FROM analyses WHERE tenant = :tenant AND state = 'running'""",
    "charges not settled": """
        SELECT count(*) FROM charges WHERE scope LIKE 'key:' || :tenant || ':%' AND NOT settled""",
    "watches not let go": """
        SELECT count(*) FROM watches WHERE tenant = :tenant AND claimed_until IS NOT NULL""",
}
"""Rows that must not exist."""
_KEPT = {
    "items": "SELECT count(*) FROM items WHERE tenant = :tenant",
    "verdicts": "SELECT count(*) FROM verdicts WHERE tenant = :tenant",
    "analyses": "SELECT count(*) FROM analyses WHERE tenant = :tenant",
    "charges": "SELECT count(*) FROM charges WHERE scope LIKE 'key:' || :tenant || ':%'",
    "seen by a watch": "SELECT count(*) FROM watch_items WHERE tenant = :tenant",
    "runs of a watch": "SELECT count(*) FROM watch_runs WHERE tenant = :tenant",
}
"""Rows of which there must be as many as undisturbed."""
_ENGINE = ("workflow_status", "operation_outputs", "notifications", "workflow_events", "streams")


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows of one tenant and of the engine, counted."""

    kept: Mapping[str, int]
    """Rows of each kind."""
    leftovers: Mapping[str, int]
    """Rows that must not exist, by kind; only kinds that do."""
    ledger: Mapping[str, int]
    """Units of the ledger, by kind."""


@contextmanager
def open_connection(url: str, *, engine: bool = False) -> Iterator[Connection]:
    """A connection to the store's database, or to that of the durable engine."""
    moment = make_url(work_url(url) if engine else url)
    if not engine and moment.get_backend_name() == "postgresql":
        moment = moment.set(drivername="postgresql+psycopg")
    database = create_engine(moment)
    try:
        with database.begin() as connection:
            yield connection
    finally:
        database.dispose()


def stored_rows_of(url: str, tenant: str) -> StoredRows:
    """Count the rows now."""
    with open_connection(url) as connection:
        who = {"tenant": tenant}

        def count(statement: str) -> int:
            return int(connection.execute(text(statement), who).scalar_one())

        kept = {name: count(statement) for name, statement in _KEPT.items()}
        leftovers = {name: count(statement) for name, statement in _COUNTS.items()}
        units = "SELECT scope, units FROM ledger WHERE scope LIKE 'key:' || :tenant || ':%'"
        ledger = {scope.rpartition(":")[2]: int(many) for scope, many in connection.execute(text(units), who)}
    with open_connection(url, engine=True) as connection:
        schema = "" if connection.dialect.name == "sqlite" else "dbos."
        for table in _ENGINE:
            rows = connection.execute(text(f"SELECT count(*) FROM {schema}{table}")).scalar_one()
            leftovers[f"rows of the engine's {table}"] = int(rows)
    return StoredRows(kept, {name: many for name, many in leftovers.items() if many}, ledger)


def empty_table(url: str, table: str) -> None:
    """Delete all rows of a table of the store."""
    with open_connection(url) as connection:
        connection.execute(text(f"DELETE FROM {table}"))
