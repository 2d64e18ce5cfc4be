"""A chat beside a report: its posts are known, what is cited stands below each answer."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from api.errors import LimitReached
from api.features.chat.chat_sessions import UNKEPT
from api.features.chat.chat_turn import ChatEvent, Citation, LookupEnded, LookupStarted, Turn
from api.interfaces.pages.chat_page import page_wire
from api.interfaces.shared.claim_layout import next_questions
from tests.interfaces.http.conftest import Opening, Served
from tests.interfaces.http.hostile_report import Tags
from tests.interfaces.pages.visiting import QUICK, csrf, entered, finished, poisoned, submit

MUG = "and what about the Ember mug?"


def events_in(text: str) -> list[tuple[str, Any]]:
    """Each event's kind and data."""
    found = re.findall(r"^event: (.*)\ndata: (.*)$", text, re.M)
    return [(kind, json.loads(data)) for kind, data in found]


async def heard(client: httpx.AsyncClient, place: str, **fields: str) -> httpx.Response:
    """A form as the page's script sends it."""
    data = {"csrf": await csrf(client, place), **fields}
    return await client.post(place, data=data, headers={"Accept": "text/event-stream"})


async def test_a_report_is_asked_on(served: Served) -> None:
    """Turn after turn in one session; each cites posts, and a reload shows them again."""
    report = await finished(served)
    place = f"/analyses/{report.id}/chat"
    empty = (await served.client.get(place)).text
    first = await submit(served.client, place, message="What annoys people about it?", session="")
    session = first.headers["location"].partition("#")[0].rpartition("/")[2]
    again = await submit(served.client, place, message="And the battery?", session=session)
    page = (await served.client.get(again.headers["location"])).text

    assert 'href="/analyses/' in empty
    assert (first.status_code, again.status_code) == (303, 303)
    where, _, turn = again.headers["location"].partition("#")
    assert where == f"{place}/{session}"
    assert f'id="{turn}"' in page
    # the report itself is what was said first
    assert re.findall(r"<h2>(.*?)</h2>", page) == [
        report.query, "What annoys people about it?", "And the battery?",
    ]  # fmt: skip
    cited = re.search(r'<li id="(turn-2-E\d+)">\[\d+\] <a href="https://[^"]+" rel="noopener', page)
    assert cited
    assert f'href="#{cited[1]}"' in page
    assert f'name="session" value="{session}"' in page


async def test_earlier_conversations_are_listed_beside_a_report(served: Served) -> None:
    """On its page and beside each other, the last used first, and one is gone on with; no list without any."""
    report = await finished(served)
    place = f"/analyses/{report.id}"
    bare = [(await served.client.get(path)).text for path in (place, f"{place}/chat")]
    for session, message in (("first", "What annoys people about it?"), ("second", "<b>And the battery?</b>")):
        await submit(served.client, f"{place}/chat", message=message, session=session)
    pages = [(await served.client.get(path)).text for path in (place, f"{place}/chat", f"{place}/chat/second")]
    await submit(served.client, f"{place}/chat", message="And the price?", session="first")
    after = (await served.client.get(place)).text

    assert not any("Earlier conversations" in page for page in bare)
    entry = re.compile(rf'<li><a href="{place}/chat/(\w+)">([^<]*)</a> <small>(\d questions?), last \w+day')
    both = [("second", "&lt;b&gt;And the battery?&lt;/b&gt;", "1 question"),
            ("first", "What annoys people about it?", "1 question")]  # fmt: skip
    assert [entry.findall(page) for page in pages] == [both, both, both[1:]]
    assert entry.findall(after)[0] == ("first", "What annoys people about it?", "2 questions")


async def test_small_talk_is_answered_and_not_kept(served: Served) -> None:
    """The guidance stands on the page that was sent."""
    report = await finished(served)
    answer = await submit(served.client, f"/analyses/{report.id}/chat", message="hello there", session="")

    assert answer.status_code == 200
    assert "<h2>hello there</h2>" in answer.text


async def test_a_conversation_is_ones_own(opening: Opening) -> None:
    """Another key sees neither the report nor what was said of it."""
    async with opening(keys="ann,ben") as served, served.calling() as ben:
        await entered(served.client, "ann")
        await entered(ben, "ben")
        place = (await submit(served.client, "/ask", **QUICK)).headers["location"]
        await served.client.get(f"{place}/live")
        said = await submit(served.client, f"{place}/chat", message="What annoys people?")
        answers = [
            await ben.get(f"{place}/chat"),
            await ben.get(said.headers["location"]),
            await submit(ben, f"{place}/chat", message="What annoys people?"),
        ]

    assert said.status_code == 303
    assert {answer.status_code for answer in answers} == {404}


async def test_a_question_has_its_length(served: Served) -> None:
    """As everywhere."""
    report = await finished(served)
    answer = await submit(served.client, f"/analyses/{report.id}/chat", message="x" * 501)

    assert answer.status_code == 422


async def test_a_turn_is_seen_as_it_happens(served: Served) -> None:
    """Look-ups and how they went, then the words; at the end where they stand with evidence."""
    report = await finished(served)
    place = f"/analyses/{report.id}/chat"
    answer = await heard(served.client, place, message=MUG, session="a-session")
    *turns, (last, over) = events_in(answer.text)
    shown = [data["html"] for _, data in turns]
    page = (await served.client.get(over["place"])).text

    assert answer.headers["content-type"].startswith("text/event-stream")
    assert ({kind for kind, _ in turns}, last) == ({"turn"}, "over")
    assert all(html.startswith(f"<h2>{MUG}</h2>") for html in shown)
    assert "<li>Looks on Reddit for “Ember mug” …</li>" in shown[0]
    assert "were about it" in shown[-1]
    assert 'class="cite"' in shown[-1]
    assert over == {"place": f"{place}/a-session#turn-2"}
    assert re.findall(r"<h2>(.*?)</h2>", page) == [report.query, MUG]


async def test_guidance_is_seen_and_leads_nowhere(served: Served) -> None:
    """It is not kept; what is asked next goes on in the same session."""
    report = await finished(served)
    place = f"/analyses/{report.id}/chat"
    hello = await heard(served.client, place, message="hello there", session="a-session")
    after = await heard(served.client, place, message="And the battery?", session="a-session")

    assert events_in(hello.text)[-1] == ("over", {"place": None})
    assert "<h2>hello there</h2>" in events_in(hello.text)[-2][1]["html"]
    assert events_in(after.text)[-1][1]["place"].startswith(f"{place}/a-session#")


async def test_strangers_words_stay_words_while_they_come(served: Served) -> None:
    """In the look-ups and the answer, and below it."""
    report = await poisoned(served)
    place = f"/analyses/{report.id}/chat"
    message = "<script>alert(1)</script> What annoys people about it?"
    answer = await heard(served.client, place, message=message, session="a-session")
    *turns, (_, over) = events_in(answer.text)
    parts = [data["html"] for _, data in turns]
    parts.append((await served.client.get(over["place"])).text)

    assert len(parts) > 1
    for part in parts:
        tags = Tags(part)
        assert "\x1b" not in part
        assert not {"img", "svg", "b"} & {name for name, _ in tags.tags}
        assert [name for name, _ in tags.tags].count("script") == part.count('src="/static/page.js')
        for tag, attributes in tags.tags:
            assert not any(name.startswith("on") or name == "style" for name in attributes), tag
            href = attributes.get("href") or "#"
            assert href.startswith(("#", "/", "data:image/svg+xml,", "https://", "http://")), href


async def test_why_there_is_no_turn_is_an_answer_for_a_script(opening: Opening) -> None:
    """The day's limit, a form of an earlier login, none at all, and what is too long."""
    headers = {"Accept": "text/event-stream"}
    async with opening(keys="ann") as served:
        await entered(served.client, "ann")
        place = (await submit(served.client, "/ask", **QUICK)).headers["location"]
        await served.client.get(f"{place}/live")
    async with opening(keys="ann", LIMIT_USD_PER_DAY="0.01") as served:
        client, chat = served.client, f"{place}/chat"
        await entered(client, "ann")
        poor = await heard(client, chat, message="What annoys people?")
        long = await heard(client, chat, message="x" * 501)
        stale = await client.post(chat, data={"csrf": "old", "message": "a"}, headers=headers)
        client.cookies.clear()
        ended = await client.post(chat, data={"message": "a"}, headers=headers)

    words = [answer.json()["error"]["message"] for answer in (poor, long, stale, ended)]
    assert [answer.status_code for answer in (poor, long, stale, ended)] == [429, 422, 403, 401]
    assert "USD" in words[0]
    assert words[1:] == [
        "a question has at most 500 characters",
        "this form is no longer valid: go back, load the page again, and repeat it",
        "this login has ended",
    ]


async def test_an_error_on_the_way_is_the_last_event() -> None:
    """In words that may be read, below what was seen by then."""

    async def moments() -> AsyncIterator[ChatEvent]:
        yield LookupStarted("1", "search_archive", {"query": "<b>mug"})
        yield LookupEnded("1", "search_archive", "The archive: nothing")
        raise LimitReached("no more", 7)

    wire = page_wire("a mug", lambda turn: None, "a-trace")
    text = b"".join([part async for part in wire.frames(moments())]).decode()
    begun, ended, (kind, data) = events_in(text)

    assert "Looks through what is stored for “&lt;b&gt;mug” …" in begun[1]["html"]
    assert "The archive: nothing" in ended[1]["html"]
    assert (kind, data["error"]["message"]) == ("error", "no more; try again in 7 s")


async def test_what_could_not_be_stored_stays_on_the_page() -> None:
    """With what it cites, since no other page has it."""
    cited = Citation("E1", "reddit:1", "A mug", "https://a.example", "Warm for hours.")

    async def moments() -> AsyncIterator[ChatEvent]:
        yield Turn("a-session", "Warm. [E1]", (cited,), (UNKEPT,), number=2)

    wire = page_wire("a mug", lambda turn: "/nowhere", "a-trace")
    text = b"".join([part async for part in wire.frames(moments())]).decode()
    shown, over = events_in(text)

    assert '<li id="turn-2-E1">[1] <a href="https://a.example"' in shown[1]["html"]
    assert over == ("over", {"place": None, "message": UNKEPT})


async def test_a_stopped_turn_is_kept(served: Served) -> None:
    """Hanging up, as the stop button does, ends the work; the conversation says that it did."""
    report = await finished(served)
    place = f"/analyses/{report.id}/chat"
    fields = {"csrf": await csrf(served.client, place), "message": MUG, "session": "a-session"}
    served.sandbox.latency("openai.judge=1s")
    seen = asyncio.Event()
    incoming = [{"type": "http.request", "body": urlencode(fields).encode(), "more_body": False}]

    async def receive() -> dict[str, Any]:
        if incoming:
            return incoming.pop()
        await seen.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if b"Looks on" in message.get("body", b""):
            seen.set()

    scope = {
        "type": "http", "method": "POST", "path": place, "raw_path": place.encode(),
        "query_string": b"", "client": ("127.0.0.1", 50000), "server": ("localhost", 80),
        "headers": [(b"host", b"localhost"), (b"accept", b"text/event-stream")],
        "scheme": "http", "http_version": "1.1", "asgi": {"version": "3.0"}, "root_path": "",
    }  # fmt: skip
    async with asyncio.timeout(120):
        await served.app(scope, receive, send)  # type: ignore[arg-type]
    page = (await served.client.get(f"{place}/a-session")).text

    assert f"<h2>{MUG}</h2>" in page
    assert "Stopped before it was complete." in page


@pytest.mark.parametrize("offered", [3, 1, 0])
async def test_who_has_asked_nothing_is_offered_questions(served: Served, offered: int) -> None:
    """Three, of the report's own first, which have answers; then no more."""
    report = await finished(served)
    fewer = report.model_copy(update={"suggestions": report.suggestions[:offered]})
    await served.app_context.store.finish("local", fewer)
    place = f"/analyses/{report.id}/chat"
    questions = re.findall(r'name="message" value="([^"]+)"', (await served.client.get(place)).text)
    answers = [await submit(served.client, place, message=question) for question in questions]
    pages = [(await served.client.get(answer.headers["location"])).text for answer in answers]

    assert len(report.suggestions) == len(set(questions)) == 3
    assert questions[:offered] == next_questions(fewer)
    for page in pages:
        assert 'id="turn-2-E' in page
        assert "to try" not in page


async def test_the_report_stands_first_and_its_citations_lead_to_its_posts(served: Served) -> None:
    """Which the report lists with their words, so that they are not listed again."""
    report = await finished(served)
    place = f"/analyses/{report.id}/chat"
    answer = await submit(served.client, place, message="What annoys people about it?")
    page = (await served.client.get(answer.headers["location"])).text
    first = page.partition('id="turn-2"')[0]
    posts = (await served.client.get(f"/analyses/{report.id}")).text

    cited = re.findall(rf'<a class="cite" href="/analyses/{report.id}#(source-\d+)">\[\d+\]</a>', first)
    assert len(cited) >= 3
    assert all(f'<li id="{post}">' in posts for post in cited)
    assert '<li id="turn-1-' not in first
