"""The chat of a product, and what one of its turns may cost."""

from __future__ import annotations

from api.services.chatting.chat import Chat
from api.services.listening import Product
from api.settings import Settings

UNKNOWN_USD = 0.2
"""Stands in for a turn of a model whose price nobody knows."""


def chat(settings: Settings, product: Product) -> Chat:
    """A chat with the product's model; without one the posts speak for themselves."""
    model = None if product.agent_model is None else product.agent_model()
    return Chat(product, model, settings.chat)


def turn_usd(settings: Settings) -> float:
    """USD that one turn may cost, if most of its tokens are read and some are written."""
    from api.judges.answers import Tokens
    from api.judges.client import price  # loads the model's library

    tokens = settings.chat.tokens
    used = Tokens(prompt_tokens=tokens * 9 // 10, completion_tokens=tokens // 10)
    return price(used, settings.models.agent_model) or UNKNOWN_USD
