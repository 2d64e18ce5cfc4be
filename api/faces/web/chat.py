"""`/v1/chat`: one turn of a conversation, as JSON or in the protocols of chat front ends.

The shape of the body decides: `message` is answered with JSON (with `Accept: text/event-stream` as
a Vercel AI data stream), `messages` with `id` is `useChat` of the Vercel AI SDK, and `messages`
with `threadId` and `runId` is AG-UI. Of the messages that a front end sends the last one counts:
the session's memory is the server's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from importlib import import_module
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from api.faces.web.access import Asker, Opened
from api.faces.web.errors import NO_CHAT, documented
from api.faces.web.events import EVENT_SCHEMA, GONE, MEDIA_TYPE, unless_gone
from api.faces.web.media import wants_events
from api.faces.web.open_objects import MessagePart
from api.faces.web.schemas import Grounds
from api.faces.web.turns import turn_stream
from api.services.chatting.chats import LONGEST_ID
from api.services.chatting.turns import Moment, Turn
from api.services.keeping.keys import Tenant
from api.services.question.query import LONGEST
from api.wiring.serving import House

router = APIRouter(prefix="/v1", tags=["chat"])
SessionId = Annotated[str, Field(min_length=1, max_length=LONGEST_ID)]


class ChatRequest(Grounds):
    """A question: a follow-up in a session, or the first one over a report.

    A session over a report knows its items and answers from them.
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"message": "What do people say about plaud.ai?"}]},
    )
    message: Annotated[str, Field(max_length=LONGEST)]
    session_id: SessionId | None = None
    report_id: Annotated[str, Field(min_length=1, max_length=64)] | None = None

    @model_validator(mode="after")
    def _begins_or_goes_on(self) -> Self:
        if self.session_id is not None and self.report_id is not None:
            raise ValueError("`report_id` begins a session: leave `session_id` out")
        return self


class _FrontEnd(BaseModel):
    model_config = ConfigDict(extra="allow")


class UiMessage(_FrontEnd):
    """A message as `useChat` keeps it."""

    role: str
    parts: list[MessagePart]


class UiChat(Grounds, _FrontEnd):
    """What `useChat` of the Vercel AI SDK posts; `id` is the session."""

    id: SessionId
    messages: Annotated[list[UiMessage], Field(max_length=1_000)]
    trigger: Literal["submit-message", "regenerate-message"] = "submit-message"

    @property
    def message(self) -> str:
        """The person's last words."""
        users = [message for message in self.messages if message.role == "user"]
        return _text(users[-1].parts) if users else ""


class AgUiMessage(_FrontEnd):
    """A message of AG-UI."""

    role: str
    content: str | list[MessagePart] | None = None


class AgUiChat(Grounds, _FrontEnd):
    """What an AG-UI client posts; `threadId` is the session."""

    thread_id: SessionId = Field(alias="threadId")
    run_id: Annotated[str, Field(alias="runId", max_length=200)]
    messages: Annotated[list[AgUiMessage], Field(max_length=1_000)]

    @property
    def message(self) -> str:
        """The person's last words."""
        users = [message.content for message in self.messages if message.role == "user"]
        content = users[-1] if users else ""
        return content if isinstance(content, str) else _text(content or [])


def _kind(body: object) -> str:
    """Whose body it is, so that what is wrong with it is said of that one alone."""
    fields = body.keys() if isinstance(body, dict) else set[str]()
    if fields & {"threadId", "runId"}:
        return _AG_UI
    return _USE_CHAT if fields & {"messages", "trigger"} else _OURS


# by these names a fault's place says whose body it is in: see `Form`
_OURS, _USE_CHAT, _AG_UI = (f"[{body.__name__}]" for body in (ChatRequest, UiChat, AgUiChat))
Body = Annotated[
    Annotated[ChatRequest, Tag(_OURS)]
    | Annotated[UiChat, Tag(_USE_CHAT)]
    | Annotated[AgUiChat, Tag(_AG_UI)],
    Discriminator(_kind),
]
"""What a turn is asked with; the fields that are there decide which one it is."""


class Cited(BaseModel):
    """An exhibit that the text cites."""

    label: str
    key: str
    title: str
    url: str
    passage: str
    """Its sentence nearest to what cites it, word for word; empty when none shares a word."""


class ChatTurn(BaseModel):
    """One answer; its text is markdown and cites exhibits as `[E1]`."""

    session_id: str
    turn: int | None
    """Its number in the session, by which it is rated; null of guidance, which is not kept."""
    text: str
    citations: list[Cited]
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
async def chat(request: Request, body: Body, tenant: Asker, house: Opened) -> Response:
    """Answer from what the session has gathered, and look up what is missing.

    Hanging up cancels the turn's work. A front end names its session itself; a `session_id` that
    you do not have is not found.
    """
    work = _answered(request, body, tenant, house)
    return await unless_gone(request.receive, work) or Response(status_code=GONE)


async def _answered(
    request: Request, body: ChatRequest | UiChat | AgUiChat, tenant: Tenant, house: House
) -> Response:
    accept = request.headers.get("accept", "")
    if isinstance(body, ChatRequest):
        moments = await house.turn(
            tenant, body.message, body.session_id, known=True, report_id=body.report_id,
            own=body.own, sandbox=body.sandbox,
        )  # fmt: skip
        if not wants_events(accept):
            return JSONResponse((await last_of(moments)).json())
        return await _streamed(house, moments, "vercel")
    if isinstance(body, UiChat):
        moments = await house.turn(
            tenant, body.message, body.id, known=False, own=body.own, sandbox=body.sandbox
        )
        return await _streamed(house, moments, "vercel")
    moments = await house.turn(
        tenant, body.message, body.thread_id, known=False, own=body.own, sandbox=body.sandbox
    )
    return await _streamed(house, moments, "ag_ui", body.thread_id, body.run_id, accept)


async def last_of(moments: AsyncGenerator[Moment]) -> Turn:
    """The finished turn, however long that takes."""
    async with aclosing(moments):
        async for moment in moments:
            last = moment
    assert isinstance(last, Turn)
    return last


async def _streamed(
    house: House, moments: AsyncGenerator[Moment], kind: str, *about: str
) -> Response:
    streams = await asyncio.to_thread(import_module, "api.faces.web.streams")
    wire = getattr(streams, kind)(*about)
    return await turn_stream(moments, wire, house.settings.streams.keepalive)


def _text(parts: list[MessagePart]) -> str:
    return "\n".join(str(part.get("text") or "") for part in parts if part.get("type") == "text")
