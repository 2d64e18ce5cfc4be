"""Conversations as they are listed and shown again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast

import pytest

from api.errors import NotFound
from api.features.analyses.store_ports import KeptSession, SessionListing, Store
from api.features.chat.chat_history import Transcript, list_chats, read_chat
from api.features.chat.chat_sessions import SessionsInMemory
from api.features.chat.session import Exchange
from tests.features.chat.new_session import session
from tests.services.kit import assessed, post

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)


@dataclass(slots=True)
class Shelf(SessionsInMemory):
    """One page, whatever is asked for."""

    page: SessionListing = field(kw_only=True)

    async def sessions(
        self, tenant: str, limit: int, cursor: str | None = None, report_id: str | None = None
    ) -> SessionListing:
        return self.page

    async def drop_session(self, tenant: str, session_id: str) -> bool:
        return False


async def test_a_conversation_is_listed_by_its_first_question() -> None:
    """One without a question, or that cannot be read, has no title and can still be deleted."""
    talk = session()
    empty = talk.save()
    talk.close(Exchange("mug?", "Fine.", sample=True))
    talk.close(Exchange("and the lid?", "Fine."))
    texts = {"s1": talk.save(), "s2": empty, "s3": "damaged"}
    kept = tuple(KeptSession(name, text, NOON) for name, text in texts.items())

    listing = await list_chats(cast(Store, Shelf(page=SessionListing(kept, "more"))), "ada", 3)

    shown = [(chat.id, chat.title, chat.updated_at, chat.sample) for chat in listing.chats]
    assert shown == [("s1", "mug?", NOON, True), ("s2", "", NOON, False), ("s3", "", NOON, False)]
    assert [chat.turns for chat in listing.chats] == [2, 0, 0]
    assert listing.cursor == "more"


async def test_turns_come_with_the_posts_they_cite() -> None:
    """In the order of first mention; a post that was let go is no citation any more."""
    talk = session()
    talk.show([assessed(post(1))])
    talk.show([assessed(post(2))], sample=True)
    talk.close(Exchange("mug?", "Warm [E2, E1]. Heavy [E2], dear [E9]."))
    talk.close(Exchange("and the lid?", "It leaks [E1].", stopped=True))

    store = SessionsInMemory()
    await store.keep_session("ada", "s1", talk.save())
    shown = await read_chat(store, "ada", "s1")

    assert (shown.id, shown.sample) == ("s1", True)
    first, second = shown.turns
    assert (first.question, first.text) == ("mug?", "Warm [E2, E1]. Heavy [E2], dear [E9].")
    assert [(c.label, c.key, c.title) for c in first.citations] == [
        ("E2", post(2).key, post(2).title), ("E1", post(1).key, post(1).title),
    ]  # fmt: skip
    assert [citation.label for citation in second.citations] == ["E1"]
    assert (first.stopped, second.stopped) == (False, True)
    assert (first.sample, second.sample) == (True, False)


async def test_a_session_that_an_older_release_marked_is_made_up_throughout() -> None:
    """It marked the session, not what is in it."""
    talk = session()
    talk.show([assessed(post(1))], sample=True)
    talk.close(Exchange("mug?", "Warm [E1]."))
    saved = json.loads(talk.save())
    del saved["exhibits"][0]["sample"], saved["exchanges"][0]["sample"]
    store = SessionsInMemory()
    await store.keep_session("ada", "s1", json.dumps(saved))

    (only,) = (await read_chat(store, "ada", "s1")).turns

    assert only.sample


async def test_what_is_not_there_and_what_cannot_be_read_differ() -> None:
    """Another's is not there; a damaged one, or a later program's, holds no turns."""
    store = SessionsInMemory()
    for name, text in (("damaged", "{"), ("later", session().save().replace(":1,", ":9,", 1))):
        await store.keep_session("ada", name, text)

        assert await read_chat(store, "ada", name) == Transcript(name, [], sample=False)
        with pytest.raises(NotFound, match=f"no chat session `{name}`"):
            await read_chat(store, "eve", name)
