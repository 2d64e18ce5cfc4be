"""Protocols of the store of watches and the inbox. All methods raise `StoreUnavailable`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from api.choices import Show
from api.core.items import Item
from api.features.watches.watch import Watch
from api.features.watches.watch_run import Delivery, NewPost, RunCounts, WatchRun

STREAM_RUN = "stream-"
"""Beginning of the id of a run of posts of streams."""


@dataclass(frozen=True, slots=True)
class SeenPost:
    """Key of a seen post, the rule that dropped it, and its item where copies are still recognised by it."""

    key: str
    dropped_by: str = ""  # the watch's rule by which it was dropped; empty: it was kept
    item: Item | None = None  # its words, by which copies are recognised


@dataclass(frozen=True, slots=True)
class RunClaim:
    """The right of this process alone to run a watch, until a stored time."""

    watch: Watch
    run_id: str  # where it continues an expired claim, the id of that one, so that receivers see one run


@dataclass(frozen=True, slots=True)
class DigestClaim:
    """The right of this process alone, until a stored time, to send the digests of a watch that are due."""

    watch: Watch
    runs: Sequence[WatchRun]  # those that wait for a digest, oldest first; after an expired claim the same as before
    due_at: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class KeptCounts:
    """The counts of a stored run, with its rule and time."""

    rule: str  # digest of the request at that time; see `Watch.rule`
    created_at: datetime
    counts: RunCounts | None  # None when it failed or no source answered


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """Posts and deletions of a stream since the previous batch."""

    posts: tuple[Item, ...] = ()
    deleted: tuple[str, ...] = ()
    """Keys of deleted posts; a key that ends with `*` covers all keys with that beginning, such as an account's."""
    cursor: str = ""
    """Position of the next read; a batch that was not stored is read again."""
    at: datetime | None = None
    """Time up to which the stream was read; None when it does not say."""
    tenants: frozenset[str] | None = None
    """Tenants whose watches may get the posts; None: all."""


class Stream(Protocol):
    """A source that sends posts as they are written."""

    @property
    def name(self) -> str:
        """The source of its posts."""

    def read(self, cursor: str) -> AsyncGenerator[StreamBatch]:
        """Batches from a cursor on, or from now on for an empty one, each at least once, until the connection ends.

        Raises:
            SourceError: it cannot be read, or was closed.
        """


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """Position up to which a stream was read, for the one process that may read it."""

    cursor: str
    at: datetime | None


WatchId = tuple[str, str]
"""Tenant and id of a watch."""


class Streams(Protocol):
    """Positions of streams, and posts in which names of watches were found."""

    async def take_stream(self, name: str, reader: str, now: datetime, until: datetime) -> StreamPosition | None:
        """Claim a stream for this process or extend its claim; None while another process holds it."""

    async def keep_stream(
        self, name: str, reader: str, batch: StreamBatch, matches: Mapping[str, Sequence[WatchId]], now: datetime
    ) -> bool:
        """Store the cursor and the matches (watches by key of a post), and delete what is gone, all or nothing.

        Returns False where the claim was lost; nothing is stored then.
        """

    async def held_keys(self, keys: Sequence[str]) -> Sequence[str]:
        """The given keys under which an item, comment, waiting or seen post, entry or correction is stored.

        Of a key that ends with `*`, all stored keys that begin so.
        """

    async def streamed_watches(self, since: datetime | None) -> Sequence[Watch]:
        """Watches that follow streams and are not paused, of all tenants; only those changed since then, if given."""

    async def streamed_ids(self) -> Sequence[WatchId]:
        """Ids of the watches of `streamed_watches(None)`."""

    async def streamed_count(self) -> int:
        """Number of watches that follow streams."""

    async def without_history(self, now: datetime, most: int) -> Sequence[WatchId]:
        """Watches that follow streams and were not notified yet of what was written before, the oldest first."""

    async def pending_watches(self, now: datetime, most: int) -> Sequence[WatchId]:
        """Watches with posts to be judged whose turn has come, those that wait longest first."""

    async def postpone_posts(self, watch_id: WatchId, until: datetime) -> None:
        """Leave a watch out of `pending_watches` until then."""

    async def unjudged(self, watch_id: WatchId) -> int:
        """Number of posts of a watch that went unjudged since its last message."""

    async def posts_of_watch(self, watch_id: WatchId, most: int) -> Sequence[Item]:
        """At most `most` posts that wait to be judged for a watch, oldest first."""


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
        """Claim a watch, whether it is due or not; None when it is gone or another process holds it.

        A claim of the same run id is continued. With `due_at` also None when the watch was run
        since then, or has been paused.
        """

    async def finish_run(
        self,
        claim: RunClaim,
        run: WatchRun,
        learnt: Sequence[SeenPost],
        due_at: datetime,
        judged: Sequence[str] = (),
        judged_from: datetime | None = None,
        unjudged_before: int = 0,
    ) -> bool:
        """Store run, seen posts and next due time, all or nothing; returns False where the claim is lost.

        `judged` are keys of posts of streams that no longer wait; the kept ones go into the archive, unless they were
        deleted meanwhile. Until `judged_from` no further posts are judged. `unjudged_before` of the run's unjudged
        posts were counted before it. A first run of which nobody was notified does not mark those posts as seen that
        wait for a stream's message.
        """

    async def release_claim(self, claim: RunClaim) -> None:
        """Let any process continue an interrupted run, by the same id."""

    async def claim_digest(self, now: datetime, until: datetime) -> DigestClaim | None:
        """Claim the digests of any tenant that are overdue longest; None when none is due and free."""

    async def finish_digest(
        self, claim: DigestClaim, deliveries: Mapping[str, Sequence[Delivery]], now: datetime
    ) -> None:
        """Store deliveries by run id, and when a digest is due after `now`; does nothing when the claim is lost."""

    async def watch_runs(self, tenant: str, watch_id: str, limit: int, *, news: bool = False) -> Sequence[WatchRun]:
        """Runs, the newest first; with `news` only those that were sent."""

    async def keep_deliveries(self, watch: Watch, run_id: str, deliveries: Sequence[Delivery]) -> None:
        """Store the deliveries of a run that was sent again; successful deliveries stay unchanged."""

    async def set_feed(self, watch: Watch, digest: str | None) -> bool:
        """Set the digest of the token that reads its feed; False when the watch is gone."""

    async def watch_of_feed(self, watch_id: str, digest: str) -> Watch | None:
        """The watch of this id, of any tenant, whose feed this token reads."""

    async def watch_of_link(self, watch_id: str) -> Watch | None:
        """The watch of this id, of any tenant; the caller checks the signature made with its secret."""

    async def past_counts(self, watch: Watch, since: datetime, most: int) -> Sequence[RunCounts]:
        """Counts of its runs by its present rule since then, the newest first."""

    async def kept_counts(self, watch: Watch, since: datetime, most: int) -> Sequence[KeptCounts]:
        """Counts of its scheduled runs by any rule since then, failed ones too, the newest first."""

    async def holds_claim(self, claim: RunClaim) -> bool:
        """Whether a claim is still valid; not when the watch is gone."""

    async def seen_posts(self, watch: Watch, most: int) -> Sequence[SeenPost]:
        """All posts that it has seen; the last `most` kept ones with their text."""


@dataclass(frozen=True, slots=True)
class EntryState:
    """State of an entry of the inbox, set by people."""

    read_at: datetime | None = None
    starred: bool = False
    note: str = ""
    assigned: str = ""
    """Name of the person who shall handle it; empty: nobody."""
    not_about: bool = False
    """Somebody said that it is not about the product: a correction."""


UNTOUCHED = EntryState()
"""The state of an entry that has just come."""


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """A new post of a watch, as the inbox keeps it; with a star, a note or a name assigned it outlives its watch."""

    id: str
    """Ids of later entries are greater."""
    post: NewPost
    watch_id: str
    watch: str
    """The name of the watch when it found the post."""
    site: str
    """Site where it was written, as `exclude_sites` takes it: `r/deals`, a channel, or `example.com`."""
    report_id: str | None
    """Id of the report; None for a post from a stream."""
    sample: bool
    came_at: datetime
    state: EntryState


@dataclass(frozen=True, slots=True)
class InboxFilter:
    """Conditions on entries; an empty field sets no condition."""

    show: Show = "unread"
    watch_id: str = ""
    source: str = ""
    complaints: bool = False
    text: str = ""
    assigned: str = ""
    newest: str = ""
    """Id of an entry; later entries are excluded."""


@dataclass(frozen=True, slots=True)
class InboxAction:
    """The last change of the inbox, and what takes it back."""

    words: str
    """Description of the action, in the past tense."""
    entry_id: str = ""
    before: EntryState | None = None
    """State of the entry before the action; None when the action did not concern one entry."""
    read_at: datetime | None = None
    """When all entries of a filter were marked as read at once."""
    site: str = ""
    """The site that was muted."""


@dataclass(frozen=True, slots=True)
class InboxSettings:
    """Muted sites, saved filters and the last change of one tenant's inbox."""

    sites: tuple[str, ...] = ()
    filters: Mapping[str, str] = field(default_factory=dict)
    """Query strings by name, in the order in which they were saved."""
    last: InboxAction | None = None
    keys: bool = True
    """Whether the page obeys single keys of the keyboard."""
    has_feed: bool = False


class Inbox(Protocol):
    """New posts of a tenant's watches, each once for each watch; posts of muted sites are excluded."""

    async def inbox(self, tenant: str, wanted: InboxFilter, limit: int, before: str = "") -> Sequence[InboxEntry]:
        """Entries, the newest first; with `before` those older than the entry of this id.

        Raises:
            UsageError: `before` is no id.
        """

    async def inbox_count(self, tenant: str, wanted: InboxFilter, most: int) -> int:
        """Number of entries, counted up to `most`."""

    async def inbox_entry(self, tenant: str, entry_id: str) -> InboxEntry | None:
        """The entry of this id."""

    async def inbox_entry_of(self, tenant: str, watch_id: str, key: str) -> InboxEntry | None:
        """The entry of a post that a watch found, by its key."""

    async def change_state(
        self, tenant: str, entry_id: str, state: EntryState, was: EntryState = UNTOUCHED
    ) -> EntryState | None:
        """Store the fields in which `state` differs from `was`, so that two changes of different fields both stand.

        Returns the whole state afterwards, None where the entry is gone.
        """

    async def mark_all_read(self, tenant: str, wanted: InboxFilter, read_at: datetime) -> int:
        """Mark the unread entries of a filter as read, and return their number."""

    async def mark_unread(self, tenant: str, read_at: datetime) -> int:
        """Mark the entries as unread that were read at this moment, and return their number."""

    async def inbox_settings(self, tenant: str) -> InboxSettings:
        """Settings of a tenant's inbox, or the defaults."""

    async def change_inbox(self, tenant: str, change: Callable[[InboxSettings], InboxSettings]) -> InboxSettings:
        """Store what `change` makes of the settings, but for `has_feed`, one change after the other.

        Raises:
            UsageError: `change` does.
        """

    async def set_inbox_feed(self, tenant: str, digest: str | None) -> None:
        """Set the digest of the token that reads the inbox as a feed, or none."""

    async def tenant_of_inbox_feed(self, digest: str) -> str | None:
        """The tenant whose inbox this token reads."""
