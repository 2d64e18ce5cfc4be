"""The chat of one built product, and of a server with its tenants and limits."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from api.services.chatting.chat import Chat
from api.services.chatting.chats import Chats
from api.services.chatting.streaming import streamed
from api.services.chatting.turns import Moment, Turn
from api.services.keeping.keys import Tenant
from api.settings import Settings
from api.wiring import Built
from api.wiring.serving import House

UNKNOWN_USD = 0.2
"""Stands in for a turn of a model whose price nobody knows."""


def chat(built: Built) -> Chat:
    """A chat with the product's model; without one the posts speak for themselves."""
    models, client = built.settings.models, built.client
    if client is None:
        return Chat(built.product, None, built.settings.chat)
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel(
        models.agent_model, provider=OpenAIProvider(openai_client=client.openai)
    )
    return Chat(built.product, model, built.settings.chat)


def turn_usd(settings: Settings) -> float:
    """USD that one turn may cost, if most of its tokens are read and some are written."""
    from api.judges.client import price
    from api.judges.completions import Tokens

    tokens = settings.chat.tokens
    used = Tokens(prompt_tokens=tokens * 9 // 10, completion_tokens=tokens // 10)
    return price(used, settings.models.agent_model) or UNKNOWN_USD


@dataclass(frozen=True, slots=True)
class HouseChats:
    """Every tenant's sessions, within its limits; one per server."""

    house: House
    chats: Chats
    usd: float

    @classmethod
    async def of(cls, house: House) -> HouseChats:
        """Over the house's product and store."""
        built = (await house.product()).built
        return cls(house, Chats(chat(built), house.store), turn_usd(built.settings))

    def stream(
        self, tenant: Tenant, message: str, session_id: str | None, known: bool
    ) -> AsyncGenerator[Moment]:
        """See `Chats.stream`; the turn's cost is reserved before and settled after it.

        Raises:
            LimitReached: the day's USD do not suffice.
        """
        return streamed(partial(self._charged, tenant, message, session_id, known))

    async def _charged(
        self, tenant: Tenant, message: str, session_id: str | None, known: bool,
        emit: Callable[[Moment], None],
    ) -> Moment:  # fmt: skip
        async with self.house.limits.spending(tenant, usd=self.usd) as spent:
            moments = self.chats.stream(tenant.id, message, session_id, known=known)
            async with aclosing(moments):
                async for moment in moments:
                    if isinstance(moment, Turn):
                        spent.asked = bool(moment.usage.input_tokens)
                        spent.usd = moment.usage.usd
                        return moment
                    emit(moment)
        raise AssertionError("a turn ends with a `Turn`")
