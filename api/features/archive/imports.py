"""Imports of files: their values, and the protocol of the store for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from api.core.items import Item

MOST_REFUSALS = 10_000  # unreadable lines that are stored of one import; more are only counted
SHOWN = 200  # characters of a line that are stored with its refusal


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that could not be read."""

    line: int  # from 1; the first of an entry of several lines
    reason: str
    start: str = ""  # the first `SHOWN` characters of the line


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An entry that is no opinion of a person: removed, written by a bot, an advertisement."""

    reason: str


Entry = Item | Refusal | LeftOut
"""A comment is an item without texts, a stub, with that comment; see `import_file`."""


@dataclass(frozen=True, slots=True)
class ImportPosition:
    """Position up to which a file has been read."""

    offset: int = 0  # bytes of the unpacked text as UTF-8
    line: int = 0


@dataclass(frozen=True, slots=True)
class ImportPortion:
    """The entries of one record of a file, and where the next begins."""

    entries: tuple[Entry, ...]
    position: ImportPosition


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """Counts of a file's entries by result."""

    items: int = 0  # items whose own text is new
    comments: int = 0  # new comments, reviews included
    merged: int = 0  # items and comments that were stored already
    over: int = 0  # comments beyond `import_file.MOST_COMMENTS` of one item
    refused: int = 0  # lines that could not be read
    left_out: Mapping[str, int] = field(default_factory=dict)  # entries left out, by reason

    def __add__(self, other: ImportProgress) -> ImportProgress:
        reasons = dict(self.left_out)
        for reason, count in other.left_out.items():
            reasons[reason] = reasons.get(reason, 0) + count
        return ImportProgress(
            self.items + other.items, self.comments + other.comments, self.merged + other.merged,
            self.over + other.over, self.refused + other.refused, reasons,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ImportBatch:
    """Items stored in one transaction, and the file position after them."""

    items: tuple[Item, ...]
    refusals: tuple[Refusal, ...]
    left_out: Mapping[str, int]
    position: ImportPosition


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """Recognises a file that is imported again in the same way."""

    name: str  # without its folder; `-` of standard input
    form: str  # the format it is read as
    digest: str
    """Digest of the file's size, its first and last bytes and how it is read; empty when unknown (a pipe)."""


@dataclass(frozen=True, slots=True)
class Import:
    """An import that is done or under way."""

    id: str
    identity: FileIdentity
    position: ImportPosition
    progress: ImportProgress
    created_at: datetime | None  # None of a damaged row
    finished_at: datetime | None  # None until all of it is stored


class Imports(Protocol):
    """Stored imports; all methods raise `StoreUnavailable`."""

    async def begin_import(self, tenant: str, identity: FileIdentity) -> Import:
        """The import of this file: the finished one, the one to continue, or a new one."""

    async def keep_batch(self, tenant: str, begun: Import, batch: ImportBatch) -> Import:
        """Store a batch and the position after it; `Conflict` when another process imports it."""

    async def finish_import(self, tenant: str, begun: Import) -> Import:
        """Record that the whole file is stored."""

    async def imports(self, tenant: str) -> Sequence[Import]:
        """All imports of a tenant, newest first."""

    async def refusals(self, tenant: str, import_id: str) -> Sequence[Refusal]:
        """The unreadable lines in order, at most `MOST_REFUSALS`."""

    async def remove_import(self, tenant: str, import_id: str) -> int | None:
        """Remove an import, in small steps, with items that nothing else holds; their number."""

    async def forget_comments(self, tenant: str, ids: Iterable[str]) -> int:
        """Remove comments with these ids from stored items, and from reports' lists of them."""

    async def forget_replies(self, keys: Sequence[str]) -> int:
        """Remove comments, of any tenant's items, that are posts of a stream by these keys; how many were stored."""

    async def keys_of(self, tenant: str, ids: Iterable[str]) -> Sequence[str]:
        """Keys of the stored items with these ids: keys, or ids of the source."""
