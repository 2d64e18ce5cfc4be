"""`POST /v1/analyses/{id}/replay` and its page: a stored report beside its items judged again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from api.core.domain import Sense
from api.features.analyses.api_keys import LOCAL
from tests.interfaces.http.api_keys import bearer, code
from tests.interfaces.http.conftest import Opening, Served
from tests.interfaces.http.hostile_report import Tags
from tests.interfaces.pages.visiting import assert_harmless, begun, poisoned, submit
from tests.store.made import item, report, typed

QUICK = {"query": "Ember mug", "depth": "quick", "sources": ["reddit", "youtube"]}


async def analyzed(served: Served) -> dict[str, Any]:
    """A stored report."""
    made: dict[str, Any] = (await served.client.post("/v1/analyses", json=QUICK)).json()
    return made


async def replayed(served: Served, report_id: str, **body: Any) -> dict[str, Any]:
    """The differences."""
    answer = await served.client.post(f"/v1/analyses/{report_id}/replay", json=body)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def test_the_same_judge_says_the_same_and_nothing_is_asked_or_stored(served: Served) -> None:
    """All verdicts are equal, and the report stays as it was."""
    first = await analyzed(served)
    searches = len(served.sandbox.requests("reddit"))

    answer = await replayed(served, first["id"])

    assert (answer["newly_kept"], answer["newly_dropped"]) == ([], [])
    assert answer["judged_twice"] == answer["same_verdicts"] > len(first["items"]) > 0
    assert {claim["change"] for claim in answer["claims"]} <= {"stays", "appears", "disappears"}
    assert (answer["before"]["kept"], answer["after"]["kept"]) == (len(first["items"]), len(first["items"]))
    assert answer["cost"]["upstream_calls"] == 0
    assert len(served.sandbox.requests("reddit")) == searches
    again = (await served.client.get(f"/v1/analyses/{first['id']}")).json()
    assert (again["items"], again["findings"]) == (first["items"], first["findings"])
    assert await begun(served) == 1


async def test_another_judge_and_description_decide_anew(served: Served) -> None:
    """Each item is on the side that its verdict says; a correction counts."""
    first = await analyzed(served)
    wrong = first["items"][0]["key"]
    await served.client.put(f"/v1/analyses/{first['id']}/items/{wrong}/correction", json={"relevant": False})

    answer = await replayed(served, first["id"], judge="local", not_about=["fire that has burnt down"])

    dropped = [each["key"] for each in answer["newly_dropped"]]
    assert wrong in dropped
    assert answer["after"]["not_about"] == ["fire that has burnt down"]
    assert any(name.startswith("local") for name in answer["after"]["judges"])
    assert answer["before"]["kept"] - len(dropped) + len(answer["newly_kept"]) == answer["after"]["kept"]
    lost = next(each for each in answer["newly_dropped"] if each["key"] == wrong)
    assert lost["reason"].startswith("corrected by a person")
    assert lost["passage"]


async def test_a_sense_is_tried_and_not_remembered(served: Served) -> None:
    """The next question describes nothing."""
    first = await analyzed(served)
    senses = (Sense(1, ("mug", "coffee"), ("A",), 5), Sense(2, ("fire", "wood"), ("B",), 3))
    await served.app_context.store.finish(LOCAL.id, typed(first).model_copy(update={"senses": senses}))

    answer = await replayed(served, first["id"], sense=1)

    assert (answer["after"]["about"], answer["after"]["not_about"]) == ("mug, coffee", ["fire, wood"])
    assert (await analyzed(served))["about"] == ""


async def test_another_model_judges_alone(served: Served) -> None:
    """The judge's requests name it, and no other request does."""
    first = await analyzed(served)
    before = len(served.sandbox.requests("openai"))
    answer = await replayed(served, first["id"], model="other-judge")

    bodies = [str(entry.body) for entry in served.sandbox.requests("openai")[before:]]
    assert answer["judged_twice"]
    assert any("other-judge" in body for body in bodies)
    assert {"judge" in body.casefold() for body in bodies if "other-judge" in body} == {True}


async def test_what_cannot_be_replayed(served: Served) -> None:
    """No report, a sense it has not, two meanings at once, a model for the judge that takes none."""
    first = await analyzed(served)
    url = f"/v1/analyses/{first['id']}/replay"
    for path, body, status in (
        ("/v1/analyses/0123/replay", {}, 404),
        (url, {"sense": 9}, 404),
        (url, {"sense": 1, "about": "a"}, 422),
        (url, {"judge": "local", "model": "gpt-4o"}, 422),
        (url, {"judge": "nobody"}, 422),
        (url, {"model": " \u200b"}, 422),
        (url, {"limit": 3}, 422),
    ):
        answer = await served.client.post(path, json=body)
        assert answer.status_code == status, body


async def test_a_replay_is_its_owners_and_counts_as_an_analysis(opening: Opening) -> None:
    """Another key finds nothing, on the page neither; the day's analyses are counted."""
    async with opening(keys="ann-key,bob-key", LIMIT_ANALYSES_PER_DAY="1") as served:
        tenant = await served.app_context.keys.authenticate("ann-key")
        await served.app_context.store.finish(tenant.id, typed(report("r1", item("reddit:t3_1"))))
        url = "/v1/analyses/r1/replay"
        theirs = await served.client.post(url, json={}, headers=bearer("bob-key"))
        mine = await served.client.post(url, json={}, headers=bearer("ann-key"))
        more = await served.client.post(url, json={}, headers=bearer("ann-key"))
        spent = await served.app_context.store.spent(f"key:{tenant.id}:analyses", datetime.now(UTC).date())

    assert (theirs.status_code, code(theirs)) == (404, "not_found")
    assert mine.status_code == 200
    assert (more.status_code, code(more), spent) == (429, "limit_reached", 1)


async def test_a_key_cannot_choose_a_model_of_unknown_price(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its budget could not be charged; the message names the setting, and nothing is asked."""
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.example.org/v1")
    async with opening(keys="ann-key", token="ann-key") as served:
        tenant = await served.app_context.keys.authenticate("ann-key")
        await served.app_context.store.finish(tenant.id, typed(report("r1", item("reddit:t3_1"))))
        answer = await served.client.post("/v1/analyses/r1/replay", json={"model": "nobody-knows-it"})

    assert (answer.status_code, code(answer)) == (422, "invalid_request")
    assert "LISTENPOST_MODEL_PRICES" in answer.text


async def test_the_page_says_the_price_then_the_differences(served: Served) -> None:
    """From the folded form of the report; what was chosen stays in the form."""
    first = await analyzed(served)
    path = f"/analyses/{first['id']}"
    folded = (await served.client.get(path)).text
    priced = await submit(served.client, f"{path}/replay", judge="local", step="estimate")
    answer = await submit(served.client, f"{path}/replay", judge="local", about="a mug")
    wrong = await submit(served.client, f"{path}/replay", judge="local", model="x")

    assert f'action="{path}/replay"' in folded
    assert (priced.status_code, answer.status_code, wrong.status_code) == (200, 200, 422)
    words = " ".join(Tags(answer.text).words)
    assert "With this choice:" in priced.text
    assert '<option value="local" selected>' in priced.text
    assert "Both keep the same posts." in words or "newly kept" in words
    assert "The gate's verdicts agree on" in words
    assert "Nothing of this is stored." in words
    assert 'id="wrong"' in wrong.text
    ids = [attributes["id"] for _, attributes in Tags(folded).tags if attributes.get("id")]
    assert len(ids) == len(set(ids))


async def test_hostile_posts_are_text_on_the_page(served: Served) -> None:
    """What strangers wrote makes no element, no address of another kind and no attribute."""
    evil = await poisoned(served)
    answer = await submit(served.client, f"/analyses/{evil.id}/replay", judge="local", about="nothing like it")

    assert_harmless(answer)
