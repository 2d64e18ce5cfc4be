"""Corrections over HTTP: kept for the caller, and used by the next question."""

from __future__ import annotations

from datetime import UTC, datetime

from api.core.domain import Correction, Question
from api.features.analyses.api_keys import LOCAL
from api.features.analyses.corrections import StoredCorrection, question_digest
from tests.interfaces.http.api_keys import bearer, code
from tests.interfaces.http.conftest import Opening, Served
from tests.store.made import item, report, typed

URL = "/v1/analyses/r1/items/reddit:t3_1/correction"


async def test_a_correction_is_put_listed_and_removed(served: Served) -> None:
    """The last one stands; what is not there is 404."""
    kept = report("r1", item("reddit:t3_1"), item("reddit:a/b?c"))
    await served.app_context.store.finish(LOCAL.id, typed(kept))
    first = await served.client.put(URL, json={"relevant": True})
    second = await served.client.put(URL, json={"relevant": False})
    other = await served.client.put("/v1/analyses/r1/items/reddit:a%2Fb%3Fc/correction", json={"relevant": True})
    listed = (await served.client.get("/v1/corrections")).json()["corrections"]

    assert (first.status_code, second.status_code, other.status_code) == (200, 200, 200)
    assert second.json()["key"] == "reddit:t3_1"
    assert [(said["key"], said["relevant"]) for said in sorted(listed, key=lambda s: s["key"])] == [
        ("reddit:a/b?c", True),
        ("reddit:t3_1", False),
    ]
    assert (await served.client.delete(URL)).status_code == 204
    gone = await served.client.delete(URL)
    assert (gone.status_code, code(gone)) == (404, "not_found")
    unknown = await served.client.put("/v1/analyses/r1/items/reddit:no/correction", json={"relevant": True})
    assert unknown.status_code == 404
    wrong = await served.client.put(URL, json={"relevant": "perhaps"})
    assert wrong.status_code == 422


async def test_corrections_are_the_callers_own(opening: Opening) -> None:
    """Another key neither sees them nor reaches the analysis."""
    async with opening(keys="ann-key,bob-key") as served:
        ann, bob = bearer("ann-key"), bearer("bob-key")
        tenant = await served.app_context.keys.authenticate("ann-key")
        await served.app_context.store.finish(tenant.id, typed(report("r1", item("reddit:t3_1"))))
        mine = await served.client.put(URL, json={"relevant": False}, headers=ann)
        theirs = await served.client.put(URL, json={"relevant": False}, headers=bob)
        listed = await served.client.get("/v1/corrections", headers=bob)

    assert (mine.status_code, theirs.status_code) == (200, 404)
    assert listed.json() == {"corrections": []}


async def test_asking_one_source_follows_the_corrections(served: Served) -> None:
    """What a person called beside the question is dropped by the next fetch, too."""
    question = {"query": "plaud.ai", "limit": 5}
    first = (await served.client.post("/v1/fetch/reddit", json=question)).json()
    wrong = first["items"][0]
    correction = Correction(wrong["key"], False, wrong["title"], wrong["body"], "")
    digest = question_digest(Question("plaud.ai"))
    entry = StoredCorrection(correction, digest, "plaud.ai", "", "reddit", datetime.now(UTC))
    await served.app_context.store.put_correction(LOCAL.id, entry, 9)

    second = (await served.client.post("/v1/fetch/reddit", json=question)).json()

    assert wrong["key"] not in {item["key"] for item in second["items"]}
    assert wrong["key"] in {item["key"] for item in second["dropped"]}
