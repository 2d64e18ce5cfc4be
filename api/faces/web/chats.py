"""`/v1/chats`: the conversations that are kept, to list, read and delete."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from api.faces.web.access import Asker, Opened
from api.faces.web.errors import NO_CHAT, WRONG_LIMIT, documented
from api.faces.web.feedback import LangfuseState, sender_of
from api.faces.web.schemas import RequestBody
from api.services.callers import caller
from api.services.chatting import history, rating
from api.services.chatting.chats import LONGEST_ID
from api.services.chatting.history import ChatListing, Transcript
from api.services.keeping.feedback import LONGEST, author_of
from api.services.keeping.storage import Rating

router = APIRouter(prefix="/v1", tags=["chat"])
_COMMON = (401, 403, 429, 500, 503)


class ChatsQuery(RequestBody):
    """Which page."""

    limit: Annotated[int, Field(ge=1, le=100)] = 20
    cursor: Annotated[str | None, Field(max_length=500, description="From a page.")] = None


@router.get(
    "/chats",
    responses=documented(422, *_COMMON, wrong=WRONG_LIMIT),
    summary="List conversations, the last used first",
)
async def list_chats(
    tenant: Asker, house: Opened, query: Annotated[ChatsQuery, Query()]
) -> ChatListing:
    """Yours only; what was said is at `/v1/chats/{id}`."""
    return await history.list_chats(house.store, tenant.id, query.limit, query.cursor)


class TurnFeedback(RequestBody):
    """A thumb on one answer; `turn` is the number that the answer has."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "session_id": "chat-1",
                    "turn": 2,
                    "rating": "down",
                    "comment": "that is another product",
                }
            ]
        }
    )
    session_id: Annotated[str, Field(min_length=1, max_length=LONGEST_ID)]
    turn: Annotated[int, Field(ge=1, le=1_000_000)]
    rating: Rating
    comment: Annotated[str, Field(max_length=LONGEST)] = ""


class KeptTurnFeedback(BaseModel):
    """As it is kept with the turn: the last word of its author, and whether Langfuse was told."""

    session_id: str
    turn: int
    rating: Rating
    comment: str
    author: str
    """A pseudonym."""
    created_at: datetime
    """When it was first given."""
    langfuse: LangfuseState


@router.post(
    "/chat/feedback",
    status_code=201,
    responses=documented(404, 413, 422, *_COMMON, missing=NO_CHAT),
    summary="Rate one answer",
)
async def rate_turn(
    request: Request, body: TurnFeedback, tenant: Asker, house: Opened
) -> KeptTurnFeedback:
    """A thumb up or down, with a comment; said again it replaces what was said before.

    It goes with the turn. While tracing is on it is also a score `user_feedback` on its trace.
    """
    author, send = author_of(tenant.id, caller().user), sender_of(request.app, house)
    given = await rating.rate_turn(
        house.store, tenant.id, author, body.session_id, body.turn, body.rating, body.comment, send
    )
    return KeptTurnFeedback(
        session_id=body.session_id,
        turn=body.turn,
        rating=given.turn.rating,
        comment=given.turn.comment,
        author=author,
        created_at=given.turn.created_at,
        langfuse=LangfuseState(status=given.watched, reason=given.why or None),
    )


# a front end chooses the ids: they may hold a slash
@router.get(
    "/chats/{session_id:path}",
    responses=documented(404, 422, *_COMMON, missing=NO_CHAT),
    summary="Read one conversation",
)
async def get_chat(session_id: str, tenant: Asker, house: Opened) -> Transcript:
    """The last turns with their citations; one that was stopped holds what was shown by then."""
    return await history.read_chat(house.store, tenant.id, session_id)


@router.delete(
    "/chats/{session_id:path}",
    status_code=204,
    responses=documented(404, 422, *_COMMON, missing=NO_CHAT),
    summary="Delete one conversation",
)
async def delete_chat(session_id: str, tenant: Asker, house: Opened) -> None:
    """With every post that it remembers; a turn that runs in it is answered and not kept."""
    if not await house.drop_chat(tenant, session_id):
        raise history.no_chat(session_id)


@router.get(
    "/chat/{session_id:path}/stream",
    status_code=204,
    responses=documented(404, 422, *_COMMON, missing=NO_CHAT),
    summary="Whether there is a stream to resume",
)
async def resume_chat(session_id: str, tenant: Asker) -> Response:
    """Never: who hangs up ends the turn, and what was shown by then is in `/v1/chats/{id}`.

    `useChat` asks here with `resume: true`, and takes 204 for "nothing to resume".
    """
    return Response(status_code=204)
