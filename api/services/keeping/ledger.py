"""What is counted against a budget, as a protocol; `store/` implements it."""

from __future__ import annotations

from datetime import date
from typing import Protocol

UNBOUNDED = 2**62
"""Units that are no limit."""


class Ledger(Protocol):
    """Countable budgets: a scope (`youtube.search`, `key:ID:analyses`), a day, whole units."""

    async def take(self, scope: str, day: date, units: int, limit: int) -> bool:
        """Reserve units if they fit; of two processes racing for the last, exactly one wins."""
        ...

    async def give_back(self, scope: str, day: date, units: int) -> None:
        """Release reserved units that were not used."""
        ...

    async def spent(self, scope: str, day: date) -> int:
        """Units taken so far."""
        ...


class Charges(Ledger, Protocol):
    """A ledger that knows what was taken for which piece of work."""

    async def charge(self, work_id: str, scope: str, day: date, units: int, limit: int) -> bool:
        """Reserve units for a piece of work if they fit; once, whoever goes on with the work."""
        ...

    async def settle(self, work_id: str, scope: str, units: int) -> None:
        """Correct what was reserved for it to what it used; once."""
        ...
