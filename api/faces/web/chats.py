"""`/v1/chats`: the conversations that are kept, to list, read and delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from api.faces.web.access import Asker, Opened
from api.faces.web.errors import documented
from api.faces.web.schemas import RequestBody
from api.services.chatting import history
from api.services.chatting.history import ChatListing, Transcript

router = APIRouter(prefix="/v1", tags=["chat"])
_COMMON = (401, 403, 429, 500, 503)


class ChatsQuery(RequestBody):
    """Which page."""

    limit: Annotated[int, Field(ge=1, le=100)] = 20
    cursor: Annotated[str | None, Field(max_length=500, description="From a page.")] = None


@router.get(
    "/chats",
    responses=documented(422, *_COMMON),
    summary="List conversations, the last used first",
)
async def list_chats(
    tenant: Asker, house: Opened, query: Annotated[ChatsQuery, Query()]
) -> ChatListing:
    """Yours only; what was said is at `/v1/chats/{id}`."""
    return await history.list_chats(house.store, tenant.id, query.limit, query.cursor)


# a front end chooses the ids: they may hold a slash
@router.get(
    "/chats/{session_id:path}",
    responses=documented(404, 422, *_COMMON),
    summary="Read one conversation",
)
async def get_chat(session_id: str, tenant: Asker, house: Opened) -> Transcript:
    """The last turns with their citations; one that was stopped holds what was shown by then."""
    return await history.read_chat(house.store, tenant.id, session_id)


@router.delete(
    "/chats/{session_id:path}",
    status_code=204,
    responses=documented(404, 422, *_COMMON),
    summary="Delete one conversation",
)
async def delete_chat(session_id: str, tenant: Asker, house: Opened) -> None:
    """With every post that it remembers; a turn that runs in it is answered and not kept."""
    if not await house.drop_chat(tenant, session_id):
        raise history.no_chat(session_id)


@router.get(
    "/chat/{session_id:path}/stream",
    status_code=204,
    responses=documented(404, 422, *_COMMON),
    summary="Whether there is a stream to resume",
)
async def resume_chat(session_id: str, tenant: Asker) -> Response:
    """Never: who hangs up ends the turn, and what was shown by then is in `/v1/chats/{id}`.

    `useChat` asks here with `resume: true`, and takes 204 for "nothing to resume".
    """
    return Response(status_code=204)
