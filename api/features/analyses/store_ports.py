"""What is remembered between runs, as protocols; `store/` implements them over one database.

Everything a tenant stores is invisible to every other. Times are aware UTC. All methods raise
`StoreUnavailable` when the database cannot be used, and nothing else.

What opens one report, or the pages, without a key, as a protocol of the store.

What is counted against a budget, as a protocol; `store/` implements it.

Processes that share a store, and the work that one of them may leave to the others.

What an analysis was begun for, when nobody asked its question by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, Protocol

from api.features.analyses.analysis_counts import Tally
from api.features.analyses.corrections import CorrectionBook
from api.features.archive.entries import Archive
from api.features.archive.imports import Imports
from api.features.watches.watch_ports import Watches
from api.reports.report import Report, Summary


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


class ChargeLedger(Ledger, Protocol):
    """A ledger that knows what was taken for which piece of work."""

    async def charge(self, work_id: str, scope: str, day: date, units: int, limit: int) -> bool:
        """Reserve units for a piece of work if they fit; once, whoever goes on with the work."""
        ...

    async def settle(self, work_id: str, scope: str, units: int) -> None:
        """Correct what was reserved for it to what it used; once."""
        ...


@dataclass(frozen=True, slots=True)
class DurableWork:
    """An analysis under way that another process could go on with."""

    tenant: str
    analysis_id: str
    work_id: str


class Processes(Protocol):
    """Which of them live. All methods raise `StoreUnavailable`."""

    async def durable(self) -> Sequence[DurableWork]:
        """Analyses under way that do not end with their process."""
        ...

    async def appear(self) -> str:
        """Let other processes know that this one lives, until it is closed; its name."""
        ...

    async def gone(self, processes: Collection[str]) -> Collection[str]:
        """Of these names of processes, those that have ended or are silent for a minute."""
        ...


COMPARISON, WATCH = "comparison:", "watch:"
"""How the idempotency keys of such analyses begin."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """Begun for a comparison, or by the run of a watch."""

    kind: Literal["comparison", "watch"]
    watch_id: str = ""
    """Empty while the run goes on, and of a comparison."""
    watch: str = ""
    """The watch's name."""


class Purposes(Protocol):
    """Purposes as far as they are known."""

    async def purposes(self, tenant: str, begun: Mapping[str, datetime]) -> Mapping[str, Purpose]:
        """By the id of each analysis that has one; `begun` says when each was.

        A comparison's is known as long as its idempotency keys are kept, a week; a watch's as long
        as the watch is.
        """
        ...


State = Literal["running", "done", "failed"]


@dataclass(frozen=True, slots=True)
class StoredAnalysis:
    """One analysis as it is stored."""

    id: str
    tenant: str
    state: State
    created_at: datetime | None
    """None of a damaged row."""
    query: str
    report: Report | None
    """Migrated to today's version; None until it is done."""
    reason: str | None = None
    """Why it failed. A report that this program cannot read counts as failed."""

    @property
    def why_none(self) -> str:
        """Why there is no report, and what to do about it."""
        if self.state in {"queued", "running"}:
            return f"`{self.id}` holds no report yet: it is {self.state}; look again in a while"
        why = (self.reason or self.state).rstrip(".")
        return f'`{self.id}` holds no report: {why}; ask again: `listenpost analyze "{self.query}"`'


@dataclass(frozen=True, slots=True)
class AnalysisSummary:
    """One analysis in a listing."""

    id: str
    tenant: str
    state: State
    created_at: datetime
    query: str
    summary: Summary | None
    """Of its report; None until it is done, and of a report that this program cannot read."""
    reason: str | None = None
    """Why it failed."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Which analyses a listing shows."""

    decision: str | None = None
    source: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Exclusive."""
    prefix: str = ""
    """How an id begins."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of analyses, newest first; `cursor` asks for the next, None after the last."""

    analyses: tuple[AnalysisSummary, ...]
    cursor: str | None


class Analyses(Protocol):
    """Analyses of every decision, with their items and verdicts, each item once by key."""

    async def begin(
        self, tenant: str, analysis_id: str, query: str, work_id: str = "", digest: str = ""
    ) -> datetime:
        """Note that an analysis is under way in this process; when it was first begun.

        As durable work, by its `work_id`, it does not end with the process, and `running` finds it.
        """
        ...

    async def running(self, tenant: str, digest: str) -> str | None:
        """The id of durable work under way for a question of this digest."""
        ...

    async def finish(self, tenant: str, report: Report) -> None:
        """Store a finished report under its id, in one transaction; begun or not."""
        ...

    async def fail(self, tenant: str, analysis_id: str, reason: str) -> None:
        """Note that it ended without a report."""
        ...

    async def get(self, tenant: str, analysis_id: str) -> StoredAnalysis | None:
        """One analysis of this tenant."""
        ...

    async def listing(
        self, tenant: str, filters: Filters, limit: int, cursor: str | None = None
    ) -> Listing:
        """Newest first.

        Raises:
            UsageError: the cursor is none of ours.
        """
        ...

    async def delete(self, tenant: str, analysis_id: str) -> bool:
        """Delete it and every item that only it held; False when there is none."""
        ...

    async def forget(self, keys: Iterable[str]) -> int:
        """Remove items that their upstream reports deleted from all that is stored, of any tenant.

        Reports stay readable and say so in `quality_notes`; how many items were stored.
        """
        ...

    async def sweep(self) -> int:
        """Mark analyses failed whose process is gone, and drop what is past its time.

        Called at start, and now and then: a process elsewhere is given up after a silent minute.
        Durable work stays as it is.
        """
        ...


class PageCache(Protocol):
    """Pages by full plan; failures and block pages never get here."""

    async def page(self, key: str, ttl: float) -> str | None:
        """The stored text, unless it is older than `ttl` seconds."""
        ...

    async def keep_page(self, key: str, text: str) -> None:
        """Store or replace it, and drop what is a day old."""
        ...


@dataclass(frozen=True, slots=True)
class SourceMemory:
    """What sources remember between runs; None of a part: nothing."""

    pages: PageCache | None = None
    ledger: Ledger | None = None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key's record; the key itself is shown once and stored hashed."""

    id: str
    name: str
    origin: Literal["environment", "store"]
    created_at: datetime | None
    revoked: bool = False


class KeyRing(Protocol):
    """API keys that were added at run time."""

    async def add_key(self, name: str, digest: str) -> ApiKey:
        """Store a key's SHA-256 under a new id.

        Raises:
            UsageError: the name is taken.
        """
        ...

    async def keys(self) -> Sequence[ApiKey]:
        """All of them, revoked ones too, oldest first."""
        ...

    async def key_of(self, digest: str) -> ApiKey | None:
        """The unrevoked key with this digest."""
        ...

    async def revoke_key(self, key: str) -> bool:
        """Revoke by id or name; False when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class KeptSession:
    """One chat session as it is stored."""

    id: str
    text: str
    """Opaque; empty of a damaged one."""
    saved_at: datetime


@dataclass(frozen=True, slots=True)
class SessionListing:
    """One page of sessions, the last used first; `cursor` as of a `Listing`."""

    sessions: tuple[KeptSession, ...]
    cursor: str | None


class Sessions(Protocol):
    """Chat sessions: an opaque JSON text per tenant and session id."""

    async def session(self, tenant: str, session_id: str) -> str | None:
        """What was last saved."""
        ...

    async def keep_session(self, tenant: str, session_id: str, text: str) -> None:
        """Save it."""
        ...


class SessionShelf(Sessions, Protocol):
    """Sessions that can also be looked through and let go."""

    async def sessions(self, tenant: str, limit: int, cursor: str | None = None) -> SessionListing:
        """The last used first.

        Raises:
            UsageError: the cursor is none of ours.
        """
        ...

    async def drop_session(self, tenant: str, session_id: str) -> bool:
        """Delete it; False when there is none."""
        ...


class Idempotency(Protocol):
    """Which request an idempotency key stands for."""

    async def claim(self, tenant: str, key: str, digest: str, analysis_id: str) -> tuple[str, bool]:
        """The analysis id that owns the key, and whether it is this call's.

        Raises:
            UsageError: the key was used for a different request.
        """
        ...


@dataclass(frozen=True, slots=True)
class Counted:
    """One analysis as statistics read it."""

    id: str
    state: State
    created_at: datetime
    tally: Tally | None
    """Of its report; None until it is done, and of a report that this program cannot read."""


class Tallies(Protocol):
    """Analyses as numbers."""

    async def each_counted(
        self, tenant: str, since: datetime | None, most: int, take: Callable[[Counted], None]
    ) -> bool:
        """Hand every analysis begun since then to `take`, the newest first and `most` of them.

        Whether there are more than that.
        """
        ...


Rating = Literal["up", "down"]
Subject = Literal["report", "finding", "item"]


@dataclass(frozen=True, slots=True)
class Feedback:
    """What somebody thought of a report, or of a finding or an item in it; one of each author."""

    analysis_id: str
    author: str
    """A pseudonym."""
    subject: Subject
    rating: Rating
    finding: int | None = None
    """Its number in the report, from 1."""
    item_key: str | None = None
    comment: str = ""
    created_at: datetime | None = None
    """When it was first given; None before it is kept."""


@dataclass(frozen=True, slots=True)
class Thumbs:
    """How many ratings of each kind there are."""

    up: int = 0
    down: int = 0

    def __add__(self, other: Thumbs) -> Thumbs:
        """Both together."""
        return Thumbs(self.up + other.up, self.down + other.down)


class FeedbackBook(Protocol):
    """Feedback on analyses; it goes with its analysis, and with its item."""

    async def keep_feedback(self, tenant: str, feedback: Feedback, most: int) -> Feedback | None:
        """Store it in the place of what its author thought of the same before.

        As it is kept, with the time at which it was first given; None when the analysis is gone.

        Raises:
            UsageError: the analysis has `most` of them already.
        """
        ...

    async def feedback(self, tenant: str, analysis_id: str) -> Sequence[Feedback]:
        """All on one analysis, oldest first."""
        ...

    async def thumbs(self, tenant: str, since: datetime | None) -> Mapping[str, Thumbs]:
        """By the id of each analysis begun since then that has any."""
        ...


class Store(
    Analyses, Archive, Imports, ChargeLedger, PageCache, KeyRing, Admissions, SessionShelf,
    Idempotency, Tallies, FeedbackBook, CorrectionBook, Processes, Watches, Purposes, Protocol,
):  # fmt: skip
    """Everything remembered; one object, one database."""

    async def aclose(self) -> None:
        """Close the connections."""
        ...
