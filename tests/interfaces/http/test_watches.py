"""`/v1/watches` over a real store and the real clients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from api.bootstrap.background_work import watching_of
from api.core.domain import Question
from api.features.analyses.api_keys import LOCAL
from api.features.analyses.corrections import ChosenSense, question_digest
from api.features.watches.watch import new_watch
from api.features.watches.watch_service import utc_now
from tests.interfaces.http.api_keys import code
from tests.interfaces.http.conftest import Opening, Served
from tests.interfaces.http.watch_requests import OURA, URL
from tests.loopback import Loopback, Reply


async def test_watch_is_added_run_and_read(served: Served) -> None:
    """Its first run is the baseline, its second finds nothing new; the report is an analysis."""
    added = await served.client.post(URL, json=OURA | {"every": "daily 8:00", "tz": "Asia/Tokyo"})
    mark = added.json()["id"]
    runs = [(await served.client.post(f"{URL}/{mark}/run")).json() for _ in range(2)]
    listed = (await served.client.get(f"{URL}/{mark}/runs", params={"limit": 1})).json()
    kept = (await served.client.get(f"/v1/analyses/{runs[0]['report_id']}")).json()
    watch = (await served.client.get(f"{URL}/Oura")).json()

    assert added.status_code == 201
    assert added.json()["secret"].startswith("whsec_")
    assert [run["state"] for run in runs] == ["baseline", "nothing"]
    assert {post["key"] for post in runs[0]["new"]} == {item["key"] for item in kept["items"]}
    assert listed == {"runs": [runs[1]]}
    assert (watch["id"], watch["tz"], watch["began_at"]) == (
        mark, "Asia/Tokyo", runs[0]["counts"]["until"],
    )  # fmt: skip
    assert watch["due_at"].endswith("T23:00:00Z")
    assert "secret" not in watch


async def test_a_watch_is_of_one_product(served: Served) -> None:
    """Also a changed one; in quotation marks, or described, several names are one."""
    several = {"query": "Oura vs Whoop"}
    refused = [await served.client.post(URL, json=OURA | several)]
    mark = (await served.client.post(URL, json=OURA)).json()["id"]
    refused.append(await served.client.patch(f"{URL}/{mark}", json=several))
    kept = (await served.client.get(f"{URL}/{mark}")).json()
    described = await served.client.patch(f"{URL}/{mark}", json=several | {"about": "a podcast"})
    paused = await served.client.patch(f"{URL}/{mark}", json={"paused": True})
    refused.append(await served.client.patch(f"{URL}/{mark}", json={"about": ""}))
    quoted = await served.client.patch(f"{URL}/{mark}", json={"query": '"Oura vs Whoop"', "about": ""})

    assert [answer.status_code for answer in refused] == [422, 422, 422]
    for answer in refused:
        assert "a watch is of one product, not of Oura and Whoop: add one for each" in answer.text
    assert kept["query"] == "Oura"
    assert [answer.status_code for answer in (described, paused, quoted)] == [200, 200, 200]


async def test_a_new_watch_takes_the_sense_that_was_chosen(served: Served) -> None:
    """And says so; a description of its own stays, and another tenant's choice is none of ours."""
    store = served.app_context.store
    sense = ChosenSense("a notes app; vault, plugin", ("rock, lava",))
    await store.choose_sense(LOCAL.id, question_digest(Question("obsidian")), sense)
    await store.choose_sense("another", question_digest(Question("Oura")), sense)
    obsidian = OURA | {"query": "Obsidian"}

    taken = (await served.client.post(URL, json=obsidian)).json()
    own = (await served.client.post(URL, json=obsidian | {"name": "own", "about": "volcanic glass"})).json()
    other = (await served.client.post(URL, json=OURA)).json()

    assert (taken["about"], taken["not_about"]) == (sense.about, ["rock, lava"])
    assert (
        taken["note"]
        == "watched as “a notes app; vault, plugin”, the meaning that was chosen before; set `about` for another"
    )
    assert (own["about"], own["not_about"], other["about"]) == ("volcanic glass", [], "")
    assert "note" not in own
    assert "note" not in other
    assert (await served.client.get(f"{URL}/Obsidian")).json()["about"] == sense.about


async def test_watch_is_named_whole(served: Served) -> None:
    """The beginning of an id neither reads, runs nor removes a watch."""
    mark = (await served.client.post(URL, json=OURA)).json()["id"]
    path = f"{URL}/{mark[:-1]}"
    answers = [
        await served.client.delete(path),
        await served.client.post(f"{path}/run"),
        await served.client.get(path),
        await served.client.patch(path, json={"paused": True}),
    ]

    assert [answer.status_code for answer in answers] == [404] * 4
    assert (await served.client.get(f"{URL}/{mark}")).json()["paused"] is False
    assert (await served.client.delete(f"{URL}/{mark}")).status_code == 204


async def test_what_a_watch_excludes_can_be_changed(served: Served) -> None:
    """An empty list excludes nothing again, null changes nothing."""
    mark = (await served.client.post(URL, json=OURA | {"not_about": ["a river"]})).json()["id"]

    async def changed(value: list[str] | None) -> list[str]:
        answer = await served.client.patch(f"{URL}/{mark}", json={"not_about": value})
        excluded: list[str] = answer.json()["not_about"]
        return excluded

    assert await changed(None) == ["a river"]
    assert await changed(["a lake", "a sea"]) == ["a lake", "a sea"]
    assert await changed([]) == []


async def test_watch_is_paused_changed_and_removed(served: Served) -> None:
    """What is not named stays as it is."""
    mark = (await served.client.post(URL, json=OURA)).json()["id"]
    paused = (await served.client.patch(f"{URL}/{mark}", json={"paused": True})).json()
    changed = (
        await served.client.patch(f"{URL}/{mark}", json={"about": "a ring", "every": "hourly", "tz": "UTC"})
    ).json()
    assert (paused["paused"], changed["paused"]) == (True, True)
    assert (changed["about"], changed["every"], changed["query"]) == ("a ring", "hourly", "Oura")
    assert (await served.client.get(URL)).json() == {"watches": [changed]}
    more = {"name": "Ring", "depth": "deep", "only": "complaints", "notify": ["mailto:a@b.example"]}
    renamed = (await served.client.patch(f"{URL}/{mark}", json=more)).json()
    assert renamed == changed | more | {"notify": ["mail:a@b.example"]}
    again = {"only": None, "notify": None, "query": None}
    every = (await served.client.patch(f"{URL}/{mark}", json=again)).json()
    assert every == renamed | {"only": None}
    assert (await served.client.delete(f"{URL}/{mark}")).status_code == 204
    assert (await served.client.get(URL)).json() == {"watches": []}
    assert code(await served.client.get(f"{URL}/{mark}")) == "not_found"


async def test_every_option_can_be_set_and_taken_away(served: Served) -> None:
    """An empty list and null empty what can be empty."""
    wanted = OURA | {"notify": ["mailto:a@b.example"]}
    mark = (await served.client.post(URL, json=wanted)).json()["id"]
    set_options = {"limit": 9, "tell_first": True, "only": "complaints"}
    changed = (await served.client.patch(f"{URL}/{mark}", json=set_options)).json()
    emptying: dict[str, object] = {
        "limit": None,
        "only": None,
        "sources": [],
        "notify": [],
        "tell_first": False,
    }
    emptied = (await served.client.patch(f"{URL}/{mark}", json=emptying)).json()

    assert {name: changed[name] for name in set_options} == set_options
    assert {name: emptied[name] for name in emptying} == emptying
    assert (emptied["query"], emptied["depth"]) == ("Oura", "quick")
    refused = await served.client.patch(f"{URL}/{mark}", json={"limit": 0})
    assert (refused.status_code, code(refused)) == (422, "invalid_request")


async def test_first_run_is_told_where_that_is_wanted(opening: Opening) -> None:
    """The address is shown to nobody again."""
    with Loopback(lambda asked: Reply()) as hook:
        async with opening(NOTIFY_PRIVATE="true") as served:
            wanted = OURA | {"notify": [f"{hook.url}/hidden"], "tell_first": True}
            added = (await served.client.post(URL, json=wanted)).json()
            run = (await served.client.post(f"{URL}/{added['id']}/run")).json()
    assert added["notify"] == ["webhook:127.0.0.1"]
    (delivery,) = run["deliveries"]
    assert (delivery["target"], delivery["delivered"]) == ("webhook:127.0.0.1", True)
    assert [asked.headers["listenpost-run"] for asked in hook.asked] == [run["id"]]


async def test_keys_have_watches_of_their_own(opening: Opening) -> None:
    """Each within its own limits; a run that may not begin has failed, and says why."""
    async with opening(keys="a,b", token="a", LIMIT_ANALYSES_PER_DAY="1") as served:
        mark = (await served.client.post(URL, json=OURA)).json()["id"]
        theirs = {"Authorization": "Bearer b"}
        assert (await served.client.get(URL, headers=theirs)).json() == {"watches": []}
        other = await served.client.get(f"{URL}/{mark}", headers=theirs)
        runs = [(await served.client.post(f"{URL}/{mark}/run")).json() for _ in range(2)]
    assert other.status_code == 404
    assert [run["state"] for run in runs] == ["baseline", "failed"]
    assert runs[1]["reason"].startswith("the day's 1 analyses are used up")


async def test_watch_of_a_revoked_key_fails(opening: Opening) -> None:
    """Nobody is asked in its name any more."""
    async with opening() as served:
        made, text = await served.app_context.keys.add("ann")
        headers = {"Authorization": f"Bearer {text}"}
        assert (await served.client.post(URL, json=OURA, headers=headers)).status_code == 201
        await served.app_context.keys.revoke(made.id)
        runs = [run async for _, run in watching_of(served.app_context).run_due()]
    assert [(run.state, run.reason) for run in runs] == [
        ("failed", "the API key that it belongs to is no longer valid")
    ]
    assert not served.sandbox.log


async def test_watch_over_time(served: Served) -> None:
    """One week, with what its run counted; before the first there is none."""
    mark = (await served.client.post(URL, json=OURA)).json()["id"]
    none = (await served.client.get(f"{URL}/{mark}/trend")).json()
    run = (await served.client.post(f"{URL}/{mark}/run")).json()
    trend = (await served.client.get(f"{URL}/{mark}/trend", params={"weeks": 2})).json()
    (line,) = trend["lines"]
    (week,) = line["weeks"]
    counted = run["counts"]["sources"]["hackernews"]
    assert none == {**trend, "lines": []}
    assert (trend["watch_id"], trend["tz"], trend["sample"]) == (mark, "UTC", run["sample"])
    assert week["sources"]["hackernews"]["posts"] == counted["posts"]
    assert (week["runs"], week["heard"], week["fresh"]) == (1, 1, counted["fresh"])
    wrong = await served.client.get(f"{URL}/{mark}/trend", params={"weeks": 0})
    assert (wrong.status_code, code(wrong)) == (422, "invalid_request")
    assert "`weeks` must be a whole number from 1 to 260, not `0`" in wrong.text


async def test_question_that_may_be_asked_no_more(served: Served) -> None:
    """Its run has failed and says why, no place is asked, and it is due again at its time."""
    watch = replace(new_watch("local", "hello", "mon 08:00", utc_now()), sandbox=True)
    await served.app_context.store.add_watch(watch, 9)
    runs = [run async for _, run in watching_of(served.app_context).run_due()]
    assert [run.state for run in runs] == ["failed"]
    assert runs[0].reason
    assert not served.sandbox.log
    (kept,) = await served.app_context.store.watches("local")
    assert kept.due_at > watch.due_at


async def test_watch_over_the_archive_of_before_can_be_paused(served: Served) -> None:
    """It counts nothing, so it does not go on."""
    old = replace(new_watch("local", "Oura", "mon 08:00", utc_now()), sources=("archive",))
    await served.app_context.store.add_watch(old, 9)
    answers = [await served.client.patch(f"{URL}/{old.id}", json={"paused": paused}) for paused in (True, False)]
    assert [answer.status_code for answer in answers] == [200, 422]
    assert "name any of reddit, youtube" in answers[1].json()["error"]["message"]


async def test_run_under_way_is_a_conflict(served: Served) -> None:
    """One at a time."""
    mark = (await served.client.post(URL, json=OURA)).json()["id"]
    (watch,) = await served.app_context.store.watches("local")
    later = watch.due_at.replace(year=watch.due_at.year + 1)
    await served.app_context.store.claim_watch("local", mark, watch.due_at, later, "other")
    answer = await served.client.post(f"{URL}/{mark}/run")
    assert (answer.status_code, code(answer)) == (409, "conflict")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"query": "hello"}, "Hello!"),
        ({"every": "never"}, "“never” is no schedule"),
        ({"tz": "Mars"}, "there is no time zone “Mars”"),
        ({"sources": ["myspace"]}, "there is no source `myspace`"),
        ({"sources": ["reddit", "archive"]}, "a watch cannot ask `archive`"),
        ({"notify": ["file:/etc/cron.d/x"]}, "a notification goes to `https://...`"),
        ({"only": "praise"}, "`only`"),
        ({"secret": "mine"}, "`secret`"),
    ],
)
async def test_what_is_wrong_is_named(served: Served, change: dict[str, Any], words: str) -> None:
    """And nothing is kept."""
    answer = await served.client.post(URL, json=OURA | change)
    assert (answer.status_code, code(answer)) == (422, "invalid_request")
    assert words in answer.json()["error"]["message"]
    assert (await served.client.get(URL)).json() == {"watches": []}
