"""`POST /v1/analyses/{id}/again`: a stored report judged anew, and the sense that is chosen."""

from __future__ import annotations

from typing import Any

from api.core.domain import Question, Sense
from api.features.analyses.api_keys import LOCAL
from api.features.analyses.corrections import question_digest
from tests.interfaces.http.api_keys import bearer, code
from tests.interfaces.http.conftest import Opening, Served
from tests.store.made import item, report, typed

QUICK = {"query": "plaud.ai", "depth": "quick"}
SENSES = (Sense(1, ("recorder", "notes"), ("A", "B"), 5), Sense(2, ("fish", "pond"), ("C",), 3))


async def analyzed(served: Served, **more: Any) -> dict[str, Any]:
    """A report of the sample data."""
    made: dict[str, Any] = (await served.client.post("/v1/analyses", json=QUICK | more)).json()
    return made


async def test_corrections_count_and_no_source_is_asked(served: Served) -> None:
    """The corrected item is gone, everything else is judged from what is stored."""
    first = await analyzed(served)
    wrong = first["items"][0]["key"]
    url = f"/v1/analyses/{first['id']}"
    await served.client.put(f"{url}/items/{wrong}/correction", json={"relevant": False})

    answer = await served.client.post(f"{url}/again", json={})
    again = answer.json()

    assert answer.status_code == 200
    assert answer.headers["location"] == f"/v1/analyses/{again['id']}"
    assert (again["again_of"], again["query"]) == (first["id"], "plaud.ai")
    assert again["cost"]["upstream_calls"] == 0
    assert again["sample"] == first["sample"]
    assert wrong not in {kept["key"] for kept in again["items"]}
    assert wrong in {dropped["key"] for dropped in again["dropped"]}
    assert {kept["key"] for kept in again["items"]} >= {kept["key"] for kept in first["items"][1:]}
    assert any("no source was asked" in note for note in again["quality_notes"])


async def test_a_sense_is_chosen_and_remembered(served: Served) -> None:
    """The next question that describes nothing takes it, and says so; 0 forgets it."""
    store = served.app_context.store
    first = await analyzed(served)
    stored = typed({**first, "senses": [vars_of(sense) for sense in SENSES]})
    await store.finish(LOCAL.id, stored)
    url = f"/v1/analyses/{first['id']}/again"

    again = (await served.client.post(url, json={"sense": 1})).json()
    later = await analyzed(served)

    assert (again["about"], again["not_about"]) == ("recorder, notes", ["fish, pond"])
    assert (later["about"], later["not_about"]) == ("recorder, notes", ["fish, pond"])
    assert any("the meaning that was chosen before" in note for note in later["quality_notes"])
    described = await analyzed(served, about="the voice recorder")
    assert described["about"] == "the voice recorder"
    digest = question_digest(Question("plaud.ai"))
    assert await store.chosen_sense(LOCAL.id, digest) is not None
    none = (await served.client.post(url, json={"sense": 0})).json()
    assert (none["about"], none.get("not_about")) == ("", None)
    assert await store.chosen_sense(LOCAL.id, digest) is None


async def test_what_cannot_be_judged_again(served: Served) -> None:
    """Another's or no report, a sense it has not, two meanings at once; nothing is begun."""
    first = await analyzed(served)
    url = f"/v1/analyses/{first['id']}/again"
    for path, body, status, name in (
        ("/v1/analyses/0123/again", {}, 404, "not_found"),
        (url, {"sense": 9}, 404, "not_found"),
        (url, {"sense": 1, "about": "a"}, 422, "invalid_request"),
        (url, {"sense": -1}, 422, "invalid_request"),
        (url, {"not_about": ["x"] * 11}, 422, "invalid_request"),
        (url, {"limit": 3}, 422, "invalid_request"),
    ):
        answer = await served.client.post(path, json=body)
        assert (answer.status_code, code(answer)) == (status, name), body


async def test_a_report_is_judged_again_by_its_owner_alone(opening: Opening) -> None:
    """Another key finds nothing."""
    async with opening(keys="ann-key,bob-key") as served:
        tenant = await served.app_context.keys.authenticate("ann-key")
        await served.app_context.store.finish(tenant.id, typed(report("r1", item("reddit:t3_1"))))
        url = "/v1/analyses/r1/again"
        theirs = await served.client.post(url, json={}, headers=bearer("bob-key"))
        mine = await served.client.post(url, json={}, headers=bearer("ann-key"))

    assert (theirs.status_code, code(theirs)) == (404, "not_found")
    assert (mine.status_code, mine.json()["again_of"]) == (200, "r1")


def vars_of(sense: Sense) -> dict[str, Any]:
    """The JSON of a sense."""
    return {
        "number": sense.number, "words": sense.words, "titles": sense.titles,
        "count": sense.count, "kept": sense.kept,
    }  # fmt: skip
