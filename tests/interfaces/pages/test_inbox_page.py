"""`/inbox` over a real store."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from api.features.analyses.api_keys import LOCAL
from api.features.analyses.store_ports import Store
from api.features.watches.watch_ports import InboxEntry, InboxFilter
from api.interfaces.pages.inbox_page import SHOWN
from tests.features.watches.example_run import bring, new_post
from tests.features.watches.made import WATCH
from tests.interfaces.http.conftest import Opening, Served
from tests.interfaces.http.hostile_report import EVIL, Tags
from tests.interfaces.pages.visiting import assert_harmless, entered, submit

EMBER = replace(WATCH, tenant=LOCAL.id)


async def entries_of(store: Store) -> Sequence[InboxEntry]:
    """All that the inbox holds."""
    return await store.inbox(LOCAL.id, InboxFilter("all"), 100)


def words(html: str) -> str:
    """The words of a page."""
    return " ".join(" ".join(Tags(html).words).split())


async def test_an_empty_inbox_says_what_would_fill_it(served: Served) -> None:
    """Without and with a watch; the menu has no count then."""
    before = (await served.client.get("/inbox")).text
    await served.app_context.store.add_watch(EMBER, 9)
    after = (await served.client.get("/inbox")).text

    assert "Nothing is watched yet." in words(before)
    assert "Nothing is unread." in words(after)
    assert "<title>Inbox · Listenpost</title>" in before
    assert 'href="/inbox" aria-current="page">Inbox</a>' in before


async def test_an_entry_is_triaged_by_forms(served: Served) -> None:
    """Each button is a form, leads back to the entry or the next, and the last change can be undone."""
    store, client = served.app_context.store, served.client
    await store.add_watch(EMBER, 9)
    await bring(store, EMBER, new_post(1), new_post(2, complains=True))
    first, second = await entries_of(store)
    page = (await client.get("/inbox")).text
    assert "<title>(2) Inbox · Listenpost</title>" in page
    assert f'role="group" aria-labelledby="heading-{first.id}"' in page  # whose buttons they are
    assert "2 unread" in words((await client.get("/history")).text)

    done = await submit(client, "/inbox", do=f"read {first.id}", list="")
    assert (done.status_code, done.headers["location"]) == (303, f"/inbox?#entry-{second.id}")
    starred = await submit(client, "/inbox", do=f"star {second.id}", list="show=all&text=Post")
    assert starred.headers["location"] == f"/inbox?show=all&text=Post#entry-{second.id}"
    await submit(client, "/inbox", do=f"note {second.id}", note="<b>ask</b>", list="")
    page = (await client.get("/inbox?show=all")).text
    assert "Note saved: Post 2." in words(page)
    assert "Note: <b>ask</b>" in words(page)
    await submit(client, "/inbox", do="undo", list="")
    assert [entry.state.note for entry in await entries_of(store)] == ["", ""]
    assert [entry.state.starred for entry in await entries_of(store)] == [False, True]
    await submit(client, "/inbox", do="read_all", list="complaints=true")
    assert "Nothing is unread." in words((await client.get("/inbox")).text)
    assert "1 entry marked as read." in words((await client.get("/inbox")).text)


async def test_only_what_the_page_showed_is_marked_as_read(served: Served) -> None:
    """What comes after the page was made stays unread."""
    store, client = served.app_context.store, served.client
    await store.add_watch(EMBER, 9)
    await bring(store, EMBER, new_post(1), new_post(2))
    page = (await client.get("/inbox")).text
    (button,) = re.findall(r'value="(read_all [^"]+)"', page)
    await bring(store, EMBER, new_post(3), hours=1)
    await submit(client, "/inbox", do=button, list="")

    assert [entry.state.read_at is None for entry in await entries_of(store)] == [True, False, False]
    await submit(client, "/inbox", do="undo", list="")
    assert all(entry.state.read_at is None for entry in await entries_of(store))


async def test_an_entry_is_assigned_to_a_name(served: Served) -> None:
    """It is shown and filtered by it, stays when its watch goes, and can be undone; a name is text and short."""
    store, client = served.app_context.store, served.client
    await store.add_watch(EMBER, 9)
    await bring(store, EMBER, new_post(1), new_post(2))
    first, _ = await entries_of(store)
    await submit(client, "/inbox", do=f"assign {first.id}", assigned=" <b>Ann</b>\n Lee ", list="")
    page = (await client.get("/inbox?assigned=%3Cb%3EAnn%3C/b%3E+Lee")).text
    assert "Assigned to <b>Ann</b> Lee" in words(page)
    assert "Filter: assigned to <b>Ann</b> Lee" in words(page)
    assert ("Post 1" in page, "Post 2" in page) == (True, False)
    await submit(client, "/inbox", do="undo", list="")
    assert [entry.state.assigned for entry in await entries_of(store)] == ["", ""]
    long = await submit(client, "/inbox", do=f"assign {first.id}", assigned="x" * 81, list="")
    assert (long.status_code, "a name of at most 80 characters" in long.text) == (422, True)
    await submit(client, "/inbox", do=f"assign {first.id}", assigned="Ann", list="")
    await store.drop_watch(LOCAL.id, EMBER.id)
    assert [entry.state.assigned for entry in await entries_of(store)] == ["Ann"]


async def test_single_keys_are_switched_off(served: Served) -> None:
    """For all pages of the inbox from then on, without a script, and on again."""
    await served.app_context.store.add_watch(EMBER, 9)
    keys = []
    for name in ("on", "off", "on"):
        await submit(served.client, "/inbox", do=f"keys {name}", list="")
        keys.append('<details id="keys" data-on>' in (await served.client.get("/inbox")).text)
    assert keys == [True, False, True]


async def test_a_filter_is_an_address_that_is_saved_by_name(served: Served) -> None:
    """And removed; a site is muted and shown again."""
    store, client = served.app_context.store, served.client
    await store.add_watch(EMBER, 9)
    await bring(store, EMBER, new_post(1), new_post(2, complains=True))
    chosen = f"show=all&watch={EMBER.id}&complaints=true"

    page = (await client.get(f"/inbox?{chosen}")).text
    assert "Filter: Ember, complaints" in words(page)
    assert ("Post 2" in page, "Post 1" in page) == (True, False)
    await submit(client, "/inbox", do="save_filter", name="What to answer", list=f"{chosen}&cursor=ff")
    page = (await client.get("/inbox")).text
    assert f'href="/inbox?{chosen.replace("&", "&amp;")}">What to answer</a>' in page
    await submit(client, "/inbox", do="remove_filter What to answer", list="")
    await submit(client, "/inbox", do="mute r/mugs", list="")
    page = words((await client.get("/inbox")).text)
    assert "Muted r/mugs." in page
    assert "What to answer" not in page
    assert "Post 1" not in page
    await submit(client, "/inbox", do="unmute r/mugs", list="")
    assert "Post 1" in (await client.get("/inbox")).text


@pytest.mark.parametrize(
    ("fields", "status", "sentence"),
    [
        ({"do": "read 0"}, 404, "The inbox has no entry “0”."),
        ({"do": "explode"}, 422, "This is no action of the inbox."),
        ({"do": "undo"}, 404, "There is no change of the inbox to take back."),
        ({"do": "save_filter", "name": " "}, 422, "The name of a filter has 1 to 60 characters."),
    ],
)
async def test_what_cannot_be_done_is_said_above_the_list(
    served: Served, fields: dict[str, str], status: int, sentence: str
) -> None:
    """The list stays."""
    answer = await submit(served.client, "/inbox", list="show=all", **fields)
    assert (answer.status_code, sentence in words(answer.text)) == (status, True)
    assert 'id="inbox"' in answer.text


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("show=never", "“show” must be “unread”, “starred”, “read” or “all”, not “never”."),
        ("source=nowhere", "This names no source;"),
        ("cursor=%00", "The cursor was not made here."),
        ("other=1", "There is no field “other”;"),
        ("text=" + "x" * 300, "This must be text of at most 200 characters."),
    ],
)
async def test_a_wrong_filter_is_said(served: Served, query: str, sentence: str) -> None:
    """And what is unread stands below, as without it."""
    store = served.app_context.store
    await store.add_watch(EMBER, 9)
    await bring(store, EMBER, new_post(1))
    answer = await served.client.get(f"/inbox?{query}")
    page = words(answer.text)
    assert (answer.status_code, sentence in page, "Post 1" in page) == (422, True, True), page


async def test_strangers_words_are_text_and_pages_follow(served: Served) -> None:
    """Of a post, its site and its address."""
    store = served.app_context.store
    worst = " ".join(EVIL)
    await store.add_watch(EMBER, 9)
    evil = [
        new_post(number, title=f"{number} {worst}", passage=worst, url="javascript:alert(1)") for number in range(SHOWN)
    ]
    await bring(store, replace(EMBER, name=worst), new_post(99), *evil, place=worst)

    answer = await served.client.get("/inbox")

    assert_harmless(answer)
    assert answer.text.count("data-entry") == SHOWN
    (further,) = [str(a["href"]) for tag, a in Tags(answer.text).tags if tag == "a" and a.get("rel") == "next"]
    assert (await served.client.get(further)).text.count("data-entry") == 1


async def test_what_is_gone_cannot_be_undone(served: Served) -> None:
    """The page offers no button for it."""
    store = served.app_context.store
    await store.add_watch(EMBER, 9)
    await bring(store, EMBER, new_post(1))
    (entry,) = await entries_of(store)
    await submit(served.client, "/inbox", do=f"read {entry.id}", list="")
    assert 'value="undo"' in (await served.client.get("/inbox")).text

    await store.forget([entry.post.key])

    assert 'value="undo"' not in (await served.client.get("/inbox")).text


async def test_an_inbox_that_cannot_be_read_breaks_no_other_page(opening: Opening, tmp_path: Path) -> None:
    """The menu has no count then, and the log says why."""
    file = tmp_path / "a.db"
    async with opening(DATABASE_URL=f"sqlite:///{file}") as served:
        with closing(sqlite3.connect(file)) as other:
            other.execute("DROP TABLE inbox")
        history = await served.client.get("/history")
        inbox = await served.client.get("/inbox")

    assert (history.status_code, inbox.status_code) == (200, 503)


async def test_the_feed_is_made_and_closed(served: Served) -> None:
    """Its address is shown once."""
    made = await submit(served.client, "/inbox", do="make_feed", list="")
    (address,) = [str(a["value"]) for tag, a in Tags(made.text).tags if tag == "input" and a.get("id") == "feed"]
    feed = await served.client.get(address)
    assert feed.headers["content-type"] == "application/atom+xml"
    await submit(served.client, "/inbox", do="close_feed", list="")
    assert (await served.client.get(address)).status_code == 404


async def test_each_key_has_an_inbox_of_its_own(opening: Opening) -> None:
    """Nothing of it is another's, also by its id."""
    async with opening(keys="ann,ben") as served:
        store = served.app_context.store
        ann = await served.app_context.keys.authenticate("ann")
        watch = replace(WATCH, tenant=ann.id)
        await store.add_watch(watch, 9)
        await bring(store, watch, new_post(1))
        (entry,) = await store.inbox(ann.id, InboxFilter(), 5)
        await entered(served.client, "ben")

        assert "Post 1" not in (await served.client.get("/inbox?show=all")).text
        answer = await submit(served.client, "/inbox", do=f"read {entry.id}", list="")

        assert answer.status_code == 404
        assert await store.inbox_entry(ann.id, entry.id) == entry
