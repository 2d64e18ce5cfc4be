"""Analyses read as numbers, in one pass over what was counted of them when they ended."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime

from sqlalchemy import ColumnElement, case, select

from api.services.keeping.storage import Counted
from api.services.keeping.tallies import Tally
from api.store.analyses import NEWEST_FIRST, AnalysesPart, AnyRow, state_of
from api.store.database import unbroken
from api.store.migrations import Unreadable
from api.store.tables import analyses

_log = logging.getLogger(__name__)
_AT_ONCE = 100
"""Rows that are read between two chances for others to go on."""


class CountsPart(AnalysesPart):
    """See `Tallies` for the contract."""

    @unbroken
    async def each_counted(
        self, tenant: str, since: datetime | None, most: int, take: Callable[[Counted], None]
    ) -> bool:
        """One snapshot, in pages; a damaged row hides no other."""
        where: list[ColumnElement[bool]] = [analyses.c.tenant == tenant]
        if since is not None:
            where.append(analyses.c.created_at >= since)
        async with self._database.reading() as connection:
            if self._database.sqlite:
                where.append(await self._dated(connection, tenant))
            older = case((analyses.c.tally.is_(None), analyses.c.body))
            wanted = select(
                analyses.c.id, analyses.c.state, analyses.c.reason, analyses.c.created_at,
                analyses.c.tally, older.label("body"),
            )  # fmt: skip
            wanted = wanted.where(*where).order_by(*NEWEST_FIRST).limit(most + 1)
            left = most
            async with connection.stream(wanted) as rows:
                async for page in rows.partitions(_AT_ONCE):
                    for row in page[:left]:
                        take(self._counted(row))
                    left -= len(page)
        return left < 0

    def _counted(self, row: AnyRow) -> Counted:
        state, _ = state_of(row)
        tally = None
        if state == "done":
            try:
                if isinstance(row.tally, Mapping):
                    tally = Tally.model_validate(row.tally)
                else:  # of a program that did not count yet
                    document = row.body if isinstance(row.body, Mapping) else {}
                    tally = Tally.read(self._upgrades(document))
            except (Unreadable, ValueError):
                _log.warning("the report %s cannot be read and is not counted", row.id)
                state = "failed"
        return Counted(row.id, state, row.created_at, tally)
