"""Dialects of Chat Completions: what a server's model does not take, and how it is asked instead.

A refusal that one of `ADAPTATIONS` answers is followed by the same request, changed. What helped is
remembered for that server and model, so that it is refused once in a process. Pure: requests and
answers are JSON here, so whoever asks, the report writer included, is understood.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

ROOM, MOST_ROOM = 8, 16_384
"""How many times more tokens a model gets that thought for all it had, and how many at most."""
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Adaptation:
    """One change of a request."""

    name: str
    """What `doctor` calls it: the request is sent `without temperature`."""
    pattern: re.Pattern[str]
    """Found in a refusal that this change answers."""
    change: Callable[[Body], Body]
    """The request as it is sent instead; the same where there is nothing to change."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one server's model was found to want."""

    adaptations: tuple[Adaptation, ...] = ()

    def spoken(self, body: Body) -> Body:
        """The request as this model takes it."""
        for adaptation in self.adaptations:
            body = adaptation.change(body)
        return body

    def after(self, body: Body, status: int, answer: bytes) -> Dialect | None:
        """The dialect to ask `body` in next, when the answer wants that; None when it stands."""
        spoken = self.spoken(body)
        if status == 200:
            wanted = [_ROOMY] if thought_only(answer) else []
        else:
            wanted = _answering(status, answer.decode("utf-8", "replace"))
        for adaptation in wanted:
            if adaptation not in self.adaptations and adaptation.change(spoken) != spoken:
                return Dialect((*self.adaptations, adaptation))
        return None


@dataclass(slots=True)
class Dialects:
    """What is known by server and model; one for all clients of a process."""

    _known: dict[tuple[str, str], Dialect] = field(default_factory=dict)

    def of(self, server: str, model: object) -> Dialect:
        """The dialect that helped last."""
        return self._known.get((server, str(model)), Dialect())

    def learn(self, server: str, model: object, dialect: Dialect) -> None:
        """Remember what helped."""
        self._known[server, str(model)] = dialect


def status_of(answer: bytes) -> int | None:
    """The status that an error in a 200 means; None when the answer is none.

    Gateways answer `{"error": {"code": 402, "message": ...}}`, whole or inside a choice.
    """
    if b"error" not in answer:
        return None
    value = object_of(answer)
    choices = value.get("choices")
    if isinstance(choices, list) and choices:
        value = choices[0] if isinstance(choices[0], dict) else {}
    error = value.get("error") or (value if value.get("object") == "error" else None)
    if not error:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    if re.fullmatch(r"[45]\d\d", str(code)):
        return int(str(code))
    words = json.dumps(error)
    return next((status for pattern, status in _STATUSES if pattern.search(words)), 502)


def thought_only(answer: bytes) -> bool:
    """Whether the output budget ended before the model said anything."""
    try:
        choice = object_of(answer)["choices"][0]
        cut = choice["finish_reason"] in {"length", "max_tokens"}
        message = choice["message"]
        return cut and not message.get("content") and not message.get("tool_calls")
    except (LookupError, TypeError, AttributeError):
        return False


def object_of(answer: bytes) -> dict[str, Any]:
    """The JSON object that a body is; an empty one when it is something else."""
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _answering(status: int, refusal: str) -> list[Adaptation]:
    """Adaptations that a refusal may want, the most likely first."""
    if status not in _REFUSED or _UNRELATED.search(refusal):
        return []
    named = [known for known in ADAPTATIONS if known.pattern.search(refusal)]
    # a schema is refused in any words: after what is named, it is made easier step by step
    return [*named, *(_EASIER if status in _UNSOUND else [])]


def _without(*names: str) -> Callable[[Body], Body]:
    return lambda body: {name: value for name, value in body.items() if name not in names}


def _renamed(old: str, new: str) -> Callable[[Body], Body]:
    return lambda body: {new if name == old else name: value for name, value in body.items()}


def _pruned(*names: str) -> Callable[[Body], Body]:
    """Takes keywords out of every schema in the request; a property of that name stays."""

    def pruned(value: Any) -> Any:
        if isinstance(value, list):
            return [pruned(entry) for entry in value]
        if not isinstance(value, dict):
            return value
        return {
            name: pruned(inner)
            for name, inner in value.items()
            if name not in names or not isinstance(inner, int)
        }

    shapes = ("response_format", "tools")
    return lambda body: {n: pruned(value) if n in shapes else value for n, value in body.items()}


def _roomy(body: Body) -> Body:
    budgets = {"max_completion_tokens", "max_tokens"} & body.keys()
    wide = {name: max(body[name], min(ROOM * body[name], MOST_ROOM)) for name in budgets}
    return {**body, **wide}


# `Failed to compile grammar`, `'response_format' of type 'json_schema' is not supported`
_SHAPE = re.compile(r"response_format|schema|grammar|structured|(min|max)(Items|Length)", re.I)
_UNLIMITED = Adaptation(
    "without limits on lists and texts",
    _SHAPE,
    _pruned("minItems", "maxItems", "uniqueItems", "minLength", "maxLength"),
)
_SCHEMALESS = Adaptation("without a schema", _SHAPE, _without("response_format"))
_ROOMY = Adaptation("with room for reasoning", re.compile(r"(?!)"), _roomy)  # no refusal wants it
ADAPTATIONS = (
    Adaptation("without `temperature`", re.compile("temperature"), _without("temperature")),
    Adaptation(
        "with `max_tokens`",
        re.compile("max_completion_tokens"),
        _renamed("max_completion_tokens", "max_tokens"),
    ),
    Adaptation(
        "with `max_completion_tokens`",
        re.compile("max_tokens"),
        _renamed("max_tokens", "max_completion_tokens"),
    ),
    Adaptation(
        "without `reasoning_effort`",
        re.compile("reasoning|effort"),
        _without("reasoning_effort"),
    ),
    Adaptation("without `strict`", re.compile(r"\bstrict\b"), _pruned("strict")),
    _UNLIMITED,
    _SCHEMALESS,
)
"""Of several that a refusal names, the first that changes the request."""
_EASIER = (_UNLIMITED, _SCHEMALESS)
_UNSOUND = frozenset({400, 422})
# Statuses of servers that do not take a request as it is; two of them only in plain words.
_REFUSED = _UNSOUND | {500, 501}
# a refusal that no other form of the request would change: `maximum context length is 8192 tokens`
_UNRELATED = re.compile(
    r"context.?(length|window)|content.?(filter|policy|management)|model_not_found|quota|billing",
    re.I,
)
# Words of an error without a status, the plainest first; any other is the server's own trouble.
_STATUSES = (
    (re.compile(r"insufficient|quota|billing|credit|balance|payment", re.I), 402),
    (re.compile(r"rate.?limit|too many", re.I), 429),
    (re.compile(r"unauthorized|authentication|api.?key", re.I), 401),
    (re.compile(r"invalid|unsupported|not support|unknown|schema|grammar", re.I), 400),
)
