"""Langfuse: traces by OTLP, which the log keeps, and what its project holds."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping

from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from api.sandbox.langfuse_api import ProjectApi
from api.sandbox.langfuse_dashboards import Dashboards
from api.sandbox.otlp import spans_of
from api.sandbox.world import Call, Gateway, World

_DENIED = "Invalid credentials. Confirm that you've configured the correct host."
_WITH_DASHBOARDS = (4, 59)
_REFUSALS = {
    "401": (401, "authentication_failed", _DENIED),
    "403": (403, "access_denied", "Project ID not found for API token"),
    "409": (409, "conflict", "Changed meanwhile"),
    "422": (422, "unprocessable_content", "This cannot be processed"),
    "429": (429, "rate_limited", "Rate limit exceeded"),
    "503": (503, "internal_error", "Service unavailable"),
}
_RETRY_AFTER = "7"
_NOWHERE = "<!DOCTYPE html><title>404: This page could not be found</title>"
_OWN = {"id": "sandbox", "name": "sandbox"}
_PROJECTS = {"data": [{**_OWN, "metadata": {}, "organization": _OWN}]}


class Langfuse:
    """Answers as a Langfuse server does, for one sandbox."""

    def __init__(self, world: World) -> None:
        """Start with an empty project."""
        self._world = world
        version = world.options.langfuse_version
        old = tuple(map(int, version.split(".")[:2])) < _WITH_DASHBOARDS
        self._health = {"status": "OK", "version": version}
        self._store, self._dashboards = ProjectApi(old), Dashboards(old)

    def routes(self) -> list[Route]:
        """Its paths; only whether it is well is said without keys."""
        public = Gateway(self._world, "langfuse", self.fault)
        keyed = Gateway(self._world, "langfuse", self.fault, self.guard)
        root, post = "/api/public", ("POST",)
        return [
            keyed.route(
                f"{root}/otel/v1/traces", "traces", self.traces, methods=post, keep=True
            ),
            keyed.route(f"{root}/ingestion", "ingestion", self.ingest, methods=post, keep=True),
            *self._store.routes(keyed, root),
            *self._dashboards.routes(keyed, root),
            keyed.route(f"{root}/projects", "projects", self.projects),
            public.route(f"{root}/health", "other", lambda _: JSONResponse(self._health)),
            keyed.route(
                f"{root}/{{rest:path}}", "other", lambda _: _missing("Not Found"),
                methods=("GET", "POST"),
            ),
        ]  # fmt: skip

    def fault(self, kind: str, call: Call) -> Response | None:
        """Trouble in Langfuse's words."""
        if kind == "404html":
            return HTMLResponse(_NOWHERE, 404)
        if kind not in _REFUSALS:
            return None
        status, code, message = _REFUSALS[kind]
        headers = {"Retry-After": _RETRY_AFTER} if status == 429 else None
        return JSONResponse({"message": message, "code": code}, status, headers)

    def guard(self, call: Call) -> Response | None:
        """The check of both keys."""
        keys, known = call.basic, self._world.options.langfuse_keys
        return None if all(keys) and known in (None, keys) else self.fault("401", call)

    def projects(self, call: Call) -> Response:
        """The project of the keys; none with the fault `no_project`."""
        return JSONResponse({"data": []} if call.fault == "no_project" else _PROJECTS)

    def traces(self, call: Call) -> Response:
        """Spans by OTLP, answered in the encoding they came in; the log keeps them as they are.

        What is no OTLP is refused with 400.
        """
        if "json" in call.request.headers.get("content-type", ""):
            return JSONResponse({})
        packed = call.request.headers.get("content-encoding") == "gzip"
        try:
            spans_of(gzip.decompress(call.body) if packed else call.body)
        except (ValueError, OSError, EOFError, zlib.error):
            return JSONResponse({"error": "Failed to parse OTel Protobuf Trace"}, 400)
        return Response(b"", media_type="application/x-protobuf")

    def ingest(self, call: Call) -> Response:
        """The older batch endpoint: each event's id comes back."""
        batch = call.data.get("batch", []) if isinstance(call.data, Mapping) else []
        events = [event for event in batch if isinstance(event, Mapping)]
        done = [{"id": str(event.get("id")), "status": 201} for event in events]
        return JSONResponse({"successes": done, "errors": []}, 207)


def _missing(message: str) -> Response:
    return JSONResponse({"message": message, "error": "LangfuseNotFoundError"}, 404)
