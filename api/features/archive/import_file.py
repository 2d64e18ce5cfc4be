"""Importing a file: its entries are merged with what is stored, batch by batch.

An import that is killed is continued from its last batch. Merging is pure, over the stored JSON of
`Item`: what was there first stays, empty fields are filled, comments are joined by their ids.
An item of which only comments were found is a stub until its own text is imported.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from api.core.items import Item
from api.core.text import cut
from api.features.archive.imports import (
    FileIdentity,
    Import,
    ImportBatch,
    ImportPortion,
    ImportPosition,
    ImportProgress,
    Imports,
    LeftOut,
    Refusal,
)

STUB = "only comments on it were imported; its own text was in none of the files"
"""Note on an item that is imported only through its comments; its title, if any, comes from its address."""
MOST_COMMENTS = 500  # comments stored of one item: those with most votes, of equal votes the newest
ENTRIES, LETTERS = 2_000, 4_000_000
"""Most entries and characters in a batch; it ends at whichever is reached first."""
LONGEST, LONGEST_COMMENT = 100_000, 20_000  # characters stored of an item's text and of a comment's
CUT = f"its text was longer than {LONGEST:,} characters and was cut"
EXAMPLES = 10  # items and refusals that a preview shows
Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Merged:
    """A stored item with its imported copy merged in, and counts of what is new."""

    facts: dict[str, Any]
    comments: tuple[str, ...] = ()  # ids of the comments that are new and were kept
    again: int = 0  # how many of the item and its comments were stored already
    gain: int = 0
    over: int = 0  # comments beyond `MOST_COMMENTS`, stored ones included
    new: bool = False  # the item's own text is new

    def brought(self, before: Collection[str]) -> list[str]:
        """Ids of the kept comments that are new or among `before`."""
        ours = {*before, *self.comments}
        return [id_ for id_ in comment_ids(self.facts) if id_ in ours]


def merged(stored: Facts | None, fresh: Facts) -> Merged:
    """The stored facts of an item joined with those of a file."""
    known = _comments(stored) if stored else []
    ids = {comment["id"] for comment in known}
    added, again = [], 0
    for comment in _comments(fresh):
        if comment["id"] in ids:
            again += 1
        else:
            ids.add(comment["id"])
            added.append(comment)
    comments = [*known, *added]
    over = max(len(comments) - MOST_COMMENTS, 0)
    if over:
        comments = sorted(comments, key=_rank, reverse=True)[:MOST_COMMENTS]
        left = {comment["id"] for comment in comments}
        added = [comment for comment in added if comment["id"] in left]
    named, had = not is_stub(fresh), stored is not None and not is_stub(stored)
    facts = dict(fresh)
    if stored:
        # the facts of a stub give way to those of the item itself
        first, other = (fresh, stored) if named and not had else (stored, fresh)
        facts = dict(first)
        for name, value in other.items():
            empty = facts.get(name) in (None, "", [], {}) and name not in {"notes", "thread"}
            if name not in facts or empty:
                facts[name] = value
    if comments or "comments" in facts:
        facts["comments"] = comments
    return Merged(
        facts,
        tuple(comment["id"] for comment in added),
        again + (named and had),
        len(comments) - len(known),
        over,
        named and not had,
    )


def is_stub(facts: Facts) -> bool:
    """Whether only comments on it are known."""
    notes = facts.get("notes")
    return isinstance(notes, Sequence) and STUB in notes


def comment_ids(facts: Facts) -> list[str]:
    """Ids of the item's comments, without those that have none."""
    return [comment["id"] for comment in _comments(facts)]


def without_comments(facts: Facts, ids: frozenset[str]) -> dict[str, Any]:
    """A copy of the item without the comments of these ids."""
    left = [comment for comment in _comments(facts) if comment["id"] not in ids]
    return {**facts, "comments": left}


def _comments(facts: Facts) -> list[dict[str, Any]]:
    listed = facts.get("comments")
    return [c for c in listed if isinstance(c, dict) and "id" in c] if listed else []


def _rank(comment: Mapping[str, Any]) -> tuple[float, str]:
    """Votes, which are the first measure; then the time, as text in ISO order."""
    votes = next(iter((comment.get("engagement") or {}).values()), None)
    worth = votes if isinstance(votes, int | float) else float("-inf")
    return worth, comment.get("created_at") or ""


class OpenedImport(Protocol):
    """An opened file whose format is known."""

    @property
    def identity(self) -> FileIdentity:
        """Identity by which this file is recognised."""

    def portions(self, since: ImportPosition) -> Iterator[ImportPortion]:
        """The records from this position on."""


ImportListener = Callable[[ImportProgress, ImportPosition], None]
"""Called after every batch with the counts so far and the position."""


async def import_file(
    source: OpenedImport, store: Imports, tenant: str, listener: ImportListener
) -> tuple[Import, bool]:
    """Store a file; False when all of it was stored before. A killed import is continued.

    Raises:
        Conflict: another process imports the same file.
    """
    begun = await store.begin_import(tenant, source.identity)
    if begun.finished_at is not None:
        return begun, False
    batches = _batches(source.portions(begun.position))

    # a pipe may give nothing for hours: a thread waits for it, and Ctrl-C does not
    def read() -> Coroutine[Any, Any, ImportBatch | None]:
        return asyncio.to_thread(next, batches, None)

    ahead = source.identity.digest != ""  # not of a pipe, for which an error would have to wait
    batch = await read()
    while batch is not None:
        following = asyncio.create_task(read()) if ahead else None  # while this one is stored
        try:
            begun = await store.keep_batch(tenant, begun, batch)
            listener(begun.progress, begun.position)
            batch = await (following or read())
        finally:
            if following is not None:
                following.cancel()
    return await store.finish_import(tenant, begun), True


@dataclass(frozen=True, slots=True)
class ImportPreview:
    """Contents of a file, without writing anything."""

    progress: ImportProgress
    """Counts of all entries; whether one is stored already, or repeated, is not known."""
    examples: tuple[Item, ...]
    refusals: tuple[Refusal, ...]


def preview_import(source: OpenedImport, listener: ImportListener) -> ImportPreview:
    """Read the whole file without writing, and return the first `EXAMPLES` items and refusals."""
    progress = ImportProgress()
    examples: list[Item] = []
    refusals: list[Refusal] = []
    for portion in source.portions(ImportPosition()):
        for entry in portion.entries:
            if isinstance(entry, Item):
                progress += ImportProgress(int(STUB not in entry.notes), len(entry.comments))
                examples += [entry][: EXAMPLES - len(examples)]
            elif isinstance(entry, Refusal):
                progress += ImportProgress(refused=1)
                refusals += [entry][: EXAMPLES - len(refusals)]
            else:
                progress += ImportProgress(left_out={entry.reason: 1})
        if portion.position.line % ENTRIES == 0:
            listener(progress, portion.position)
    return ImportPreview(progress, tuple(examples), tuple(refusals))


def _batches(portions: Iterator[ImportPortion]) -> Iterator[ImportBatch]:
    """Group portions into batches; the last may hold only the position."""
    taken: list[ImportPortion] = []
    entries = letters = 0
    for portion in portions:
        taken.append(portion)
        entries += 1 + len(portion.entries)
        for entry in portion.entries:
            if isinstance(entry, Item):
                bodies = (comment.body for comment in entry.comments)
                letters += sum(map(len, (entry.title, entry.body, *bodies)))
        if entries >= ENTRIES or letters >= LETTERS:
            yield _batch(taken)
            taken, entries, letters = [], 0, 0
    if taken:
        yield _batch(taken)


def _batch(portions: Sequence[ImportPortion]) -> ImportBatch:
    entries = [entry for portion in portions for entry in portion.entries]
    return ImportBatch(
        tuple(bounded(e).published for e in entries if isinstance(e, Item)),
        tuple(entry for entry in entries if isinstance(entry, Refusal)),
        dict(Counter(entry.reason for entry in entries if isinstance(entry, LeftOut))),
        portions[-1].position,
    )


def bounded(item: Item) -> Item:
    """The item with texts and comments of a length that a store can bear."""
    comments = item.comments
    if any(len(comment.body) > LONGEST_COMMENT for comment in comments):
        comments = tuple(c.edited(body=cut(c.body, LONGEST_COMMENT)) for c in comments)
    notes = (*item.notes, CUT) if len(item.body) > LONGEST else item.notes
    title, body = cut(item.title, LONGEST // 100), cut(item.body, LONGEST)
    return item.edited(title=title, body=body, comments=comments, notes=notes)
