"""Files that were brought in, on SQLite and on PostgreSQL: what a caller may rely on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from api.core.items import Item
from api.errors import Conflict
from api.features.archive.import_file import MOST_COMMENTS, STUB
from api.features.archive.imports import FileIdentity, Import, ImportBatch, ImportPosition, ImportProgress, Refusal
from api.store import SqlStore, open_store
from tests.services.kit import plain
from tests.store.made import ODD, counted, item, report, typed

CARD = FileIdentity("dump.jsonl", "reddit", "d1")


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[SqlStore]:
    """An empty store."""
    opened = await open_store(store_url)
    yield opened
    await opened.aclose()


def facts(key: str, *comments: str, **more: Any) -> Item:
    """An item with comments of these ids."""
    source, _, id_ = key.partition(":")
    bare: dict[str, Any] = {
        "key": key, "id": id_, "source": source, "title": f"Title {id_}", "body": f"Body {id_}",
        "url": "", "created_at": None, "engagement": {}, "place": None, "places": [], "notes": [],
    }  # fmt: skip
    remarks: list[dict[str, Any]] = [
        {"id": name, "body": f"says {name}", "url": "", "created_at": None, "engagement": {}} for name in comments
    ]
    return Item.model_validate({**bare, "comments": remarks, **more})


def stub(key: str, *comments: str) -> Item:
    """Comments on an item that is not known."""
    return facts(key, *comments, title="", body="", notes=[STUB])


async def keep(store: SqlStore, begun: Import, *items: Item, position: int = 10, **more: Any) -> Import:
    """Store one batch."""
    fields = {"refusals": (), "left_out": {}} | more
    return await store.keep_batch("a", begun, ImportBatch(items, position=ImportPosition(position, position), **fields))


async def test_a_batch_is_kept_with_its_mark(store: SqlStore, store_url: str) -> None:
    """What was committed is where the import goes on, with what became of it."""
    begun = await store.begin_import("a", CARD)
    refusal = Refusal(3, "it is no JSON object", ODD)

    await keep(
        store, begun, facts("reddit:t3_1", "c1"), facts("reddit:t3_2"),
        position=20, refusals=(refusal,), left_out={"written by a bot": 2},
    )  # fmt: skip

    again = await store.begin_import("a", CARD)
    assert (again.id, again.position, again.finished_at) == (begun.id, ImportPosition(20, 20), None)
    assert again.progress == ImportProgress(2, 1, 0, 0, 1, {"written by a bot": 2})
    (aside,) = await store.refusals("a", begun.id)
    assert (aside.line, aside.reason) == (3, "it is no JSON object")
    assert await counted(store_url, "items", "imports") == [2, 1]
    assert await store.imports("b") == []


async def test_of_two_that_go_on_with_one_import_one_stops(store: SqlStore) -> None:
    """The second finds the mark moved, and writes nothing."""
    begun = await store.begin_import("a", CARD)
    await keep(store, begun, facts("reddit:t3_1"))

    with pytest.raises(Conflict, match="another process"):
        await keep(store, begun, facts("reddit:t3_2"))

    assert [key for key, _ in await store._page("a", "")] == ["reddit:t3_1"]


async def test_pipes_are_never_gone_on_with(store: SqlStore) -> None:
    """Nobody knows whether it is the same again; a finished file is known."""
    pipe = FileIdentity("-", "jsonl", "")
    first, second = await store.begin_import("a", pipe), await store.begin_import("a", pipe)
    done = await store.finish_import("a", await store.begin_import("a", CARD))

    again = await store.begin_import("a", CARD)

    assert first.id != second.id
    assert again.id == done.id
    assert again.finished_at is not None


async def test_a_post_joins_its_comments_whenever_it_comes(store: SqlStore) -> None:
    """Before, after, and in the same batch; what is there already is counted as merged."""
    begun = await store.begin_import("a", CARD)
    begun = await keep(store, begun, stub("reddit:t3_1", "c1"), stub("reddit:t3_1", "c2"))
    begun = await keep(store, begun, facts("reddit:t3_1"), facts("reddit:t3_2"), position=20)
    begun = await keep(store, begun, stub("reddit:t3_2", "c3", "c3"), position=30)
    begun = await keep(store, begun, facts("reddit:t3_1"), stub("reddit:t3_1", "c1"), position=40)

    (first, second) = [facts for _, facts in await store._page("a", "")]

    assert (first["title"], first["notes"]) == ("Title t3_1", [])
    assert [comment["id"] for comment in first["comments"]] == ["c1", "c2"]
    assert [comment["id"] for comment in second["comments"]] == ["c3"]
    assert (begun.progress.items, begun.progress.comments, begun.progress.merged) == (2, 3, 3)


async def test_an_item_keeps_its_best_comments(store: SqlStore) -> None:
    """However many come, in however many batches."""
    begun = await store.begin_import("a", CARD)
    for batch in range(3):
        names = [f"c{batch}-{number}" for number in range(250)]
        begun = await keep(store, begun, stub("reddit:t3_1", *names), position=batch + 1)

    ((_, kept),) = await store._page("a", "")

    assert len(kept["comments"]) == MOST_COMMENTS
    assert (begun.progress.comments, begun.progress.over) == (MOST_COMMENTS, 250)


async def test_imports_change_no_older_report(store: SqlStore) -> None:
    """A report keeps what it saw of an item that an import adds to, and loses nothing with it."""
    saved = report("r1", item("reddit:t3_1"), item("reddit:t3_2"))
    await store.finish("a", typed(saved))
    begun = await store.begin_import("a", CARD)
    await keep(store, begun, stub("reddit:t3_1", "new"), facts("reddit:t3_2"))

    kept = await store.get("a", "r1")
    await store.remove_import("a", begun.id)
    after = await store.get("a", "r1")

    assert kept is not None
    assert kept.report is not None
    assert plain(kept.report) == saved
    assert after == kept


async def test_removing_takes_back_what_nobody_else_holds(store: SqlStore, store_url: str) -> None:
    """Not what a report or another import holds; of those only the comments that it brought."""
    await store.finish("a", typed(report("r1", item("reddit:t3_1"))))
    first = await store.begin_import("a", CARD)
    await keep(store, first, facts("reddit:t3_2", "c1"), facts("reddit:t3_3"))
    second = await store.begin_import("a", FileIdentity("more.csv", "csv", "d2"))
    await keep(
        store, second, stub("reddit:t3_1", "c2"), stub("reddit:t3_2", "c1", "c3"),
        facts("reddit:t3_4"), refusals=(Refusal(1, "why"),),
    )  # fmt: skip

    gone = await store.remove_import("a", second.id)

    left = dict(await store._page("a", ""))
    assert gone == 1
    assert {key: [c["id"] for c in one["comments"]] for key, one in left.items()} == {
        "reddit:t3_1": ["c1"], "reddit:t3_2": ["c1"], "reddit:t3_3": [],
    }  # fmt: skip
    assert await store.remove_import("a", second.id) is None
    assert await counted(store_url, "imports", "imported", "refusals") == [1, 2, 0]


async def test_deleting_a_report_leaves_what_an_import_holds(store: SqlStore) -> None:
    """And removing the import then takes it."""
    await store.finish("a", typed(report("r1", item("reddit:t3_1"), item("reddit:t3_2"))))
    begun = await store.begin_import("a", CARD)
    begun = await keep(store, begun, facts("reddit:t3_1"))

    await store.delete("a", "r1")

    assert [key for key, _ in await store._page("a", "")] == ["reddit:t3_1"]
    assert await store.remove_import("a", begun.id) == 1


async def test_an_import_that_is_being_removed_is_not_gone_on_with(store: SqlStore) -> None:
    """Neither by the process that was at it, nor by a new one."""
    begun = await store.begin_import("a", CARD)
    begun = await keep(store, begun, facts("reddit:t3_1"))
    await store._mark_removing("a", begun.id)

    with pytest.raises(Conflict):
        await keep(store, begun, facts("reddit:t3_2"), position=20)

    assert (await store.begin_import("a", CARD)).id != begun.id


async def test_ids_stand_for_items(store: SqlStore, store_url: str) -> None:
    """A key, the place's own id or what stands behind the key's place; then they are forgotten."""
    begun = await store.begin_import("a", CARD)
    await keep(
        store, begun, facts("reddit:t3_1", id="1"), facts("youtube:v1"), facts("items:x", id="7"),
        facts("items:y", id="8"),
    )  # fmt: skip

    keys = await store.keys_of("a", ["t3_1", "youtube:v1", "7", "nothing"])
    gone = await store.forget(keys)

    assert sorted(keys) == ["items:x", "reddit:t3_1", "youtube:v1"]
    assert gone == 3
    assert await counted(store_url, "items", "imported") == [1, 1]


async def test_keys_that_a_database_refuses_are_imported(store: SqlStore) -> None:
    """NUL, half an emoji and 3,000 letters; once, however often they come."""
    odd = facts(f"items:{ODD}{'x' * 3000}", "c1", title=ODD)
    begun = await store.begin_import("a", CARD)
    begun = await keep(store, begun, odd)
    begun = await keep(store, begun, odd, stub(odd.key, "c2"), position=20)

    ((_, kept),) = await store._page("a", "")

    assert (kept["key"], kept["title"]) == (odd.key, ODD)
    assert [comment["id"] for comment in kept["comments"]] == ["c1", "c2"]
    assert await store.remove_import("a", begun.id) == 1


async def test_comments_are_forgotten_by_their_ids(store: SqlStore) -> None:
    """From the item, and from reports, whether they share its comments or keep their own."""
    before = report("r1", item("reddit:t3_1"))
    await store.finish("a", typed(before))
    begun = await store.begin_import("a", CARD)
    begun = await keep(store, begun, stub("reddit:t3_1", "c2"), facts("reddit:t3_2", "c3", "c4"))
    await store.finish("a", typed(report("r2", item("reddit:t3_1"))))

    gone = await store.forget_comments("a", ["c1", "t1_c3", "nothing"])

    left = dict(await store._page("a", ""))
    assert gone == 2
    assert {key: [c["id"] for c in one["comments"]] for key, one in left.items()} == {
        "reddit:t3_1": ["c2"], "reddit:t3_2": ["c4"],
    }  # fmt: skip
    for name in ("r1", "r2"):
        kept = await store.get("a", name)
        assert kept is not None
        assert kept.report is not None
        assert kept.report.items[0].comments == ()
