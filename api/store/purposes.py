"""What analyses were begun for, from the keys that claimed them and from the runs of watches."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import select

from api.services.keeping.purposes import COMPARISON, WATCH, Purpose
from api.store.database import Part, unbroken
from api.store.tables import batches, idempotency, watch_runs, watches

_AROUND = timedelta(days=1)
"""A run is kept under the time when it began; what it asked may have waited for its turn."""


class PurposesPart(Part):
    """See `Purposes` for the contract."""

    @unbroken
    async def purposes(self, tenant: str, begun: Mapping[str, datetime]) -> Mapping[str, Purpose]:
        """Two looks; a run that has ended knows its watch."""
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
            same = (watches.c.tenant == watch_runs.c.tenant) & (
                watches.c.id == watch_runs.c.watch_id
            )
            runs = (
                select(watches.c.id, watches.c.name, watch_runs.c.body)
                .join_from(watch_runs, watches, same)
                .where(
                    watch_runs.c.tenant == tenant,
                    watch_runs.c.created_at.between(first - _AROUND, last + _AROUND),
                )
            )
            for watch_id, name, body in await connection.execute(runs):
                report_id = body.get("report_id") if isinstance(body, Mapping) else None
                if isinstance(report_id, str) and report_id in begun:
                    known[report_id] = Purpose("watch", watch_id, name)
        return known
