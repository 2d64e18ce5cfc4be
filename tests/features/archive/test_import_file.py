"""Files become batches, batches are stored, and nothing is stored in a preview."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import cast

import pytest

from api.core.items import Comment, Item
from api.errors import Conflict
from api.features.archive.import_file import (
    CUT,
    ENTRIES,
    EXAMPLES,
    LETTERS,
    LONGEST,
    LONGEST_COMMENT,
    STUB,
    bounded,
    import_file,
    preview_import,
)
from api.features.archive.imports import (
    Entry,
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

CARD = FileIdentity("dump.jsonl", "reddit", "d")
NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)
BEGUN = Import("imp_1", CARD, ImportPosition(), ImportProgress(), NOON, None)


@dataclass
class File:
    """Entries, one on each line."""

    entries: list[Entry]
    identity: FileIdentity = CARD

    def portions(self, since: ImportPosition) -> Iterator[ImportPortion]:
        for line, entry in enumerate(self.entries, 1):
            if line > since.line:
                yield ImportPortion((entry,), ImportPosition(line * 10, line))


@dataclass
class Noted(File):
    """Says when all of it was read."""

    ended: threading.Event = field(default_factory=threading.Event)

    def portions(self, since: ImportPosition) -> Iterator[ImportPortion]:
        yield from super().portions(since)
        self.ended.set()


@dataclass
class Store:
    """Keeps batches; fails at the one with this number."""

    fails_at: int = -1
    batches: list[ImportBatch] = field(default_factory=list)
    begun: Import = BEGUN

    async def begin_import(self, tenant: str, identity: FileIdentity) -> Import:
        return self.begun

    async def keep_batch(self, tenant: str, begun: Import, batch: ImportBatch) -> Import:
        if len(self.batches) == self.fails_at:
            raise Conflict("stopped")
        self.batches.append(batch)
        progress = begun.progress + ImportProgress(items=len(batch.items), left_out=batch.left_out)
        self.begun = replace(begun, position=batch.position, progress=progress)
        return self.begun

    async def finish_import(self, tenant: str, begun: Import) -> Import:
        self.begun = replace(begun, finished_at=NOON)
        return self.begun


def item(id_: str, **more: object) -> Item:
    """A post."""
    fields = {"key": f"x:{id_}", "id": id_, "source": "x", "title": f"Title {id_}"} | more
    return Item(**fields)


def remark(body: str) -> Comment:
    """A comment."""
    return Comment(id="c", body=body)


async def brought(file: File, store: Store) -> tuple[Import, list[tuple[ImportProgress, ImportPosition]]]:
    """Import it; what was heard on the way."""
    heard: list[tuple[ImportProgress, ImportPosition]] = []
    ended, _ = await import_file(
        file,
        cast(Imports, store),
        "a",
        lambda progress, position: heard.append((progress, position)),
    )
    return ended, heard


async def test_a_file_is_stored_batch_by_batch() -> None:
    """Every batch has how far the file is read then; the last has what is left."""
    file = File([*(item(str(number)) for number in range(ENTRIES))])
    store = Store()

    ended, heard = await brought(file, store)

    assert [len(batch.items) for batch in store.batches] == [ENTRIES // 2, ENTRIES // 2]
    assert [position.line for _, position in heard] == [ENTRIES // 2, ENTRIES]
    assert (ended.progress.items, ended.finished_at) == (ENTRIES, NOON)


@pytest.mark.parametrize(("digest", "ahead"), [("d", True), ("", False)])
async def test_a_file_is_read_on_while_a_batch_is_stored(digest: str, ahead: bool) -> None:
    """A pipe is not: whoever writes it may wait for hours, and an error with it."""
    file = Noted([item(str(number)) for number in range(ENTRIES - 1)], replace(CARD, digest=digest))

    class Waiting(Store):
        async def keep_batch(self, tenant: str, begun: Import, batch: ImportBatch) -> Import:
            if ahead and not self.batches:
                await asyncio.to_thread(file.ended.wait, 60)
            seen.append(file.ended.is_set())
            return await super().keep_batch(tenant, begun, batch)

    seen: list[bool] = []
    await brought(file, Waiting())

    assert seen == [ahead, True]


async def test_a_batch_of_long_texts_is_shorter() -> None:
    """Memory does not grow with what stands on a line."""
    long = item("a", body="x" * (LETTERS // 2), comments=(remark("y" * LETTERS),))
    store = Store()

    await brought(File([long, long, item("b")]), store)

    assert [len(batch.items) for batch in store.batches] == [1, 1, 1]


async def test_what_was_stopped_is_gone_on_with() -> None:
    """At the last batch that was stored, with nothing twice."""
    file = File([*(item(str(number)) for number in range(ENTRIES))])
    store = Store(fails_at=1)
    with pytest.raises(Conflict):
        await brought(file, store)
    store.fails_at = -1

    ended, heard = await brought(file, store)

    assert [fact.id for batch in store.batches for fact in batch.items] == [str(number) for number in range(ENTRIES)]
    assert (len(heard), ended.progress.items) == (1, ENTRIES)


async def test_a_finished_import_is_not_done_again() -> None:
    """The file is not even read."""
    store = Store(begun=Import("imp_1", CARD, ImportPosition(), ImportProgress(), NOON, NOON))

    ended, fresh = await import_file(File([item("a")]), cast(Imports, store), "a", lambda progress, position: None)

    assert (ended, fresh, store.batches) == (store.begun, False, [])


async def test_refusals_and_what_is_left_out_go_with_their_batch() -> None:
    """A line that cannot be read with its number, what is nobody's words as a count."""
    refusal = Refusal(2, "it is no JSON object", "{")
    entries: list[Entry] = [
        item("a"),
        refusal,
        LeftOut("a bot's"),
        LeftOut("a bot's"),
        LeftOut("removed"),
    ]
    store = Store()

    await brought(File(entries), store)

    (batch,) = store.batches
    assert batch.refusals == (refusal,)
    assert batch.left_out == {"a bot's": 2, "removed": 1}


async def test_a_file_without_entries_is_finished() -> None:
    """There is nothing to store, and nothing to go on with."""
    ended, heard = await brought(File([]), Store())

    assert (ended.finished_at, heard) == (NOON, [])


def test_a_rehearsal_counts_and_shows() -> None:
    """The first items and refusals; a stub is no item of its own."""
    many: list[Entry] = [item(str(number)) for number in range(EXAMPLES + 2)]
    many += [Refusal(n, "why") for n in range(EXAMPLES + 3)]
    many += [LeftOut("gone"), item("s", comments=(remark("so"),), notes=(STUB,))]
    many += [item("z") for _ in range(ENTRIES)]
    heard: list[ImportPosition] = []

    preview = preview_import(File(many), lambda progress, position: heard.append(position))

    assert preview.progress == ImportProgress(
        items=EXAMPLES + 2 + ENTRIES, comments=1, refused=EXAMPLES + 3, left_out={"gone": 1}
    )
    assert len(preview.examples) == len(preview.refusals) == EXAMPLES
    assert [position.line for position in heard] == [ENTRIES]


def test_texts_are_bounded() -> None:
    """What no store should hold is cut, and said; what is short stays as it is."""
    short = item("a", body="b", comments=(remark("c"),))
    long = bounded(
        item("a", title="t" * LONGEST, body="b" * (LONGEST + 1),
             comments=(remark("c" * (LONGEST_COMMENT + 1)), remark("d")))
    )  # fmt: skip

    assert bounded(short) == short
    assert (len(long.title), len(long.body), long.notes) == (LONGEST // 100, LONGEST, (CUT,))
    assert [len(comment.body) for comment in long.comments] == [LONGEST_COMMENT, 1]
