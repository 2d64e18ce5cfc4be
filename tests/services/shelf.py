"""A store in memory, whose methods fail on request."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import cast

from api.errors import StoreUnavailable, UsageError
from api.features.analyses.store_ports import ApiKey, Store, StoredAnalysis
from api.reports.report import Report

NOW = datetime(2026, 11, 27, 12, 0, 20, tzinfo=UTC)


@dataclass
class Shelf:
    """What the use cases need of a `Store`."""

    broken: set[str] = field(default_factory=set)
    """Names of methods that raise."""
    units: Counter[tuple[str, date]] = field(default_factory=Counter)
    analyses: dict[tuple[str, str], StoredAnalysis] = field(default_factory=dict)
    claims: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    ring: dict[str, ApiKey] = field(default_factory=dict)
    beginning: asyncio.Event = field(default_factory=asyncio.Event)
    durable: dict[tuple[str, str], str] = field(default_factory=dict)
    works: dict[tuple[str, str], str] = field(default_factory=dict)
    """The work id with which each analysis was last begun."""
    charges: dict[tuple[str, str], tuple[date, int]] = field(default_factory=dict)
    settled: set[tuple[str, str]] = field(default_factory=set)
    may_begin: asyncio.Event = field(default_factory=asyncio.Event)
    before_claim: Awaitable[object] | None = None
    """What a claim waits for."""

    def __post_init__(self) -> None:
        self.may_begin.set()

    @property
    def store(self) -> Store:
        """Itself, for callers that want all of a store."""
        return cast(Store, self)

    def _may(self, method: str) -> None:
        if method in self.broken:
            raise StoreUnavailable("the database cannot be used")

    async def take(self, scope: str, day: date, units: int, limit: int) -> bool:
        self._may("take")
        if self.units[scope, day] + units > limit:
            return False
        self.units[scope, day] += units
        return True

    async def give_back(self, scope: str, day: date, units: int) -> None:
        self._may("give_back")
        self.units[scope, day] -= units

    async def charge(self, work_id: str, scope: str, day: date, units: int, limit: int) -> bool:
        if (work_id, scope) in self.charges:
            return True
        fits = await self.take(scope, day, units, limit)
        if fits:
            self.charges[work_id, scope] = day, units
        return fits

    async def settle(self, work_id: str, scope: str, units: int) -> None:
        self._may("settle")
        if (work_id, scope) in self.settled:
            return
        self.settled.add((work_id, scope))
        day, reserved = self.charges[work_id, scope]
        self.units[scope, day] += units - reserved

    async def release(self, work_id: str, scope: str) -> None:
        self._may("release")
        if (work_id, scope) in self.charges and (work_id, scope) not in self.settled:
            day, reserved = self.charges.pop((work_id, scope))
            self.units[scope, day] -= reserved

    async def spent(self, scope: str, day: date) -> int:
        return self.units[scope, day]

    async def begin(self, tenant: str, analysis_id: str, query: str, work_id: str = "", digest: str = "") -> datetime:
        self._may("begin")
        self.beginning.set()
        await self.may_begin.wait()
        self.analyses[tenant, analysis_id] = StoredAnalysis(analysis_id, tenant, "running", NOW, query, None)
        self.works[tenant, analysis_id] = work_id
        if work_id:
            self.durable[tenant, digest] = analysis_id
        return NOW

    async def running(self, tenant: str, digest: str) -> str | None:
        analysis_id = self.durable.get((tenant, digest), "")
        kept = self.analyses.get((tenant, analysis_id))
        return analysis_id if kept is not None and kept.state == "running" else None

    def _begun_by(self, tenant: str, analysis_id: str, work_id: str | None) -> bool:
        known = self.works.get((tenant, analysis_id)) if (tenant, analysis_id) in self.analyses else None
        return work_id is None or work_id == known

    async def finish(self, tenant: str, report: Report, work_id: str | None = None) -> bool:
        self._may("finish")
        if not self._begun_by(tenant, report.id, work_id):
            return False
        kept = self.analyses[tenant, report.id]
        self.analyses[tenant, report.id] = replace(kept, state="done", report=report)
        return True

    async def fail(self, tenant: str, analysis_id: str, reason: str, work_id: str | None = None) -> bool:
        self._may("fail")
        kept = self.analyses.get((tenant, analysis_id))
        if kept is None or kept.state != "running" or not self._begun_by(tenant, analysis_id, work_id):
            return False
        self.analyses[tenant, analysis_id] = replace(kept, state="failed", reason=reason)
        return True

    async def get(self, tenant: str, analysis_id: str) -> StoredAnalysis | None:
        return self.analyses.get((tenant, analysis_id))

    async def delete(self, tenant: str, analysis_id: str) -> bool:
        return self.analyses.pop((tenant, analysis_id), None) is not None

    async def claim(self, tenant: str, key: str, digest: str, wanted: str) -> tuple[str, bool]:
        if self.before_claim is not None:
            await self.before_claim
        owner, known = self.claims.setdefault((tenant, key), (wanted, digest))
        if known != digest:
            raise UsageError("the key was used for a different request")
        return owner, owner == wanted

    async def add_key(self, name: str, digest: str) -> ApiKey:
        key = ApiKey(f"key_{len(self.ring)}", name, "store", NOW)
        self.ring[digest] = key
        return key

    async def keys(self) -> Sequence[ApiKey]:
        self._may("keys")
        return tuple(self.ring.values())

    async def key_of(self, digest: str) -> ApiKey | None:
        found = self.ring.get(digest)
        return None if found is None or found.revoked else found

    async def revoke_key(self, key: str) -> bool:
        for digest, known in self.ring.items():
            if key in (known.id, known.name):
                self.ring[digest] = replace(known, revoked=True)
                return True
        return False
