"""What a model server answers on the wire, and what that cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from api.errors import ModelError
from api.services.schemas import Usage


@dataclass(frozen=True, slots=True)
class Completion:
    """The text of a complete answer, what it cost and the model that gave it."""

    text: str
    usage: Usage
    model: str


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    finish_reason: str | None = None
    message: _Message


class _Body(BaseModel):
    choices: list[_Choice]
    model: str | None = None
    usage: Any = None


class _Details(BaseModel):
    cached_tokens: int | None = Field(default=None, ge=0)


class Tokens(BaseModel):
    """What the server counted."""

    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)
    prompt_tokens_details: _Details | None = None

    @property
    def cached(self) -> int:
        """Prompt tokens that came from the server's cache."""
        cached = (self.prompt_tokens_details or _Details()).cached_tokens or 0
        return min(cached, self.prompt_tokens)


Price = Callable[[Tokens, str], float | None]
"""USD for tokens of a model; None when its price is unknown."""


def read(body: bytes, requested: str, price: Price) -> Completion:
    """The answer in a response to model `requested`; how it ended comes before what it says.

    Without a sound count of tokens the cost is unknown.

    Raises:
        ModelError: `truncated`, `filtered`, `refused` or `malformed`.
    """
    try:
        completion = _Body.model_validate_json(body)
    except ValidationError:
        raise ModelError("malformed", "not a chat completion; check `OPENAI_BASE_URL`") from None
    if not completion.choices:
        raise ModelError("filtered", "the server answered with no choice")
    choice = completion.choices[0]
    if choice.finish_reason in {"length", "max_tokens"}:
        raise ModelError("truncated", "the answer was cut at its token limit")
    if choice.finish_reason == "content_filter":
        raise ModelError("filtered", "the server's content filter stopped the answer")
    if choice.message.refusal:
        raise ModelError("refused", "the model declined to answer")
    if not (text := (choice.message.content or "").strip()):
        raise ModelError("malformed", "the answer is empty")
    model = completion.model or requested
    try:
        tokens = Tokens.model_validate(completion.usage)
    except ValidationError:
        return Completion(text, Usage(usd=None), model)
    usage = Usage(tokens.prompt_tokens, tokens.completion_tokens, price(tokens, model))
    return Completion(text, usage, model)
