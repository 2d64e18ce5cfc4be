"""Parses what a model server answers: the text, its cost, and the JSON in the text.

What surrounds the JSON (code fences, prose, `<think>` blocks) may be anything, but the JSON must be
exact: a guess would drop items silently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from api.core.domain import Usage
from api.core.model_batches import cost_on_failure
from api.errors import ModelError

STAND_IN = "sample stand-in"
"""Model name in requests and results when the sandbox answers instead of a model."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A complete answer, what it cost and the model that gave it."""

    text: str
    usage: Usage
    model: str
    cut: bool = False
    """The answer ended at its token limit; only what is whole of it may count."""


class _Message(BaseModel):
    content: str | list[Any] | None = None
    refusal: str | None = None

    @property
    def text(self) -> str:
        """The content; for a list of parts only the text, without reasoning and images."""
        if not isinstance(self.content, list):
            return (self.content or "").strip()
        parts = (part for part in self.content if isinstance(part, dict))
        texts = (part.get("text") for part in parts if part.get("type", "text") == "text")
        return "".join(text for text in texts if isinstance(text, str)).strip()


class _Choice(BaseModel):
    finish_reason: str | None = None
    message: _Message


class _ChatCompletion(BaseModel):
    choices: list[_Choice]
    model: str | None = None


# A server that counts more tokens in one answer does not count tokens.
_MAX_TOKENS = 10**12
# Tokens by which it is seen whether a model costs anything at all.
_UNCOUNTED = 1_000_000


class _PromptDetails(BaseModel):
    cached_tokens: int | None = Field(default=None, ge=0)


class Tokens(BaseModel):
    """Token counts of one answer, by the server."""

    prompt_tokens: int = Field(ge=0, le=_MAX_TOKENS)
    completion_tokens: int = Field(ge=0, le=_MAX_TOKENS)
    prompt_tokens_details: _PromptDetails | None = None

    @property
    def cached(self) -> int:
        """Prompt tokens that came from the server's cache."""
        cached = (self.prompt_tokens_details or _PromptDetails()).cached_tokens or 0
        return min(cached, self.prompt_tokens)


class _UsageReport(BaseModel):
    model: str | None = None
    usage: Tokens


Price = Callable[[Tokens, str], float | None]
"""Returns the price of a model's tokens in USD; None when it is unknown."""


def read_completion(
    body: bytes, requested: str, price: Price, earlier: Sequence[bytes] = (), *, partial: bool = False
) -> Completion:
    """The answer in a response to model `requested`, with the cost of `earlier` empty answers.

    With `partial` the text of an answer that was cut is returned, too.
    The cost is unknown without valid token counts. Raises `ModelError`: `truncated`, `filtered`,
    `refused` or `malformed`, with what that cost.
    """
    usage = sum((_usage(wasted, requested, price) for wasted in earlier), Usage())
    with cost_on_failure(usage):
        try:
            completion = _ChatCompletion.model_validate_json(body)
        except ValidationError:
            detail = "not a chat completion; check `OPENAI_BASE_URL`"
            raise ModelError("malformed", detail) from None
    usage += _usage(body, requested, price)
    with cost_on_failure(usage):
        if not completion.choices:
            raise ModelError("filtered", "the server answered with no choice")
        choice = completion.choices[0]
        cut = choice.finish_reason in {"length", "max_tokens"}
        if cut and not (partial and choice.message.text):
            raise ModelError("truncated", "the answer was cut at its token limit")
        if choice.finish_reason == "content_filter":
            raise ModelError("filtered", "the server's content filter stopped the answer")
        if choice.message.refusal:
            raise ModelError("refused", "the model declined to answer")
        if not (text := choice.message.text):
            raise ModelError("malformed", "the answer is empty")
    return Completion(text, usage, completion.model or requested, cut)


def _usage(body: bytes, requested: str, price: Price) -> Usage:
    try:
        counted = _UsageReport.model_validate_json(body)
    except ValidationError:
        uncounted = Tokens(prompt_tokens=_UNCOUNTED, completion_tokens=_UNCOUNTED)
        # what costs nothing costs nothing however much it was
        return Usage(usd=0.0 if price(uncounted, requested) == 0 else None, requests=1)
    tokens = counted.usage
    usd = price(tokens, counted.model or requested)
    return Usage(tokens.prompt_tokens, tokens.completion_tokens, usd, 1)


# Reasoning before the answer: `<think>...</think>`, `[THINK]...[/THINK]`; without its end all that follows.
_THOUGHT = r"(?:think(?:ing)?|reasoning|thoughts?)"
_REASONING = re.compile(rf"<{_THOUGHT}\b[^<>]*>.*?(?:</{_THOUGHT}>|\Z)|\[THINK\].*?(?:\[/THINK\]|\Z)", re.S | re.I)
# an end tag alone, where the chat template held the start: `The user wants ... </think> {...}`
_REASONING_END = re.compile(rf"\A.*(?:</{_THOUGHT}>|\[/THINK\])", re.S | re.I)
# channels of a harmony model: `<|channel|>analysis<|message|>...<|end|>`, then the `final` one
_CHANNEL = "<|channel|>"
_HARMONY_NAME = re.compile(r"\A\s*(\w+)[^<]{0,80}<\|message\|>")
_HARMONY_TAG = re.compile(r"<\|(?:start|end|return|call|message)\|>(?:assistant\b)?")
# both lines around a code block: "```json" and "```"
_CODE_FENCE = re.compile(r"```[\w-]*")


def verdicts(text: str, count: int, key: str = "relevant") -> tuple[bool, ...]:
    """Exactly `count` booleans, in order, each under its number: `{"1": true, "2": false}`.

    Also understood, where a server knows no schema: the same under `key`, `{key: [...]}`, or the
    only array in the text, perhaps nested: `[[true, false]]`, `[[true], [false]]`. Else raises
    `ModelError`.
    """
    text = unwrapped(text)
    if (numbered := _numbered(text)) is not None:
        flags = _in_order(numbered, count)
        if any(type(flag) is not bool for flag in flags):
            raise ModelError("malformed", "a verdict that is no boolean")
        return tuple(flags)
    whole = _loaded(text)
    if isinstance(whole, dict) and not isinstance(whole.get(key, []), list):
        raise ModelError("malformed", f"`{key}` is not an array")
    values = _loaded(text[max(text.find("["), 0) : text.rfind("]") + 1])
    if isinstance(values, list) and values and all(isinstance(value, list) for value in values):
        single = len(values) == 1 or all(len(value) == 1 for value in values)
        values = list(chain(*values)) if single else None
    if not isinstance(values, list) or any(type(value) is not bool for value in values):
        raise ModelError("malformed", "not an array of booleans")
    if len(values) != count:
        raise ModelError("count_mismatch", f"{len(values)} verdicts for {count} items")
    return tuple(values)


def numbered_entries(text: str, count: int, key: str, *, whole: bool = True) -> list[Any]:
    """Exactly `count` entries, by number, in a list under `key`, or in a bare list.

    Without `whole` the text was cut at its limit: the entries that are complete, None for others.
    Raises `ModelError` for other numbers or another count.
    """
    if not whole:
        return _complete_entries(unwrapped(text), count)
    if (numbered := _numbered(unwrapped(text))) is not None:
        return _in_order(numbered, count)
    values = entries(text, key)
    if len(values) != count:
        raise ModelError("count_mismatch", f"{len(values)} {key} for {count} items")
    return values


def _numbered(text: str) -> dict[str, Any] | None:
    """The object whose names are all numbers, at the top or one level below; None without one."""
    value = _loaded(text[max(text.find("{"), 0) : text.rfind("}") + 1], object_pairs_hook=_unrepeated)
    if isinstance(value, dict) and len(value) == 1 and isinstance(inner := next(iter(value.values())), dict):
        value = value if next(iter(value)).isdecimal() else inner
    return value if isinstance(value, dict) and value and all(name.isdecimal() for name in value) else None


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; raises `ValueError` for a repeated name, since it is unclear which value counts."""
    if len(values := dict(pairs)) < len(pairs):
        raise ValueError("a name is there twice")
    return values


def _in_order(numbered: Mapping[str, Any], count: int) -> list[Any]:
    wanted = [str(number) for number in range(1, count + 1)]
    if numbered.keys() != set(wanted):
        raise ModelError("count_mismatch", f"{len(numbered)} numbered answers for {count} items, or other numbers")
    return [numbered[name] for name in wanted]


# the start of a numbered entry: `"3": {`
_ENTRY = re.compile(r'"(\d{1,4})"\s*:\s*(?=\{)')


def _complete_entries(text: str, count: int) -> list[Any]:
    """Complete entries of a truncated object or list, in order; None for each missing one."""
    decoder, kept = json.JSONDecoder(), dict[int, Any]()
    starts = [(int(match[1]), match.end()) for match in _ENTRY.finditer(text)]
    if not starts and (at := text.find("[")) >= 0:
        number = 1
        while (at := text.find("{", at)) >= 0 and number <= count:
            starts.append((number, at))
            try:
                at = decoder.raw_decode(text, at)[1]
            except (ValueError, RecursionError):
                break
            number += 1
    for number, at in starts:
        with suppress(ValueError, RecursionError):
            kept.setdefault(number, decoder.raw_decode(text, at)[0])
    return [kept.get(number) for number in range(1, count + 1)]


def entries(text: str, key: str) -> list[Any]:
    """The list in `{key: [...]}`, or a bare list; raises `ModelError` without one."""
    value = _document(text)
    values = value.get(key) if isinstance(value, dict) else value
    if not isinstance(values, list):
        raise ModelError("malformed", f"no list of {key}")
    return values


def record(text: str) -> dict[str, Any]:
    """The JSON object in the text; raises `ModelError` unless there is exactly one."""
    value = _document(text)
    if not isinstance(value, dict):
        raise ModelError("malformed", "not an object")
    return value


def unwrapped(text: str) -> str:
    """The text without reasoning and code fences; unclosed reasoning takes all that follows."""
    if _CHANNEL in text:
        channels = ((_HARMONY_NAME.match(part), part) for part in text.split(_CHANNEL)[1:])
        final = [part[name.end() :] for name, part in channels if name is not None and name[1] == "final"]
        text = _HARMONY_TAG.sub("", final[-1]) if final else ""
    text = _REASONING_END.sub("", _REASONING.sub("", text))
    return _CODE_FENCE.sub("", text).strip()


def _document(text: str) -> Any:
    if isinstance(value := _loaded(text), dict | list):
        return value
    text = unwrapped(text)
    starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    end = max(text.rfind("}"), text.rfind("]"))
    return _loaded(text[min(starts) : end + 1]) if starts else None


def _loaded(text: str, **options: Any) -> Any:
    try:
        return json.loads(text, **options)
    except (ValueError, RecursionError):
        return None
