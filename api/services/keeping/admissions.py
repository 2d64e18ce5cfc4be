"""What opens one report, or the pages, without a key, as a protocol of the store."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Admissions(Protocol):
    """What opens one report, or the pages, without a key; of each the SHA-256 of its word."""

    async def set_link(self, tenant: str, analysis_id: str, digest: str | None) -> bool:
        """Let this word alone open a report, or none; False when there is no such analysis."""
        ...

    async def has_link(self, tenant: str, analysis_id: str) -> bool:
        """Whether some word opens it."""
        ...

    async def owner_of_link(self, analysis_id: str, digest: str) -> str | None:
        """The tenant whose analysis of this id the word opens."""
        ...

    async def keep_login(self, digest: str, tenant: str, until: datetime) -> None:
        """Let this word open the pages as this tenant."""
        ...

    async def login(self, digest: str, now: datetime) -> str | None:
        """The tenant of a login that lasts."""
        ...

    async def drop_login(self, digest: str) -> None:
        """End it."""
        ...
