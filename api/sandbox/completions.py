"""What a model says, on the wire: whole, as server-sent events, cut short or spoilt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from api.sandbox.corpus import spelled

_HEX = "0123456789abcdef"
_TOKEN = 4
"""Characters of one token, about."""
_PIECE = 24


@dataclass(frozen=True, slots=True)
class Made:
    """What the model says: text or calls of tools, and how it stopped."""

    content: str | None = None
    calls: tuple[tuple[str, str], ...] = ()
    """Name and arguments as JSON."""
    refusal: str | None = None
    finish: str = "stop"

    @property
    def size(self) -> int:
        """Its tokens, estimated."""
        text = "".join((self.content or "", self.refusal or "", *(n + a for n, a in self.calls)))
        return tokens(text)


def tokens(text: str) -> int:
    """About one for four characters."""
    return -(-len(text) // _TOKEN)


def spoilt(made: Made, fault: str | None) -> Made:
    """The answer as a fault leaves it."""
    text = made.content or next((arguments for _, arguments in made.calls), "")
    if fault == "refusal":
        return Made(refusal="I'm sorry, I can't help with that.")
    if fault == "filtered":
        return Made("", finish="content_filter")
    if fault == "length":
        return Made(text[: len(text) // 2], finish="length")
    if fault == "prose":
        return Made("The first of them looks relevant to me, the others rather not.")
    if fault == "wrong_count":
        return _shortened(made)
    return made


def _shortened(made: Made) -> Made:
    """One verdict or grade too few."""
    value = json.loads(made.content or "{}")
    for field in ("relevant", "grades"):
        if isinstance(value, dict) and field in value:
            return Made(json.dumps({field: value[field][:-1]}, ensure_ascii=False))
    return made


def cut(made: Made, body: Mapping[str, Any]) -> Made:
    """Stop where the caller's budget ends."""
    most = body.get("max_completion_tokens") or body.get("max_tokens")
    if not isinstance(most, int) or made.size <= most:
        return made
    room = most * _TOKEN
    calls = tuple((name, arguments[:room]) for name, arguments in made.calls)
    return Made((made.content or "")[:room] or None, calls, finish="length")


def _tool_calls(made: Made) -> list[dict[str, Any]]:
    return [
        {
            "id": "call_" + spelled(_HEX, 20, number, name, arguments),
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        for number, (name, arguments) in enumerate(made.calls)
    ]


def choice(made: Made) -> dict[str, Any]:
    """The one entry of `choices`."""
    message: dict[str, Any] = {
        "role": "assistant", "content": made.content, "refusal": made.refusal, "annotations": [],
    }  # fmt: skip
    if made.calls:
        message["tool_calls"] = _tool_calls(made)
    return {"index": 0, "message": message, "logprobs": None, "finish_reason": made.finish}


def events(head: Mapping[str, Any], made: Made, body: Mapping[str, Any]) -> Iterator[str]:
    """The answer as server-sent events, usage last when it was asked for."""
    start = {key: value for key, value in head.items() if key != "usage"}

    def event(delta: Mapping[str, Any], finish: str | None = None) -> str:
        one = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        chunk = {**start, "object": "chat.completion.chunk", "choices": [one]}
        return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n"

    yield event({"role": "assistant", "content": None if made.calls else "", "refusal": None})
    for field, text in (("content", made.content), ("refusal", made.refusal)):
        for at in range(0, len(text or ""), _PIECE):
            yield event({field: (text or "")[at : at + _PIECE]})
    for number, call in enumerate(_tool_calls(made)):
        arguments = call["function"]["arguments"]
        yield event(
            {
                "tool_calls": [
                    {**call, "index": number, "function": {**call["function"], "arguments": ""}}
                ]
            }
        )
        for at in range(0, len(arguments), _PIECE):
            piece = {"arguments": arguments[at : at + _PIECE]}
            yield event({"tool_calls": [{"index": number, "function": piece}]})
    yield event({}, made.finish)
    if (body.get("stream_options") or {}).get("include_usage"):
        chunk = {**start, "object": "chat.completion.chunk", "choices": [], "usage": head["usage"]}
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"
