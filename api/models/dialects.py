"""Dialects of Chat Completions: request features that a server's model refuses, and replacements.

A refusal that matches one of `ADAPTATIONS` is followed by the same request, changed. What helped is
remembered for that server and model, so a process is refused once. Pure: requests and answers are
JSON, so this serves the report writer's library as well as our own calls.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from api.reports.report_writing import ReportForm

# A model that spent all its tokens on reasoning gets this many times more, and this many at most.
_MORE, _MAX_TOKENS = 8, 16_384
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Adaptation:
    """A change of a request, made after a refusal that matches `pattern`."""

    name: str  # as `doctor` shows it: asked `without temperature`
    pattern: re.Pattern[str]  # matches refusals that this change may answer
    change: Callable[[Body], Body]
    """Returns the request to send instead, or the same one when nothing has to change."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The adaptations that one server's model needs."""

    adaptations: tuple[Adaptation, ...] = ()

    def adapted(self, body: Body) -> Body:
        """The request with all adaptations."""
        for adaptation in self.adaptations:
            body = adaptation.change(body)
        return body

    def next_for(self, body: Body, status: int, answer: bytes) -> Dialect | None:
        """This dialect with one more adaptation to retry `body` with; None when the answer is final."""
        sent, refusal = self.adapted(body), answer.decode("utf-8", "replace")
        candidates: list[Adaptation] = []
        if status == 200 and _only_reasoned(answer):
            candidates = [_MORE_TOKENS]
        elif status in _REFUSING and not _UNRELATED.search(refusal):
            candidates = [known for known in ADAPTATIONS if known.pattern.search(refusal)]
            # servers refuse a schema in any words, so after what is named it is relaxed in steps
            candidates += _RELAXED_SCHEMA if status in _INVALID else ()
        for adaptation in candidates:
            if adaptation not in self.adaptations and adaptation.change(sent) != sent:
                return Dialect((*self.adaptations, adaptation))
        return None


@dataclass(slots=True)
class Dialects:
    """Dialects by server and model, shared by all clients of a process."""

    _known: dict[tuple[str, str], Dialect] = field(default_factory=dict)
    contexts: dict[tuple[str, str], int] = field(default_factory=dict)
    """Tokens of prompt and answer together that a server's model takes, as a refusal stated."""
    forms: dict[tuple[str, str], ReportForm] = field(default_factory=dict)
    """The form in which a server's model gave a report last."""

    def of(self, server: str, model: object) -> Dialect:
        """The dialect that worked last; before that, what is known of the server."""
        usual = Dialect((_NO_LENGTHS,) if _WITHOUT_LENGTHS.search(server) else ())
        return self._known.get((server, str(model)), usual)

    def learn(self, server: str, model: object, dialect: Dialect) -> None:
        """Remember a dialect that worked."""
        self._known[server, str(model)] = dialect


def status_of(answer: bytes) -> int | None:
    """The status inside a 200 response such as `{"error": {"code": 402, ...}}`; None without one."""
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
    text = json.dumps(error)
    return next((status for pattern, status in _STATUSES if pattern.search(text)), 502)


def is_too_long(answer: bytes) -> bool:
    """Whether a refusal says that prompt and answer do not fit the model's context."""
    return _TOO_LONG.search(answer.decode("utf-8", "replace")) is not None


def has_no_tools(answer: bytes) -> bool:
    """Whether a refusal says that the server or its model takes no tool calls."""
    return _NO_TOOLS.search(answer.decode("utf-8", "replace")) is not None


def stated_context(answer: bytes) -> int | None:
    """The tokens that a model's context holds, as such a refusal states them."""
    refusal = answer.decode("utf-8", "replace")
    match = next((match for pattern in _CONTEXTS if (match := pattern.search(refusal))), None)
    return int(next(filter(None, match.groups()))) if match else None


def _only_reasoned(answer: bytes) -> bool:
    try:
        choice = object_of(answer)["choices"][0]
        cut = choice["finish_reason"] in {"length", "max_tokens"}
        message = choice["message"]
        return cut and not message.get("content") and not message.get("tool_calls")
    except (LookupError, TypeError, AttributeError):
        return False


def object_of(answer: bytes) -> dict[str, Any]:
    """The body as a JSON object; an empty one when it is something else."""
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _without(*names: str) -> Callable[[Body], Body]:
    return lambda body: {name: value for name, value in body.items() if name not in names}


def _renamed(old: str, new: str) -> Callable[[Body], Body]:
    return lambda body: {new if name == old else name: value for name, value in body.items()}


def _pruned(*names: str) -> Callable[[Body], Body]:
    """Removes keywords from every schema in the request, but not properties of that name."""

    def pruned(value: Any) -> Any:
        if isinstance(value, list):
            return [pruned(entry) for entry in value]
        if not isinstance(value, dict):
            return value
        return {name: pruned(inner) for name, inner in value.items() if name not in names or not isinstance(inner, int)}

    shapes = ("response_format", "tools")
    return lambda body: {n: pruned(value) if n in shapes else value for n, value in body.items()}


def _more_tokens(body: Body) -> Body:
    limits = {"max_completion_tokens", "max_tokens"} & body.keys()
    wider = {name: max(body[name], min(_MORE * body[name], _MAX_TOKENS)) for name in limits}
    return {**body, **wider}


# `Failed to compile grammar`, `'response_format' of type 'json_schema' is not supported`
_SHAPE = re.compile(r"response_format|schema|grammar|structured|(min|max)(Items|Length)", re.I)
_NO_LENGTHS = Adaptation("without limits on texts", _SHAPE, _pruned("minLength", "maxLength"))
# The strict schemas of OpenAI's own servers take no limits on texts.
_WITHOUT_LENGTHS = re.compile(r"https://(?:api\.openai\.com|[\w-]+\.openai\.azure\.com)(?:[/:]|\Z)", re.I)
_UNLIMITED = Adaptation(
    "without limits on lists and texts", _SHAPE,
    _pruned("minItems", "maxItems", "uniqueItems", "minLength", "maxLength"),
)  # fmt: skip
_SCHEMALESS = Adaptation("without a schema", _SHAPE, _without("response_format"))
# its pattern matches nothing, since no refusal calls for it
_MORE_TOKENS = Adaptation("with room for reasoning", re.compile(r"(?!)"), _more_tokens)
ADAPTATIONS = (
    Adaptation("without `temperature`", re.compile("temperature"), _without("temperature")),
    Adaptation(
        "with `max_tokens`", re.compile("max_completion_tokens"),
        _renamed("max_completion_tokens", "max_tokens"),
    ),
    Adaptation(
        "with `max_completion_tokens`", re.compile("max_tokens"),
        _renamed("max_tokens", "max_completion_tokens"),
    ),
    Adaptation(
        "without `reasoning_effort`", re.compile("reasoning|effort"), _without("reasoning_effort")
    ),
    Adaptation("without `strict`", re.compile(r"\bstrict\b"), _pruned("strict")),
    _NO_LENGTHS,
    _UNLIMITED,
    _SCHEMALESS,
)  # fmt: skip
"""Adaptations, in the order in which they are tried when a refusal matches several."""
_RELAXED_SCHEMA = (_NO_LENGTHS, _UNLIMITED, _SCHEMALESS)
_INVALID = frozenset({400, 422})
# some servers refuse a feature with 500 or 501, which counts only if the refusal names the feature
_REFUSING = _INVALID | {500, 501}
# `maximum context length is 8192 tokens`, `exceeds the available context size`, `prompt is too long`
_TOO_LONG = re.compile(
    r"context.?(?:length|window|size)|maximum context|(?:prompt|input) is too long|too many (?:input )?tokens"
    r"|reduce the length of the (?:messages|prompt|input)|tokens\W{1,4}must be <=",
    re.I,
)
# Where a refusal states the context, the surest first: `"n_ctx": 1024`, `context length is 8192 tokens`,
# `context size (1024 tokens)`, `32768 maximum context length`
_CONTEXTS = (
    re.compile(r"n_ctx\W{1,6}(\d{3,8})", re.I),
    re.compile(r"context.?(?:length|window|size)(?!_)[^.,\d]{0,40}?(\d{3,8})", re.I),
    re.compile(r"(\d{3,8}) maximum context|tokens\W{1,4}must be <= (\d{3,8})", re.I),
)
# `llama3 does not support tools`, `tools param requires --jinja flag`, `"auto" tool choice requires ...`
_NO_TOOLS = re.compile(
    r"not support (?:tools?|function)|tools param requires|tool.choice.{0,3} requires"
    r"|(?:tools?|tool.?calls?|tool.?calling|function.?calling) (?:is|are) not (?:supported|enabled)",
    re.I,
)
# refusals that no change of the request answers
_UNRELATED = re.compile(
    rf"{_TOO_LONG.pattern}|{_NO_TOOLS.pattern}|content.?(filter|policy|management)|model_not_found|quota|billing",
    re.I,
)
# Words of an error without a status, the least ambiguous first; others are the server's failure.
_STATUSES = (
    (re.compile(r"insufficient|quota|billing|credit|balance|payment", re.I), 402),
    (re.compile(r"rate.?limit|too many", re.I), 429),
    (re.compile(r"unauthorized|authentication|api.?key", re.I), 401),
    (re.compile(r"invalid|unsupported|not support|unknown|schema|grammar", re.I), 400),
)


GRADED_AT_ONCE = 10  # most items in one call of the grader


class ModelCallLimiter:
    """What all model clients of a process share: the slots for calls, and the known dialects."""

    def __init__(self, size: int = 8, dialects: Dialects | None = None) -> None:
        """Allow at most `size` concurrent calls in each event loop."""
        self.dialects = dialects or Dialects()
        self._size = size
        self._slots: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}

    def slots(self) -> asyncio.Semaphore:
        """The semaphore of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._slots:
            for closed in [other for other in self._slots if other.is_closed()]:
                del self._slots[closed]
            self._slots[loop] = asyncio.Semaphore(self._size)
        return self._slots[loop]
