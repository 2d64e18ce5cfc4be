"""Langfuse's ingestion side: traces by OTLP, scores, prompts; it keeps what it gets in the log."""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.sandbox.world import Answer, Call, Desk, World


def unpacked(body: bytes) -> bytes:
    """A body without its gzip wrapping, if it has one."""
    if not body.startswith(b"\x1f\x8b"):
        return body
    try:
        return gzip.decompress(body)
    except (OSError, EOFError, zlib.error):
        return body


class Langfuse:
    """Answers as a Langfuse server does, for one sandbox."""

    def __init__(self, world: World) -> None:
        """Start without prompts."""
        self._world = world
        self._prompts: dict[str, dict[str, Any]] = {}

    def routes(self) -> list[Route]:
        """Its paths."""
        desk, post = Desk(self._world, "langfuse", self._fault), ("POST",)
        root, keyed = "/api/public", self._keyed
        return [
            desk.route(f"{root}/otel/v1/traces", "traces", keyed(_traces), methods=post, keep=True),
            desk.route(f"{root}/scores", "scores", keyed(_accepted), methods=post, keep=True),
            desk.route(f"{root}/ingestion", "ingestion", keyed(_ingested), methods=post, keep=True),
            desk.route(
                f"{root}/v2/prompts", "prompts", keyed(self._store), methods=post, keep=True
            ),
            desk.route(f"{root}/v2/prompts/{{name:path}}", "prompts", keyed(self._prompt)),
            desk.route(f"{root}/projects", "projects", keyed(_projects)),
            desk.route(f"{root}/health", "other", _health),
            desk.route(f"{root}/{{rest:path}}", "other", keyed(_unknown), methods=("GET", "POST")),
        ]

    def _fault(self, kind: str, call: Call) -> Response | None:
        return _denied() if kind == "401" else None

    def _keyed(self, answer: Answer) -> Answer:
        """The answer behind the check of both keys."""

        def serve(call: Call) -> Response:
            keys, known = _keys(call.request.headers.get("authorization", "")), self._world.options
            if not all(keys) or (known.langfuse_keys is not None and keys != known.langfuse_keys):
                return _denied()
            made = answer(call)
            assert isinstance(made, Response)
            return made

        return serve

    def _store(self, call: Call) -> Response:
        made: dict[str, Any] = dict(call.data) if isinstance(call.data, Mapping) else {}
        versions = self._prompts.get(str(made.get("name")), {}).get("version", 0)
        made |= {
            "version": versions + 1,
            "config": made.get("config") or {},
            "tags": made.get("tags") or [],
        }
        made |= {"labels": made.get("labels") or ["latest"], "type": made.get("type") or "text"}
        self._prompts[str(made.get("name"))] = made
        return JSONResponse(made, 201)

    def _prompt(self, call: Call) -> Response:
        name = call.request.path_params["name"]
        if name in self._prompts:
            return JSONResponse(self._prompts[name])
        return JSONResponse({"message": "Prompt not found", "error": "LangfuseNotFoundError"}, 404)


def _denied() -> Response:
    return JSONResponse(
        {"message": "Invalid credentials. Confirm that you've configured the correct host."}, 401
    )


def _keys(header: str) -> tuple[str, str]:
    kind, _, value = header.partition(" ")
    try:
        public, _, secret = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return (public, secret) if kind.casefold() == "basic" else ("", "")


def _traces(call: Call) -> Response:
    if "json" in call.request.headers.get("content-type", ""):
        return JSONResponse({})
    return Response(b"", media_type="application/x-protobuf")


def _accepted(call: Call) -> Response:
    return JSONResponse({"message": "Accepted"}, 202)


def _ingested(call: Call) -> Response:
    batch = call.data.get("batch", []) if isinstance(call.data, Mapping) else []
    done = [
        {"id": str(event.get("id")), "status": 201} for event in batch if isinstance(event, Mapping)
    ]
    return JSONResponse({"successes": done, "errors": []}, 207)


def _projects(call: Call) -> Response:
    project = {
        "id": "sandbox",
        "name": "sandbox",
        "metadata": {},
        "organization": {"id": "sandbox", "name": "sandbox"},
    }
    return JSONResponse({"data": [project]})


def _health(call: Call) -> Response:
    return JSONResponse({"status": "OK", "version": "4.59.0"})


def _unknown(call: Call) -> Response:
    return JSONResponse({"message": "Not Found", "error": "LangfuseNotFoundError"}, 404)
