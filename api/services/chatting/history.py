"""Conversations that are kept, as they are listed and shown again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter, ValidationError

from api.errors import NotFound
from api.services.chatting.passages import cited
from api.services.chatting.saved import Exchange, Thumb, saved_in
from api.services.chatting.turns import Citation
from api.services.keeping.storage import KeptSession, Sessions, SessionShelf
from api.services.reporting.dossier import Exhibit
from api.services.reporting.grounds import LABEL
from api.services.text import clean, one_line


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
    turn: int | None
    """Its number, by which it is rated; None of one that an older release saved."""
    opinions: tuple[Thumb, ...]
    stopped: bool
    """The person left before the answer was complete; `text` is what was shown by then."""
    sample: bool
    """It rests on what is made up, in part at least."""


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


async def read_chat(sessions: Sessions, tenant: str, session_id: str) -> Transcript:
    """What is kept of a conversation; of one whose text cannot be read, nothing.

    Raises:
        NotFound: no conversation of that id is the tenant's.
        StoreUnavailable: the database cannot be used.
    """
    text = await sessions.session(tenant, session_id)
    if text is None:
        raise no_chat(session_id)
    saved = saved_in(text)
    if saved is None:
        return Transcript(session_id, [], sample=False)
    exhibits = {entry.label: Exhibit(entry.label, entry.assessed) for entry in saved.exhibits}
    turns = []
    made_up = {entry.label for entry in saved.exhibits if entry.sample}
    for exchange in saved.exchanges:
        labels = dict.fromkeys(LABEL.findall(exchange.answer))
        shown = [exhibits[label] for label in labels if label in exhibits]
        citations = list(cited(exchange.answer, shown, saved.subjects))
        sample = exchange.sample or not made_up.isdisjoint(labels)
        turns.append(
            PastTurn(
                exchange.question, exchange.answer, citations, exchange.number or None,
                exchange.opinions, exchange.stopped, sample,
            )
        )  # fmt: skip
    return Transcript(session_id, turns, saved.sample)


def no_chat(session_id: str) -> NotFound:
    """That there is no conversation of that id."""
    return NotFound(f"there is no chat session `{one_line(clean(session_id))[:40]}`")
