"""What a search needs of the store, and what it gets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from api.services.reporting.report import ItemFacts

Embed = Callable[[Sequence[str]], Sequence[bytes] | None]
"""Texts as vectors of `DIMENSIONS` signed bytes, at length 127; None where there are no vectors."""
DIMENSIONS = 256
MOST_COUNTED = 20_000
"""Entries of a tenant up to which they are counted."""
ChunkId = tuple[str, str, int]
"""The item's key, the comment's number in it (from 1) or nothing, the number of the piece."""


@dataclass(frozen=True, slots=True)
class ArchiveFilters:
    """Which entries are searched."""

    source: str | None = None
    since: datetime | None = None
    """Undated entries are not since any time."""
    until: datetime | None = None
    """Exclusive."""
    kept: bool | None = None
    """True: kept by a report or imported; False: dropped by every report that saw it."""
    product: str | None = None
    """Seen by an analysis with this query, in any case."""
    language: str | None = None
    """Code of a language (`de`) that most small words of an entry may be of; short texts may be of
    many. Applied to what was found."""
    sample: bool = False
    """Made-up entries of the sample world instead of what was really heard; never both."""


EVERYTHING = ArchiveFilters()


@dataclass(frozen=True, slots=True)
class Match:
    """An entry that one of the two searches found."""

    id: ChunkId
    thread: str
    """Key of the item, or of the thread whose title it bears."""
    tokens: tuple[str, ...]
    vector: bytes | None
    """None: it has none."""
    by_words: bool
    """Found by its words."""
    by_vector: bool
    """Among the nearest."""


@dataclass(frozen=True, slots=True)
class Matches:
    """What both searches found, and what is needed to score it."""

    matches: tuple[Match, ...]
    """Each entry once, in the order of their ids."""
    frequencies: Mapping[str, int]
    """How many entries hold each word, counted up to a bound."""
    entries: int
    """How many the tenant has, up to `MOST_COUNTED`."""
    vectors: bool
    """Whether the nearest were looked for."""
    unread: int = 0
    """Entries that were not among those, since their vectors are still being read."""


class Archive(Protocol):
    """Everything a tenant has stored, by words and by meaning.

    All methods raise `StoreUnavailable` when the database cannot be used, and nothing else.
    """

    async def matches(
        self, tenant: str, words: Sequence[str], vector: bytes | None, filters: ArchiveFilters,
        most: int,
    ) -> Matches:  # fmt: skip
        """The best `most` entries by words and the nearest `most` by vector."""
        ...

    async def facts(self, tenant: str, keys: Iterable[str]) -> Mapping[str, ItemFacts]:
        """Items as they are stored; without those that are gone or damaged."""
        ...

    async def queries(self, tenant: str, most: int) -> Sequence[str]:
        """Queries of this tenant's analyses, the newest first, each once."""
        ...
