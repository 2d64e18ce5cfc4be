"""The chat of one built product."""

from __future__ import annotations

from api.services.chat import Chat
from api.wiring import Built


def chat(built: Built) -> Chat:
    """A chat with the product's model; without one the posts speak for themselves."""
    models, client = built.settings.models, built.client
    if client is None:
        return Chat(built.kit, None, built.settings.chat)
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel(
        models.agent_model, provider=OpenAIProvider(openai_client=client.openai)
    )
    return Chat(built.kit, model, built.settings.chat)
