"""What a file brought in, and what the store keeps of it: values and the protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from api.core.domain import Item
from api.reports.report import ItemFacts

MOST_REFUSALS = 10_000
"""Lines kept aside of one import; what is beyond is counted."""
SHOWN = 200
"""Characters of a line that are kept with its refusal."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that could not be read."""

    line: int
    """From 1; of an entry of several lines the first."""
    reason: str
    start: str = ""
    """How the line begins."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An entry that is nobody's words: removed, written by a bot, an advertisement."""

    reason: str


Entry = Item | Refusal | LeftOut
"""A comment is an item without texts, a stub, with that comment; see `merging`."""


@dataclass(frozen=True, slots=True)
class ImportPosition:
    """How far a file is read."""

    offset: int = 0
    """In bytes of its unpacked text as UTF-8."""
    line: int = 0


@dataclass(frozen=True, slots=True)
class ImportPortion:
    """What one record of a file gave, and where the next begins."""

    entries: tuple[Entry, ...]
    mark: ImportPosition


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """What became of a file's entries."""

    items: int = 0
    """Whose own text is new."""
    comments: int = 0
    """That came to be there, reviews included."""
    merged: int = 0
    """Items and comments that were there already."""
    over: int = 0
    """Comments beyond `merging.MOST_COMMENTS` of one item."""
    refused: int = 0
    """Lines that could not be read."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """By reason."""

    def __add__(self, other: ImportProgress) -> ImportProgress:
        """Both together."""
        reasons = dict(self.left_out)
        for reason, count in other.left_out.items():
            reasons[reason] = reasons.get(reason, 0) + count
        return ImportProgress(
            self.items + other.items, self.comments + other.comments, self.merged + other.merged,
            self.over + other.over, self.refused + other.refused, reasons,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ImportBatch:
    """What is stored in one transaction, and how far the file is read then."""

    items: tuple[ItemFacts, ...]
    refusals: tuple[Refusal, ...]
    left_out: Mapping[str, int]
    mark: ImportPosition


@dataclass(frozen=True, slots=True)
class ImportCard:
    """What tells a file, read in one way, from every other."""

    name: str
    """Without its folder; `-` for what is piped in."""
    form: str
    """The format it is read as."""
    digest: str
    """Of its size, its first and last bytes and how it is read; empty where nobody can know."""


@dataclass(frozen=True, slots=True)
class Import:
    """A file that was brought in, or is being."""

    id: str
    card: ImportCard
    mark: ImportPosition
    intake: ImportProgress
    created_at: datetime | None
    """None of a damaged row."""
    finished_at: datetime | None
    """None until all of it is stored."""


class Imports(Protocol):
    """Files that were brought in; all methods raise `StoreUnavailable`."""

    async def begin_import(self, tenant: str, card: ImportCard) -> Import:
        """The import of this card: the finished one, the one to go on with, or a new one."""

    async def keep_batch(self, tenant: str, begun: Import, batch: ImportBatch) -> Import:
        """Store a batch and how far the file is read, in one transaction.

        Raises:
            Conflict: another process goes on with this import, or has removed it.
        """

    async def finish_import(self, tenant: str, begun: Import) -> Import:
        """Note that all of it is stored."""

    async def imports(self, tenant: str) -> Sequence[Import]:
        """The newest first."""

    async def refusals(self, tenant: str, import_id: str) -> Sequence[Refusal]:
        """The lines kept aside, at most `MOST_REFUSALS`, in their order."""

    async def remove_import(self, tenant: str, import_id: str) -> int | None:
        """Remove it with what no report and no other import holds; how many items that were.

        None when there is none. In small steps: one that is stopped is gone on with.
        """

    async def forget_comments(self, tenant: str, ids: Iterable[str]) -> int:
        """Remove comments with these ids from stored items, and from reports' lists of them."""

    async def keys_of(self, tenant: str, ids: Iterable[str]) -> Sequence[str]:
        """Keys of the stored items that one of these stands for: a key, or a place's own id."""
