"""Protocol of everything that is stored between runs; `store/` implements it on one database.

Nothing that one tenant stored is visible to another. Times are aware UTC. Every method raises
`StoreUnavailable` when the database cannot be used, and no other error than those it names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, Protocol, Self

from pydantic import ConfigDict

from api.choices import Rating
from api.core.domain import Agreement, Attempt, Decision, Outcome, open_reason
from api.core.ports import SampleMemory
from api.core.published import Published
from api.core.shared_answers import AnswerMemory
from api.features.analyses.corrections import CorrectionBook
from api.features.archive.embedding import ArchiveEmbedding
from api.features.archive.imports import Imports
from api.features.archive.search_values import Archive
from api.features.watches.followed_feeds import FeedMemory, FeedStore
from api.features.watches.watch_ports import Inbox, Streams, Watches
from api.reports.report import Cost, GateState, Report, Share, Summary, SupportCheck

State = Literal["running", "done", "failed"]
Subject = Literal["report", "finding", "item"]
UNBOUNDED = 2**62  # a limit of units that nothing reaches; fits a column of 64 bits
COMPARISON, WATCH = "comparison:", "watch:"
"""Prefixes of the idempotency keys of analyses that a comparison or a watch began."""


@dataclass(frozen=True, slots=True)
class StoredAnalysis:
    """One analysis with its stored state."""

    id: str
    tenant: str
    state: State
    created_at: datetime | None  # None where the stored row is damaged
    query: str
    report: Report | None
    """The report in today's version; None until the analysis is done."""
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
    """Id, question, state and numbers of one analysis, without its items."""

    id: str
    tenant: str
    state: State
    created_at: datetime
    query: str
    summary: Summary | None
    """Summary of the report; None until it is done, or when this program cannot read it."""
    reason: str | None = None
    """Why the analysis failed; None unless it did."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on the listed analyses; an empty field sets no condition."""

    decision: str | None = None
    source: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Only analyses requested before this time."""
    prefix: str = ""  # first characters of the ids


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of analyses, newest first; `cursor` requests the next page, None on the last."""

    analyses: tuple[AnalysisSummary, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class DurableWork:
    """An analysis under way that another process could continue."""

    tenant: str
    analysis_id: str
    work_id: str


@dataclass(frozen=True, slots=True)
class Purpose:
    """What began an analysis, when it was not a question by itself."""

    kind: Literal["comparison", "watch"]
    watch_id: str = ""  # empty while the run goes on, and of a comparison
    watch: str = ""


class SourceTally(Published):
    """The numbers of how asking one source ended; fields of the same names as in a report."""

    model_config = ConfigDict(extra="ignore")
    outcome: Outcome
    gate: GateState
    attempts: tuple[Attempt, ...]
    fetched: int
    fit: int | None = None
    kept: int
    yield_ratio: Share | None
    refetched: bool
    refetch_gain: int
    disputed: int = 0
    agreement: Agreement | None = None
    upstream_calls: int

    @property
    def open_reason(self) -> str | None:
        """Why the gate passed some items unjudged; None when it judged all."""
        return open_reason(self.attempts)

    @property
    def degraded(self) -> bool:
        """Whether its items passed unjudged, so that it says nothing about yields."""
        return self.outcome.answered and self.gate.status == "degraded"

    @property
    def judged(self) -> int:
        """Number of items that a judge decided; 0 when the source is degraded or did not answer."""
        if not self.outcome.answered or self.gate.status != "ok":
            return 0
        if self.fit is not None:
            return self.fit
        if self.kept and self.yield_ratio:
            return round(self.kept / self.yield_ratio)
        return 0 if self.yield_ratio else self.fetched  # a yield of 1 without items: none was fit

    @property
    def relevant(self) -> int:
        """Number of judged items that are about the question."""
        return self.kept if self.judged else 0


class Tally(Published):
    """The numbers of a report, as statistics and metrics define them."""

    model_config = ConfigDict(extra="ignore")
    decision: Decision
    sample: bool
    cost: Cost
    support: SupportCheck = SupportCheck()
    sources: Mapping[str, SourceTally]
    items: int
    """Items that the report kept in the end: past gate, grades and copies."""
    cited: int
    """Distinct items that its findings rest on."""

    @classmethod
    def of(cls, report: Report) -> Self:
        """Decision, counts and yields of a report, for listings and statistics."""
        sources = {
            name: SourceTally.model_validate(source, from_attributes=True) for name, source in report.sources.items()
        }
        return cls(
            decision=report.decision, sample=report.sample, cost=report.cost,
            support=report.support, sources=sources, items=len(report.items), cited=report.cited,
        )  # fmt: skip

    @property
    def judged(self) -> int:
        """Items of all sources with a sound verdict."""
        return sum(source.judged for source in self.sources.values())

    @property
    def relevant(self) -> int:
        """Number of judged items that are about the question, over all sources."""
        return sum(source.relevant for source in self.sources.values())

    @property
    def degraded(self) -> bool:
        """Whether items of some source passed unjudged."""
        return any(source.degraded for source in self.sources.values())

    @property
    def own_items(self) -> bool:
        """Whether it was asked of a person's own items, which no source found."""
        return set(self.sources) == {"items"}

    @property
    def unanswered(self) -> bool:
        """Whether sources were asked and none answered."""
        return bool(self.sources) and not any(source.outcome.answered for source in self.sources.values())

    @property
    def comparable(self) -> bool:
        """Whether it is in the means over analyses: some source but own items answered."""
        return bool(self.sources) and not (self.own_items or self.unanswered)

    @property
    def price(self) -> float | None:
        """Cost in USD; None when no source was asked or a model's price is unknown."""
        return self.cost.usd if self.sources else None


@dataclass(frozen=True, slots=True)
class Counted:
    """One analysis with what statistics need."""

    id: str
    state: State
    created_at: datetime
    tally: Tally | None
    """Counts of its report; None until it is done, or when this program cannot read it."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """One author's opinion on a report, a finding or an item."""

    analysis_id: str
    author: str
    """Pseudonym of who gave it."""
    subject: Subject
    rating: Rating
    finding: int | None = None
    """Number of the finding in the report, from 1."""
    item_key: str | None = None
    comment: str = ""
    created_at: datetime | None = None
    """When it was first given; None before it is stored."""


@dataclass(frozen=True, slots=True)
class Thumbs:
    """Number of ratings of each kind."""

    up: int = 0
    down: int = 0

    def __add__(self, other: Thumbs) -> Thumbs:
        """Up and down votes of both."""
        return Thumbs(self.up + other.up, self.down + other.down)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Record of an API key; the key itself is shown once and stored only as a digest."""

    id: str
    name: str
    origin: Literal["environment", "store"]
    created_at: datetime | None
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class KeptSession:
    """One stored chat session."""

    id: str
    text: str
    """The session's JSON; empty when it is damaged."""
    saved_at: datetime


@dataclass(frozen=True, slots=True)
class SessionListing:
    """One page of sessions, last used first; `cursor` requests the next page, None on the last."""

    sessions: tuple[KeptSession, ...]
    cursor: str | None


class SourceMemory(FeedMemory, AnswerMemory, Protocol):
    """What sources remember between runs: pages, feeds, pace, and how much of a daily quota is used.

    A quota is counted in whole units by scope (`youtube.search`, `key:ID:analyses`) and day.
    """

    async def keep_page(self, key: str, text: str) -> None:
        """Store or replace a page, and delete pages that are a day old.

        Sources never store failures or block pages.
        """

    async def take(self, scope: str, day: date, units: int, limit: int) -> bool:
        """Reserve units if they fit the limit; when two processes compete for the last, one succeeds."""

    async def give_back(self, scope: str, day: date, units: int) -> None:
        """Release reserved units that were not used; never below zero."""

    async def spent(self, scope: str, day: date) -> int:
        """Units that were taken of the day so far."""

    async def take_turn(
        self, scope: str, limits: Sequence[tuple[int, float]], now: datetime
    ) -> tuple[datetime, bool] | None:
        """Count one request of all processes, where the limits (requests, seconds) and no pause forbid it.

        Else when there may be one, and whether the source said that the day's are used up.
        """

    async def pause_source(self, scope: str, until: datetime, spent: bool, now: datetime) -> None:
        """Send nothing before then, in whatever process; a later end that is stored already stays."""


class Sessions(Protocol):
    """Chat sessions: an opaque JSON text by tenant and session id."""

    async def session(self, tenant: str, session_id: str) -> str | None:
        """The session as last saved, in JSON; None when there is none."""

    async def keep_session(self, tenant: str, session_id: str, text: str, report_id: str | None = None) -> None:
        """Save the text of a session, and the report it began over, in place of an earlier one."""


class Store(
    SourceMemory, Sessions, CorrectionBook, Archive, Imports, Watches, Inbox, Streams, FeedStore, SampleMemory, Protocol
):  # fmt: skip
    """The whole store; one object for one database."""

    @property
    def embedding(self) -> ArchiveEmbedding | None:
        """Vectors of an embedding server; None when none is configured or the database cannot compare vectors."""

    async def aclose(self) -> None:
        """Close the connections; analyses still running here are marked as failed."""

    # Analyses of every decision, with their items and verdicts; each item is stored once by key.

    async def begin(self, tenant: str, analysis_id: str, query: str, work_id: str = "", digest: str = "") -> datetime:
        """Note that an analysis runs in this process; returns when it was first begun.

        Durable work, with a `work_id`, does not end with the process, and `running` finds it.
        """

    async def running(self, tenant: str, digest: str) -> str | None:
        """The id of durable work under way for a question of this digest."""

    async def finish(self, tenant: str, report: Report, work_id: str | None = None) -> bool:
        """Store a finished report under its id, in one transaction; begun or not.

        With a `work_id`, also an empty one, only if this process was the last to begin the analysis, with that id, and
        it was not deleted. Returns whether it was stored.
        """

    async def fail(self, tenant: str, analysis_id: str, reason: str, work_id: str | None = None) -> bool:
        """Note that a running analysis ended without a report; `work_id` and what is returned as of `finish`."""

    async def get(self, tenant: str, analysis_id: str) -> StoredAnalysis | None:
        """The analysis with its report; None when the tenant has no analysis of this id."""

    async def listing(self, tenant: str, filters: Filters, limit: int, cursor: str | None = None) -> Listing:
        """Analyses, newest first, with summaries instead of reports.

        Raises:
            UsageError: the cursor was not made here.
        """

    async def delete(self, tenant: str, analysis_id: str) -> bool:
        """Delete an analysis and every item that only it held; False when there is none."""

    async def forget(self, keys: Iterable[str]) -> int:
        """Remove items that their source deleted from all that is stored, of any tenant.

        Reports stay readable and say so in `quality_notes`. Returns how many items were stored.
        """

    async def sweep(self) -> int:
        """Mark analyses as failed whose process has ended, and delete what is past its time.

        Called at start and now and then. A process on another machine counts as ended after a
        minute without a heartbeat. Durable work stays as it is. Returns how many were marked.
        """

    async def each_counted(
        self, tenant: str, since: datetime | None, most: int, take: Callable[[Counted], None]
    ) -> bool:
        """Hand the analyses begun since then to `take`, newest first, at most `most`.

        Returns whether there are more.
        """

    async def reports_with(self, tenant: str, keys: Iterable[str]) -> Mapping[str, str]:
        """The newest analysis that kept each of these items, by the item's key; none of what no report kept."""

    async def purposes(self, tenant: str, begun: Mapping[str, datetime]) -> Mapping[str, Purpose]:
        """Purposes of analyses by id, of those that have one; `begun` says when each was begun.

        A comparison's is known as long as its idempotency keys are kept, a week; a watch's as long
        as the watch is.
        """

    async def claim(self, tenant: str, key: str, digest: str, analysis_id: str) -> tuple[str, bool]:
        """The analysis id that owns an idempotency key, and whether it is this call's.

        Raises:
            UsageError: the key was used for a different request.
        """

    # Processes that share the store.

    async def durable(self) -> Sequence[DurableWork]:
        """Analyses under way that do not end with their process."""

    async def appear(self) -> str:
        """Show other processes that this one runs, until the store is closed; returns its id."""

    async def gone(self, processes: Collection[str]) -> Collection[str]:
        """Ids of those processes that have ended or sent no heartbeat for a minute."""

    # Budgets of work that another process may continue: it is charged once, by its id.

    async def charge(self, work_id: str, scope: str, day: date, units: int, limit: int) -> bool:
        """Reserve units for a piece of work if they fit, or were reserved for it before."""

    async def settle(self, work_id: str, scope: str, units: int) -> None:
        """Replace the units reserved for a piece of work by those it used; only the first call counts."""

    async def release(self, work_id: str, scope: str) -> None:
        """Give back everything reserved for a piece of work that is not settled; `charge` reserves it again."""

    # Opinions on analyses; they are deleted with their analysis and with their item.

    async def keep_feedback(self, tenant: str, feedback: Feedback, most: int) -> Feedback | None:
        """Store an opinion in place of the one that its author had on the same subject.

        Returns it with the time at which it was first given; None when the analysis is gone.

        Raises:
            UsageError: the analysis has `most` of them already.
        """

    async def feedback(self, tenant: str, analysis_id: str) -> Sequence[Feedback]:
        """All opinions on one analysis, oldest first."""

    async def thumbs(self, tenant: str, since: datetime | None) -> Mapping[str, Thumbs]:
        """Ratings by the id of each analysis begun since then that has any."""

    # API keys that were added at run time, by their SHA-256 digest.

    async def add_key(self, name: str, digest: str) -> ApiKey:
        """Store a key's digest under a new id.

        Raises:
            UsageError: the name is taken, also by a revoked key.
        """

    async def keys(self) -> Sequence[ApiKey]:
        """All keys, revoked ones too, oldest first."""

    async def key_of(self, digest: str) -> ApiKey | None:
        """The unrevoked key with this digest."""

    async def revoke_key(self, key: str) -> bool:
        """Revoke a key by id, else by name; again is fine. False when there is none."""

    # Tokens that open one report, or the pages, without a key, by their SHA-256 digest.

    async def set_link(self, tenant: str, analysis_id: str, digest: str | None) -> bool:
        """Let this token alone open a report, or none; False when there is no such analysis."""

    async def has_link(self, tenant: str, analysis_id: str) -> bool:
        """Whether a token opens the report."""

    async def owner_of_link(self, analysis_id: str, digest: str) -> str | None:
        """The tenant whose analysis of this id the token opens."""

    async def keep_login(self, digest: str, tenant: str, until: datetime) -> None:
        """Let this token open the pages as this tenant."""

    async def login(self, digest: str, now: datetime) -> str | None:
        """The tenant of a login that has not expired."""

    async def drop_login(self, digest: str) -> None:
        """Delete the login with this digest."""

    async def sessions(
        self, tenant: str, limit: int, cursor: str | None = None, report_id: str | None = None
    ) -> SessionListing:
        """Chat sessions, the last used first; with `report_id` those that began over that report.

        Raises:
            UsageError: the cursor was not made here.
        """

    async def drop_session(self, tenant: str, session_id: str) -> bool:
        """Delete a chat session; False when there is none."""
