"""Conversations that are kept, as they are listed and shown again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter, ValidationError

from api.services.chatting.passages import cited
from api.services.chatting.session import Exchange, Session
from api.services.chatting.turns import Citation
from api.services.keeping.storage import KeptSession, SessionShelf
from api.services.reporting.grounds import LABEL


@dataclass(frozen=True, slots=True)
class ListedChat:
    """One conversation in a listing."""

    id: str
    title: str
    """The first question that is remembered; empty when there is none, or none that can be read."""
    updated_at: datetime
    """When its last turn ended."""
    sample: bool
    """What it knows is made up, in part at least."""


@dataclass(frozen=True, slots=True)
class ChatListing:
    """One page of conversations, the last used first; `cursor` asks for the next."""

    chats: list[ListedChat]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class PastTurn:
    """One question of a conversation and what was answered."""

    question: str
    text: str
    citations: list[Citation]
    """Posts that it cites and that are still remembered."""
    stopped: bool
    """The person left before the answer was complete; `text` is what was shown by then."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation as far as it is remembered, oldest turn first."""

    id: str
    turns: list[PastTurn]
    sample: bool
    """What it knows is made up, in part at least."""


@dataclass(frozen=True, slots=True)
class _Outline:
    exchanges: list[Exchange]
    sample: bool = False


_OUTLINE = TypeAdapter(_Outline)


async def list_chats(
    shelf: SessionShelf, tenant: str, limit: int, cursor: str | None = None
) -> ChatListing:
    """A tenant's conversations.

    Raises:
        UsageError: the cursor is none of ours.
        StoreUnavailable: the database cannot be used.
    """
    page = await shelf.sessions(tenant, limit, cursor)
    chats = await asyncio.to_thread(lambda: list(map(_listed, page.sessions)))  # 400 kB each
    return ChatListing(chats, page.cursor)


def _listed(kept: KeptSession) -> ListedChat:
    try:
        outline = _OUTLINE.validate_json(kept.text)
    except ValidationError:
        outline = _Outline([])
    title = outline.exchanges[0].question if outline.exchanges else ""
    return ListedChat(kept.id, title, kept.saved_at, outline.sample)


def transcript(session: Session) -> Transcript:
    """What a session remembers, as a person may read it."""
    turns = []
    for exchange in session.exchanges:
        labels = dict.fromkeys(LABEL.findall(exchange.answer))
        exhibits = [session.exhibits[label] for label in labels if label in session.exhibits]
        citations = cited(exchange.answer, exhibits, session.subjects)
        turns.append(
            PastTurn(exchange.question, exchange.answer, list(citations), exchange.stopped)
        )
    return Transcript(session.id, turns, session.sample)
