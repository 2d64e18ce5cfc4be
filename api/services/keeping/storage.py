"""What is remembered between runs, as protocols; `store/` implements them over one database.

Everything a tenant stores is invisible to every other. Times are aware UTC. All methods raise
`StoreUnavailable` when the database cannot be used, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from api.services.archive.imports import Imports
from api.services.archive.shelf import Archive
from api.services.keeping.admissions import Admissions
from api.services.keeping.ledger import Charges, Ledger
from api.services.keeping.processes import Processes
from api.services.keeping.purposes import Purposes
from api.services.keeping.tallies import Tally
from api.services.reporting.report import Report, Summary
from api.services.watching.shelf import Watches

State = Literal["running", "done", "failed"]


@dataclass(frozen=True, slots=True)
class Kept:
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
class Listed:
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

    analyses: tuple[Listed, ...]
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

    async def get(self, tenant: str, analysis_id: str) -> Kept | None:
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
    Analyses, Archive, Imports, Charges, PageCache, KeyRing, Admissions, SessionShelf, Idempotency,
    Tallies, FeedbackBook, Processes, Watches, Purposes, Protocol,
):  # fmt: skip
    """Everything remembered; one object, one database."""

    async def aclose(self) -> None:
        """Close the connections."""
        ...
