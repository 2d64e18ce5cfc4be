"""Where watches are kept; `store/` implements it. All methods raise `StoreUnavailable`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from api.core.items import Item
from api.features.watches.watch import Watch
from api.features.watches.watch_run import Delivery, RunCounts, WatchRun


@dataclass(frozen=True, slots=True)
class SeenPost:
    """A post that a watch has seen."""

    key: str
    dropped_by: str = ""  # the watch's rule by which it was dropped; empty: it was kept
    item: Item | None = None  # its words, by which copies are recognised


@dataclass(frozen=True, slots=True)
class RunClaim:
    """The right of this process alone to run a watch, until a stored time."""

    watch: Watch
    run_id: str  # the same as of an expired claim that it continues, so that receivers see one run


@dataclass(frozen=True, slots=True)
class KeptCounts:
    """The counts of a stored run."""

    rule: str  # digest of the request at that time; see `Watch.rule`
    created_at: datetime
    counts: RunCounts | None  # None when it failed or no source answered


class Watches(Protocol):
    """Watches of every tenant, their runs, and the posts they have seen."""

    async def add_watch(self, watch: Watch, most: int) -> None:
        """Store a watch; `UsageError` when its tenant has one of this name, or `most` of them."""

    async def watches(self, tenant: str) -> Sequence[Watch]:
        """All watches of a tenant, oldest first."""

    async def change_watch(self, watch: Watch) -> bool:
        """Store a changed watch; False when it is gone. A run under way ends with the old one.

        Raises:
            UsageError: its tenant has another watch of this name.
        """

    async def drop_watch(self, tenant: str, watch_id: str) -> bool:
        """Delete a watch, its runs and its seen posts, not its reports; False when it is gone."""

    async def claim_due(self, now: datetime, until: datetime, run_id: str) -> RunClaim | None:
        """Claim the longest due of the watches that are due, not paused and not claimed."""

    async def due_watches(self, now: datetime, most: int) -> Sequence[Watch]:
        """Watches that are due, not paused and not claimed, the longest due first."""

    async def claim_watch(
        self,
        tenant: str,
        watch_id: str,
        now: datetime,
        until: datetime,
        run_id: str,
        due_at: datetime | None = None,
    ) -> RunClaim | None:
        """Claim a watch, due or not; None when it is gone or another process has claimed it.

        A claim of the same run id is continued. With `due_at` also None when the watch was run
        since then, or has been paused.
        """

    async def finish_run(self, claim: RunClaim, run: WatchRun, learnt: Sequence[SeenPost], due_at: datetime) -> bool:
        """Store run, seen posts and next due time, all or nothing; False when the claim is lost."""

    async def release_claim(self, claim: RunClaim) -> None:
        """Let any process continue an interrupted run, by the same id."""

    async def watch_runs(self, tenant: str, watch_id: str, limit: int, *, news: bool = False) -> Sequence[WatchRun]:
        """Runs, the newest first; with `news` only those that were sent."""

    async def keep_deliveries(self, watch: Watch, run_id: str, deliveries: Sequence[Delivery]) -> None:
        """Store the deliveries of a run that was sent again; what was delivered stays so."""

    async def set_feed(self, watch: Watch, digest: str | None) -> bool:
        """Set the digest of the token that reads its feed; False when the watch is gone."""

    async def watch_of_feed(self, watch_id: str, digest: str) -> Watch | None:
        """The watch of this id, of any tenant, whose feed this token reads."""

    async def watch_of_link(self, watch_id: str) -> Watch | None:
        """The watch of this id, of any tenant; whoever calls it checks what the watch's secret signed."""

    async def past_counts(self, watch: Watch, since: datetime, most: int) -> Sequence[RunCounts]:
        """Counts of its runs by its present rule since then, the newest first."""

    async def kept_counts(self, watch: Watch, since: datetime, most: int) -> Sequence[KeptCounts]:
        """Counts of its runs by any rule since then, failed ones too, the newest first."""

    async def holds_claim(self, claim: RunClaim) -> bool:
        """Whether a claim is still valid; not when the watch is gone."""

    async def seen_posts(self, watch: Watch, most: int) -> Sequence[SeenPost]:
        """All posts it has seen; of kept ones the last `most` with their words."""
