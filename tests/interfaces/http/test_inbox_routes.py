"""`/v1/inbox` over a real store and the real clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

from api.features.analyses.api_keys import LOCAL
from api.features.analyses.inbox import MOST_FILTERS, MOST_MUTED
from api.interfaces.shared.watch_view import _NAMESPACE
from tests.features.watches.example_run import bring, new_post
from tests.features.watches.made import WATCH
from tests.interfaces.http.conftest import Opening, Served
from tests.interfaces.http.watch_requests import URL

INBOX = "/v1/inbox"


async def listed(client: httpx.AsyncClient, query: str = "?show=all", **headers: str) -> dict[str, Any]:
    """A page of the inbox."""
    answer = await client.get(INBOX + query, headers=headers)
    assert answer.status_code == 200, answer.text
    page: dict[str, Any] = answer.json()
    return page


async def test_what_a_watch_told_is_triaged(served: Served) -> None:
    """A run puts its new posts into the inbox; a correction is one of its report, and undone with it."""
    client = served.client
    body = {"query": "plaud.ai", "depth": "quick", "every": "every 31 days", "tell_first": True}
    watch = (await client.post(URL, json=body)).json()
    run = (await client.post(f"{URL}/{watch['id']}/run")).json()
    page = await listed(client, "?limit=2")
    first, second = page["entries"]
    rest = await listed(client, f"?limit=100&cursor={page['cursor']}")

    assert [entry["post"] for entry in (*page["entries"], *rest["entries"])] == run["new"]
    assert page["unread"] == len(run["new"])
    assert (first["watch"], first["report_id"], first["read_at"]) == (watch["name"], run["report_id"], None)
    assert first["site"]

    wrong = (await client.patch(f"{INBOX}/entries/{first['id']}", json={"not_about": True})).json()
    (correction,) = (await client.get("/v1/corrections")).json()["corrections"]
    assert (correction["key"], correction["relevant"]) == (first["post"]["key"], False)
    assert wrong["not_about"]
    assert wrong["read_at"]
    assert (await client.post(f"{INBOX}/undo")).json() == {"undone": "marked as not about it"}
    assert (await client.get("/v1/corrections")).json()["corrections"] == []
    assert (await listed(client))["entries"][0] == first

    change = {"starred": True, "note": " call them ", "read": True}
    noted = (await client.patch(f"{INBOX}/entries/{second['id']}", json=change)).json()
    assert (noted["starred"], noted["note"]) == (True, "call them")
    assert [entry["id"] for entry in (await listed(client, "?show=starred"))["entries"]] == [second["id"]]
    assert (await client.post(f"{INBOX}/read?watch={watch['name']}")).json() == {"changed": len(run["new"]) - 1}
    assert (await listed(client))["unread"] == 0
    await client.post(f"{INBOX}/undo")
    assert (await listed(client))["unread"] == len(run["new"]) - 1
    assert (await client.post(f"{INBOX}/undo")).status_code == 404


async def test_entries_are_assigned_and_read_up_to_the_newest_that_was_shown(served: Served) -> None:
    """A filter has a name, too; a later entry stays unread."""
    store, client = served.app_context.store, served.client
    watch = replace(WATCH, tenant=LOCAL.id)
    await store.add_watch(watch, 9)
    await bring(store, watch, new_post(1), new_post(2))
    first, second = (await listed(client))["entries"]
    await bring(store, watch, new_post(3), hours=1)
    assigned = await client.patch(f"{INBOX}/entries/{second['id']}", json={"assigned": " Ann  Lee"})
    assert (assigned.json()["assigned"], first["assigned"]) == ("Ann Lee", "")
    assert (await client.patch(f"{INBOX}/entries/{second['id']}", json={"assigned": "x" * 81})).status_code == 422
    for name in ("Ann+Lee", "ann+lee"):
        assert [entry["id"] for entry in (await listed(client, f"?assigned={name}"))["entries"]] == [second["id"]]
    for wrong in ("%00", "x", first["id"].upper() + "0"):
        assert (await client.post(f"{INBOX}/read?newest={wrong}")).status_code == 422
    refused = await client.post(f"{INBOX}/read", json={"newest": first["id"]})
    misspelt = await client.post(f"{INBOX}/read?newst={first['id']}")
    assert (refused.status_code, misspelt.status_code) == (422, 422)  # neither marks what came later
    assert "query string" in refused.json()["error"]["message"]
    assert (await client.post(f"{INBOX}/read?newest={first['id']}")).json() == {"changed": 2}
    assert [entry["post"]["key"] for entry in (await listed(client, "?show=unread"))["entries"]] == ["reddit:3"]


async def test_a_post_without_a_report_is_corrected_for_the_question_of_its_watch(served: Served) -> None:
    """As one of a stream; once the watch is gone, too, nothing is left to correct."""
    store, client = served.app_context.store, served.client
    watch = replace(WATCH, tenant=LOCAL.id)
    await store.add_watch(watch, 9)
    await bring(store, watch, new_post(1), report_id=None)
    (entry,) = (await listed(client))["entries"]
    address = f"{INBOX}/entries/{entry['id']}"

    await client.patch(address, json={"not_about": True, "starred": True})
    (correction,) = (await client.get("/v1/corrections")).json()["corrections"]
    assert (correction["key"], correction["query"]) == ("reddit:1", watch.query)
    await client.patch(address, json={"not_about": False})
    assert (await client.get("/v1/corrections")).json()["corrections"] == []
    await client.delete(f"{URL}/{watch.id}")
    assert (await listed(client))["entries"][0]["watch"] == "Ember"
    gone = await client.patch(address, json={"not_about": True})
    assert gone.status_code == 404
    assert "nothing is left to correct" in gone.text


async def test_a_correction_of_an_entry_whose_report_is_gone_is_taken_back(served: Served) -> None:
    """It was of the question of the watch, since the report was deleted before."""
    store, client = served.app_context.store, served.client
    watch = replace(WATCH, tenant=LOCAL.id)
    await store.add_watch(watch, 9)
    await bring(store, watch, new_post(1), report_id="deleted")
    (entry,) = (await listed(client))["entries"]

    await client.patch(f"{INBOX}/entries/{entry['id']}", json={"not_about": True})
    assert len((await client.get("/v1/corrections")).json()["corrections"]) == 1
    await client.post(f"{INBOX}/undo")
    assert (await client.get("/v1/corrections")).json()["corrections"] == []


async def test_filters_and_muted_sites_are_kept_and_bounded(served: Served) -> None:
    """A muted site is in no list, and can be shown again."""
    store, client = served.app_context.store, served.client
    watch = replace(WATCH, tenant=LOCAL.id)
    await store.add_watch(watch, 9)
    await bring(store, watch, new_post(1))

    async def settings() -> Mapping[str, Any]:
        state: Mapping[str, Any] = (await client.get(f"{INBOX}/settings")).json()
        return state

    await client.post(f"{INBOX}/muted", json={"site": "r/mugs"})
    assert (await listed(client)) == {"entries": [], "unread": 0, "cursor": None}
    assert (await settings())["muted"] == ["r/mugs"]
    await client.delete(f"{INBOX}/muted", params={"site": "r/mugs"})
    assert (await listed(client))["unread"] == 1
    assert (await settings())["last"] is None
    for number in range(MOST_MUTED):
        await client.post(f"{INBOX}/muted", json={"site": f"r/{number}"})
    assert (await client.post(f"{INBOX}/muted", json={"site": "r/more"})).status_code == 422
    for number in range(MOST_FILTERS):
        await client.put(f"{INBOX}/filters/filter {number}", json={"query": "show=all"})
    assert (await client.put(f"{INBOX}/filters/more", json={"query": ""})).status_code == 422
    assert (await client.delete(f"{INBOX}/filters/filter 1")).status_code == 204
    assert (await client.delete(f"{INBOX}/filters/filter 1")).status_code == 404
    state = await settings()
    assert len(state["filters"]) == MOST_FILTERS - 1
    assert state["filters"][0] == {"name": "filter 0", "query": "show=all"}


@pytest.mark.parametrize(
    ("body", "status"),
    [({"note": "x" * 1_001}, 422), ({"read": "perhaps"}, 422), ({}, 404)],
)
async def test_wrong_changes_are_refused(served: Served, body: dict[str, Any], status: int) -> None:
    """Too long, of another type, unknown, or of no entry."""
    assert (await served.client.patch(f"{INBOX}/entries/{'0' * 24}", json=body)).status_code == status


async def test_the_inbox_is_a_feed_by_its_token(opening: Opening) -> None:
    """Atom and JSON Feed, with the same filters; a stranger's words are text, and its links lead to the web alone."""
    async with opening(keys="ann,ben") as served:
        store, client = served.app_context.store, served.client
        ann = await served.app_context.keys.authenticate("ann")
        headers = {"Authorization": "Bearer ann"}
        watch = replace(WATCH, tenant=ann.id)
        await store.add_watch(watch, 9)
        evil = new_post(2, title="<b>\ufffe\x1b[1m", url="javascript:alert(1)", complains=True)
        await bring(store, watch, new_post(1, url="https://www.example.com/\uffff"), evil)
        assert await listed(client, Authorization="Bearer ben") == {"entries": [], "unread": 0, "cursor": None}

        path = (await client.post(f"{INBOX}/feed", headers=headers)).json()["path"]
        answer = await client.get(path)
        feed = ElementTree.fromstring(answer.text)
        spaces = {"a": _NAMESPACE}
        entries = feed.findall("a:entry", spaces)
        as_json = (await client.get(path.replace(".atom", ".json") + "&complaints=true")).json()

        assert answer.headers["content-type"] == "application/atom+xml"
        assert feed.findtext("a:title", "", spaces) == "Inbox: 2 unread"
        assert (as_json["title"], as_json["_listenpost"]) == ("Inbox: 1 unread", {"unread": 1})
        assert [entry.findtext("a:title", "", spaces) for entry in entries] == ["Post 1", "<b>"]
        assert [entry.find("a:link", spaces) is None for entry in entries] == [False, True]
        assert [item["title"] for item in as_json["items"]] == ["<b>\ufffe"]
        assert "url" not in as_json["items"][0]
        other = ElementTree.fromstring((await client.get(f"{path}&show=unread")).text)
        assert feed.findtext("a:id", "", spaces) != other.findtext("a:id", "", spaces)
        again = await client.get(path, headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304
        assert (await client.get(f"{INBOX}/feed.atom?token=wrong")).status_code == 404
        assert (await client.delete(f"{INBOX}/feed", headers=headers)).status_code == 204
        assert (await client.get(path)).status_code == 404
