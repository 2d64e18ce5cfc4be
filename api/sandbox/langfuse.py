"""Langfuse's ingestion side: traces by OTLP, scores, prompts; it keeps what it gets in the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.sandbox.world import Call, Gateway, World

_DENIED = "Invalid credentials. Confirm that you've configured the correct host."
_HEALTH = {"status": "OK", "version": "4.59.0"}
_OWN = {"id": "sandbox", "name": "sandbox"}
_PROJECTS = {"data": [{**_OWN, "metadata": {}, "organization": _OWN}]}


class Langfuse:
    """Answers as a Langfuse server does, for one sandbox."""

    def __init__(self, world: World) -> None:
        """Start without prompts."""
        self._world = world
        self._prompts: dict[str, dict[str, Any]] = {}

    def routes(self) -> list[Route]:
        """Its paths; only whether it is well is said without keys."""
        public = Gateway(self._world, "langfuse", self.fault)
        keyed = Gateway(self._world, "langfuse", self.fault, self.guard)
        root, post = "/api/public", ("POST",)
        return [
            keyed.route(
                f"{root}/otel/v1/traces", "traces", self.traces, methods=post, keep=True
            ),
            keyed.route(
                f"{root}/scores", "scores", lambda _: JSONResponse({"message": "Accepted"}, 202),
                methods=post, keep=True,
            ),
            keyed.route(f"{root}/ingestion", "ingestion", self.ingest, methods=post, keep=True),
            keyed.route(f"{root}/v2/prompts", "prompts", self.store, methods=post, keep=True),
            keyed.route(f"{root}/v2/prompts/{{name:path}}", "prompts", self.prompt),
            keyed.route(f"{root}/projects", "projects", lambda _: JSONResponse(_PROJECTS)),
            public.route(f"{root}/health", "other", lambda _: JSONResponse(_HEALTH)),
            keyed.route(
                f"{root}/{{rest:path}}", "other", lambda _: _missing("Not Found"),
                methods=("GET", "POST"),
            ),
        ]  # fmt: skip

    def fault(self, kind: str, call: Call) -> Response | None:
        """Trouble in Langfuse's words."""
        return JSONResponse({"message": _DENIED}, 401) if kind == "401" else None

    def guard(self, call: Call) -> Response | None:
        """The check of both keys."""
        keys, known = call.basic, self._world.options.langfuse_keys
        return None if all(keys) and known in (None, keys) else self.fault("401", call)

    def traces(self, call: Call) -> Response:
        """Spans by OTLP, answered in the encoding they came in; the log keeps them as they are."""
        if "json" in call.request.headers.get("content-type", ""):
            return JSONResponse({})
        return Response(b"", media_type="application/x-protobuf")

    def ingest(self, call: Call) -> Response:
        """The older batch endpoint: each event's id comes back."""
        batch = call.data.get("batch", []) if isinstance(call.data, Mapping) else []
        events = [event for event in batch if isinstance(event, Mapping)]
        done = [{"id": str(event.get("id")), "status": 201} for event in events]
        return JSONResponse({"successes": done, "errors": []}, 207)

    def store(self, call: Call) -> Response:
        """Keep a prompt as the next version of its name."""
        prompt: dict[str, Any] = dict(call.data) if isinstance(call.data, Mapping) else {}
        name = str(prompt.get("name"))
        prompt |= {
            "version": self._prompts.get(name, {}).get("version", 0) + 1,
            "config": prompt.get("config") or {},
            "tags": prompt.get("tags") or [],
            "labels": prompt.get("labels") or ["latest"],
            "type": prompt.get("type") or "text",
        }
        self._prompts[name] = prompt
        return JSONResponse(prompt, 201)

    def prompt(self, call: Call) -> Response:
        """The newest version of a prompt."""
        prompt = self._prompts.get(call.request.path_params["name"])
        return _missing("Prompt not found") if prompt is None else JSONResponse(prompt)


def _missing(message: str) -> Response:
    return JSONResponse({"message": message, "error": "LangfuseNotFoundError"}, 404)
