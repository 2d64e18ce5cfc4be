"""Stored chats whose model repeats what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from api.choices import DepthName
from api.features.chat.chat_sessions import ChatSessions
from api.features.chat.chat_turn import AnswerPiece, ChatEvent, Turn
from api.features.chat.session import Exchange, Session, restored
from api.reports.report import Report
from tests.services.kit import kit

PRODUCT = kit()


@dataclass
class Echo:
    """Answers with everything that was said in the session; may wait first."""

    gate: asyncio.Event | None = None
    begun: list[str] = field(default_factory=list)
    resumed: int = 0
    two: asyncio.Event = field(default_factory=asyncio.Event)
    """Two turns have begun."""
    depths: list[str] = field(default_factory=list)
    remembers: bool = False
    """The question at once, the answer never."""
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    reports: list[Report | None] = field(default_factory=list)

    def begin(self, tenant: str = "", session_id: str | None = None, report: Report | None = None) -> Session:
        self.reports.append(report)
        return Session(session_id or f"new{len(self.begun)}", tenant, PRODUCT.start())

    def resume(self, tenant: str, session_id: str, text: str) -> Session | None:
        self.resumed += 1
        return restored(session_id, tenant, PRODUCT.start(), text)

    async def stream(self, session: Session, message: str, depth: DepthName = "quick") -> AsyncGenerator[ChatEvent]:
        self.begun.append(message)
        self.depths.append(depth)
        if len(self.begun) == 2:
            self.two.set()
        if self.remembers:
            session.close(Exchange(message, ""))
        self.entered.set()
        yield AnswerPiece(message)
        if self.gate is not None:
            await self.gate.wait()
        if not self.remembers:
            session.close(Exchange(message, message))
        yield Turn(session.id, session.questions_text)


async def say(
    chats: ChatSessions,
    message: str,
    session: str | None = None,
    tenant: str = "ada",
    known: bool = True,
) -> Turn:
    """One turn."""
    moments = [m async for m in chats.stream(tenant, message, session, known=known)]
    assert isinstance(moments[-1], Turn)
    return moments[-1]
