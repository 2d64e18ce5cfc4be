"""Bringing a file in: read, collect, store batch by batch, and go on where a kill has ended it.

One item of what several files, or a file and a place, say of it: pure, over stored facts.

Facts are the JSON of `ItemFacts`. What was there first stays; what was empty is filled; comments
are joined by their ids. An item of which only comments came is a stub until its own text comes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from api.core.domain import Comment, Item
from api.core.text import cut
from api.features.archive.imports import (
    Import,
    ImportBatch,
    ImportCard,
    ImportPortion,
    ImportPosition,
    ImportProgress,
    Imports,
    LeftOut,
    Refusal,
)
from api.reports.composition import facts_of
from api.reports.report import ItemFacts

STUB = "only comments on it were imported; its own text was in none of the files"
"""The note of an item that nobody has seen itself; its title, if any, comes from its address."""
MOST_COMMENTS = 500
"""Of one item: the best voted, the newest of those with equal votes."""
Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Merged:
    """What became of an item."""

    facts: dict[str, Any]
    comments: tuple[str, ...] = ()
    """Ids of those that were not there before and stayed."""
    again: int = 0
    """Of the item and its comments, how many were there already."""
    gain: int = 0
    """How many comments there are more."""
    over: int = 0
    """Comments beyond `MOST_COMMENTS`, also of those that were there."""
    new: bool = False
    """The item's own text was not there before."""

    def brought(self, before: Collection[str]) -> list[str]:
        """Of the comments that are left, those that came now or are among `before`."""
        ours = {*before, *self.comments}
        return [id_ for id_ in comment_ids(self.facts) if id_ in ours]


def merged(stored: Facts | None, fresh: Facts) -> Merged:
    """What is stored of an item together with what came now."""
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
    facts = _filled(stored, fresh) if stored else dict(fresh)
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
    """Of all its comments."""
    return [comment["id"] for comment in _comments(facts)]


def without_comments(facts: Facts, ids: frozenset[str]) -> dict[str, Any]:
    """The item without these comments."""
    left = [comment for comment in _comments(facts) if comment["id"] not in ids]
    return {**facts, "comments": left}


def _filled(stored: Facts, fresh: Facts) -> dict[str, Any]:
    """The first's facts, and the other's where it has none; a stub's give way."""
    if is_stub(stored) and not is_stub(fresh):
        stored, fresh = fresh, stored
    facts = dict(stored)
    for name, value in fresh.items():
        empty = facts.get(name) in (None, "", [], {})
        if name not in facts or (empty and name not in {"notes", "thread"}):
            facts[name] = value
    return facts


def _comments(facts: Facts) -> list[dict[str, Any]]:
    listed = facts.get("comments")
    return [c for c in listed if isinstance(c, dict) and "id" in c] if listed else []


def _rank(comment: Mapping[str, Any]) -> tuple[float, str]:
    """Votes, by the first measure, which is the main one; then the time, as text in ISO order."""
    measures = comment.get("engagement") or {}
    votes = next(iter(measures.values()), None)
    worth = votes if isinstance(votes, int | float) else float("-inf")
    return worth, comment.get("created_at") or ""


ENTRIES = 2_000
"""Of one batch, about."""
LETTERS = 4_000_000
"""Characters of one batch, about; a batch ends with whichever comes first."""
LONGEST, LONGEST_COMMENT = 100_000, 20_000
"""Characters that are kept of an item's text and of a comment's."""
CUT = f"its text was longer than {LONGEST:,} characters and was cut"
EXAMPLES = 10


class Collected(Protocol):
    """An opened file, understood."""

    @property
    def card(self) -> ImportCard:
        """What it is."""
        ...

    def portions(self, since: ImportPosition) -> Iterator[ImportPortion]:
        """Its records from there on."""
        ...


Listener = Callable[[ImportProgress, ImportPosition], None]
"""Hears what has become of a file so far, after every batch."""


async def import_file(
    collected: Collected, store: Imports, tenant: str, heard: Listener
) -> tuple[Import, bool]:
    """Store what a file holds; whether there was anything to do: not of one that is all stored.

    Raises:
        Conflict: another process does the same.
        StoreUnavailable: the database cannot be used; what is stored stays and is gone on with.
    """
    begun = await store.begin_import(tenant, collected.card)
    if begun.finished_at is not None:
        return begun, False
    batches = _batches(collected.portions(begun.mark))

    # a pipe may give nothing for hours: a thread waits for it, and Ctrl-C does not
    def read() -> Coroutine[Any, Any, ImportBatch | None]:
        return asyncio.to_thread(next, batches, None)

    ahead = collected.card.digest != ""  # not of a pipe, for which an error would have to wait
    batch = await read()
    while batch is not None:
        following = asyncio.create_task(read()) if ahead else None  # while this one is stored
        try:
            begun = await store.keep_batch(tenant, begun, batch)
            heard(begun.intake, begun.mark)
            batch = await (following or read())
        finally:
            if following is not None:
                following.cancel()
    return await store.finish_import(tenant, begun), True


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a file holds, when nothing is written."""

    intake: ImportProgress
    """Of every entry; what is in the store already, or twice in the file, is not known."""
    examples: tuple[Item, ...]
    """The first."""
    refusals: tuple[Refusal, ...]
    """The first."""


def rehearse(collected: Collected, heard: Listener) -> Rehearsal:
    """Read all of a file and write nothing."""
    intake = ImportProgress()
    examples: list[Item] = []
    refusals: list[Refusal] = []
    for portion in collected.portions(ImportPosition()):
        for entry in portion.entries:
            if isinstance(entry, Item):
                intake += ImportProgress(int(STUB not in entry.notes), len(entry.comments))
                examples += [entry][: EXAMPLES - len(examples)]
            elif isinstance(entry, Refusal):
                intake += ImportProgress(refused=1)
                refusals += [entry][: EXAMPLES - len(refusals)]
            else:
                intake += ImportProgress(left_out={entry.reason: 1})
        if portion.mark.line % ENTRIES == 0:
            heard(intake, portion.mark)
    return Rehearsal(intake, tuple(examples), tuple(refusals))


def _batches(portions: Iterator[ImportPortion]) -> Iterator[ImportBatch]:
    """Portions as batches; the last may hold nothing but how far the file is read."""
    taken: list[ImportPortion] = []
    entries = letters = 0
    for portion in portions:
        taken.append(portion)
        entries += 1 + len(portion.entries)
        letters += sum(_letters(entry) for entry in portion.entries if isinstance(entry, Item))
        if entries >= ENTRIES or letters >= LETTERS:
            yield _batch(taken)
            taken, entries, letters = [], 0, 0
    if taken:
        yield _batch(taken)


def _batch(portions: Sequence[ImportPortion]) -> ImportBatch:
    entries = [entry for portion in portions for entry in portion.entries]
    return ImportBatch(
        tuple(ItemFacts(**facts_of(bounded(e))) for e in entries if isinstance(e, Item)),
        tuple(entry for entry in entries if isinstance(entry, Refusal)),
        dict(Counter(entry.reason for entry in entries if isinstance(entry, LeftOut))),
        portions[-1].mark,
    )


def bounded(item: Item) -> Item:
    """The item with texts and comments that a store can bear, whatever a file holds."""
    comments: tuple[Comment, ...] = item.comments
    if any(len(comment.body) > LONGEST_COMMENT for comment in comments):
        comments = tuple(replace(c, body=cut(c.body, LONGEST_COMMENT)) for c in comments)
    notes = (*item.notes, CUT) if len(item.body) > LONGEST else item.notes
    return replace(
        item,
        title=cut(item.title, LONGEST // 100),
        body=cut(item.body, LONGEST),
        comments=comments,
        notes=notes,
    )


def _letters(item: Item) -> int:
    return len(item.title) + len(item.body) + sum(len(c.body) for c in item.comments)
