"""A chat turn on its page while it happens: what it looks up, and its answer as far as it is."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from api.errors import ListenpostError
from api.faces import outline
from api.faces.web.errors import described
from api.faces.web.events import MEDIA_TYPE, frame
from api.faces.web.pages.rendering import rendered
from api.faces.web.turns import TurnWire
from api.services.chatting.chats import UNKEPT
from api.services.chatting.history import PastTurn
from api.services.chatting.turns import AnswerPiece, LookupEnded, LookupStarted, Moment, Turn

_ELSEWHERE = {"search_archive": "through what is stored", "analyze_product": "on every place"}
"""Where a look-up that asks not one place looks, by its tool."""


@dataclass(slots=True)
class LiveTurn:
    """What has happened by now."""

    question: str
    text: str = ""
    lookups: dict[str, str] = field(default_factory=dict)
    """How each goes or went, in words."""

    def hear(self, moment: Moment) -> None:
        """Show what has happened."""
        match moment:
            case LookupStarted(call, tool, arguments):
                self.lookups[call] = _looks(tool, arguments)
            case LookupEnded(call, _, line):
                self.lookups[call] = line
            case AnswerPiece(text):
                self.text += text

    def html(self, turn: Turn) -> str:
        """All of it, with what the turn cites once it is over."""
        past = past_turn(self.question, turn)
        return rendered("turn.html", turn=past, lookups=list(self.lookups.values()))


def past_turn(question: str, turn: Turn) -> PastTurn:
    """A turn that is shown before it is kept, or without being."""
    citations = list(turn.citations)
    return PastTurn(
        question, turn.text, citations, turn.number, (), stopped=False, sample=turn.sample
    )


def page_wire(question: str, place: Callable[[Turn], str | None], trace_id: str) -> TurnWire:
    """Events, each with all of the turn as markup; `over` says where it is kept, or why nowhere."""

    async def frames(moments: AsyncIterator[Moment]) -> AsyncGenerator[bytes]:
        live = LiveTurn(question)
        over: dict[str, str | None] = {}
        try:
            async for moment in moments:
                live.hear(moment)
                turn = moment if isinstance(moment, Turn) else Turn("", live.text)
                yield frame("turn", {"html": live.html(turn)}, "turn")
                unkept = UNKEPT in turn.notes
                over = {"place": None, "message": UNKEPT} if unkept else {"place": place(turn)}
        except ListenpostError as error:
            yield frame("error", described(error, trace_id), "error")
        else:
            yield frame("over", over, "over")

    return TurnWire(MEDIA_TYPE, frames)


def _looks(tool: str, arguments: Mapping[str, Any]) -> str:
    """That a look-up has begun."""
    place = outline.source_title(tool.removeprefix("fetch_"))
    query = outline.shortened(str(arguments.get("query", "")), outline.LONGEST_HEADING)
    return f"Looks {_ELSEWHERE.get(tool, f'on {place}')} for “{query}” …"
