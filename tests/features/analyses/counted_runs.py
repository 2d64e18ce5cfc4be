"""Examples of counted analyses and of the statistics over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from api.features.analyses.statistics import MOST, Stats, stats_of
from api.features.analyses.store_ports import Counted, Store, Tally, Thumbs
from tests.store.made import report, source, typed

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)

MONTH = NOW - timedelta(days=30)


@dataclass
class Counts:
    """What statistics need of a store."""

    analyses: list[Counted]
    ratings: Mapping[str, Thumbs] = field(default_factory=dict)
    cut: bool = False

    async def each_counted(
        self, tenant: str, since: datetime | None, most: int, take: Callable[[Counted], None]
    ) -> bool:
        assert (tenant, most) == ("ada", MOST)
        for entry in self.analyses:
            take(entry)
        return self.cut

    async def thumbs(self, tenant: str, since: datetime | None) -> Mapping[str, Thumbs]:
        assert tenant == "ada"
        return self.ratings


def asked(fit: int, kept: int, **more: Any) -> dict[str, Any]:
    """How a source answered."""
    ratio = kept / fit if fit else 1.0
    return source(kept=kept) | {"fit": fit, "fetched": fit, "yield_ratio": ratio} | more


def run(id_: str, days: int = 0, **fields: Any) -> Counted:
    """An analysis that ended with a report."""
    items = fields.pop("items", [])
    tally = Tally.of(typed(report(id_, *items, **{"findings": []} | fields)))
    return Counted(id_, "done", NOW - timedelta(days=days), tally)


async def stats(*analyses: Counted, with_samples: bool = False, **more: Any) -> Stats:
    """Over these analyses."""
    store = cast(Store, Counts(list(analyses), **more))
    return await stats_of(store, "ada", MONTH, NOW, with_samples=with_samples)


def attempt(status: str, new: int, reason: str | None = None) -> dict[str, Any]:
    """One fetch and its judging."""
    return {"limit": 5, "fetched": new, "new": new, "relevant": 0, "requests": 1,
            "status": status, "reason": reason}  # fmt: skip


OPEN = {"gate": {"status": "degraded", "reason": "timeout", "model": None}}
