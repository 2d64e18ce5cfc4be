"""Countable budgets: every step is one statement, so no two callers get the same unit."""

from __future__ import annotations

from datetime import date

from sqlalchemy import case, select, update

from api.store.part import Part, unbroken
from api.store.tables import ledger


class LedgerPart(Part):
    """See `Ledger` for the contract."""

    @unbroken
    async def take(self, scope: str, day: date, units: int, limit: int) -> bool:
        """Reserve units if they fit: one conditional upsert."""
        if units > limit:
            return False
        row = self._database.insert(ledger).values(scope=scope, day=day, units=units)
        total = ledger.c.units + row.excluded.units
        upsert = row.on_conflict_do_update(
            index_elements=[ledger.c.scope, ledger.c.day],
            set_={"units": total},
            where=total <= limit,
        )
        async with self._database.writing() as connection:
            return (await connection.execute(upsert)).rowcount == 1

    @unbroken
    async def give_back(self, scope: str, day: date, units: int) -> None:
        """Release units; never below none."""
        left = case((ledger.c.units > units, ledger.c.units - units), else_=0)
        fewer = update(ledger).where(ledger.c.scope == scope, ledger.c.day == day)
        async with self._database.writing() as connection:
            await connection.execute(fewer.values(units=left))

    @unbroken
    async def spent(self, scope: str, day: date) -> int:
        """Units taken so far."""
        found = select(ledger.c.units).where(ledger.c.scope == scope, ledger.c.day == day)
        async with self._database.reading() as connection:
            return await connection.scalar(found) or 0
