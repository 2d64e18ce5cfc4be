"""Steps from what was stored once to today's: of the tables at open, of a report when it is read.

All missing steps of the tables run in one transaction, alone, so that a process killed in the
middle leaves the version that was there, and of two that open at once one migrates and the other
finds it done. A report that cannot
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

from api.core.domain import passed_unjudged
from api.core.published import Published
from api.errors import StoreUnavailable
from api.pipeline.evidence.figures import Timeline, filled
from api.reports.report import VERSION, Report, Summary
from api.store.database import VARIABLE, Database
from api.store.migration_steps import MIGRATIONS, POSTGRESQL, SQLITE
from api.store.tables import schema_version

Step = Callable[[dict[str, Any]], dict[str, Any]]
P = TypeVar("P", bound=Published)

_VERSIONS = """
CREATE TABLE IF NOT EXISTS schema_version (
    version INTEGER PRIMARY KEY, applied_at {moment} NOT NULL
)
"""

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
    types = SQLITE if database.sqlite else POSTGRESQL
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
