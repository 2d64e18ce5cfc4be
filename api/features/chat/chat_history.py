"""Stored conversations: listed, shown again, and rated."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated

from pydantic import TypeAdapter, ValidationError

from api.choices import Rating
from api.core.published import IF_SET
from api.core.text import clean, one_line
from api.errors import NotFound, UsageError
from api.features.analyses.feedback import GivenOnTurn, RatedTurn, Send, inform, worded
from api.features.analyses.store_ports import KeptSession, Sessions, Store
from api.features.chat.chat_citations import citations_of
from api.features.chat.chat_turn import Citation
from api.features.chat.session import Exchange, Thumb, read_session, session_json
from api.reports.exhibits import Exhibit
from api.reports.quotes import LABEL

MOST_RATINGS = 10  # ratings that one turn takes, one of each author


@dataclass(frozen=True, slots=True)
class ListedChat:
    """Id, first question, dates and number of turns of one conversation."""

    id: str
    title: str
    """The first stored question; empty when there is none or it cannot be read."""
    updated_at: datetime  # when its last turn ended
    sample: bool  # it rests on made-up posts, in part at least
    turns: int = 0
    """Number of questions, including those no longer stored."""
    report_id: Annotated[str, IF_SET] = ""
    """The report that it began over."""


@dataclass(frozen=True, slots=True)
class ChatListing:
    """One page of conversations, last used first; `cursor` requests the next page."""

    chats: list[ListedChat]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class PastTurn:
    """One question of a conversation and its answer."""

    question: str
    text: str
    citations: list[Citation]  # posts that it cites and that are still remembered
    turn: int | None  # its number, by which it is rated; None of one that an older release saved
    opinions: tuple[Thumb, ...]
    stopped: bool
    """The person left before the answer was complete; `text` is what was shown by then."""
    sample: bool  # it rests on made-up posts, in part at least


@dataclass(frozen=True, slots=True)
class Transcript:
    """The stored part of one conversation, oldest turn first."""

    id: str
    turns: list[PastTurn]
    sample: bool  # it rests on made-up posts, in part at least


@dataclass(frozen=True, slots=True)
class _Outline:
    """Parts of a session that a list needs, since its exhibits are long."""

    exchanges: list[Exchange]
    sample: bool = False
    number: int = 0
    report_id: str = ""


_OUTLINE = TypeAdapter(_Outline)


async def list_chats(
    store: Store, tenant: str, limit: int, cursor: str | None = None, report_id: str | None = None
) -> ChatListing:
    """A page of a tenant's conversations, of those over one report; raises `UsageError` for an invalid cursor."""
    page = await store.sessions(tenant, limit, cursor, report_id)
    # in a thread, since each may have 400 kB
    chats = await asyncio.to_thread(lambda: list(map(_listed, page.sessions)))
    return ChatListing(chats, page.cursor)


def _listed(kept: KeptSession) -> ListedChat:
    try:
        outline = _OUTLINE.validate_json(kept.text)
    except ValidationError:
        outline = _Outline([])
    # a report is its conversation's first turn, which nobody asked there
    own = int(bool(outline.report_id))
    questions = [exchange.question for exchange in outline.exchanges if not own or exchange.number != own]
    turns = max(len(questions), outline.number - own)
    return ListedChat(kept.id, next(iter(questions), ""), kept.saved_at, outline.sample, turns, outline.report_id)


def no_chat(session_id: str) -> NotFound:
    """The error for an unknown session id."""
    return NotFound(f"there is no chat session `{one_line(clean(session_id))[:40]}`")


async def _stored_text(store: Sessions, tenant: str, session_id: str) -> str:
    text = await store.session(tenant, session_id)
    if text is None:
        raise no_chat(session_id)
    return text


async def read_chat(store: Sessions, tenant: str, session_id: str) -> Transcript:
    """A stored conversation, without turns when it cannot be read; raises `NotFound`."""
    text = await _stored_text(store, tenant, session_id)
    return await asyncio.to_thread(_transcript, session_id, text)  # as each citation is looked for in its post


def _transcript(session_id: str, text: str) -> Transcript:
    saved = read_session(text)
    if saved is None:
        return Transcript(session_id, [], sample=False)
    exhibits = {entry.label: Exhibit(entry.label, entry.assessed) for entry in saved.exhibits}
    turns = []
    made_up = {entry.label for entry in saved.exhibits if entry.sample}
    for exchange in saved.exchanges:
        labels = dict.fromkeys(LABEL.findall(exchange.answer))
        shown = [exhibits[label] for label in labels if label in exhibits]
        citations = list(citations_of(exchange.answer, shown, saved.subjects))
        sample = exchange.sample or not made_up.isdisjoint(labels)
        turns.append(
            PastTurn(
                exchange.question, exchange.answer, citations, exchange.number or None,
                exchange.opinions, exchange.stopped, sample,
            )
        )  # fmt: skip
    return Transcript(session_id, turns, saved.sample)


async def rate_turn(
    store: Sessions,
    tenant: str,
    author: str,
    session_id: str,
    number: int,
    rating: Rating,
    comment: str,
    send: Send | None,
) -> GivenOnTurn:
    """Save a rating with the turn, in place of an earlier one of its author, then send it.

    Nothing is sent without `send`, without a trace, or of a turn over sample data.

    Raises:
        NotFound: the tenant has no such session, or it does not remember that turn.
        UsageError: the comment is too long, or the turn has `MOST_RATINGS` of others.
    """
    comment = worded(comment)
    saved = read_session(await _stored_text(store, tenant, session_id))
    exchange = next((e for e in saved.exchanges if e.number == number), None) if saved else None
    if saved is None or exchange is None or not number:
        raise NotFound(f"the session remembers no turn {number}")
    before = next((known for known in exchange.opinions if known.author == author), None)
    others = tuple(known for known in exchange.opinions if known.author != author)
    if len(others) >= MOST_RATINGS:
        raise UsageError(f"turn {number} has {MOST_RATINGS} ratings; no more are taken")
    given_at = before.created_at if before else datetime.now(UTC)
    opinion = Thumb(author, rating, comment, given_at)
    rated = replace(exchange, opinions=(*others, opinion))
    exchanges = [rated if e.number == number else e for e in saved.exchanges]
    text = session_json(replace(saved, exchanges=exchanges))
    await store.keep_session(tenant, session_id, text, saved.report_id or None)
    trace_id = None if exchange.sample else exchange.trace_id
    turn = RatedTurn(number, trace_id, author, rating, comment, given_at)
    return GivenOnTurn(session_id, turn, *await inform(send, turn, trace_id))
