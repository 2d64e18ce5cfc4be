"""What people think of an answer: kept with its turn, then told."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from api.choices import MAX_COMMENT_LENGTH, Rating
from api.errors import NotFound, UsageError
from api.features.analyses.feedback import GivenOnTurn, Rated, RatedTurn
from api.features.chat.chat_history import MOST_RATINGS, Transcript, rate_turn, read_chat
from api.features.chat.chat_sessions import ChatSessions, SessionsInMemory
from api.features.chat.session import Exchange
from tests.features.chat.echo_model import Echo, say
from tests.features.chat.new_session import session

TRACE = "f" * 32


@dataclass
class Watcher:
    """Somebody who is told, and may refuse."""

    why: str = ""
    told: list[Rated] = field(default_factory=list)

    async def __call__(self, rated: Rated) -> str:
        self.told.append(rated)
        return self.why


async def shelf(*exchanges: Exchange) -> SessionsInMemory:
    """A store that has one session of ada's."""
    talk, store = session(), SessionsInMemory()
    for exchange in exchanges or (Exchange("mug?", "Fine.", trace_id=TRACE),):
        talk.close(exchange)
    await store.keep_session("ada", "s", talk.save())
    return store


async def rate(
    store: SessionsInMemory,
    rating: Rating = "up",
    comment: str = "",
    *,
    number: int = 1,
    author: str = "somebody",
    send: Watcher | None = None,
) -> GivenOnTurn:
    """A thumb on a turn of it."""
    return await rate_turn(store, "ada", author, "s", number, rating, comment, send)


async def transcript(store: SessionsInMemory) -> Transcript:
    """What is read of it."""
    return await read_chat(store, "ada", "s")


async def test_it_is_kept_with_its_turn_and_told() -> None:
    """With whose it is; said again it replaces what the same person said before."""
    store, watcher = (
        await shelf(Exchange("hi", "Yes."), Exchange("mug?", "Ok.", trace_id=TRACE)),
        (Watcher()),
    )

    first = await rate(store, "up", "fine", number=2, send=watcher)
    await rate(store, "up", number=2, author="another")
    again = await rate(store, "down", "\x00no", number=2, send=watcher)

    early, late = (await transcript(store)).turns
    assert (early.turn, early.opinions, late.turn) == (1, (), 2)
    assert [(o.author, o.rating, o.comment) for o in late.opinions] == [
        ("another", "up", ""), ("somebody", "down", "no"),
    ]  # fmt: skip
    assert (first.watched, again.turn.created_at) == ("sent", first.turn.created_at)
    assert watcher.told == [first.turn, again.turn]
    assert first.turn == RatedTurn(2, TRACE, "somebody", "up", "fine", first.turn.created_at)


@pytest.mark.parametrize(
    "exchange",
    [Exchange("mug?", "Fine."), Exchange("mug?", "Fine.", trace_id=TRACE, sample=True)],
    ids=["untraced", "sample"],
)
async def test_what_has_no_trace_is_kept_alone(exchange: Exchange) -> None:
    """Nobody is told, as of a report."""
    watcher = Watcher()

    assert (await rate(await shelf(exchange), send=watcher)).watched == "off"
    assert (await rate(await shelf(exchange))).watched == "off"
    assert watcher.told == []


async def test_that_it_could_not_be_told_loses_nothing() -> None:
    """The reason is there, and so is the opinion."""
    store = await shelf()

    given = await rate(store, send=Watcher("Langfuse is away"))

    assert (given.watched, given.why) == ("failed", "Langfuse is away")
    assert len((await transcript(store)).turns[0].opinions) == 1


@pytest.mark.parametrize("number", [0, 2])
async def test_a_turn_that_is_not_there_has_none(number: int) -> None:
    """Nor one of an older release, which counted none, or of a text that cannot be read."""
    store = await shelf()

    with pytest.raises(NotFound, match=f"no turn {number}"):
        await rate(store, number=number)
    with pytest.raises(NotFound, match="no chat session"):
        await rate(SessionsInMemory())
    await store.keep_session("ada", "s", "{}")
    with pytest.raises(NotFound, match=f"no turn {number}"):
        await rate(store, number=number)


async def test_too_much_is_refused() -> None:
    """Of words, and of authors; those who spoke may think again."""
    store = await shelf()
    for number in range(MOST_RATINGS):
        await rate(store, author=f"a{number}")

    with pytest.raises(UsageError, match=f"{MAX_COMMENT_LENGTH} characters"):
        await rate(store, comment="x" * (MAX_COMMENT_LENGTH + 1))
    with pytest.raises(UsageError, match=f"{MOST_RATINGS} ratings"):
        await rate(store)
    assert (await rate(store, "down", author="a3")).turn.rating == "down"


async def test_a_turn_under_way_takes_nothing_away() -> None:
    """What was thought meanwhile of an earlier answer is kept with what the turn adds."""
    store, echo = await shelf(), Echo()
    chats = ChatSessions(echo, store)
    echo.gate = asyncio.Event()
    turn = asyncio.create_task(say(chats, "and?", "s"))
    await echo.entered.wait()

    await rate(store)
    echo.gate.set()
    await turn

    first, second = (await transcript(store)).turns
    assert [len(past.opinions) for past in (first, second)] == [1, 0]


def test_what_cannot_be_read_is_not_heeded() -> None:
    """The opinions that are known stay."""
    talk = session()
    talk.close(Exchange("mug?", "Fine."))
    known = replace(talk.exchanges[0])

    talk.take_ratings("{}")

    assert talk.exchanges[0].opinions == known.opinions == ()
