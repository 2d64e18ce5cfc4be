"""Bringing a file in: read, collect, store batch by batch, and go on where a kill has ended it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from api.services.archive.imports import (
    Card,
    Import,
    ImportBatch,
    Imports,
    Intake,
    LeftOut,
    Mark,
    Portion,
    Refusal,
)
from api.services.archive.merging import STUB
from api.services.reporting.composing import facts_of
from api.services.reporting.report import ItemFacts
from api.services.schemas import Comment, Item
from api.services.text import cut

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
    def card(self) -> Card:
        """What it is."""
        ...

    def portions(self, since: Mark) -> Iterator[Portion]:
        """Its records from there on."""
        ...


Listener = Callable[[Intake, Mark], None]
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

    intake: Intake
    """Of every entry; what is in the store already, or twice in the file, is not known."""
    examples: tuple[Item, ...]
    """The first."""
    refusals: tuple[Refusal, ...]
    """The first."""


def rehearse(collected: Collected, heard: Listener) -> Rehearsal:
    """Read all of a file and write nothing."""
    intake = Intake()
    examples: list[Item] = []
    refusals: list[Refusal] = []
    for portion in collected.portions(Mark()):
        for entry in portion.entries:
            if isinstance(entry, Item):
                intake += Intake(int(STUB not in entry.notes), len(entry.comments))
                examples += [entry][: EXAMPLES - len(examples)]
            elif isinstance(entry, Refusal):
                intake += Intake(refused=1)
                refusals += [entry][: EXAMPLES - len(refusals)]
            else:
                intake += Intake(left_out={entry.reason: 1})
        if portion.mark.line % ENTRIES == 0:
            heard(intake, portion.mark)
    return Rehearsal(intake, tuple(examples), tuple(refusals))


def _batches(portions: Iterator[Portion]) -> Iterator[ImportBatch]:
    """Portions as batches; the last may hold nothing but how far the file is read."""
    taken: list[Portion] = []
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


def _batch(portions: Sequence[Portion]) -> ImportBatch:
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
