"""The sandbox's Langfuse: traces by OTLP, scores and their configs, prompts, datasets and items.

OTLP's protobuf is read by hand, since only tracing may import opentelemetry.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from starlette.responses import Response
from starlette.routing import Route

from api.sandbox.langfuse_dashboards import Dashboards, Endpoint, Row, Rows, demand, fields_of, moment, rejection
from api.sandbox.world import EmulatedServer, SandboxCall, SiteRefusal, World, reply

# Bytes of the ids of a trace and a span.
_TRACE, _SPAN = 16, 8


def spans_of(body: bytes) -> int:
    """How many spans an `ExportTraceServiceRequest` holds; raises `ValueError` if malformed."""
    count = 0
    for resource in _values(body, 1):
        for scope in _values(resource, 2):
            for span in _values(scope, 2):
                trace, own, name = (next(_values(span, field), b"") for field in (1, 2, 5))
                if (len(trace), len(own)) != (_TRACE, _SPAN) or not name:
                    raise ValueError("a span has a trace id, an id and a name")
                count += 1
    return count


def _values(message: bytes, field: int) -> Iterator[bytes]:
    """Values of one field with a length: texts, bytes and messages."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        match tag & 7:
            case 0:
                _, at = _varint(message, at)
            case 1:
                at += 8
            case 2:
                size, at = _varint(message, at)
                if tag >> 3 == field and at + size <= len(message):
                    yield message[at : at + size]
                at += size
            case 5:
                at += 4
            case _:
                raise ValueError("no such wire type")
    if at > len(message):
        raise ValueError("the message is cut off")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, the lowest first, and where it ends."""
    number = 0
    for count, byte in enumerate(message[at : at + 10]):
        number |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return number, at + count + 1
    raise ValueError("a number does not end")


_CONFIG = {"name", "dataType", "description", "minValue", "maxValue", "categories"}
# Langfuse's names of score configs: `run_cost_usd`, `my score (2)`
_CONFIG_NAME = re.compile(r"[\w .()-]{1,35}")
# labels of prompts: `production`, `listenpost`
_LABEL = re.compile(r"[a-z0-9_.-]{1,36}")
_PROJECT_ID = {"projectId": "sandbox"}
_TYPES = {"NUMERIC", "BOOLEAN", "CATEGORICAL", "TEXT"}


class ProjectApi:
    """Scores and their configs, prompts, datasets and items of one project."""

    def __init__(self, old: bool) -> None:
        """`old`: a server that takes a single score instead of a list."""
        self._old = old
        self._configs, self._datasets = Rows("Score config"), Rows("Dataset")
        self._items = Rows("Dataset item")
        self._prompts: dict[str, list[Row]] = {}

    def endpoints(self, root: str) -> list[Endpoint]:
        """Endpoints of the project below the root of the API."""
        configs, prompts = f"{root}/score-configs", f"{root}/v2/prompts"
        datasets, items = f"{root}/v2/datasets", f"{root}/dataset-items"
        return [
            (f"{root}/scores", "scores", "POST", self._take_scores),
            (configs, "score_configs", "GET", self._configs.page),
            (configs, "score_configs", "POST", self._make_config),
            (f"{configs}/{{id}}", "score_configs", "PATCH", self._change_config),
            (prompts, "prompts", "GET", self._list_prompts),
            (prompts, "prompts", "POST", self._push),
            (f"{prompts}/{{name:path}}", "prompts", "GET", self._prompt),
            (f"{prompts}/{{name:path}}", "prompts", "DELETE", self._drop_prompt),
            (datasets, "datasets", "GET", self._datasets.page),
            (datasets, "datasets", "POST", self._upsert_dataset),
            (
                f"{datasets}/{{name:path}}",
                "datasets",
                "GET",
                lambda c: self._named(c.parameter("name")),
            ),
            (items, "dataset_items", "GET", self._list_items),
            (items, "dataset_items", "POST", self._upsert_item),
            (f"{items}/{{id:path}}", "dataset_items", "GET", self._items.read),
            (f"{items}/{{id:path}}", "dataset_items", "DELETE", self._items.drop),
        ]

    def _take_scores(self, call: SandboxCall) -> Response:
        single = isinstance(call.data, Mapping)
        demand(single == self._old, "Invalid request data", "invalid_body")
        sent = call.data if isinstance(call.data, list) else [call.data]
        faults = enumerate(map(_fault_of, sent))
        errors = [{"index": number, "message": fault} for number, fault in faults if fault]
        if not errors:
            return reply({"message": "Accepted"}, 202)
        taken = {"accepted": len(sent) - len(errors), "rejected": len(errors)}
        return reply({**taken, "errors": errors}, 207)

    def _make_config(self, call: SandboxCall) -> Row:
        row = {name: value for name, value in fields_of(call).items() if name in _CONFIG}
        demand(_CONFIG_NAME.fullmatch(str(row.get("name"))), "Invalid name")
        return self._configs.make({**_PROJECT_ID, "isArchived": False, **_checked_config(row)})

    def _change_config(self, call: SandboxCall) -> Row:
        sent = fields_of(call)
        known = self._configs.get(call.parameter("id"))
        demand(sent.get("dataType", known["dataType"]) == known["dataType"], "dataType is fixed")
        changes = {n: v for n, v in sent.items() if n in _CONFIG | {"isArchived"} and v is not None}
        _checked_config({**known, **changes})
        return self._configs.change(known["id"], changes)

    def _list_prompts(self, call: SandboxCall) -> dict[str, Any]:
        rows = [
            {
                "name": name, "versions": [row["version"] for row in versions],
                "labels": sorted({label for row in versions for label in row["labels"]}),
                "tags": versions[-1]["tags"], "type": versions[-1]["type"],
                "lastConfig": versions[-1]["config"], "lastUpdatedAt": versions[-1]["updatedAt"],
            }
            for name, versions in self._prompts.items()
            if call.query.get("name") in (None, name)
        ]  # fmt: skip
        return self._configs.page(call, rows)

    def _push(self, call: SandboxCall) -> Response:
        """A new version, always, which takes its labels from the others."""
        sent = fields_of(call)
        name, labels = str(sent.get("name") or ""), sent.get("labels") or []
        demand(name and "|" not in name and "prompt" in sent, "Invalid prompt")
        demand(all(map(_LABEL.fullmatch, labels)) and "latest" not in labels, "Invalid labels")
        versions = self._prompts.setdefault(name, [])
        kind = sent.get("type") or "text"
        same = not versions or versions[0]["type"] == kind
        demand(same, "Previous versions have different prompt type.")
        for row in versions:
            row["labels"] = [label for label in row["labels"] if label not in {*labels, "latest"}]
            row["tags"] = sent.get("tags") or row["tags"]
        row = {
            "name": name, "type": kind, "prompt": sent["prompt"],
            "version": max((row["version"] for row in versions), default=0) + 1,
            "config": sent.get("config") or {}, "labels": [*labels, "latest"],
            "tags": sent.get("tags") or [], "commitMessage": sent.get("commitMessage"),
            "updatedAt": moment(),
        }  # fmt: skip
        versions.append(row)
        return reply(row, 201)

    def _prompt(self, call: SandboxCall) -> Row:
        versions = self._prompts.get(call.parameter("name"), [])
        label, number = call.query.get("label", "production"), call.query.get("version")
        for row in versions:
            if str(row["version"]) == number if number else label in row["labels"]:
                return row
        raise rejection(404, "Prompt not found")

    def _drop_prompt(self, call: SandboxCall) -> Response:
        name, number = call.parameter("name"), call.query.get("version")
        versions = self._prompts.get(name, [])
        left = [row for row in versions if number and str(row["version"]) != number]
        if len(left) == len(versions):
            raise rejection(404, "Prompt not found")
        self._prompts |= {name: left}
        if not left:
            del self._prompts[name]
        return Response(b"", 204)

    def _upsert_dataset(self, call: SandboxCall) -> Row:
        """Create or change by name; fields that are sent as null are cleared."""
        sent = fields_of(call)
        demand(sent.get("name"), "name is required")
        known = self._datasets.find(name=str(sent["name"]))
        if known is None:
            empty = {"description": None, "metadata": None}
            return self._datasets.make({**_PROJECT_ID, **empty, **sent})
        return self._datasets.change(known["id"], sent)

    def _named(self, name: str) -> Row:
        if (row := self._datasets.find(name=name)) is None:
            raise rejection(404, "Dataset not found")
        return row

    def _list_items(self, call: SandboxCall) -> dict[str, Any]:
        name = call.query.get("datasetName")
        rows = [row for row in self._items.all() if name in (None, row["datasetName"])]
        return self._items.page(call, rows)

    def _upsert_item(self, call: SandboxCall) -> Row:
        """Create or change by id, unique in the project; fields sent as null stay as they are."""
        sent = {name: value for name, value in fields_of(call).items() if value is not None}
        dataset = self._named(str(sent.get("datasetName")))
        known = self._items.find(id=sent.get("id"))
        if known is None:
            empty = dict.fromkeys(("input", "expectedOutput", "metadata"))
            own = {"status": "ACTIVE", "datasetId": dataset["id"], "mediaReferences": [], **empty}
            return self._items.make({**own, **sent}, sent.get("id"))
        if known["datasetName"] != sent["datasetName"]:
            raise rejection(409, "The id belongs to an item of another dataset")
        return self._items.change(known["id"], sent)


def _checked_config(row: Row) -> Row:
    kind = row.get("dataType")
    demand(kind in _TYPES, "Invalid dataType")
    low, high = row.get("minValue"), row.get("maxValue")
    demand(low is None or high is None or high > low, "maxValue must be above minValue")
    if kind == "BOOLEAN":
        return row | {"categories": [{"label": "True", "value": 1}, {"label": "False", "value": 0}]}
    categories = row.get("categories") or []
    demand(bool(categories) == (kind == "CATEGORICAL"), "Invalid categories")
    for part in ("label", "value"):
        parts = [category[part] for category in categories]
        demand(len(set(parts)) == len(parts), f"categories need a {part} of their own")
    return row


def _fault_of(score: Any) -> str | None:
    if not isinstance(score, Mapping) or not score.get("name") or "value" not in score:
        return "name and value are required"
    if score.get("source", "API") not in {"API", "ANNOTATION"}:
        return "source must be API or ANNOTATION"
    if not any(score.get(n) for n in ("traceId", "sessionId", "datasetRunId")):
        return "traceId, sessionId or datasetRunId is required"
    value, kind = score["value"], score.get("dataType")
    number = isinstance(value, int | float)
    if kind == "BOOLEAN":
        return None if number and value in (0, 1) else "BOOLEAN is 0 or 1"
    if kind in {"CATEGORICAL", "TEXT"}:
        return None if isinstance(value, str) and value else f"{kind} is text"
    if kind == "NUMERIC":
        return None if number else "NUMERIC is a number"
    return None if kind is None else "Unknown dataType"


_DENIED = "Invalid credentials. Confirm that you've configured the correct host."
_WITH_DASHBOARDS = (4, 59)
_NOT_FOUND = ("<!DOCTYPE html><title>404: This page could not be found</title>", 404)
_PROJECT = {"id": "sandbox", "name": "sandbox"}
_PROJECTS = {"data": [{**_PROJECT, "metadata": {}, "organization": _PROJECT}]}


def _error(status: int, code: str, message: str, **headers: str) -> tuple[Any, int, dict[str, str]]:
    return {"message": message, "code": code}, status, headers


class Langfuse(EmulatedServer):
    """Answers as a Langfuse server with an empty project does."""

    upstream = "langfuse"
    fault_replies: ClassVar = {
        "404html": _NOT_FOUND,
        "401": _error(401, "authentication_failed", _DENIED),
        "403": _error(403, "access_denied", "Project ID not found for API token"),
        "409": _error(409, "conflict", "Changed meanwhile"),
        "422": _error(422, "unprocessable_content", "This cannot be processed"),
        "429": _error(429, "rate_limited", "Rate limit exceeded", **{"Retry-After": "7"}),
        "503": _error(503, "internal_error", "Service unavailable"),
    }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        version = world.options.langfuse_version
        self._old = tuple(map(int, version.split(".")[:2])) < _WITH_DASHBOARDS
        self._health = {"status": "OK", "version": version}
        self._project, self._dashboards = ProjectApi(self._old), Dashboards()

    def routes(self) -> list[Route]:
        """Routes of Langfuse; only its health check needs no keys."""
        root = "/api/public"
        boards = self._dashboards.endpoints(root)
        if self._old:
            boards = [(path, name, method, lambda _: reply(*_NOT_FOUND)) for path, name, method, _ in boards]
        endpoints: list[Endpoint] = [
            (f"{root}/otel/v1/traces", "traces", "POST", self._traces),
            (f"{root}/ingestion", "ingestion", "POST", self._ingest),
            *self._project.endpoints(root),
            *boards,
            (
                f"{root}/projects",
                "projects",
                "GET",
                lambda call: {"data": []} if call.fault == "no_project" else _PROJECTS,
            ),
        ]
        missing = {"message": "Not Found", "error": "LangfuseNotFoundError"}
        return [
            *(
                self.route(
                    path, name, answer, methods=(method,), keep=method in {"POST", "PATCH"}
                )
                for path, name, method, answer in endpoints
            ),
            self.route(f"{root}/health", "other", lambda _: self._health, guarded=False),
            self.route(
                f"{root}/{{rest:path}}", "other", lambda _: reply(missing, 404),
                methods=("GET", "POST"),
            ),
        ]  # fmt: skip

    def guard(self, call: SandboxCall) -> None:
        keys = call.basic
        if not all(keys) or self.world.options.langfuse_keys not in (None, keys):
            raise SiteRefusal(*self.fault_replies["401"])

    def _traces(self, call: SandboxCall) -> Any:
        """Spans by OTLP, answered in the encoding they came in; the log keeps them as they are."""
        if "json" in call.request.headers.get("content-type", ""):
            return {}
        packed = call.request.headers.get("content-encoding") == "gzip"
        try:
            spans_of(gzip.decompress(call.body) if packed else call.body)
        except (ValueError, OSError, EOFError, zlib.error):
            raise SiteRefusal({"error": "Failed to parse OTel Protobuf Trace"}) from None
        return Response(b"", media_type="application/x-protobuf")

    def _ingest(self, call: SandboxCall) -> Response:
        batch = call.data.get("batch", []) if isinstance(call.data, Mapping) else []
        events = [event for event in batch if isinstance(event, Mapping)]
        done = [{"id": str(event.get("id")), "status": 201} for event in events]
        return reply({"successes": done, "errors": []}, 207)
