"""`/v1/chat`: turns as JSON and on the wire of chat front ends, with the real clients behind it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import fields as fields_of
from typing import Any

import pytest
from ag_ui.core import Event
from pydantic import TypeAdapter

from api.errors import LimitReached
from api.features.analyses.api_keys import LOCAL
from api.features.chat.chat_turn import AnswerPiece, ChatEvent, Citation, LookupEnded, LookupStarted, Turn
from api.interfaces.http import chat_streams
from api.interfaces.http.chat_routes import ChatTurn
from api.interfaces.http.event_stream import TurnStream, TurnWire
from api.services import product
from api.services.product import Ask
from tests.interfaces.http.chat_requests import ASKED, URL, ag_ui, say, ui
from tests.interfaces.http.conftest import Opening, Served

UPSTREAMS = ("reddit", "youtube", "amazon")


def fetched(served: Served) -> int:
    """Requests that the sources were sent."""
    return sum(len(served.sandbox.requests(name)) for name in UPSTREAMS)


def chunks(text: str) -> list[dict[str, Any]]:
    """The data of each server-sent event."""
    lines = [line.removeprefix("data: ") for line in text.split("\n") if line]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def assert_sound(told: list[dict[str, Any]]) -> None:
    """What `useChat` insists on: parts begin before they go on, and everything ends."""
    open_texts: set[str] = set()
    calls: dict[str, str] = {}
    for chunk in told:
        match chunk["type"]:
            case "text-start":
                open_texts.add(chunk["id"])
            case "text-delta":
                assert chunk["id"] in open_texts
            case "text-end":
                open_texts.remove(chunk["id"])
            case "tool-input-available":
                calls[chunk["toolCallId"]] = "asked"
            case "tool-output-available":
                assert calls[chunk["toolCallId"]] == "asked"
                calls[chunk["toolCallId"]] = "answered"
    kinds = [chunk["type"] for chunk in told]
    assert kinds[0] == "start"
    assert kinds[-2:] == ["finish-step", "finish"]
    assert kinds.count("start-step") == kinds.count("finish-step")
    assert not open_texts
    assert set(calls.values()) <= {"answered"}


async def test_follow_ups_use_what_is_gathered(served: Served) -> None:
    """A product, a follow-up that looks further, and a second one that makes no new fetch."""
    first = await say(served, ASKED)
    after_first = fetched(served)
    second = await say(served, "and its Zigbee?", first["session_id"])
    after_second = fetched(served)
    third = await say(served, "and the battery?", first["session_id"])

    assert 0 < after_first < after_second == fetched(served)
    assert {turn["session_id"] for turn in (second, third)} == {first["session_id"]}
    assert [turn["partial"] for turn in (first, second, third)] == [False, False, False]
    assert second["text"].lower().startswith("no post that was found mentions zigbee.")
    assert "battery" in third["text"].lower()
    assert third["citations"]


async def test_citations_carry_their_links(served: Served) -> None:
    """Each label of the text is listed once with key, title and address, and no other."""
    turn = await say(served, ASKED)

    labels = [one["label"] for one in turn["citations"]]
    assert labels == list(dict.fromkeys(labels))
    for one in turn["citations"]:
        assert one["label"] in turn["text"]
        assert one["key"].partition(":")[0] in UPSTREAMS
        assert one["url"].startswith("https://")
        assert one["title"]
    fields = {"session_id", "turn", "text", "citations", "notes", "partial", "sample", "trace_id"}
    assert set(turn) == fields == set(ChatTurn.model_fields)
    assert any(one["passage"] for one in turn["citations"])
    for one in turn["citations"]:
        assert {"label", "key", "title", "url", "passage", "source"} <= set(one)
        assert set(one) <= {known.name for known in fields_of(Citation)}
        assert all(len(words["text"]) <= 200 for words in one.get("passages", ()))
        assert one["passage"] == next((words["text"] for words in one.get("passages", ())), "")


async def test_another_product_s_posts_are_not_cited(served: Served) -> None:
    """An answer about the mug rests on what was found for the mug."""
    first = await say(served, "plaud.ai")
    second = await say(served, "ember mug", first["session_id"])

    assert second["citations"]
    keys = [{one["key"] for one in turn["citations"]} for turn in (first, second)]
    assert keys[0].isdisjoint(keys[1])


async def test_what_is_asked_to_be_compared_is_looked_up(served: Served) -> None:
    """Also when the other is only pointed at."""
    first = await say(served, "plaud.ai")
    asked = fetched(served)
    await say(served, "compare it with the Oura Ring", first["session_id"])

    assert fetched(served) > asked
    queries = [str(entry) for entry in served.sandbox.requests("reddit", "search")]
    assert "Oura" in queries[-1]


async def test_a_chat_begins_over_a_report(served: Served) -> None:
    """Its items are cited and nothing is asked; a session then goes on without it."""
    report = (await served.client.post("/v1/analyses", json={"query": "plaud.ai"})).json()
    asked = fetched(served)

    body = {"message": "what about its battery?", "report_id": report["id"]}
    turn = (await served.client.post(URL, json=body)).json()
    both = await served.client.post(URL, json=body | {"session_id": turn["session_id"]})
    unknown = await served.client.post(URL, json=body | {"report_id": "nope"})

    assert fetched(served) == asked
    assert turn["citations"]
    assert {one["key"] for one in turn["citations"]} <= {item["key"] for item in report["items"]}
    assert both.status_code == 422
    assert "`report_id` begins a session" in both.text
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "not_found")


async def test_sample_data_is_marked(opening: Opening) -> None:
    """A report of the sandbox stays sample in a chat over it; live data is not."""
    async with opening() as served:
        report = await product.analyze(await served.app_context.product(), Ask("plaud.ai"))
        made_up = report.model_copy(update={"sample": True})
        tenant = LOCAL.id
        await served.app_context.store.finish(tenant, made_up)
        live = await say(served, "hello")
        body = {"message": "what about its battery?", "report_id": report.id}
        sample = (await served.client.post(URL, json=body)).json()

    assert (live["sample"], sample["sample"]) == (False, True)


async def test_small_talk_gets_guidance(served: Served) -> None:
    """No tool call, no citation, no model call."""
    turn = await say(served, "hey this is a test message")

    assert "for example" in turn["text"]
    assert (turn["citations"], turn["partial"]) == ([], False)
    assert served.sandbox.log == ()


async def test_without_evidence_nothing_is_claimed(served: Served) -> None:
    """A product nobody knows: where was looked, and no citation."""
    turn = await say(served, "What do people say about the Zzyzx Q9?")

    assert turn["text"].startswith("I couldn't find relevant posts about “Zzyzx Q9”.")
    assert "found nothing" in turn["text"]
    assert turn["citations"] == []


async def test_a_session_survives_a_restart(opening: Opening) -> None:
    """Another process over the same database answers from what was gathered."""
    async with opening() as before:
        session = (await say(before, ASKED))["session_id"]
    async with opening() as after:
        asked = fetched(after)
        turn = await say(after, "and the battery?", session)

        assert fetched(after) == asked
        assert turn["citations"]


async def test_a_session_is_its_tenant_s(opening: Opening) -> None:
    """By another key it is not found; a front end's own id begins another session."""
    async with opening(keys="ada-key,eve-key") as served:
        ada, eve = ({"Authorization": f"Bearer {name}-key"} for name in ("ada", "eve"))
        asked = (await served.client.post(URL, json={"message": ASKED}, headers=ada)).json()
        again = {"message": "and the battery?", "session_id": asked["session_id"]}

        stranger = await served.client.post(URL, json=again, headers=eve)
        chosen = await served.client.post(URL, json=ui("and the battery?", asked["session_id"]), headers=eve)
        nobody = await served.client.post(URL, json=again)
        own = await served.client.post(URL, json=again, headers=ada)

    assert stranger.status_code == 404
    assert stranger.json()["error"]["code"] == "not_found"
    assert "plaud" not in chosen.text.lower()
    assert nobody.status_code == 401
    assert own.json()["citations"]


async def test_limits_hold(opening: Opening) -> None:
    """Requests count, and the day's USD do not suffice for a turn: 429 before anything is asked."""
    keyed = {"keys": "ada-key", "token": "ada-key"}
    async with opening(**keyed, LIMIT_USD_PER_DAY="0.01") as served:
        poor = await served.client.post(URL, json={"message": ASKED})
        stream = await served.client.post(URL, json=ui(ASKED))
        log = served.sandbox.log
    async with opening(**keyed, LIMIT_REQUESTS_PER_MINUTE="1") as served:
        answers = [await served.client.post(URL, json={"message": "hello"}) for _ in range(2)]

    assert (poor.status_code, stream.status_code) == (429, 429)
    assert stream.headers["content-type"] == "application/json"
    assert int(poor.headers["retry-after"]) > 0
    assert log == ()
    assert answers[-1].status_code == 429


async def test_a_turn_pays_what_it_cost(opening: Opening) -> None:
    """The reservation becomes the real cost; a turn that asked nobody is free."""
    async with opening(keys="ada-key", token="ada-key", LIMIT_USD_PER_DAY="1") as served:
        tenant = await served.app_context.keys.authenticate("ada-key")
        day = served.app_context.limits.clock().date()

        await say(served, "hello")
        nothing = await served.app_context.store.spent(f"key:{tenant.id}:usd", day)
        await say(served, ASKED)
        real = await served.app_context.store.spent(f"key:{tenant.id}:usd", day)

    assert nothing == 0
    assert 1_000 < real < 100_000, "millionths of a USD"


async def test_turns_by_a_server_of_ones_own_cost_nothing(opening: Opening) -> None:
    """With a model that nobody has a price for; what would be reserved for each is half of the day's budget."""
    own = {"AGENT_MODEL": "own-7b", "FILTER_MODEL": "own-7b", "LIMIT_REQUESTS_PER_MINUTE": "0"}
    async with opening(keys="ada-key", token="ada-key", LIMIT_USD_PER_DAY="0.4", **own) as served:
        tenant = await served.app_context.keys.authenticate("ada-key")
        day = served.app_context.limits.clock().date()
        first = await say(served, ASKED)
        asked = {"message": "and the battery?", "session_id": first["session_id"]}
        answers = [await served.client.post(URL, json=asked) for _ in range(11)]
        spent = await served.app_context.store.spent(f"key:{tenant.id}:usd", day)

    assert {answer.status_code for answer in answers} == {200}
    assert served.sandbox.requests("openai", "agent")
    assert spent == 0


async def test_a_bound_ends_in_a_useful_answer(opening: Opening) -> None:
    """B77: with one source a turn, that one is asked, and the answer says what was refused."""
    async with opening(CHAT_TOOL_CALLS="1") as served:
        turn = await say(served, ASKED)
        asked = {name for name in UPSTREAMS if served.sandbox.requests(name)}

    assert len(asked) == 1
    assert turn["partial"]
    assert turn["citations"]
    assert "2 look-ups refused: one turn may ask 1 source" in turn["notes"]


async def test_a_slow_model_ends_in_what_was_found(opening: Opening) -> None:
    """The turn's seconds are up: the posts speak; a busy machine needs more to have any."""
    for seconds in ("3", "60"):
        async with opening(CHAT_SECONDS=seconds) as served:
            served.sandbox.fault("openai.agent=hang@2")
            turn = await say(served, ASKED)
        assert turn["partial"]
        assert turn["notes"][0].startswith(f"cut short: one turn may take {seconds} s")
        if turn["citations"]:
            break

    assert turn["citations"]


async def test_a_failing_model_ends_in_the_posts_words(served: Served) -> None:
    """Sources are asked without it, and the answer says so."""
    served.sandbox.fault("openai.agent=401")

    turn = await say(served, "plaud.ai")

    assert turn["text"].startswith("No model wrote this answer")
    assert turn["citations"]
    assert turn["notes"] == ["the chat model could not be used (the key was not accepted)"]


async def test_a_front_end_of_the_vercel_sdk_gets_its_stream(served: Served) -> None:
    """Look-ups, text, sources and the turn as data, in the order and shape that it insists on."""
    answer = await served.client.post(URL, json=ui(ASKED))
    told = chunks(answer.text)

    assert_sound(told)
    assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.endswith("data: [DONE]\n\n")
    turn = next(chunk["data"] for chunk in told if chunk["type"] == "data-turn")
    sources = [chunk for chunk in told if chunk["type"] == "source-url"]
    assert "".join(c["delta"] for c in told if c["type"] == "text-delta") == turn["text"]
    assert [(s["sourceId"], s["url"]) for s in sources] == [(one["label"], one["url"]) for one in turn["citations"]]
    assert {c["toolName"] for c in told if c["type"] == "tool-input-available"} == {
        "fetch_reddit", "fetch_youtube", "fetch_amazon",
    }  # fmt: skip
    assert any("were about it" in str(c["output"]) for c in told if c["type"] == "tool-output-available")
    assert turn["session_id"] == "chat-1"


async def test_a_front_end_s_session_goes_on_by_its_id(served: Served) -> None:
    """The server's memory counts, not the messages that the front end sends."""
    await served.client.post(URL, json=ui(ASKED))
    asked = fetched(served)

    again = await served.client.post(URL, json=ui("and the battery?", trigger="regenerate-message"))
    plain = await say(served, "and the subscription?", "chat-1")

    assert fetched(served) == asked
    assert_sound(chunks(again.text))
    assert plain["citations"]


async def test_guidance_is_streamed_too(served: Served) -> None:
    """Also when the front end sends no words at all."""
    empty = ui("")
    empty["messages"] = []

    small = chunks((await served.client.post(URL, json=ui("hello"))).text)
    nothing = chunks((await served.client.post(URL, json=empty)).text)

    for told in (small, nothing):
        assert_sound(told)
        assert any("for example" in c.get("delta", "") for c in told)
    assert served.sandbox.log == ()


async def test_a_plain_body_is_streamed_on_request(served: Served) -> None:
    """`Accept: text/event-stream` gives the Vercel stream."""
    answer = await served.client.post(URL, json={"message": "hello"}, headers={"Accept": "text/event-stream"})

    assert_sound(chunks(answer.text))


async def test_an_ag_ui_client_gets_its_stream(served: Served) -> None:
    """Every event is one of the protocol; the turn is a custom event."""
    answer = await served.client.post(URL, json=ag_ui(ASKED))
    told = [TypeAdapter(Event).validate_json(line.removeprefix("data: ")) for line in answer.text.split("\n") if line]
    kinds = [str(event.type.value) for event in told]
    raw = chunks(answer.text)
    turn = next(event["value"] for event in raw if event["type"] == "CUSTOM")

    assert (kinds[0], kinds[-1]) == ("RUN_STARTED", "RUN_FINISHED")
    assert kinds.count("TOOL_CALL_START") == kinds.count("TOOL_CALL_RESULT") == 3
    text = "".join(e["delta"] for e in raw if e["type"] == "TEXT_MESSAGE_CONTENT")
    assert text == turn["text"]
    assert (turn["session_id"], raw[0]["runId"]) == ("thread-1", "run-1")
    assert turn["citations"]


async def test_words_in_parts_are_read(served: Served) -> None:
    """AG-UI content may come in pieces, or not at all."""
    pieces = ag_ui("")
    pieces["messages"][0]["content"] = [{"type": "text", "text": "hello"}, {"type": "image"}]
    none = ag_ui("")
    none["messages"] = [{"id": "m", "role": "user"}]

    for body in (pieces, none):
        assert "for example" in (await served.client.post(URL, json=body)).text


@pytest.mark.parametrize(
    "body",
    [
        {}, [], {"message": 1}, {"message": "x" * 5001}, {"message": "x", "more": 1},
        {"message": "plaud", "session_id": ""}, {"id": "", "messages": []},
        {"id": "x" * 129, "messages": []}, {"id": "x", "messages": [{"role": "user"}]},
        {"threadId": "x", "messages": []},
    ],
)  # fmt: skip
async def test_what_is_no_turn_is_refused(served: Served, body: Any) -> None:
    """422 in the one error shape, before anything is asked."""
    answer = await served.client.post(URL, json=body)

    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["code"] == "invalid_request"
    assert "function-" not in error["message"]
    assert served.sandbox.log == ()


@pytest.mark.parametrize("body", [{"message": ASKED}, ui(ASKED), ag_ui(ASKED)])
async def test_hanging_up_ends_the_work(served: Served, body: dict[str, Any]) -> None:
    """B86: once the client is gone nobody is asked any more; the question is remembered."""
    served.sandbox.latency("openai.judge=600ms")
    gone, sent = asyncio.Event(), []
    raw = json.dumps(body).encode()
    incoming = [{"type": "http.request", "body": raw, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if incoming:
            return incoming.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": URL, "raw_path": b"/v1/chat", "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"host", b"localhost")],
        "client": ("127.0.0.1", 50000), "server": ("localhost", 80), "scheme": "http",
        "http_version": "1.1", "asgi": {"version": "3.0"}, "root_path": "",
    }  # fmt: skip
    async with asyncio.timeout(120):
        turn = asyncio.create_task(served.app(scope, receive, send))  # type: ignore[arg-type]
        while not all(served.sandbox.requests(name, "search") for name in UPSTREAMS):
            await served.client.get("/readyz")
        gone.set()
        await turn
        until = asyncio.get_running_loop().time() + 1
        while asyncio.get_running_loop().time() < until:
            await served.client.get("/readyz")

    asked = {entry.endpoint for name in UPSTREAMS for entry in served.sandbox.requests(name)}
    assert asked == {"token", "search"}
    assert len(served.sandbox.requests("openai", "agent")) == 1
    assert b"[DONE]" not in b"".join(message.get("body", b"") for message in sent)
    session = body.get("id") or body.get("threadId")
    if session:  # a front end named it, and can come back to it
        kept = await served.app_context.store.session(LOCAL.id, session)
        assert f'"question":"{ASKED}"' in str(kept)


async def told(wire: TurnWire, *moments: ChatEvent, fails: Exception | None = None) -> str:
    """What a stream makes of these moments, and of an error after them."""

    async def all_of_them() -> AsyncGenerator[ChatEvent]:
        for moment in moments:
            yield moment
        if fails is not None:
            raise fails

    parts: list[bytes] = []

    async def send(message: Any) -> None:
        parts.append(message.get("body", b""))

    async def receive() -> Any:
        await asyncio.get_running_loop().create_future()

    async with aclosing(all_of_them()) as turn:
        first = asyncio.ensure_future(anext(turn))
        await TurnStream(turn, first, wire, 15)({}, receive, send)
    return b"".join(parts).decode()


@pytest.mark.parametrize("make", [chat_streams.vercel, lambda: chat_streams.ag_ui("t", "r", "")])
async def test_an_error_on_the_way_shows_no_exception(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A limit says what it is; a defect of ours says no more than that, and is logged."""
    limit = await told(make(), AnswerPiece("It"), fails=LimitReached("no more", 7))
    defect = await told(make(), AnswerPiece("It"), fails=RuntimeError("secret of ours"))

    late = await told(make(), fails=LimitReached("no more", 7))  # the stream had begun without it

    assert "no more; try again in 7 s" in limit
    assert "no more; try again in 7 s" in late
    assert "internal error" in defect
    assert "secret" not in defect
    assert "secret of ours" in caplog.text


async def test_parts_follow_each_other(served: Served) -> None:
    """Words, a look-up, words again; a post without an address is no source."""
    turn = Turn("s", "a b c", (Citation("E1", "k", "t", ""), Citation("E2", "k", "t", "https://x/")))
    text = await told(
        chat_streams.vercel(), AnswerPiece("a"), AnswerPiece(" b"),
        LookupStarted("1", "fetch_reddit", {"query": "q"}),
        LookupEnded("1", "fetch_reddit", "none"), AnswerPiece(" c"), turn,
    )  # fmt: skip
    found = chunks(text)

    assert_sound(found)
    assert "".join(c["delta"] for c in found if c["type"] == "text-delta") == "a b c"
    assert [c["type"] for c in found].count("text-start") == 2
    assert [c["sourceId"] for c in found if c["type"] == "source-url"] == ["E2"]
