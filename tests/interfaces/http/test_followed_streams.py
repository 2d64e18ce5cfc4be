"""Following an analysis: from the start, from where the stream was lost, and when it is over."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message

from api.features.analyses.analysis_job import AnalysisTask
from api.features.analyses.api_keys import LOCAL
from api.interfaces.http.event_stream import EventStream, LastSeen
from api.interfaces.shared.requests import AnalysisRequest
from api.sandbox.server import Sandbox
from tests.features.analyses.desk import Desk, joined
from tests.interfaces.http.analysis_events import CLARIFY, URL, ended, events
from tests.interfaces.http.conftest import QUESTION, Opening, Served
from tests.interfaces.http.process import threaded

STREAM = {"Accept": "text/event-stream"}
ASYNC = {"Prefer": "respond-async"}
KEYS = "ann,ben"
SourceAnswer = tuple[str, str, Any]
"""Kind, id and data of an event."""


@pytest.fixture
def client(sandbox: Sandbox, tmp_path: Path) -> Iterator[httpx.Client]:
    """Ann, at a server that ends what was lost only after an hour."""
    sandbox.latency("openai=300ms")
    variables = {
        "LISTENPOST_DATABASE_URL": f"sqlite:///{tmp_path / 'listenpost.db'}",
        "LISTENPOST_API_KEYS": KEYS,
        "LISTENPOST_STREAM_GRACE": "3600",
    }
    ann = {"Authorization": "Bearer ann"}
    with (
        threaded(variables) as url,
        httpx.Client(base_url=url, headers=ann, timeout=60, trust_env=False) as client,
    ):
        yield client


def heard_of(response: httpx.Response) -> Iterator[SourceAnswer]:
    """Events as they come."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        fields[name] = value
        if not line and "event" in fields:
            yield fields["event"], fields["id"], json.loads(fields["data"])
            fields = {}


@contextmanager
def following(
    client: httpx.Client, path: str, headers: Mapping[str, str] | None = None
) -> Iterator[Iterator[SourceAnswer]]:
    """A stream of an analysis; who leaves the block hangs up."""
    with client.stream("GET", path, headers={**STREAM, **(headers or {})}) as response:
        assert response.status_code == 200
        yield heard_of(response)


@contextmanager
def posting(client: httpx.Client, headers: Mapping[str, str] | None = None) -> Iterator[Iterator[SourceAnswer]]:
    """The usual question as a stream."""
    with client.stream("POST", URL, json=QUESTION, headers={**STREAM, **(headers or {})}) as response:
        assert response.status_code == 200
        yield heard_of(response)


def test_events_are_numbered(client: httpx.Client) -> None:
    """From `begun`, which says what 202 says, to the end; each id is of this analysis."""
    with posting(client) as stream:
        heard = list(stream)
    ids = [LastSeen.read(mark) for _, mark, _ in heard]
    numbers = [seen.number for seen in ids[:-1] if seen is not None and seen.number is not None]

    assert heard[0][0] == "begun"
    assert heard[0][2]["state"] == "running"
    assert numbers == sorted(set(numbers))
    assert len(numbers) == len(heard) - 1
    assert heard[-1][:2] == ("report", f"{heard[0][2]['id']}:end")
    assert {seen.analysis_id for seen in ids if seen} == {heard[0][2]["id"]}


def test_who_hangs_up_goes_on_where_he_was(client: httpx.Client, sandbox: Sandbox) -> None:
    """Three connections, by `GET` and `POST`, hear every event once; it is one analysis."""
    with posting(client) as stream:
        heard = [next(stream), next(stream)]
    seen = {"Last-Event-ID": heard[-1][1]}
    with following(client, f"{URL}/{heard[0][2]['id']}", seen) as stream:
        heard += [next(stream), next(stream)]
    with posting(client, {"Last-Event-ID": heard[-1][1]}) as stream:
        heard += list(stream)
    with posting(client) as stream:  # another, to compare with
        whole = list(stream)

    assert [kind for kind, *_ in heard][-1] == "report"
    assert sorted(kind for kind, *_ in heard) == sorted(kind for kind, *_ in whole)
    assert len({mark for _, mark, _ in heard}) == len(heard)
    assert len({mark.partition(":")[0] for _, mark, _ in heard}) == 1
    assert len(client.get(URL).json()["analyses"]) == 2


def test_a_follower_hears_what_was_before(client: httpx.Client) -> None:
    """Of one that runs on its own; who leaves it stops nothing, a number it never had is none."""
    began = client.post(URL, json=QUESTION, headers=ASYNC)
    place = began.headers["location"]
    with following(client, place) as stream:
        early = [next(stream), next(stream)]
    with following(client, place, {"Last-Event-ID": f"{began.json()['id']}:{'9' * 20}"}) as stream:
        beyond = [next(stream), next(stream)]
    with following(client, f"{place}?format=events", {"Accept": "*/*"}) as stream:
        late = list(stream)

    assert (began.status_code, began.headers["retry-after"]) == (202, "2")
    assert early == beyond == late[:2]
    assert late[-1][0] == "report"
    assert client.get(place).json() == {**late[-1][2], "state": "done"}


def test_what_is_over_is_told_again(client: httpx.Client, sandbox: Sandbox) -> None:
    """Its report alone, by `GET` and by `POST`; who has seen it has nothing to come back for."""
    report = client.post(URL, json=QUESTION).json()
    asked, place = len(sandbox.log), f"{URL}/{report['id']}"
    closing = [("report", f"{report['id']}:end", report)]
    for number in ("0", "3", "end"):
        seen = {"Last-Event-ID": f"{report['id']}:{number}"}
        with posting(client, seen) as stream:
            assert list(stream) == closing
    with following(client, place, {"Last-Event-ID": f"{report['id']}:3"}) as stream:
        assert list(stream) == closing
    end = {"Last-Event-ID": f"{report['id']}:end"}
    over = client.get(place, headers={**STREAM, **end})
    plain = client.post(URL, json=QUESTION, headers=end)
    elsewhere = client.get(place, headers={**STREAM, "Last-Event-ID": f"{'0' * 32}:end"})

    assert (over.status_code, over.content) == (204, b"")
    assert plain.json() == report
    assert elsewhere.text.startswith("event: report")
    assert len(sandbox.log) == asked


def test_what_was_cancelled_says_so(client: httpx.Client) -> None:
    """As an event to who follows it, as a conflict to who does not."""
    began = client.post(URL, json=QUESTION, headers=ASYNC).json()
    seen = {"Last-Event-ID": f"{began['id']}:1"}
    with following(client, f"{URL}/{began['id']}") as stream:
        next(stream)
        client.delete(f"{URL}/{began['id']}")
        *_, (kind, mark, data) = stream
    again = client.post(URL, json=QUESTION, headers={**seen, **STREAM})

    assert (kind, mark) == ("error", f"{began['id']}:failed")
    assert data["error"]["code"] == "conflict"
    assert (again.status_code, again.json()["error"]["code"]) == (404, "not_found")
    assert client.get(URL).json()["analyses"] == []


def test_another_question_or_tenant_follows_nothing(client: httpx.Client, sandbox: Sandbox) -> None:
    """Nor is anything begun for them."""
    began = client.post(URL, json=QUESTION, headers=ASYNC).json()
    seen, ben = {"Last-Event-ID": f"{began['id']}:1"}, {"Authorization": "Bearer ben"}
    other = client.post(URL, json={**QUESTION, "query": "ember mug"}, headers=seen)
    posted = client.post(URL, json=QUESTION, headers={**seen, **ben})
    followed = client.get(f"{URL}/{began['id']}", headers={**STREAM, **ben})
    waited = client.post(URL, json=QUESTION, headers=seen)

    assert (other.status_code, other.json()["error"]["code"]) == (409, "conflict")
    assert (posted.status_code, followed.status_code) == (404, 404)
    assert waited.json()["id"] == began["id"]
    assert len(client.get(URL).json()["analyses"]) == 1


ID = "8c1f0d5e7b2a4963a1c4e8f7d2b60935"


@pytest.mark.parametrize(
    "mark",
    [
        ID, f"{ID}:", f"{ID}:x", f"{ID}:-1", f"{ID}:1.5", "x", "a:b", f"{ID.upper()}:1",
        f"{ID}:END", f"{ID}:{'1' * 23}", f"{ID}:1:1", f"{ID}:1,", f"{ID}:\xb2",
    ],
)  # fmt: skip
async def test_what_is_no_id_begins_nothing(served: Served, mark: str) -> None:
    """A POST is refused, and told the form; an empty one begins, `GET` follows from the start."""
    headers = {b"Last-Event-ID": mark.encode("latin-1")}
    refused = await served.client.post(URL, json=CLARIFY, headers=headers)
    empty = await served.client.post(URL, json=CLARIFY, headers={"Last-Event-ID": ""})
    followed = await served.client.get(f"{empty.headers['location']}?format=events", headers=headers)
    error = refused.json()["error"]

    assert (refused.status_code, error["code"]) == (422, "invalid_request")
    assert error["message"].startswith("`Last-Event-ID` must be the `id` of an event")
    assert "`ANALYSIS:NUMBER`" in error["message"]
    assert empty.json()["decision"] == "clarify"
    assert events(followed.text)[0] == ("report", empty.json())
    assert len((await served.client.get(URL)).json()["analyses"]) == 1


async def test_two_ids_are_none(served: Served) -> None:
    """An empty one before it hides no other."""
    first, *others = [("Last-Event-ID", mark) for mark in ("", f"{ID}:1", f"{ID}:2")]
    refused = await served.client.post(URL, json=CLARIFY, headers=[first, *others])
    unknown = await served.client.post(URL, json=CLARIFY, headers=[first, others[0]])

    assert (refused.status_code, unknown.status_code) == (422, 404)
    assert (await served.client.get(URL)).json()["analyses"] == []


def marks(frames: list[bytes]) -> list[str]:
    """The ids of events as they were sent."""
    return re.findall(r"^id: (.*)$", b"".join(frames).decode(), re.M)


async def test_a_second_run_is_heard_whole() -> None:
    """Under the id of one that was cancelled, whatever of the first was seen."""
    desk = Desk()
    runner = desk.runner()

    async def heard(task: AnalysisTask, mark: str = "") -> list[bytes]:
        """All that a stream sends, which is let go on once it has been opened."""
        bodies: list[bytes] = []

        async def send(message: Message) -> None:
            bodies.append(message.get("body", b""))
            if b"source.started" in bodies[-1]:
                go.set()

        async def receive() -> Message:
            return await asyncio.Future()

        stream = EventStream(runner, task, LastSeen.read(mark), 3600, {})
        await stream({"type": "http"}, receive, send)
        return bodies

    first = await joined(runner, key="k")
    go = asyncio.Event()
    hearing = asyncio.create_task(heard(first))
    await go.wait()
    first.cancel()
    seen = marks(await hearing)
    second, go = await joined(runner, key="k"), desk.go
    runs = [await heard(second, mark) for mark in seen]

    assert seen[0] != seen[-1] == f"{first.id}:failed"
    assert second.id == first.id
    assert all(b"event: begun" in frames[1] for frames in runs)
    assert all(marks(frames) == marks(runs[0]) for frames in runs)
    assert not {*seen} & {*marks(runs[0])}


async def test_the_last_event_of_a_run_is_not_that_of_the_next(served: Served) -> None:
    """204 while what it told still holds; then the report, whether it runs or is done."""
    ask, runner = AnalysisRequest.model_validate(QUESTION).ask(), served.app_context.runner
    task = await runner.join(LOCAL, ask, "k")
    assert isinstance(task, AnalysisTask)
    task.cancel()
    await task.ended()
    place = f"{URL}/{task.id}?format=events"
    failed = {"Last-Event-ID": f"{task.id}:failed"}
    over = await served.client.get(place, headers=failed)
    asking = served.client.post(URL, json=QUESTION, headers={"Idempotency-Key": "k"})
    running = asyncio.create_task(asking)
    async with asyncio.timeout(120):
        while (look := await served.client.get(place, headers=failed)).status_code == 204:
            continue
    report = (await running).json()
    later = await served.client.get(place, headers=failed)
    end = await served.client.get(place, headers={"Last-Event-ID": f"{task.id}:end"})

    assert (over.status_code, over.content) == (204, b"")
    assert events(look.text)[-1] == events(later.text)[0] == ("report", report)
    assert (report["id"], end.status_code) == (task.id, 204)


async def test_waiting_uses_up_nothing(opening: Opening) -> None:
    """Of one request a minute; looks are counted apart, ten to one."""
    async with opening("ann", "ann", LIMIT_REQUESTS_PER_MINUTE="1") as served:
        began = await served.client.post(URL, json=CLARIFY, headers=ASYNC)
        place = began.headers["location"]
        seen = {"Last-Event-ID": f"{began.json()['id']}:0"}
        looks = [await served.client.get(place) for _ in range(8)]
        looks.append(await served.client.get(place, headers=STREAM))
        looks.append(await served.client.post(URL, json=CLARIFY, headers=seen))
        refused = [await served.client.get(place), await served.client.get(URL)]

    assert {look.status_code for look in looks} <= {200, 202}
    assert looks[8].text.endswith(f"id: {began.json()['id']}:end\n\n")
    assert [answer.status_code for answer in refused] == [429, 429]
    words = [answer.json()["error"]["message"].partition(";")[0] for answer in refused]
    assert words == ["10 looks per minute are used up", "1 requests per minute are used up"]


async def test_a_repeated_request_for_later_gets_what_is_done(served: Served) -> None:
    """As `GET` gives it, and without waiting."""
    headers = {"Idempotency-Key": "k", **ASYNC}
    first = await served.client.post(URL, json=QUESTION, headers=headers)
    done = await ended(served.client, first.headers["location"])
    again = await served.client.post(URL, json=QUESTION, headers=headers)

    assert (again.status_code, again.json()) == (200, done)
    assert again.headers["location"] == first.headers["location"]


async def test_silence_is_filled_with_comments(opening: Opening) -> None:
    """In streams of analyses and chats; a comment ends no event, so that no empty one is read."""
    ui = {
        "id": "a",
        "messages": [{"role": "user", "parts": [{"type": "text", "text": "plaud.ai"}]}],
    }
    ag_ui = {"threadId": "b", "runId": "c", "messages": [{"role": "user", "content": "plaud.ai"}]}
    async with opening(STREAM_KEEPALIVE="0.01") as served:
        served.sandbox.latency("openai=100ms")
        texts = [
            (await served.client.post(path, json=body, headers=STREAM)).text
            for path, body in ((URL, QUESTION), ("/v1/chat", ui), ("/v1/chat", ag_ui))
        ]

    assert [": ping\n" in text for text in texts] == [True] * 3
    assert not any("ping\n\n" in text for text in texts)
    report = events(texts[0].replace(": ping\n", ""))[-1]
    assert (report[0], report[1]["decision"]) == ("report", "full_report")


@pytest.mark.parametrize("form", ["vercel", "ag_ui"])
def test_a_turn_that_is_silent_begins_all_the_same(sandbox: Sandbox, tmp_path: Path, form: str) -> None:
    """Its model does not answer; the connection is open and kept so, and ends when it is left."""
    sandbox.latency("openai=3600s")
    variables = {
        "LISTENPOST_DATABASE_URL": f"sqlite:///{tmp_path / 'listenpost.db'}",
        "LISTENPOST_STREAM_KEEPALIVE": "0.01",
    }
    body = {"message": "plaud.ai"} if form == "vercel" else {
        "threadId": "b", "runId": "c", "messages": [{"role": "user", "content": "plaud.ai"}]
    }  # fmt: skip
    with (
        threaded(variables) as url,
        httpx.stream("POST", f"{url}/v1/chat", json=body, headers=STREAM, timeout=60) as answer,
    ):
        text = ""
        for piece in answer.iter_text():
            text += piece
            if text.count(": ping\n") == 2:
                break

    assert answer.status_code == 200
    assert "exhibit" not in text
    assert ('"start"' if form == "vercel" else "RUN_STARTED") in text
