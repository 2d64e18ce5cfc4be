"""A chat whose model answers by a script, over one source."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from api.features.chat.chat_agent import Chat
from api.features.chat.chat_turn import ChatEvent, Turn
from api.features.chat.session import Session
from api.services.product import Product
from api.settings import ChatSettings
from tests.services.fakes import FakeSource
from tests.services.kit import posts

Call = tuple[str, dict[str, Any]]

Part = str | Exception | Call | asyncio.Event

Step = Part | Sequence[Part]

MUG = "What do people say about the Ember mug?"


@dataclass
class Script:
    """A model that says or calls what stands here, step by step, the last for ever."""

    steps: Sequence[Step]
    seen: list[list[ModelMessage]] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)

    @property
    def model(self) -> FunctionModel:
        return FunctionModel(stream_function=self._stream)

    async def _stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        self.seen.append(list(messages))
        self.prompts.append(info.instructions or "")
        step = self.steps[min(len(self.seen), len(self.steps)) - 1]
        parts = step if isinstance(step, list) else [step]
        for number, part in enumerate(parts):
            if isinstance(part, Exception):
                raise part
            if isinstance(part, asyncio.Event):
                await part.wait()
            elif isinstance(part, str):
                for at in range(0, len(part), 9):
                    yield part[at : at + 9]
            else:
                name, arguments = part
                call = DeltaToolCall(name=name, json_args=json.dumps(arguments), tool_call_id=f"call{number}")
                yield {number: call}

    def returns(self) -> list[str]:
        """What tools answered in the last request."""
        return [
            str(part.content) for message in self.seen[-1] for part in message.parts if isinstance(part, ToolReturnPart)
        ]


def fetch(query: str, source: str = "reddit", **more: Any) -> tuple[str, dict[str, Any]]:
    """A call of one source's tool."""
    return f"fetch_{source}", {"query": query, **more}


def chat(script: Script | None, product: Product, **bounds: Any) -> Chat:
    """A chat over a scripted model, or over none."""
    return Chat(product, script.model if script else None, ChatSettings(**bounds))


def reddit(count: int = 3, **fields: Any) -> FakeSource:
    """Posts about the mug."""
    return FakeSource(posts(count), **fields)


async def heard(one: Chat, session: Session, message: str) -> list[ChatEvent]:
    """Everything a turn tells."""
    async with asyncio.timeout(120):
        return [moment async for moment in one.stream(session, message)]


async def ask(one: Chat, message: str = MUG, session: Session | None = None) -> Turn:
    """One turn."""
    async with asyncio.timeout(120):
        return await one.answer(session or one.begin("ada", "s1"), message)
