"""Sessions of several tenants, one turn at a time, and after a restart."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from api.choices import MAX_SESSION_ID_LENGTH
from api.errors import NotFound, StoreUnavailable, UsageError
from api.features.chat.chat_agent import UNREADABLE, Chat
from api.features.chat.chat_sessions import LIVE, UNKEPT, ChatSessions, SessionsInMemory
from api.features.chat.chat_turn import Turn
from api.services.product import Ask, analyze
from api.settings import ChatSettings
from tests.features.chat.echo_model import PRODUCT, Echo, say
from tests.services.kit import kit


async def test_a_session_goes_on_where_it_was() -> None:
    """Within the process its run stays; after a restart it is read from the store."""
    store, echo = SessionsInMemory(), Echo()
    chats = ChatSessions(echo, store)

    first = await say(chats, "one")
    second = await say(chats, "two", first.session_id)
    restarted = await say(ChatSessions(echo, store), "three", first.session_id)

    assert (second.text, restarted.text) == ("one\ntwo", "one\ntwo\nthree")
    assert echo.resumed == 1


async def test_a_session_that_another_process_went_on_with_is_read_again() -> None:
    """What the store holds wins over what this process remembers."""
    store = SessionsInMemory()
    here, there = ChatSessions(Echo(), store), ChatSessions(Echo(), store)

    first = await say(here, "one")
    await say(there, "two", first.session_id)

    assert (await say(here, "three", first.session_id)).text == "one\ntwo\nthree"


async def test_nobody_sees_another_s_session() -> None:
    """An id of another tenant is unknown; a front end that chooses ids gets a new one by it."""
    chats = ChatSessions(Echo(), SessionsInMemory())
    first = await say(chats, "one")

    with pytest.raises(NotFound, match=first.session_id):
        await say(chats, "two", first.session_id, "eve")
    chosen = await say(chats, "two", first.session_id, "eve", known=False)

    assert chosen.text == "two"
    assert (await say(chats, "three", first.session_id)).text == "one\nthree"


@pytest.mark.parametrize(
    ("session", "words"),
    [
        ("", "1 to 128"),
        ("x" * (MAX_SESSION_ID_LENGTH + 1), "1 to 128"),
        ("a\0b", "no control characters"),
        ("a/../b", "no part `.` or `..`"),
    ],
)
async def test_an_id_that_cannot_be_is_refused(session: str, words: str) -> None:
    """Before anything is asked."""
    echo = Echo()

    with pytest.raises(UsageError, match=words):
        await say(ChatSessions(echo, SessionsInMemory()), "one", session, known=False)
    assert echo.begun == []


async def test_a_damaged_session_begins_anew() -> None:
    """Under its id, without an error."""
    store = SessionsInMemory()
    await store.keep_session("ada", "s1", "{")

    assert (await say(ChatSessions(Echo(), store), "one", "s1")).text == "one"


async def test_turns_of_one_session_wait_for_each_other() -> None:
    """Those of another do not."""
    echo = Echo(gate=asyncio.Event())
    chats = ChatSessions(echo, SessionsInMemory())
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        turns = [
            group.create_task(say(chats, word, session, known=False))
            for word, session in (("one", "s1"), ("two", "s1"), ("other", "s2"))
        ]
        await echo.two.wait()
        began = list(echo.begun)
        assert echo.gate is not None
        echo.gate.set()

    assert began == ["one", "other"]
    assert [turn.result().text for turn in turns] == ["one", "one\ntwo", "other"]


async def stopped(chats: ChatSessions, message: str, session: str | None, **how: Any) -> None:
    """A turn that is left after its first moment."""
    async with aclosing(chats.stream("ada", message, session, known=False, **how)) as stream:
        await anext(stream)


async def test_a_turn_that_is_left_is_kept() -> None:
    """And the next turn of the session need not wait, in whatever process."""
    store, echo = SessionsInMemory(), Echo(remembers=True)
    await stopped(ChatSessions(echo, store), "one", "s1")

    assert (await say(ChatSessions(echo, store), "two", "s1")).text == "one\ntwo"


async def test_a_turn_that_is_cancelled_is_kept() -> None:
    """As by Ctrl-C."""
    store, echo = SessionsInMemory(), Echo(gate=asyncio.Event(), remembers=True)
    turn = asyncio.create_task(say(ChatSessions(echo, store), "one", "s1", known=False))
    await echo.entered.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn

    assert '"question":"one"' in str(await store.session("ada", "s1"))


async def test_what_nobody_can_come_back_to_is_not_kept() -> None:
    """A session whose id was not told yet; and a store that fails then is nobody's business."""
    store = SessionsInMemory()
    await stopped(ChatSessions(Echo(remembers=True), store), "one", None)
    await stopped(ChatSessions(Echo(remembers=True), Broken()), "one", "s1")

    assert store == SessionsInMemory()


class Broken(SessionsInMemory):
    """A database that cannot be written."""

    async def keep_session(self, tenant: str, session_id: str, text: str, report_id: str | None = None) -> None:
        raise StoreUnavailable("the database cannot be used")


async def test_a_turn_that_cannot_be_stored_is_answered_with_a_note() -> None:
    """It was worked and paid for; the session knows it as long as the program runs."""
    store, echo = Broken(), Echo()
    chats = ChatSessions(echo, store)

    first = await say(chats, "one")
    second = await say(chats, "two", first.session_id)

    assert (second.text, first.notes, second.notes) == ("one\ntwo", (UNKEPT,), (UNKEPT,))
    with pytest.raises(NotFound):
        await say(ChatSessions(echo, store), "three", first.session_id)


async def test_a_session_that_cannot_be_read_is_refused_before_it_is_worked() -> None:
    """Nobody is asked."""

    class Unreadable(SessionsInMemory):
        async def session(self, tenant: str, session_id: str) -> str | None:
            raise StoreUnavailable("the database cannot be used")

    echo = Echo()
    with pytest.raises(StoreUnavailable):
        await say(ChatSessions(echo, Unreadable()), "one", "s1", known=False)

    assert echo.begun == []


async def test_a_report_is_what_a_session_begins_with() -> None:
    """Handed to the chat as it is."""
    report = await analyze(PRODUCT, Ask("hello"))
    echo = Echo()
    await stopped(ChatSessions(echo, SessionsInMemory()), "one", "s1", report=report)

    assert echo.reports == [report]


async def test_a_session_that_was_let_go_is_not_stored_again() -> None:
    """The turn that runs in it is answered; the next one knows nothing of before."""
    store, echo = SessionsInMemory(), Echo(gate=asyncio.Event())
    chats = ChatSessions(echo, store)
    async with aclosing(chats.stream("ada", "one", "s1", known=False)) as running:
        await anext(running)
        let_go = [chats.forget("ada", "s1"), chats.forget("eve", "s1")]
        assert echo.gate is not None
        echo.gate.set()
        (turn,) = [moment async for moment in running]

    assert (let_go, chats.forget("ada", "s1")) == ([True, False], False)
    assert isinstance(turn, Turn)
    assert (turn.text, store) == ("one", SessionsInMemory())
    assert (await say(chats, "two", "s1", known=False)).text == "two"


async def test_only_so_many_runs_stay_in_memory() -> None:
    """The others are read from the store."""
    echo = Echo()
    chats = ChatSessions(echo, SessionsInMemory())
    for number in range(LIVE + 1):
        await say(chats, "one", f"s{number}", known=False)

    await say(chats, "two", "s1")
    before = echo.resumed
    await say(chats, "two", "s0")

    assert (before, echo.resumed) == (0, 1)


async def test_the_depth_is_passed_on() -> None:
    """As the person chose it."""
    echo = Echo()
    async for _ in ChatSessions(echo, SessionsInMemory()).stream("ada", "one", depth="deep"):
        pass

    assert echo.depths == ["deep"]


async def test_a_session_that_cannot_be_read_begins_anew_and_says_so() -> None:
    """
    Once: what the turn after it knows is what this one said.
    """
    store = SessionsInMemory()
    await store.keep_session("ada", "s1", "damaged")
    real = ChatSessions(Chat(kit(), None, ChatSettings()), store)

    first = await say(real, "What do people say about the ember mug?", "s1")
    second = await say(real, "and the lid?", "s1")

    assert UNREADABLE in first.notes
    assert UNREADABLE not in second.notes
