"""An OpenAI-compatible model server: Chat Completions before the sandbox's judge and writer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from api.sandbox.answers import KINDS, answer, kind_of
from api.sandbox.chatting import chat, looks
from api.sandbox.completions import Made, choice, cut, events, spoilt, tokens
from api.sandbox.corpus import spelled
from api.sandbox.json_schemas import complaint, fitted
from api.sandbox.quoted import Prompt
from api.sandbox.world import Call, Desk, World

_HEX = "0123456789abcdef"
_MODELS = ("gpt-4o-mini", "gpt-4o")
_FINAL = "final_result"


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
        desk, post = Desk(self._world, "openai", self._fault), ("POST",)
        return [
            desk.route("/v1/chat/completions", endpoint, self._complete, methods=post, keep=True),
            desk.route("/v1/models", "models", self._models),
            desk.route("/v1/models/{id}", "models", self._models),
        ]

    def _fault(self, kind: str, call: Call) -> Response | None:
        if kind == "401":
            return self._unauthorized("sk-wrong")
        if kind == "429":
            message = "Rate limit reached for requests. Please try again in 20s."
            response = refusal(429, message, "requests", code="rate_limit_exceeded")
            response.headers["retry-after"] = "20"
            return response
        if kind == "insufficient_quota":
            message = "You exceeded your current quota, please check your plan and billing details."
            return refusal(429, message, "insufficient_quota", code="insufficient_quota")
        if kind == "500":
            return refusal(
                500, "The server had an error while processing your request.", "server_error"
            )
        if (
            kind == "no_schema"
            and isinstance(call.data, Mapping)
            and "response_format" in call.data
        ):
            return _invalid(
                "'response_format' of type 'json_schema' is not supported.", "response_format"
            )
        return None

    @staticmethod
    def _unauthorized(key: str) -> Response:
        shown = f"{key[:3]}***" if key else "(none)"
        message = f"Incorrect API key provided: {shown}."
        return refusal(401, message, "invalid_request_error", code="invalid_api_key")

    def _denied(self, call: Call) -> Response | None:
        kind, _, key = call.request.headers.get("authorization", "").partition(" ")
        known = self._world.options.openai_key
        if kind.casefold() != "bearer" or not key or (known is not None and key != known):
            return self._unauthorized(key)
        return None

    def _models(self, call: Call) -> Response:
        if (denied := self._denied(call)) is not None:
            return denied
        listing = [
            {"id": m, "object": "model", "created": 0, "owned_by": "sandbox"} for m in _MODELS
        ]
        wanted = call.request.path_params.get("id")
        if wanted is None:
            return JSONResponse({"object": "list", "data": listing})
        found = next((m for m in listing if m["id"] == wanted), None)
        if found is None:
            message = f"The model '{wanted}' does not exist"
            return refusal(404, message, "invalid_request_error", code="model_not_found")
        return JSONResponse(found)

    def _complete(self, call: Call) -> Response:
        body = call.data
        if (denied := self._denied(call)) is not None:
            return denied
        if not isinstance(body, Mapping):
            return _invalid("We could not parse the JSON body of your request.")
        if (wrong := _unsound(body)) is not None:
            return wrong
        made = cut(spoilt(self._made(body), call.fault), body)
        head = self._head(body, made)
        if call.fault == "no_choices":
            return JSONResponse({**head, "object": "chat.completion", "choices": []})
        if body.get("stream"):
            return StreamingResponse(events(head, made, body), media_type="text/event-stream")
        return JSONResponse({**head, "object": "chat.completion", "choices": [choice(made)]})

    def _head(self, body: Mapping[str, Any], made: Made) -> dict[str, Any]:
        asked = "".join(text for _, text in Prompt.of(body["messages"]).messages)
        shapes = json.dumps([body.get("tools"), body.get("response_format")])
        given = tokens(asked) + tokens(shapes)
        usage = {
            "prompt_tokens": given,
            "completion_tokens": made.size,
            "total_tokens": given + made.size,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        }
        return {
            "id": "chatcmpl-" + spelled(_HEX, 24, asked),
            "created": int(self._world.clock()),
            "model": body["model"],
            "system_fingerprint": "fp_sandbox",
            "service_tier": "default",
            "usage": usage,
        }

    def _made(self, body: Mapping[str, Any]) -> Made:
        """The honest answer."""
        prompt, judge = Prompt.of(body["messages"]), self._world.judge
        schema, tool = _target(body)
        field = kind_of(schema, prompt)
        if field is not None:
            made = answer(field, prompt, judge)
            value = made if schema is None else fitted(made, schema)
            text = json.dumps(value, ensure_ascii=False)
            return Made(calls=((tool, text),), finish="tool_calls") if tool else Made(text)
        if schema is not None:
            text = json.dumps(fitted({"text": chat(prompt, judge)}, schema), ensure_ascii=False)
            return Made(calls=((tool, text),), finish="tool_calls") if tool else Made(text)
        calls = looks(_functions(body), prompt, body.get("tool_choice"))
        return Made(calls=calls, finish="tool_calls") if calls else Made(chat(prompt, judge))


def endpoint(body: Any) -> str:
    """The endpoint's name in faults, latencies and the log, told by what is asked for."""
    if not isinstance(body, Mapping) or not isinstance(body.get("messages"), list):
        return "chat"
    field = kind_of(_target(body)[0], Prompt.of(body["messages"]))
    if field is None:
        return "agent" if body.get("tools") else "chat"
    return KINDS[field]


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
