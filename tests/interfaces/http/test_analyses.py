"""`/v1/analyses` with the real clients behind it."""

from __future__ import annotations

import asyncio

import pytest

from api.reports.report import VERSION
from tests.interfaces.http.analysis_events import CLARIFY, URL, ended, events
from tests.interfaces.http.conftest import QUESTION, Opening, Served


async def test_a_question_is_answered_and_kept(served: Served) -> None:
    """The report says where it can be read again, and reads the same there."""
    answer = await served.client.post(URL, json=QUESTION)
    report = answer.json()
    again = (await served.client.get(answer.headers["location"])).json()

    assert answer.status_code == 200
    assert (report["version"], report["depth"]) == (VERSION, "quick")
    assert report["decision"] == "full_report"
    assert again.pop("state") == "done"
    assert again == report


async def test_progress_comes_as_it_happens(served: Served) -> None:
    """In the order of the work, of the kinds that are documented, the report last."""
    answer = await served.client.post(URL, json=QUESTION, headers={"Accept": "text/event-stream"})
    told = events(answer.text)
    kinds = [kind for kind, _ in told]
    reddit = [kind for kind, data in told if data.get("source") == "reddit"]

    assert answer.headers["content-type"].startswith("text/event-stream")
    assert reddit[:3] == ["source.started", "source.fetched", "source.judged"]
    assert reddit[-2:] == ["source.kept", "source.gathered"]
    assert kinds[-3:] == ["graded", "writing", "report"]
    assert "graded.item" not in kinds
    assert told[-1][1]["id"] == answer.headers["location"].rpartition("/")[2]


async def test_what_a_place_gave_is_told_as_the_report_has_it(served: Served) -> None:
    """Once for each place, of several queries, when the last of them has ended."""
    query = {"query": "plaud.ai", "depth": "deep"}
    answer = await served.client.post(URL, json=query, headers={"Accept": "text/event-stream"})
    told = events(answer.text)
    report = told[-1][1]
    gathered = {data["source"]: data for kind, data in told if kind == "source.gathered"}
    last = {data["source"]: at for at, (kind, data) in enumerate(told) if kind == "source.kept"}

    assert len(report["rewritten_queries"]) > 1
    assert gathered.keys() == report["sources"].keys()
    for name, source in report["sources"].items():
        data = gathered[name]
        assert (data["fetched"], data["kept"]) == (source["fetched"], source["kept"])
        assert told.index(("source.gathered", data)) > last[name]
        if source["refetched"]:
            assert source["fetched"] >= source["first"]["fetched"] >= source["first"]["kept"]
            assert source["kept"] - source["first"]["kept"] == source["refetch_gain"]
    assert any(source["refetched"] for source in report["sources"].values())


async def test_a_refetch_is_told(served: Served) -> None:
    """Where the first pass brought too little."""
    query = {"query": "monday", "about": "the work management software", "depth": "quick"}
    answer = await served.client.post(URL, json=query, headers={"Accept": "text/event-stream"})
    told = events(answer.text)

    refetched = {name for name, one in told[-1][1]["sources"].items() if one["refetched"]}
    assert refetched
    assert {data["source"] for kind, data in told if kind == "source.refetching"} == refetched


async def test_it_runs_on_its_own_when_asked(served: Served) -> None:
    """202 with a place to look, where it first runs and then is done."""
    served.sandbox.latency("openai=200ms")
    answer = await served.client.post(URL, json=QUESTION, headers={"Prefer": "respond-async"})
    at_once = (await served.client.get(answer.headers["location"])).json()
    done = await ended(served.client, answer.headers["location"])

    assert answer.status_code == 202
    assert answer.headers["preference-applied"] == "respond-async"
    assert answer.json()["state"] == "running"
    assert at_once == answer.json()
    assert (done["state"], done["decision"]) == ("done", "full_report")


async def test_small_talk_is_answered_with_guidance(served: Served) -> None:
    """Nothing is asked for it."""
    report = (await served.client.post(URL, json=CLARIFY)).json()

    assert report["decision"] == "clarify"
    assert served.sandbox.log == ()


async def test_an_unknown_source_is_no_analysis(served: Served) -> None:
    """The answer names those there are, and nothing is kept."""
    answer = await served.client.post(URL, json={**QUESTION, "sources": ["myspace"]})

    assert answer.status_code == 422
    assert "`reddit`" in answer.json()["error"]["message"]
    assert (await served.client.get(URL)).json() == {"analyses": [], "cursor": None}


async def test_the_same_key_is_the_same_analysis(served: Served) -> None:
    """At the same time, afterwards, as JSON and as events."""
    headers = {"Idempotency-Key": "k1"}
    both = await asyncio.gather(*(served.client.post(URL, json=QUESTION, headers=headers) for _ in range(5)))
    later = await served.client.post(URL, json=QUESTION, headers=headers)
    stream = {**headers, "Accept": "text/event-stream"}
    told = events((await served.client.post(URL, json=QUESTION, headers=stream)).text)
    one = both[0].json()

    assert [answer.json() for answer in (*both, later)] == [one] * 6
    assert told == [("report", one)]
    assert len(served.sandbox.requests("reddit", "search")) == 1


async def test_a_key_of_another_body_is_a_conflict(served: Served) -> None:
    """Also when the first is still under way."""
    headers = {"Idempotency-Key": "k1"}
    served.sandbox.latency("openai=200ms")
    first, second = await asyncio.gather(
        served.client.post(URL, json=QUESTION, headers=headers),
        served.client.post(URL, json={**QUESTION, "query": "ember mug"}, headers=headers),
    )

    assert sorted([first.status_code, second.status_code]) == [200, 409]
    refused = first if first.status_code == 409 else second
    assert refused.json()["error"]["code"] == "conflict"


async def test_async_and_a_key_go_together(served: Served) -> None:
    """Asked twice it is one analysis, whatever its state."""
    headers = {"Idempotency-Key": "k", "Prefer": "wait=5, respond-async"}
    first = await served.client.post(URL, json=QUESTION, headers=headers)
    second = await served.client.post(URL, json=QUESTION, headers=headers)
    await ended(served.client, first.headers["location"])
    third = await served.client.post(URL, json=QUESTION, headers=headers)

    assert [answer.status_code for answer in (first, second, third)] == [202, 202, 200]
    assert len({one.headers["location"] for one in (first, second, third)}) == 1


async def test_identical_questions_share_one_run(served: Served) -> None:
    """Five callers, one search at each source."""
    answers = await asyncio.gather(*(served.client.post(URL, json=QUESTION) for _ in range(5)))

    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len(served.sandbox.requests("youtube", "search")) == 1


async def test_pages_hold_everything_once(served: Served) -> None:
    """Newest first, until there is no cursor."""
    asked = [
        (await served.client.post(URL, json={"query": f"hello {'!' * number}"})).json()["id"] for number in range(5)
    ]
    seen, cursor = list[str](), None
    while True:
        query = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await served.client.get(URL, params=query)).json()
        seen += [one["id"] for one in page["analyses"]]
        if (cursor := page["cursor"]) is None:
            break

    assert sorted(seen) == sorted(asked)


async def test_a_listing_is_filtered(served: Served) -> None:
    """By decision, source and time; times without a zone are UTC."""
    report = (await served.client.post(URL, json={**QUESTION, "sources": ["reddit"]})).json()
    await served.client.post(URL, json=CLARIFY)

    async def count(**filters: str) -> int:
        answer = await served.client.get(URL, params=filters)
        assert answer.status_code == 200, answer.text
        return len(answer.json()["analyses"])

    assert await count() == 2
    assert await count(decision=report["decision"]) == 1
    assert await count(decision="unjudged") == 0
    assert await count(source="reddit") == 1
    assert await count(source="youtube") == 0
    assert await count(since="2020-01-01") == 2
    assert await count(until="2020-01-01T00:00:00Z") == 0
    assert await count(since="2999-01-01T00:00:00+02:00") == 0


@pytest.mark.parametrize(
    "query",
    [
        {"cursor": "nonsense"},
        {"limit": "0"},
        {"decision": "maybe"},
        {"since": "yesterday"},
        {"since": "2026-02-02", "until": "2026-02-01"},
        {"decison": "clarify"},
        {"since": "0001-01-01T00:00:00+14:00"},
    ],
)
async def test_a_filter_that_is_none_is_refused(served: Served, query: dict[str, str]) -> None:
    """With 422 and its name."""
    answer = await served.client.get(URL, params=query)

    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "invalid_request"


async def test_what_is_deleted_is_gone(served: Served) -> None:
    """The second time there is nothing to delete."""
    address = (await served.client.post(URL, json=QUESTION)).headers["location"]
    first, second = await served.client.delete(address), await served.client.delete(address)

    assert (first.status_code, first.content) == (204, b"")
    assert second.status_code == 404
    assert (await served.client.get(address)).status_code == 404


async def test_deleting_stops_what_runs(served: Served) -> None:
    """Whoever waits for it learns that it was cancelled; nothing more is asked."""
    served.sandbox.latency("openai=2s")
    stream = {"Accept": "text/event-stream"}
    waiting = asyncio.create_task(served.client.post(URL, json=QUESTION, headers=stream))
    async with asyncio.timeout(120):
        while not (found := (await served.client.get(URL)).json()["analyses"]):
            continue
    deleted = await served.client.delete(f"{URL}/{found[0]['id']}")
    kind, data = events((await waiting).text)[-1]

    assert deleted.status_code == 204
    assert (kind, data["error"]["code"]) == ("error", "conflict")
    assert (await served.client.get(URL)).json()["analyses"] == []


async def test_an_outage_is_an_answer(served: Served) -> None:
    """A source that is down and a gate that fails open are in the report, not errors."""
    served.sandbox.fault("reddit=500", "openai.judge=500")
    report = (await served.client.post(URL, json=QUESTION)).json()
    metrics = (await served.client.get("/metrics")).text

    assert report["sources"]["reddit"]["outcome"] == "unreachable"
    assert report["sources"]["youtube"]["gate"]["status"] == "degraded"
    assert 'listenpost_gate_fail_open_total{reason="http_error",source="youtube"} 1.0' in metrics


async def test_what_is_counted(opening: Opening) -> None:
    """Analyses by decision, requests by source, seconds by depth."""
    async with opening() as served:
        report = (await served.client.post(URL, json=QUESTION)).json()
        await served.client.post(URL, json=CLARIFY)
        text = (await served.client.get("/metrics")).text

    calls = report["sources"]["reddit"]["upstream_calls"]
    assert 'listenpost_analyses_total{decision="full_report"} 1.0' in text
    assert 'listenpost_analyses_total{decision="clarify"} 1.0' in text
    assert 'listenpost_sources_total{outcome="ok",source="reddit"} 1.0' in text
    assert f'listenpost_upstream_calls_total{{source="reddit"}} {calls:.1f}' in text
    assert 'listenpost_analysis_seconds_count{depth="quick"} 1.0' in text
