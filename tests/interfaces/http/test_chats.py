"""`/v1/chats`: conversations are listed, read and deleted by their tenant alone."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from api.features.analyses.api_keys import LOCAL
from api.sandbox.server import Sandbox
from tests.interfaces.http.chat_requests import ASKED, URL, ag_ui, say, ui
from tests.interfaces.http.conftest import Opening, Served
from tests.interfaces.pages.visiting import finished

RATE = "/v1/chat/feedback"


async def test_conversations_are_listed_and_read(served: Served) -> None:
    """The last used first, page by page; each with its turns and what they cite."""
    answer = await say(served, ASKED)
    await served.client.post(URL, json=ag_ui("hello"))
    await served.client.post(URL, json=ui("ember mug"))
    follow_up = await say(served, "and the battery?", answer["session_id"])

    first = (await served.client.get("/v1/chats", params={"limit": 2})).json()
    rest = await served.client.get("/v1/chats", params={"limit": 2, "cursor": first["cursor"]})
    whole = (await served.client.get(f"/v1/chats/{answer['session_id']}")).json()

    listed = [*first["chats"], *rest.json()["chats"]]
    assert [(chat["id"], chat["title"]) for chat in listed] == [
        (answer["session_id"], ASKED), ("chat-1", "ember mug"), ("thread-1", ""),
    ]  # fmt: skip
    assert rest.json()["cursor"] is None
    assert set(listed[0]) == {"id", "title", "updated_at", "sample", "turns"}
    assert [chat["turns"] for chat in listed] == [2, 1, 0]
    assert [turn["question"] for turn in whole["turns"]] == [ASKED, "and the battery?"]
    for past, turn in zip(whole["turns"], (answer, follow_up), strict=True):
        assert (past["text"], past["citations"]) == (turn["text"], turn["citations"])
        assert past["stopped"] is False
    assert (whole["id"], whole["sample"]) == (answer["session_id"], False)


async def test_conversations_over_a_report_are_listed_by_it(served: Served) -> None:
    """With the first question that was asked there, not the report's own."""
    report = await finished(served)
    await say(served, ASKED)
    over = await served.client.post(URL, json={"message": "and the battery?", "report_id": report.id})
    turn = over.json()
    await say(served, "who said that?", turn["session_id"])
    (chat,) = (await served.client.get("/v1/chats", params={"report_id": report.id})).json()["chats"]
    none = (await served.client.get("/v1/chats", params={"report_id": "another"})).json()["chats"]

    assert (chat["id"], chat["title"], chat["turns"]) == (turn["session_id"], "and the battery?", 2)
    assert (chat["report_id"], none) == (report.id, [])


async def test_a_deleted_conversation_is_gone(served: Served) -> None:
    """Also for the next turn under its id, which begins anew; also one named with a slash."""
    name = "shop/äöü ?#"
    await served.client.post(URL, json=ui(ASKED, name))
    path = f"/v1/chats/{quote(name, safe='')}"
    there = await served.client.get(path)
    deleted = [await served.client.delete(path) for _ in range(2)]
    again = await served.client.post(URL, json={"message": "and?", "session_id": name})

    assert [turn["question"] for turn in there.json()["turns"]] == [ASKED]
    assert [answer.status_code for answer in deleted] == [204, 404]
    assert (await served.client.get(path)).status_code == again.status_code == 404
    assert deleted[1].json()["error"]["code"] == "not_found"
    assert (await served.client.get("/v1/chats")).json()["chats"] == []


async def test_conversations_are_their_tenant_s(opening: Opening) -> None:
    """Another's are not listed, read or deleted."""
    async with opening(keys="ada-key,eve-key") as served:
        ada, eve = ({"Authorization": f"Bearer {name}-key"} for name in ("ada", "eve"))
        await served.client.post(URL, json=ui("ember mug"), headers=ada)

        listed = (await served.client.get("/v1/chats", headers=eve)).json()
        read = await served.client.get("/v1/chats/chat-1", headers=eve)
        deleted = await served.client.delete("/v1/chats/chat-1", headers=eve)
        own = await served.client.get("/v1/chats/chat-1", headers=ada)

    assert listed == {"chats": [], "cursor": None}
    assert (read.status_code, deleted.status_code, own.status_code) == (404, 404, 200)


async def test_what_cannot_be_listed_is_refused(served: Served) -> None:
    """A cursor that was made up, a filter that there is not."""
    for query in ({"cursor": "made up"}, {"limit": 0}, {"since": "2026-01-01"}):
        answer = await served.client.get("/v1/chats", params=query)
        assert (answer.status_code, list(answer.json())) == (422, ["error"])


async def test_there_is_no_stream_to_resume(served: Served) -> None:
    """204 is what `useChat` takes for it, of a conversation that there is and of none."""
    await served.client.post(URL, json=ui("ember mug"))
    answers = [await served.client.get(f"{URL}/{name}/stream") for name in ("chat-1", "new")]

    assert [(answer.status_code, answer.content) for answer in answers] == [(204, b"")] * 2


async def test_a_stopped_turn_is_remembered(served: Served) -> None:
    """While it runs there is nothing to read yet."""
    served.sandbox.latency("openai.judge=30s")  # so that it is not over when it is stopped
    moments = await served.app_context.turn(LOCAL, ASKED, "chat-1", known=False)
    await anext(moments)
    running = await served.client.get("/v1/chats/chat-1")
    await moments.aclose()
    whole = (await served.client.get("/v1/chats/chat-1")).json()

    assert running.status_code == 404
    (turn,) = whole["turns"]
    assert turn == {
        "question": ASKED,
        "text": "",
        "citations": [],
        "turn": 1,
        "opinions": [],
        "stopped": True,
        "sample": False,
    }


async def test_a_conversation_deleted_while_a_turn_runs_is_not_kept(served: Served) -> None:
    """The turn is answered; then nothing of it is left."""
    served.sandbox.latency("openai.judge=3s")
    moments = await served.app_context.turn(LOCAL, ASKED, "chat-1", known=False)
    await anext(moments)
    deleted = await served.client.delete("/v1/chats/chat-1")
    *_, last = [moment async for moment in moments]

    assert deleted.status_code == 204
    assert last.text  # type: ignore[union-attr]
    assert (await served.client.get("/v1/chats/chat-1")).status_code == 404


@pytest.mark.parametrize("name", ["a\0b", "a\nb", "\x7f", ".", "..", "a/../b", "./a"])
async def test_an_id_that_no_address_holds_is_refused(served: Served, name: str) -> None:
    """By every body that begins a conversation, so that each that is listed can be read."""
    answers = [await served.client.post(URL, json=body) for body in (ui("ember mug", name), ag_ui("ember mug", name))]

    assert [answer.status_code for answer in answers] == [422, 422]
    assert all("a session id has no" in answer.json()["error"]["message"] for answer in answers)
    assert (await served.client.get("/v1/chats")).json()["chats"] == []


@pytest.mark.parametrize("name", ["...", "a..b", ".hidden", "a/.b/c."])
async def test_dots_within_a_name_are_no_path(served: Served, name: str) -> None:
    """What a client sends as it is begins a conversation that can be read and deleted."""
    await served.client.post(URL, json=ui("ember mug", name))
    path = f"/v1/chats/{quote(name, safe='')}"

    assert (await served.client.get(path)).json()["id"] == name
    assert (await served.client.delete(path)).status_code == 204


async def test_an_answer_is_rated(served: Served) -> None:
    """By its number in the session, also one named with slashes; kept with the turn."""
    name = "shop/turns/1 äö"
    await served.client.post(URL, json=ui(ASKED, name))
    path = f"/v1/chats/{quote(name, safe='')}"
    body = {"rating": "down", "comment": "another product"}

    given, missing, wrong, other = [
        await served.client.post(RATE, json=body | {"session_id": session, "turn": turn})
        for session, turn in ((name, 1), (name, 9), (name, 0), ("nope", 1))
    ]

    shown = given.json()
    assert given.status_code == 201
    assert (shown["session_id"], shown["turn"], shown["rating"]) == (name, 1, "down")
    assert shown["langfuse"] == {"status": "off", "reason": None}
    (turn,) = (await served.client.get(path)).json()["turns"]
    assert turn["turn"] == 1
    assert turn["opinions"] == [{name: shown[name] for name in ("author", "rating", "comment", "created_at")}]
    assert [answer.status_code for answer in (missing, wrong, other)] == [404, 422, 404]


async def test_langfuse_gets_the_rating_of_an_answer(
    opening: Opening, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the trace of the turn, which the turn names."""
    for name, value in sandbox.environment.items():
        if name.startswith("LANGFUSE"):
            monkeypatch.setenv(name, value)
    async with opening() as served:
        turn = await say(served, ASKED)
        body = {"session_id": turn["session_id"], "turn": turn["turn"], "rating": "up"}
        given = (await served.client.post(RATE, json=body)).json()

    bodies = [entry.body for entry in sandbox.log if entry.endpoint == "scores"]
    (score,) = [s for body in bodies for s in body if s["name"] == "user_feedback"]
    assert given["langfuse"]["status"] == "sent"
    assert (score["traceId"], score["value"]) == (turn["trace_id"], 1)
    assert score["metadata"] == {"scope": "turn", "author": given["author"], "turn": 1}
