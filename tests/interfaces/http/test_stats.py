"""`/v1/stats` over a real store."""

from __future__ import annotations

import pytest

from api.features.analyses.api_keys import LOCAL
from tests.interfaces.http.api_keys import bearer, code
from tests.interfaces.http.conftest import QUESTION, Opening, Served
from tests.store.made import report, typed

URL = "/v1/stats"


async def test_figures_are_those_of_the_report(served: Served) -> None:
    """What the answer said of its sources, its items and its support check, and one analysis."""
    answer = (await served.client.post("/v1/analyses", json=QUESTION)).json()
    await served.client.post("/v1/analyses", json={"query": "hello there"})

    stats = (await served.client.get(URL)).json()

    assert (stats["runs"], stats["failed"], stats["samples"]) == (2, 0, 0)
    assert stats["decisions"] == {"full_report": 1, "clarify": 1}
    for name, source in answer["sources"].items():
        shown = stats["sources"][name]
        unfit = sum(item["dropped_by"] == "unfit" for item in source["dropped"])
        assert shown["yields"] == {
            "runs": 1, "judged": source["fetched"] - unfit, "relevant": source["kept"],
            "pooled": source["yield_ratio"], "mean": source["yield_ratio"], "degraded": 0,
        }  # fmt: skip
        assert shown["outcomes"] == {source["outcome"]: 1}
        assert shown["refetch_gain"] == source["refetch_gain"]
        assert shown["upstream_calls"] == source["upstream_calls"]
    assert stats["items"]["kept"] == len(answer["items"])
    assert stats["items"]["cited"] == len({key for finding in answer["findings"] for key in finding["cites"]})
    assert stats["support"]["pairs"] == answer["support"]["pairs"] > 0
    assert stats["upstream_calls"] == answer["cost"]["upstream_calls"]
    assert stats["cost"]["per_analysis"] == answer["cost"]["usd"]
    assert [period["runs"] for period in stats["periods"]] == [2]


async def test_an_outage_shows(served: Served) -> None:
    """A gate that failed open is in no yield, and has its reason; a source that is away, too."""
    served.sandbox.fault("reddit=500", "openai.judge=500")
    await served.client.post("/v1/analyses", json=QUESTION)

    sources = (await served.client.get(URL)).json()["sources"]

    assert sources["reddit"]["outcomes"] == {"unreachable": 1}
    assert sources["reddit"]["fail_open_rate"] is None
    assert sources["youtube"]["fail_open_reasons"] == {"http_error": 1}
    assert sources["youtube"]["yields"]["degraded"] == 1
    assert sources["youtube"]["yields"]["pooled"] is None


async def test_each_key_has_its_own(opening: Opening) -> None:
    """Nobody's figures hold another's analyses."""
    async with opening(keys="ann,bob", token="ann") as served:
        await served.client.post("/v1/analyses", json={"query": "hello there"})
        mine = (await served.client.get(URL)).json()
        theirs = (await served.client.get(URL, headers=bearer("bob"))).json()

    assert (mine["runs"], theirs["runs"]) == (1, 0)


async def test_since_and_samples_are_chosen(served: Served) -> None:
    """Thirty days without sample data, unless told otherwise."""
    for number, sample in ((1, False), (2, True)):
        old = report(f"r{number}", sample=sample, created_at="2026-01-05T10:00:00Z")
        await served.app_context.store.finish(LOCAL.id, typed(old))
    asked = [{}, {"since": "2026-01-01"}, {"since": "all", "sample": "true"}]

    shown = [(await served.client.get(URL, params=params)).json() for params in asked]

    assert [stats["runs"] for stats in shown] == [0, 1, 2]
    assert [stats["samples"] for stats in shown] == [0, 1, 1]
    assert [stats["since"] is None for stats in shown] == [False, False, True]


@pytest.mark.parametrize(
    "params", [{"since": "soon"}, {"since": "x" * 41}, {"sample": "maybe"}, {"until": "2026-01-01"}]
)
async def test_what_makes_no_sense_is_refused(served: Served, params: dict[str, str]) -> None:
    """A filter that nobody knows would show too much."""
    answer = await served.client.get(URL, params=params)

    assert (answer.status_code, code(answer)) == (422, "invalid_request")
