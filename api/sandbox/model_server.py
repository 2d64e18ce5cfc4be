"""An OpenAI-compatible model server: Chat Completions over the sandbox's judge and writer, and embeddings.

Checks the strict subset of JSON Schema, and makes values fit the schema.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha512
from typing import Any, ClassVar

from starlette.responses import StreamingResponse

from api.core.words import index_tokens
from api.sandbox.corpus import HEX, spelled
from api.sandbox.model_answers import KINDS, QuotedPrompt, answer, kind_of
from api.sandbox.world import EmulatedServer, SandboxCall, SiteRefusal, decoded, reply, serves

_UNSUPPORTED = "allOf not if then else oneOf patternProperties dependentRequired".split()
_EMPTY: Mapping[str, Any] = {
    "string": "", "integer": 0, "number": 0, "boolean": False, "null": None, "array": [],
    "object": {},
}  # fmt: skip
_NAMES = {
    bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object",
}  # fmt: skip


def complaint(schema: Any) -> str | None:
    """Why the strict mode refuses a schema; None when it accepts it."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return "schema must be a JSON Schema of 'type: \"object\"'."
    return next(_complaints(schema, ()), None)


def _complaints(schema: Any, at: tuple[str, ...]) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    for word in _UNSUPPORTED:
        if word in schema:
            yield f"In context={at}, '{word}' is not permitted."
    if schema.get("type") == "object" or "properties" in schema:
        if schema.get("additionalProperties") is not False:
            need = "is required to be supplied and to be false"
            yield f"In context={at}, 'additionalProperties' {need}."
        properties = schema.get("properties", {})
        missing = [name for name in properties if name not in schema.get("required", ())]
        if missing:
            yield (
                f"In context={at}, 'required' is required to be supplied and to be an array "
                f"including every key in properties. Missing '{missing[0]}'."
            )
    for key in ("properties", "$defs", "definitions"):
        for name, inner in schema.get(key, {}).items():
            yield from _complaints(inner, (*at, key, name))
    if "items" in schema:
        yield from _complaints(schema["items"], (*at, "items"))
    for number, inner in enumerate(schema.get("anyOf", ())):
        yield from _complaints(inner, (*at, "anyOf", str(number)))


def resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema behind a `$ref` such as `#/$defs/Finding`."""
    while "$ref" in schema:
        target: Any = root
        for step in str(schema["$ref"]).removeprefix("#/").split("/"):
            target = target[step] if step else target
        schema = target
    return schema


def fitted(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
    """The value without fields that the schema does not have, and with those it requires."""
    root = schema if root is None else root
    schema = resolved(schema, root)
    if "anyOf" in schema:
        options = [resolved(option, root) for option in schema["anyOf"]]
        return fitted(value, next((o for o in options if _matches(value, o)), options[0]), root)
    if "enum" in schema and value not in schema["enum"]:
        return schema["enum"][0]
    if not _matches(value, schema):
        value = _EMPTY.get(_types(schema)[0])
    if isinstance(value, Mapping) and "properties" in schema:
        needed = schema.get("required", ())
        return {
            name: fitted(value.get(name), inner, root)
            for name, inner in schema["properties"].items()
            if name in value or name in needed
        }
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        most = schema.get("maxItems", len(value))
        return [fitted(inner, schema["items"], root) for inner in value[:most]]
    return value


def _types(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


def _matches(value: Any, schema: Mapping[str, Any]) -> bool:
    kinds, name = _types(schema), _NAMES.get(type(value), "null")
    return not kinds or name in kinds or (name == "integer" and "number" in kinds)


_MODELS: list[dict[str, Any]] = [
    {"id": name, "object": "model", "created": 0, "owned_by": "sandbox"} for name in ("gpt-4o-mini", "gpt-4o")
]
# pydantic-ai's name of the tool whose arguments are the answer
_FINAL = "final_result"
# Numbers of a vector, unless fewer are asked for; most texts of one request, and most tokens of one text.
_DIMENSIONS, _MOST_TEXTS, _LONGEST_TEXT = 1536, 2048, 8191
# Numbers of a vector that a word changes.
_CHANGED = 16
# Characters of a token, about, and of one chunk of a stream.
_TOKEN, _CHUNK = 4, 24


@dataclass(frozen=True, slots=True)
class Generation:
    """The model's answer: text or calls of tools, and why it stopped."""

    content: str | None = None
    calls: tuple[tuple[str, str], ...] = ()  # name and arguments as JSON
    refusal: str | None = None
    finish: str = "stop"

    @property
    def size(self) -> int:
        """Estimated number of tokens of the answer, its refusal and calls included."""
        text = "".join((self.content or "", self.refusal or "", *(n + a for n, a in self.calls)))
        return tokens(text)


def tokens(text: str) -> int:
    """Estimated number of tokens: one for four characters."""
    return -(-len(text) // _TOKEN)


def _direction(text: str, size: int) -> list[float]:
    """A vector of length 1, the same for the same words; zeros for a text without words."""
    numbers = [0.0] * size
    for word in index_tokens(text):
        digest = sha512(word.encode()).digest()
        for at in range(0, 2 * _CHANGED, 2):
            numbers[int.from_bytes(digest[at : at + 2]) % size] += 1 if digest[-1 - at // 2] % 2 else -1
    length = math.hypot(*numbers) or 1.0
    return [number / length for number in numbers]


def _error(status: int, message: str, kind: str = "invalid_request_error", **more: Any) -> tuple[dict[str, Any], int]:
    return {"error": {"message": message, "type": kind, "param": None, "code": None, **more}}, status


def _wrong_key(key: str) -> tuple[dict[str, Any], int]:
    shown = f"{key[:3]}***" if key else "(none)"
    return _error(401, f"Incorrect API key provided: {shown}.", code="invalid_api_key")


class OpenAI(EmulatedServer):
    """Answers as api.openai.com does."""

    upstream = "openai"
    fault_replies: ClassVar = {
        "401": _wrong_key("sk-wrong"),
        "429": (
            *_error(
                429, "Rate limit reached for requests. Please try again in 20s.", "requests",
                code="rate_limit_exceeded",
            ),
            {"retry-after": "20"},
        ),
        "insufficient_quota": _error(
            429, "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota", code="insufficient_quota",
        ),
        "500": _error(
            500, "The server had an error while processing your request.", "server_error"
        ),
    }  # fmt: skip

    def fault(self, kind: str, call: SandboxCall) -> Any:
        wants_schema = isinstance(call.data, Mapping) and "response_format" in call.data
        if kind == "no_schema" and wants_schema:
            message = "'response_format' of type 'json_schema' is not supported."
            return reply(*_error(400, message, param="response_format"))
        return super().fault(kind, call)

    def guard(self, call: SandboxCall) -> None:
        kind, _, key = call.request.headers.get("authorization", "").partition(" ")
        known = self.world.options.openai_key
        if kind.casefold() != "bearer" or not key or known not in (None, key):
            raise SiteRefusal(*_wrong_key(key))

    @serves("models", "/v1/models")
    def _models(self, call: SandboxCall) -> dict[str, Any]:
        return {"object": "list", "data": _MODELS}

    @serves("models", "/v1/models/{id}")
    def _model(self, call: SandboxCall) -> dict[str, Any]:
        id_ = call.parameter("id")
        for model in _MODELS:
            if model["id"] == id_:
                return model
        message = f"The model '{id_}' does not exist"
        raise SiteRefusal(*_error(404, message, code="model_not_found"))

    @serves(lambda body: endpoint(body), "/v1/chat/completions", methods=("POST",), keep=True)
    def _complete(self, call: SandboxCall) -> Any:
        """A completion, whole or as server-sent events, spoilt by a fault, cut at its limit."""
        body = call.data
        if not isinstance(body, Mapping):
            raise SiteRefusal(*_error(400, "We could not parse the JSON body of your request."))
        _check_request(body)
        prompt = QuotedPrompt.of(body["messages"])
        generation = _cut(_spoilt(self._generate(body, prompt), call.fault), body)
        prompted = "".join(text for _, text in prompt.messages)
        shapes = json.dumps([body.get("tools"), body.get("response_format")])
        given = tokens(prompted) + tokens(shapes)
        head = {
            "id": "chatcmpl-" + spelled(HEX, 24, prompted),
            "created": int(self.world.clock()),
            "model": body["model"],
            "system_fingerprint": "fp_sandbox",
            "service_tier": "default",
            "usage": {
                "prompt_tokens": given, "completion_tokens": generation.size,
                "total_tokens": given + generation.size,
                "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
            },
        }  # fmt: skip
        empty = call.fault == "no_choices"
        if body.get("stream") and not empty:
            stream = _events(head, generation, body)
            return StreamingResponse(stream, media_type="text/event-stream")
        message: dict[str, Any] = {
            "role": "assistant", "content": generation.content, "refusal": generation.refusal,
            "annotations": [],
        }  # fmt: skip
        if generation.calls:
            message["tool_calls"] = _tool_calls(generation)
        choice = {"index": 0, "message": message, "logprobs": None}
        choices = [] if empty else [choice | {"finish_reason": generation.finish}]
        return {**head, "object": "chat.completion", "choices": choices}

    @serves("embeddings", "/v1/embeddings", methods=("POST",), keep=True)
    def _embed(self, call: SandboxCall) -> dict[str, Any]:
        """One vector for each text, the sum of its words' vectors; the fault `dimensions` makes them longer."""
        body = call.data if isinstance(call.data, Mapping) else {}
        texts, size = body.get("input"), body.get("dimensions", _DIMENSIONS)
        texts = [texts] if isinstance(texts, str) else texts
        if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
            raise SiteRefusal(*_error(400, "'$.input' is invalid. Please check the API reference."))
        if not 0 < len(texts) <= _MOST_TEXTS or type(size) is not int or not 0 < size <= _DIMENSIONS:
            raise SiteRefusal(*_error(400, "This model does not support so many inputs, or dimensions."))
        if max(map(tokens, texts)) > _LONGEST_TEXT:
            message = f"This model's maximum context length is {_LONGEST_TEXT} tokens."
            raise SiteRefusal(*_error(400, message, code="context_length_exceeded"))
        size += 64 * (call.fault == "dimensions")
        data: list[dict[str, Any]] = [
            {"object": "embedding", "index": index, "embedding": _direction(text, size)}
            for index, text in enumerate(texts)
        ]
        if call.fault == "wrong_count":
            data.pop()
        used = sum(map(tokens, texts))
        usage = {"prompt_tokens": used, "total_tokens": used}
        return {"object": "list", "data": data, "model": body.get("model"), "usage": usage}

    def _generate(self, body: Mapping[str, Any], prompt: QuotedPrompt) -> Generation:
        judge = self.world.judge
        schema, tool = _target(body)
        field = kind_of(schema, prompt)
        if field is None:
            from api.sandbox.model_chat import chat, looks  # with the chats of the product, which takes 25 ms

            if schema is None and (calls := looks(_functions(body), prompt, body.get("tool_choice"))):
                return Generation(calls=calls, finish="tool_calls")
            if schema is None:
                return Generation(chat(prompt))
            value = {"text": chat(prompt)}
        else:
            value = answer(field, prompt, judge)
        fitting = value if schema is None else fitted(value, schema)
        text = json.dumps(fitting, ensure_ascii=False)
        return Generation(calls=((tool, text),), finish="tool_calls") if tool else Generation(text)


def endpoint(body: Any) -> str:
    """Name in faults, latencies and the log, from the kind of answer that is asked for."""
    if not isinstance(body, Mapping) or not isinstance(body.get("messages"), list):
        return "chat"
    field = kind_of(_target(body)[0], QuotedPrompt.of(body["messages"]))
    if field is None:
        return "agent" if body.get("tools") else "chat"
    return KINDS[field]


def _functions(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    tools = body.get("tools") or []
    return [t["function"] for t in tools if isinstance(t, Mapping) and "function" in t]


def _target(body: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, str | None]:
    wanted = body.get("response_format")
    if isinstance(wanted, Mapping) and wanted.get("type") == "json_schema":
        return wanted.get("json_schema", {}).get("schema"), None
    for function in _functions(body):
        if function.get("name") == _FINAL:
            return function.get("parameters", {}), _FINAL
    return None, None


def _check_request(body: Mapping[str, Any]) -> None:
    def demand(valid: object, message: str, param: str | None = None, code: Any = None) -> None:
        if not valid:
            raise SiteRefusal(*_error(400, message, param=param, code=code))

    named = isinstance(body.get("model"), str) and body["model"]
    demand(named, "you must provide a model parameter")
    messages = isinstance(body.get("messages"), list) and body["messages"]
    demand(messages, "Missing required parameter: 'messages'.", "messages")
    wanted = body.get("response_format")
    if isinstance(wanted, Mapping) and wanted.get("type") == "json_schema":
        given, param = wanted.get("json_schema") or {}, "response_format"
        name = given.get("name")
        demand(name, "Missing required parameter: 'response_format.json_schema.name'.")
        wrong = complaint(given.get("schema")) if given.get("strict") else None
        message = f"Invalid schema for response_format '{name}': {wrong}"
        demand(wrong is None, message, param, "invalid_json_schema")
    for function in _functions(body):
        wrong = complaint(function.get("parameters")) if function.get("strict") else None
        message = f"Invalid schema for function '{function.get('name')}': {wrong}"
        demand(wrong is None, message, "tools", "invalid_function_parameters")


def _spoilt(generation: Generation, fault: str | None) -> Generation:
    if fault == "refusal":
        return Generation(refusal="I'm sorry, I can't help with that.")
    if fault == "filtered":
        return Generation("", finish="content_filter")
    if fault == "length":
        text = generation.content or next((arguments for _, arguments in generation.calls), "")
        return Generation(text[: len(text) // 2], finish="length")
    if fault == "prose":
        return Generation("The first of them looks relevant to me, the others rather not.")
    if fault == "wrong_count":  # one verdict, grade or supported pair too few
        value = decoded(generation.content or "")
        if isinstance(value, dict) and value and all(name.isdecimal() for name in value):
            value.pop(str(len(value)))
            return Generation(json.dumps(value, ensure_ascii=False))
    return generation


def _cut(generation: Generation, body: Mapping[str, Any]) -> Generation:
    most = body.get("max_completion_tokens") or body.get("max_tokens")
    if not isinstance(most, int) or generation.size <= most:
        return generation
    end = most * _TOKEN
    calls = tuple((name, arguments[:end]) for name, arguments in generation.calls)
    return Generation((generation.content or "")[:end] or None, calls, finish="length")


def _tool_calls(generation: Generation) -> list[dict[str, Any]]:
    return [
        {
            "id": "call_" + spelled(HEX, 20, number, name, arguments), "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        for number, (name, arguments) in enumerate(generation.calls)
    ]  # fmt: skip


def _events(head: Mapping[str, Any], generation: Generation, body: Mapping[str, Any]) -> Iterator[str]:
    """The answer as server-sent events, with the usage last if it was asked for."""
    start = {key: value for key, value in head.items() if key != "usage"}

    def event(choices: list[dict[str, Any]], **more: Any) -> str:
        chunk = {**start, "object": "chat.completion.chunk", "choices": choices, **more}
        return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n"

    def delta(part: Mapping[str, Any], finish: str | None = None) -> str:
        return event([{"index": 0, "delta": part, "logprobs": None, "finish_reason": finish}])

    def chunks(text: str | None) -> Iterator[str]:
        return ((text or "")[at : at + _CHUNK] for at in range(0, len(text or ""), _CHUNK))

    content = None if generation.calls else ""
    yield delta({"role": "assistant", "content": content, "refusal": None})
    for field, text in (("content", generation.content), ("refusal", generation.refusal)):
        for chunk in chunks(text):
            yield delta({field: chunk})
    for number, call in enumerate(_tool_calls(generation)):
        function = call["function"]
        opening = {**call, "index": number, "function": {**function, "arguments": ""}}
        yield delta({"tool_calls": [opening]})
        for chunk in chunks(function["arguments"]):
            yield delta({"tool_calls": [{"index": number, "function": {"arguments": chunk}}]})
    yield delta({}, generation.finish)
    if (body.get("stream_options") or {}).get("include_usage"):
        yield event([], usage=head["usage"])
    yield "data: [DONE]\n\n"
