"""Reading JSON out of a model's text: lenient about its wrapping, strict about its content.

Servers without structured output wrap their answer in fences, prose or `<think>` blocks. Those are
taken off; what is left must be one unmistakable value, since a guess would drop items silently.
"""

from __future__ import annotations

import json
import re
from typing import Any

from api.errors import ModelError

# a reasoning model's thoughts, `<think>...</think>`, or all that follows one that never ends
_THOUGHTS = re.compile(r"<think(?:ing)?\b[^<>]*>.*?(?:</think(?:ing)?>|\Z)", re.S | re.I)
# an end alone, where the server's template wrote the start: `The user wants ... </think> {...}`
_THOUGHTS_END = re.compile(r"\A.*</think(?:ing)?>", re.S | re.I)
# both lines around a fenced block: "```json" and "```"
_MARK = re.compile(r"```[\w-]*")


def booleans(text: str, count: int, key: str = "relevant") -> tuple[bool, ...]:
    """Exactly `count` booleans: `{key: [...]}` or the only array in the text.

    Raises:
        ModelError: `malformed` without exactly one array of nothing but booleans, `count_mismatch`.
    """
    text = unwrapped(text)
    whole = _loaded(text)
    if isinstance(whole, dict) and not isinstance(whole.get(key, []), list):
        raise ModelError("malformed", f"`{key}` is not an array")
    if text.count("[") != 1 or text.count("]") != 1:
        raise ModelError("malformed", "not exactly one array")
    values = _loaded(text[text.index("[") : text.index("]") + 1])
    if not isinstance(values, list) or any(type(value) is not bool for value in values):
        raise ModelError("malformed", "not an array of booleans")
    if len(values) != count:
        raise ModelError("count_mismatch", f"{len(values)} verdicts for {count} items")
    return tuple(values)


def entries(text: str, key: str) -> list[Any]:
    """The list in `{key: [...]}`, or a bare list.

    Raises:
        ModelError: `malformed` when there is no such list.
    """
    value = _document(text)
    values = value.get(key) if isinstance(value, dict) else value
    if not isinstance(values, list):
        raise ModelError("malformed", f"no list of {key}")
    return values


def record(text: str) -> dict[str, Any]:
    """The JSON object in the text.

    Raises:
        ModelError: `malformed` when there is none, or more than one.
    """
    value = _document(text)
    if not isinstance(value, dict):
        raise ModelError("malformed", "not an object")
    return value


def unwrapped(text: str) -> str:
    """The text without thoughts and fence marks; a thought that never ends takes all after it."""
    text = _THOUGHTS_END.sub("", _THOUGHTS.sub("", text))
    return _MARK.sub("", text).strip()


def _document(text: str) -> Any:
    """The one JSON object or list in the text, prose around it allowed."""
    if isinstance(value := _loaded(text), dict | list):
        return value
    text = unwrapped(text)
    starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    end = max(text.rfind("}"), text.rfind("]"))
    return _loaded(text[min(starts) : end + 1]) if starts else None


def _loaded(text: str) -> Any:
    """The text as JSON; None when it is not."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
