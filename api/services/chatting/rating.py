"""What people think of one answer of a chat: kept in its session, and told to whoever watches."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from api.errors import NotFound, UsageError
from api.services.chatting.history import no_chat
from api.services.chatting.saved import Exchange, Thumb, saved_in, written
from api.services.keeping.feedback import GivenOnTurn, RatedTurn, Send, inform, worded
from api.services.keeping.storage import Rating, Sessions

MOST = 10
"""Authors whose opinions one turn keeps."""


async def rate_turn(
    sessions: Sessions,
    tenant: str,
    author: str,
    session_id: str,
    number: int,
    rating: Rating,
    comment: str,
    send: Send | None,
) -> GivenOnTurn:
    """Keep it with the turn, in the place of what its author thought of it before, then tell it.

    It goes with its turn. Without `send`, and of a turn without a trace or over sample data, nobody
    is told.

    Raises:
        NotFound: the tenant has no such session, or it does not remember that turn.
        UsageError: the comment is too long, or the turn has `MOST` opinions of others.
        StoreUnavailable: the database cannot be used, so nothing was kept or told.
    """
    comment = worded(comment)
    text = await sessions.session(tenant, session_id)
    if text is None:
        raise no_chat(session_id)
    saved = saved_in(text)
    exchange = next((e for e in saved.exchanges if e.number == number), None) if saved else None
    if saved is None or exchange is None or not number:
        raise NotFound(f"the session remembers no turn {number}")
    before = next((known for known in exchange.opinions if known.author == author), None)
    others = tuple(known for known in exchange.opinions if known.author != author)
    if len(others) >= MOST:
        raise UsageError(f"turn {number} has {MOST} ratings; no more are taken")
    given_at = before.created_at if before else datetime.now(UTC)
    opinion = Thumb(author, rating, comment, given_at)
    rated = replace(exchange, opinions=(*others, opinion))
    exchanges: list[Exchange] = [rated if e.number == number else e for e in saved.exchanges]
    await sessions.keep_session(tenant, session_id, written(replace(saved, exchanges=exchanges)))
    trace_id = None if exchange.sample else exchange.trace_id
    turn = RatedTurn(number, trace_id, author, rating, comment, given_at)
    return GivenOnTurn(session_id, turn, *await inform(send, turn, trace_id))
