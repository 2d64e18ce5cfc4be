"""`/v1/chat`: one turn of a conversation, as JSON or in the protocols of chat front ends.

The shape of the body decides: `message` is answered with JSON (with `Accept: text/event-stream` as
a Vercel AI data stream), `messages` with `id` is `useChat` of the Vercel AI SDK, and `messages`
with `threadId` and `runId` is AG-UI. Of the messages that a front end sends the last one counts:
the session's memory is the server's.

`/v1/chats`: the conversations that are kept, to list, read and delete.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime
from importlib import import_module
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, with_config
from typing_extensions import TypedDict

from api.bootstrap.app_context import AppContext
from api.choices import MAX_COMMENT_LENGTH, MAX_SESSION_ID_LENGTH, Rating
from api.core.context import current_caller
from api.features.analyses.api_keys import Tenant
from api.features.analyses.feedback import author_of
from api.features.chat import chat_history
from api.features.chat.chat_history import ChatListing, Transcript
from api.features.chat.chat_turn import ChatEvent, Citation, Turn
from api.interfaces.http.access import Asker, OpenContext
from api.interfaces.http.errors_json import NO_CHAT, WRONG_LIMIT, documented
from api.interfaces.http.event_stream import EVENT_SCHEMA, GONE, MEDIA_TYPE, turn_stream, unless_gone, wants_events
from api.interfaces.http.feedback_routes import LangfuseState, sender_of
from api.interfaces.shared.listing_requests import ChatsRequest
from api.interfaces.shared.requests import ChatRequest, EvidenceOptions, RequestBody, SessionId

router = APIRouter(prefix="/v1", tags=["chat"])


@with_config(ConfigDict(extra="allow"))
class MessagePart(TypedDict, total=False):
    """One part of a message; only parts of type `text` are read."""

    type: Any
    text: Any


class _FrontEnd(BaseModel):
    model_config = ConfigDict(extra="allow")


class UiMessage(_FrontEnd):
    """A message as `useChat` keeps it."""

    role: str
    parts: list[MessagePart]


class UiChat(EvidenceOptions, _FrontEnd):
    """What `useChat` of the Vercel AI SDK posts; `id` is the session."""

    id: SessionId
    messages: Annotated[list[UiMessage], Field(max_length=1_000)]
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"

    @property
    def message(self) -> str:
        """The last message of the role `user`."""
        users = [message for message in self.messages if message.role == "user"]
        return _text(users[-1].parts) if users else ""


class AgUiMessage(_FrontEnd):
    """A message as the AG-UI protocol has it."""

    role: str
    content: str | list[MessagePart] | None = None


class AgUiChat(EvidenceOptions, _FrontEnd):
    """What an AG-UI client posts; `threadId` is the session."""

    thread_id: SessionId = Field(alias="threadId")
    run_id: Annotated[str, Field(alias="runId", max_length=200)]
    messages: Annotated[list[AgUiMessage], Field(max_length=1_000)]

    @property
    def message(self) -> str:
        """The last message of the role `user`."""
        users = [message.content for message in self.messages if message.role == "user"]
        content = users[-1] if users else ""
        return content if isinstance(content, str) else _text(content or [])


def _kind(body: object) -> str:
    """Which of the three forms a body has, by its fields, so that its errors are those of this form."""
    fields = body.keys() if isinstance(body, dict) else set[str]()
    if fields & {"threadId", "runId"}:
        return _AG_UI
    return _USE_CHAT if fields & {"messages", "trigger"} else _OURS


# by these names a fault's place says whose body it is in: see `Form`
_OURS, _USE_CHAT, _AG_UI = (f"[{body.__name__}]" for body in (ChatRequest, UiChat, AgUiChat))
Body = Annotated[
    Annotated[ChatRequest, Tag(_OURS)] | Annotated[UiChat, Tag(_USE_CHAT)] | Annotated[AgUiChat, Tag(_AG_UI)],
    Discriminator(_kind),
]
"""Body of a turn in one of three forms; its fields decide which."""


class ChatTurn(BaseModel):
    """One answer; its text is markdown and cites exhibits as `[E1]`."""

    session_id: str
    turn: int | None
    """Number of the turn in the session, by which it is rated; null for guidance, which is not stored."""
    text: str
    citations: list[Citation]
    notes: list[str]
    partial: bool
    sample: bool
    """Everything it rests on is made up and comes from the offline sandbox."""
    trace_id: str | None


_STREAMS = "".join(
    f"data: {data}\n\n"
    for data in (
        '{"type":"start"}',
        '{"type":"start-step"}',
        '{"type":"text-start","id":"1"}',
        '{"type":"text-delta","delta":"- Battery: “It lasts three days.” [E1]","id":"1"}',
        '{"type":"text-end","id":"1"}',
        '{"type":"source-url","sourceId":"E1","url":"https://example.org/1","title":"E1: A month"}',
        '{"type":"finish-step"}',
        '{"type":"finish"}',
        "[DONE]",
    )
)
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": ChatTurn,
        "description": "The turn; for front ends as events of their protocol.",
        "content": {MEDIA_TYPE: {"schema": EVENT_SCHEMA, "example": _STREAMS}},
    },
    **documented(
        401,
        403,
        404,
        413,
        422,
        429,
        500,
        503,
        wrong="`message` is missing; it must be text of at most 500 characters",
        missing=NO_CHAT,
    ),
}


@router.post("/chat", responses=_ANSWERS, response_model=None, summary="One turn of a chat")
async def chat(request: Request, body: Body, tenant: Asker, app_context: OpenContext) -> Response:
    """Answer from what the session knows, and look up what is missing.

    Hanging up cancels the turn's work. A front end names its session itself; a `session_id` that
    you do not have is not found.
    """
    work = _answered(request, body, tenant, app_context)
    return await unless_gone(request.receive, work) or Response(status_code=GONE)


async def _answered(
    request: Request, body: ChatRequest | UiChat | AgUiChat, tenant: Tenant, app_context: AppContext
) -> Response:
    accept = request.headers.get("accept", "")
    if isinstance(body, ChatRequest):
        moments = await app_context.turn(
            tenant, body.message, body.session_id, known=True, report_id=body.report_id,
            own=body.own, sandbox=body.sandbox,
        )  # fmt: skip
        if not wants_events(accept):
            return JSONResponse((await last_of(moments)).json())
        return await _streamed(app_context, moments, "vercel")
    if isinstance(body, UiChat):
        moments = await app_context.turn(tenant, body.message, body.id, known=False, own=body.own, sandbox=body.sandbox)
        return await _streamed(app_context, moments, "vercel")
    moments = await app_context.turn(
        tenant, body.message, body.thread_id, known=False, own=body.own, sandbox=body.sandbox
    )
    return await _streamed(app_context, moments, "ag_ui", body.thread_id, body.run_id, accept)


async def last_of(moments: AsyncGenerator[ChatEvent]) -> Turn:
    """The finished turn, however long that takes."""
    async with aclosing(moments):
        async for moment in moments:
            last = moment
    assert isinstance(last, Turn)
    return last


async def _streamed(app_context: AppContext, moments: AsyncGenerator[ChatEvent], kind: str, *about: str) -> Response:
    streams = await asyncio.to_thread(import_module, "api.interfaces.http.chat_streams")
    wire = getattr(streams, kind)(*about)
    return await turn_stream(moments, wire, app_context.settings.streams.keepalive)


def _text(parts: list[MessagePart]) -> str:
    return "\n".join(str(part.get("text") or "") for part in parts if part.get("type") == "text")


chats_router = APIRouter(prefix="/v1", tags=["chat"])
_COMMON = (401, 403, 429, 500, 503)


@chats_router.get(
    "/chats",
    responses=documented(422, *_COMMON, wrong=WRONG_LIMIT),
    summary="List conversations, the last used first",
)
async def list_chats(tenant: Asker, app_context: OpenContext, query: Annotated[ChatsRequest, Query()]) -> ChatListing:
    """List the conversations of the key that asks; `/v1/chats/{id}` has what was said."""
    return await chat_history.list_chats(app_context.store, tenant.id, query.limit, query.cursor, query.report_id)


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
    session_id: Annotated[str, Field(min_length=1, max_length=MAX_SESSION_ID_LENGTH)]
    turn: Annotated[int, Field(ge=1, le=1_000_000)]
    rating: Rating
    comment: Annotated[str, Field(max_length=MAX_COMMENT_LENGTH)] = ""


class KeptTurnFeedback(BaseModel):
    """Feedback as stored with the turn: its author's last rating, and whether Langfuse accepted it."""

    session_id: str
    turn: int
    rating: Rating
    comment: str
    author: str
    """Pseudonym of who gave it, the same for one user of a key."""
    created_at: datetime
    """When it was first given."""
    langfuse: LangfuseState


@chats_router.post(
    "/chat/feedback",
    status_code=201,
    responses=documented(404, 413, 422, *_COMMON, missing=NO_CHAT),
    summary="Rate one answer",
)
async def rate_turn(request: Request, body: TurnFeedback, tenant: Asker, app_context: OpenContext) -> KeptTurnFeedback:
    """A thumb up or down, with a comment; said again it replaces what was said before.

    It goes with the turn. While tracing is on it is also a score `user_feedback` on its trace.
    """
    author, send = author_of(tenant.id, current_caller().user), sender_of(request.app, app_context)
    given = await chat_history.rate_turn(
        app_context.store,
        tenant.id,
        author,
        body.session_id,
        body.turn,
        body.rating,
        body.comment,
        send,
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
@chats_router.get(
    "/chats/{session_id:path}",
    responses=documented(404, 422, *_COMMON, missing=NO_CHAT),
    summary="Read one conversation",
)
async def get_chat(session_id: str, tenant: Asker, app_context: OpenContext) -> Transcript:
    """Read the last turns with their citations; a stopped turn has what was shown until then."""
    return await chat_history.read_chat(app_context.store, tenant.id, session_id)


@chats_router.delete(
    "/chats/{session_id:path}",
    status_code=204,
    responses=documented(404, 422, *_COMMON, missing=NO_CHAT),
    summary="Delete one conversation",
)
async def delete_chat(session_id: str, tenant: Asker, app_context: OpenContext) -> None:
    """Delete a conversation with every post that it remembers; a turn that is running is answered and not stored."""
    if not await app_context.drop_chat(tenant, session_id):
        raise chat_history.no_chat(session_id)


@chats_router.get(
    "/chat/{session_id:path}/stream",
    status_code=204,
    responses=documented(404, 422, *_COMMON, missing=NO_CHAT),
    summary="Whether there is a stream to resume",
)
async def resume_chat(session_id: str, tenant: Asker) -> Response:
    """Answer 204 always: a turn ends when its caller hangs up, and `/v1/chats/{id}` has what was shown by then.

    `useChat` asks here with `resume: true`, and takes 204 for "nothing to resume".
    """
    return Response(status_code=204)
