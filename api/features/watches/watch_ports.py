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
    dropped_by: str = ""
    """The watch's rule by which it was dropped; empty: it was kept."""
    item: Item | None = None
    """By which its copies are recognised."""


@dataclass(frozen=True, slots=True)
class RunClaim:
    """A run that this process alone may do, until a time that is kept with it."""

    watch: Watch
    run_id: str
    """Of a claim that died it goes on, so that receivers see one run."""


@dataclass(frozen=True, slots=True)
class KeptCounts:
    """A kept run as it counts over time."""

    rule: str
    """What was asked then; see `Watch.rule`."""
    created_at: datetime
    counts: RunCounts | None
    """None when it failed or nothing was heard."""


class Watches(Protocol):
    """Watches of every tenant, their runs, and what they have seen."""

    async def add_watch(self, watch: Watch, most: int) -> None:
        """Keep a new one.

        Raises:
            UsageError: its tenant has one of this name, or `most` of them.
        """

    async def watches(self, tenant: str) -> Sequence[Watch]:
        """All of a tenant, oldest first."""

    async def change_watch(self, watch: Watch) -> bool:
        """Keep it as it is now; False when it is gone. A run under way ends by what it was.

        Raises:
            UsageError: its tenant has another one of this name.
        """

    async def drop_watch(self, tenant: str, watch_id: str) -> bool:
        """Delete it, its runs and what it has seen; its reports stay. False when there is none."""

    async def claim_due(self, now: datetime, until: datetime, run_id: str) -> RunClaim | None:
        """Of what is due, not paused and nobody's, the longest due one, for this process alone."""

    async def due_watches(self, now: datetime, most: int) -> Sequence[Watch]:
        """What is due, not paused and nobody's, the longest due first."""

    async def claim_watch(
        self,
        tenant: str,
        watch_id: str,
        now: datetime,
        until: datetime,
        run_id: str,
        due_at: datetime | None = None,
    ) -> RunClaim | None:
        """This one, due or not; None when it is gone or another process has it.

        A run by the same id goes on. With `due_at` also None when it was run since then, or has
        been paused.
        """

    async def finish_run(
        self, claim: RunClaim, run: WatchRun, learnt: Sequence[SeenPost], due_at: datetime
    ) -> bool:
        """Keep the run and what it has seen, and set when the watch is due next, all or nothing.

        False when the claim is another's by now, or the watch is gone: then nothing is kept.
        """

    async def let_go(self, claim: RunClaim) -> None:
        """A run that was broken off is anybody's again, by the same id."""

    async def watch_runs(
        self, tenant: str, watch_id: str, limit: int, *, news: bool = False
    ) -> Sequence[WatchRun]:
        """The newest first; with `news` only those that were worth telling."""

    async def keep_deliveries(
        self, watch: Watch, run_id: str, deliveries: Sequence[Delivery]
    ) -> None:
        """What became of telling this run once more; what was delivered meanwhile stays so."""

    async def set_feed(self, watch: Watch, digest: str | None) -> bool:
        """The token that reads its feed from now on, and no other; False when it is gone."""

    async def watch_of_feed(self, watch_id: str, digest: str) -> Watch | None:
        """The watch of this id, whoever's it is, whose feed the token reads."""

    async def past_counts(self, watch: Watch, since: datetime, most: int) -> Sequence[RunCounts]:
        """Those of its runs by its rule that ended since then, the newest first."""

    async def kept_counts(self, watch: Watch, since: datetime, most: int) -> Sequence[KeptCounts]:
        """Its runs by any rule that ended since then, failed ones too, the newest first."""

    async def is_held(self, claim: RunClaim) -> bool:
        """Whether the claim is still this one's; not when the watch is gone."""

    async def known(self, watch: Watch, most: int) -> Sequence[SeenPost]:
        """All it has seen; the `most` last of what was kept with words."""
