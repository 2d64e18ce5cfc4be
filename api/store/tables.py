"""Today's tables, for building statements; `migrations` makes them, step by step.

An item's facts are stored once per tenant. An analysis keeps its report without the items, and one
`verdicts` row for each place where an item stood in it: which facts it shares with the item's row,
and its own fields (rank, score, explanation, and facts that were different then).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Date, Integer, MetaData, Table, Text

from api.store.columns import Document, Moment, Name, Prose

METADATA = MetaData()

schema_version = Table(
    "schema_version",
    METADATA,
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("applied_at", Moment, nullable=False),
)

runs = Table(
    "runs",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("place", Prose, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("started", Text, nullable=False),
    Column("seen_at", Moment, nullable=False),
)
"""Processes that run analyses; `place` is host, boot and process namespace."""

analyses = Table(
    "analyses",
    METADATA,
    Column("tenant", Name, primary_key=True),
    Column("id", Name, primary_key=True),
    Column("state", Text, nullable=False),
    Column("run_id", Text),
    Column("created_at", Moment, nullable=False),
    Column("query", Prose, nullable=False),
    Column("reason", Prose),
    Column("decision", Name),
    Column("report_version", Integer),
    Column("summary", Document),
    Column("body", Document),
)

analysis_sources = Table(
    "analysis_sources",
    METADATA,
    Column("tenant", Name, primary_key=True),
    Column("analysis_id", Name, primary_key=True),
    Column("source", Name, primary_key=True),
)

items = Table(
    "items",
    METADATA,
    Column("tenant", Name, primary_key=True),
    Column("key", Name, primary_key=True),
    Column("facts", Document, nullable=False),
    Column("seen_at", Moment, nullable=False),
)

verdicts = Table(
    "verdicts",
    METADATA,
    Column("tenant", Name, primary_key=True),
    Column("analysis_id", Name, primary_key=True),
    Column("part", Name, primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("key", Name, nullable=False),
    Column("shared", Document, nullable=False),
    Column("own", Document, nullable=False),
)

ledger = Table(
    "ledger",
    METADATA,
    Column("scope", Name, primary_key=True),
    Column("day", Date, primary_key=True),
    Column("units", BigInteger, nullable=False),
)

pages = Table(
    "pages",
    METADATA,
    Column("key", Name, primary_key=True),
    Column("text", Document, nullable=False),
    Column("stored_at", Moment, nullable=False),
)

keys = Table(
    "keys",
    METADATA,
    Column("id", Name, primary_key=True),
    Column("name", Prose, nullable=False, unique=True),
    Column("digest", Name, nullable=False, unique=True),
    Column("created_at", Moment, nullable=False),
    Column("revoked", Boolean, nullable=False),
)

sessions = Table(
    "sessions",
    METADATA,
    Column("tenant", Name, primary_key=True),
    Column("id", Name, primary_key=True),
    Column("text", Document, nullable=False),
    Column("saved_at", Moment, nullable=False),
)

idempotency = Table(
    "idempotency",
    METADATA,
    Column("tenant", Name, primary_key=True),
    Column("key", Name, primary_key=True),
    Column("digest", Name, nullable=False),
    Column("analysis_id", Name, nullable=False),
    Column("claimed_at", Moment, nullable=False),
)
