"""An OpenAI-compatible model server: Chat Completions before the sandbox's judge and writer.

JSON schemas as OpenAI takes them: the strict subset, and values made to fit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from api.sandbox.corpus import HEX, spelled
from api.sandbox.model_answers import KINDS, QuotedPrompt, answer, kind_of
from api.sandbox.model_chat import chat, looks
from api.sandbox.world import RequestGateway, SandboxCall, World, decoded

_UNSUPPORTED = "allOf not if then else oneOf patternProperties dependentRequired".split()
_EMPTY: Mapping[str, Any] = {
    "string": "", "integer": 0, "number": 0, "boolean": False, "null": None, "array": [],
    "object": {},
}  # fmt: skip
_NAMES = {
    bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object",
}  # fmt: skip


def complaint(schema: Any) -> str | None:
    """What the strict mode has against a schema; None when nothing."""
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
    """The value with what the schema does not know left out and what it requires added."""
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


_MODELS = ("gpt-4o-mini", "gpt-4o")
# The tool whose arguments are the answer, as pydantic-ai names it.
_FINAL = "final_result"
# Characters of one token, about.
_TOKEN = 4
# Characters of one chunk of a stream.
_PIECE = 24


@dataclass(frozen=True, slots=True)
class Generation:
    """What the model answers: text or calls of tools, and how it stopped."""

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


def refusal(status: int, message: str, kind: str, **more: Any) -> Response:
    """An error in OpenAI's envelope."""
    error = {"message": message, "type": kind, "param": None, "code": None, **more}
    return JSONResponse({"error": error}, status)


def _invalid(message: str, param: str | None = None, code: str | None = None) -> Response:
    return refusal(400, message, "invalid_request_error", param=param, code=code)


class OpenAI:
    """Answers as api.openai.com does, for one sandbox."""

    def __init__(self, world: World) -> None:
        """Nothing is loaded before the first question."""
        self._world = world

    def routes(self) -> list[Route]:
        """Its paths."""
        gateway, post = RequestGateway(self._world, "openai", self.fault, self.guard), ("POST",)
        return [
            gateway.route("/v1/chat/completions", endpoint, self.complete, methods=post, keep=True),
            gateway.route("/v1/models", "models", self.models),
            gateway.route("/v1/models/{id}", "models", self.models),
        ]

    def fault(self, kind: str, call: SandboxCall) -> Response | None:
        """Trouble in OpenAI's words."""
        if kind == "401":
            return _unauthorized("sk-wrong")
        if kind == "429":
            message = "Rate limit reached for requests. Please try again in 20s."
            response = refusal(429, message, "requests", code="rate_limit_exceeded")
            response.headers["retry-after"] = "20"
            return response
        if kind == "insufficient_quota":
            message = "You exceeded your current quota, please check your plan and billing details."
            return refusal(429, message, "insufficient_quota", code="insufficient_quota")
        if kind == "500":
            message = "The server had an error while processing your request."
            return refusal(500, message, "server_error")
        wants_schema = isinstance(call.data, Mapping) and "response_format" in call.data
        if kind == "no_schema" and wants_schema:
            message = "'response_format' of type 'json_schema' is not supported."
            return _invalid(message, "response_format")
        return None

    def guard(self, call: SandboxCall) -> Response | None:
        """The key check."""
        kind, _, key = call.request.headers.get("authorization", "").partition(" ")
        if kind.casefold() == "bearer" and key and self._world.options.openai_key in (None, key):
            return None
        return _unauthorized(key)

    def models(self, call: SandboxCall) -> Response:
        """All models, or the one of that id."""
        listing = [
            {"id": m, "object": "model", "created": 0, "owned_by": "sandbox"} for m in _MODELS
        ]
        id_ = call.request.path_params.get("id")
        if id_ is None:
            return JSONResponse({"object": "list", "data": listing})
        if id_ in _MODELS:
            return JSONResponse(listing[_MODELS.index(id_)])
        message = f"The model '{id_}' does not exist"
        return refusal(404, message, "invalid_request_error", code="model_not_found")

    def complete(self, call: SandboxCall) -> Response:
        """A completion, whole or as server-sent events, spoilt by a fault, cut at its budget."""
        body = call.data
        if not isinstance(body, Mapping):
            return _invalid("We could not parse the JSON body of your request.")
        if (wrong := _unsound(body)) is not None:
            return wrong
        prompt = QuotedPrompt.of(body["messages"])
        generation = cut(spoilt(self._generate(body, prompt), call.fault), body)
        prompted = "".join(text for _, text in prompt.messages)
        shapes = json.dumps([body.get("tools"), body.get("response_format")])
        given = tokens(prompted) + tokens(shapes)
        head = {
            "id": "chatcmpl-" + spelled(HEX, 24, prompted),
            "created": int(self._world.clock()),
            "model": body["model"],
            "system_fingerprint": "fp_sandbox",
            "service_tier": "default",
            "usage": {
                "prompt_tokens": given,
                "completion_tokens": generation.size,
                "total_tokens": given + generation.size,
                "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
            },
        }
        empty = call.fault == "no_choices"
        if body.get("stream") and not empty:
            stream = events(head, generation, body)
            return StreamingResponse(stream, media_type="text/event-stream")
        choices = [] if empty else [choice(generation)]
        return JSONResponse({**head, "object": "chat.completion", "choices": choices})

    def _generate(self, body: Mapping[str, Any], prompt: QuotedPrompt) -> Generation:
        """The honest answer."""
        judge = self._world.judge
        schema, tool = _target(body)
        field = kind_of(schema, prompt)
        if field is None and schema is None:
            calls = looks(_functions(body), prompt, body.get("tool_choice"))
            if calls:
                return Generation(calls=calls, finish="tool_calls")
            return Generation(chat(prompt))
        value = {"text": chat(prompt)} if field is None else answer(field, prompt, judge)
        fitting = value if schema is None else fitted(value, schema)
        text = json.dumps(fitting, ensure_ascii=False)
        return Generation(calls=((tool, text),), finish="tool_calls") if tool else Generation(text)


def endpoint(body: Any) -> str:
    """The endpoint's name in faults, latencies and the log: what kind of answer is asked for."""
    if not isinstance(body, Mapping) or not isinstance(body.get("messages"), list):
        return "chat"
    field = kind_of(_target(body)[0], QuotedPrompt.of(body["messages"]))
    if field is None:
        return "agent" if body.get("tools") else "chat"
    return KINDS[field]


def _unauthorized(key: str) -> Response:
    shown = f"{key[:3]}***" if key else "(none)"
    message = f"Incorrect API key provided: {shown}."
    return refusal(401, message, "invalid_request_error", code="invalid_api_key")


def _functions(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    tools = body.get("tools") or []
    return [t["function"] for t in tools if isinstance(t, Mapping) and "function" in t]


def _target(body: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, str | None]:
    """The schema to answer in, and the tool that takes it, if it is one's arguments."""
    wanted = body.get("response_format")
    if isinstance(wanted, Mapping) and wanted.get("type") == "json_schema":
        return wanted.get("json_schema", {}).get("schema"), None
    for function in _functions(body):
        if function.get("name") == _FINAL:
            return function.get("parameters", {}), _FINAL
    return None, None


def _unsound(body: Mapping[str, Any]) -> Response | None:
    """What the request itself gets wrong."""
    if not isinstance(body.get("model"), str) or not body["model"]:
        return _invalid("you must provide a model parameter")
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        return _invalid("Missing required parameter: 'messages'.", "messages")
    wanted = body.get("response_format")
    if isinstance(wanted, Mapping) and wanted.get("type") == "json_schema":
        given = wanted.get("json_schema") or {}
        if not given.get("name"):
            return _invalid("Missing required parameter: 'response_format.json_schema.name'.")
        wrong = complaint(given.get("schema")) if given.get("strict") else None
        if wrong is not None:
            message = f"Invalid schema for response_format '{given['name']}': {wrong}"
            return _invalid(message, "response_format", "invalid_json_schema")
    for function in _functions(body):
        wrong = complaint(function.get("parameters")) if function.get("strict") else None
        if wrong is not None:
            message = f"Invalid schema for function '{function.get('name')}': {wrong}"
            return _invalid(message, "tools", "invalid_function_parameters")
    return None


def spoilt(generation: Generation, fault: str | None) -> Generation:
    """The answer as a fault leaves it."""
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
        for field in ("relevant", "grades", "supported"):
            if isinstance(value, dict) and field in value:
                return Generation(json.dumps({field: value[field][:-1]}, ensure_ascii=False))
    return generation


def cut(generation: Generation, body: Mapping[str, Any]) -> Generation:
    """Stop where the caller's budget ends."""
    most = body.get("max_completion_tokens") or body.get("max_tokens")
    if not isinstance(most, int) or generation.size <= most:
        return generation
    room = most * _TOKEN
    calls = tuple((name, arguments[:room]) for name, arguments in generation.calls)
    return Generation((generation.content or "")[:room] or None, calls, finish="length")


def _tool_calls(generation: Generation) -> list[dict[str, Any]]:
    return [
        {
            "id": "call_" + spelled(HEX, 20, number, name, arguments),
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        for number, (name, arguments) in enumerate(generation.calls)
    ]


def choice(generation: Generation) -> dict[str, Any]:
    """The one entry of `choices`."""
    message: dict[str, Any] = {
        "role": "assistant", "content": generation.content, "refusal": generation.refusal,
        "annotations": [],
    }  # fmt: skip
    if generation.calls:
        message["tool_calls"] = _tool_calls(generation)
    finish = generation.finish
    return {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}


def events(
    head: Mapping[str, Any], generation: Generation, body: Mapping[str, Any]
) -> Iterator[str]:
    """The answer as server-sent events, usage last when it was asked for."""
    start = {key: value for key, value in head.items() if key != "usage"}

    def event(delta: Mapping[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        chunk = {**start, "object": "chat.completion.chunk", "choices": [choice]}
        return f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n"

    def pieces(text: str | None) -> Iterator[str]:
        return ((text or "")[at : at + _PIECE] for at in range(0, len(text or ""), _PIECE))

    content = None if generation.calls else ""
    yield event({"role": "assistant", "content": content, "refusal": None})
    for piece in pieces(generation.content):
        yield event({"content": piece})
    for piece in pieces(generation.refusal):
        yield event({"refusal": piece})
    for number, call in enumerate(_tool_calls(generation)):
        function = call["function"]
        opening = {**call, "index": number, "function": {**function, "arguments": ""}}
        yield event({"tool_calls": [opening]})
        for piece in pieces(function["arguments"]):
            yield event({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    yield event({}, generation.finish)
    if (body.get("stream_options") or {}).get("include_usage"):
        chunk = {**start, "object": "chat.completion.chunk", "choices": [], "usage": head["usage"]}
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"
