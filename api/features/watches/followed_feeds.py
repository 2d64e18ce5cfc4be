"""Feeds that are followed: what is known of each, its entries, and who follows it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from api.core.text import clean, one_line, quantity
from api.errors import NotFound, SourceError, UsageError
from api.settings.value_types import feed_address

MAX_FOLLOWED = 50
"""Feeds that one tenant follows at most."""
MAX_ENTRIES = 1_000
"""Entries of one feed that are kept, the newest."""
ENTRY_LIFE = timedelta(days=90)
"""How long an entry is kept after it has left its feed, and a feed after its last request."""
UNFOLLOWED_LIFE = timedelta(days=7)
"""How long a feed that no tenant follows is kept after its last request, with its entries."""


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One entry of a feed, its texts plain."""

    key: str
    """Stable key of the entry, which stays the same when its guid or its link changes."""
    title: str
    body: str
    url: str = ""
    link: str = ""
    """Address that the entry is about, when `url` is the page of its discussion."""
    author: str = ""
    """Author's pseudonym; empty when unknown."""
    created_at: datetime | None = None
    """Time of writing; None when the feed does not say."""
    guid: str = ""
    """Digest of its guid; empty when it has none."""
    same_link: str = ""
    """Digest of its address without the parts that change; empty when it has none."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FeedState:
    """State of a feed, shared by all tenants who follow it."""

    address: str
    """The address that is followed."""
    title: str = ""
    location: str = ""
    """Address that is requested when it differs: the feed moved for good, or a page announces it there."""
    answered_by: str = ""
    """The address that gave `etag` and `modified`, which are sent to no other."""
    etag: str = ""
    modified: str = ""
    asked_at: datetime | None = None
    """Time of the last request; None: never requested."""
    read_at: datetime | None = None
    """When it last answered with entries or as unchanged; None: never."""
    next_at: datetime | None = None
    """Earliest time of the next request; None: there is none, since the site said that the feed has ended."""
    outcome: str = ""
    """`ok`, or the error code of the last request; empty: never requested."""
    detail: str = ""
    """Error of the last request in words; empty when it succeeded."""
    entries: int = 0
    """Entries that it held when it was last read."""
    notes: tuple[str, ...] = ()
    """Notes on the entries read, such as entries that were cut off."""

    def is_due(self, now: datetime) -> bool:
        """Whether it may be asked now."""
        return not self.outcome or (self.next_at is not None and self.next_at <= now)


@dataclass(frozen=True, slots=True)
class FollowedFeed:
    """A feed in a tenant's list."""

    address: str
    name: str = ""
    """Name given by the tenant; empty: use the feed's title."""
    since: datetime | None = None


class FeedMemory(Protocol):
    """Feeds and their entries, shared by tenants and processes."""

    async def feeds(self, addresses: Collection[str]) -> Mapping[str, FeedState]:
        """States of those feeds that were ever requested, by address."""

    async def claim_feed(self, address: str, now: datetime, until: datetime) -> bool:
        """Let the caller alone ask a feed until then; False: it is not due, or another asks it."""

    async def keep_feed(self, state: FeedState, entries: Sequence[FeedEntry] | None, seen_before: datetime) -> None:
        """Store how asking a feed ended, which ends the claim.

        `entries` are what it holds now; None: unchanged, or unknown. Those that were seen since `seen_before`
        are in it still when it was read.
        """

    async def release_feed(self, address: str, next_at: datetime) -> None:
        """End a claim without storing a result; the feed may be requested again from `next_at` on."""

    async def feed_entries(self, addresses: Collection[str], most: int) -> Mapping[str, Sequence[FeedEntry]]:
        """Entries by address, the newest first, at most so many of all; undated ones by when they were first seen."""


class FeedStore(FeedMemory, Protocol):
    """Feeds, and which of them each tenant follows."""

    async def follow(self, tenant: str, feed: FollowedFeed, most: int) -> bool:
        """Add a feed, or rename it; False: it was there.

        Raises:
            UsageError: the tenant follows `most` already.
        """

    async def followed(self, tenant: str) -> Sequence[FollowedFeed]:
        """The tenant's feeds, oldest first."""

    async def unfollow(self, tenant: str, address: str) -> bool:
        """Remove a feed; False: there is none with this address."""

    async def due_feeds(self, now: datetime) -> Sequence[str]:
        """Addresses that may be asked now, of the feeds of tenants with watches that follow streams."""

    async def new_entries(
        self, shared: Collection[str], since: datetime
    ) -> Mapping[str, tuple[Sequence[FeedEntry], Collection[str]]]:
        """Entries first seen since then, by address, with the tenants whose watches follow that feed.

        Of those tenants' feeds and of the `shared` ones, without what a feed held when it was first read.
        """


class FeedAsker(Protocol):
    """Asks feeds when they are due; `FeedReader` does."""

    async def refreshed(self, addresses: Sequence[str]) -> Mapping[str, tuple[FeedState, SourceError | None]]:
        """Each feed, asked if it is due, with the error of its last request."""


@dataclass(frozen=True, slots=True)
class ListedFeed:
    """A feed that a tenant's questions read, and how it is."""

    feed: FollowedFeed
    state: FeedState
    newest: datetime | None = None
    """When its newest dated entry was written; None when none has a date."""
    of_settings: bool = False
    """Whether it stands in `FEEDS`, so that every question reads it."""


async def follow_feed(store: FeedStore, asker: FeedAsker, tenant: str, written: str, name: str = "") -> ListedFeed:
    """Request a feed, unless that was done within the hour, and add it to the tenant's feeds.

    Raises:
        UsageError: it is no address, no feed, cannot be read now, or there are too many.
    """
    address, name = feed_address(written), one_line(clean(name))
    if not address:
        raise UsageError("the address of a feed begins with `https://`, without user and fragment", field="address")
    if len(await store.followed(tenant)) >= MAX_FOLLOWED:
        raise UsageError(f"{quantity(MAX_FOLLOWED, 'feed')} are followed already; remove one first")
    known = await store.feeds([address])
    state, error = (await asker.refreshed([address]))[address]
    if error is not None:
        raise UsageError(f"not followed: {error.detail}{_when(state)}", field="address")
    place = feed_address(state.location)
    if place and place != address:
        # what this address held before it moved is of nobody there
        state = replace(state, address=place) if known else await _known_at(store, state, place)
    now = datetime.now(UTC)
    followed = FollowedFeed(state.address, name, now)
    await store.follow(tenant, followed, MAX_FOLLOWED)
    return (await _listed(store, [followed]))[0]


async def _known_at(store: FeedStore, state: FeedState, place: str) -> FeedState:
    """Store the state also under the feed's actual address, so that it is not requested again within the hour."""
    now = state.asked_at or datetime.now(UTC)
    moved = replace(state, address=place, location="")
    if await store.claim_feed(place, now, now + timedelta(minutes=1)):
        entries = (await store.feed_entries([state.address], MAX_ENTRIES)).get(state.address, ())
        await store.keep_feed(moved, entries, now)
    return moved


# outcomes that may be others by themselves
_TRANSIENT_OUTCOMES = frozenset({"blocked", "rate_limited", "timed_out", "unreachable"})


def _when(state: FeedState) -> str:
    return (
        ""
        if state.outcome not in _TRANSIENT_OUTCOMES or state.next_at is None
        else f" (it is not asked again before {state.next_at:%Y-%m-%d %H:%M}Z)"
    )


async def listed_feeds(store: FeedStore, tenant: str, of_settings: Sequence[str]) -> list[ListedFeed]:
    """The tenant's feeds, then those of the settings; sends no request."""
    own = await store.followed(tenant)
    addresses = {feed.address for feed in own}
    others = [FollowedFeed(address) for address in of_settings if address not in addresses]
    listed = await _listed(store, [*own, *others])
    return [replace(entry, of_settings=entry.feed.address in of_settings) for entry in listed]


async def _listed(store: FeedStore, feeds: Sequence[FollowedFeed]) -> list[ListedFeed]:
    addresses = [feed.address for feed in feeds]
    states = await store.feeds(addresses)
    listed = []
    for feed in feeds:
        entries = (await store.feed_entries([feed.address], 1)).get(feed.address, ())
        state = states.get(feed.address, FeedState(feed.address))
        # since when others follow it is nobody's business
        read_at = max(filter(None, (state.read_at, feed.since)), default=None) if state.read_at else None
        newest = next((entry.created_at for entry in entries), None)
        listed.append(ListedFeed(feed, replace(state, read_at=read_at), newest))
    return listed


async def unfollow_feed(store: FeedStore, tenant: str, written: str) -> FollowedFeed:
    """Remove a feed by its address, the tenant's name for it, or its title.

    Raises:
        NotFound: the tenant follows no such feed.
        UsageError: the name fits several.
    """
    address, followed = feed_address(written), await store.followed(tenant)
    fitting = [feed for feed in followed if feed.address in (address, written)]
    fitting = fitting or [feed for feed in followed if feed.name == written.strip()]
    if not fitting:
        states = await store.feeds([feed.address for feed in followed])
        titles = {address: state.title for address, state in states.items()}
        fitting = [feed for feed in followed if titles.get(feed.address) == written.strip()]
    if not fitting:
        raise NotFound(f"no feed `{written[:100]}` is followed")
    if len(fitting) > 1:
        raise UsageError(f"{len(fitting)} feeds have the name `{written[:100]}`; name an address")
    await store.unfollow(tenant, fitting[0].address)
    return fitting[0]
