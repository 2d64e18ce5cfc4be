"""Langfuse: traces by OTLP, which the log keeps, and what its project holds.

OTLP's protobuf, read as far as a server must to take a span; opentelemetry is tracing's.

The sandbox's Langfuse: scores and their configs, prompts, datasets and their items.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from api.sandbox.langfuse_dashboards import (
    Dashboards,
    Rejection,
    Row,
    Rows,
    answering,
    demand,
    fields_of,
    moment,
)
from api.sandbox.world import RequestGateway, SandboxCall, World

# Bytes of the ids.
_TRACE, _SPAN = 16, 8


def spans_of(body: bytes) -> int:
    """How many spans an `ExportTraceServiceRequest` holds.

    Raises:
        ValueError: it is none, or a span lacks an id or its name.
    """
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
    """Those of one field that have a length: texts, bytes and messages."""
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
# What a score config may be called: `run_cost_usd`, `my score (2)`.
_CONFIG_NAME = re.compile(r"[\w .()-]{1,35}")
# A label of a prompt: `production`, `listenpost`.
_LABEL = re.compile(r"[a-z0-9_.-]{1,36}")
_PROJECT_ID = {"projectId": "sandbox"}
_TYPES = {"NUMERIC", "BOOLEAN", "CATEGORICAL", "TEXT"}


class ProjectApi:
    """What one project keeps of them."""

    def __init__(self, old: bool) -> None:
        """`old`: a server that takes one score at a time and no list."""
        self._old = old
        self._configs, self._datasets = Rows("Score config"), Rows("Dataset")
        self._items = Rows("Dataset item")
        self._prompts: dict[str, list[Row]] = {}
        self.scores: dict[tuple[str, str, str], Row] = {}
        """By id, name and day, which is what makes two of them one."""

    def routes(self, keyed: RequestGateway, root: str) -> list[Route]:
        """Their paths below the root of the API."""
        configs, prompts = f"{root}/score-configs", f"{root}/v2/prompts"
        datasets, items = f"{root}/v2/datasets", f"{root}/dataset-items"
        endpoints: list[tuple[str, str, str, Callable[[SandboxCall], Any], int]] = [
            (f"{root}/scores", "scores", "POST", self._take_scores, 202),
            (configs, "score_configs", "GET", self._configs.page, 200),
            (configs, "score_configs", "POST", self._make_config, 200),
            (f"{configs}/{{id}}", "score_configs", "PATCH", self._change_config, 200),
            (prompts, "prompts", "GET", self._list_prompts, 200),
            (prompts, "prompts", "POST", self._push, 201),
            (f"{prompts}/{{name:path}}", "prompts", "GET", self._prompt, 200),
            (f"{prompts}/{{name:path}}", "prompts", "DELETE", self._drop_prompt, 204),
            (datasets, "datasets", "GET", self._datasets.page, 200),
            (datasets, "datasets", "POST", self._upsert_dataset, 200),
            (f"{datasets}/{{name:path}}", "datasets", "GET", self._dataset, 200),
            (items, "dataset_items", "GET", self._list_items, 200),
            (items, "dataset_items", "POST", self._upsert_item, 200),
            (f"{items}/{{id:path}}", "dataset_items", "GET", self._item, 200),
            (f"{items}/{{id:path}}", "dataset_items", "DELETE", self._drop_item, 200),
        ]
        return [
            keyed.route(
                path, name, answering(work, status), methods=(method,),
                keep=method in {"POST", "PATCH"},
            )
            for path, name, method, work, status in endpoints
        ]  # fmt: skip

    def _take_scores(self, call: SandboxCall) -> Response:
        """A list; those that are wrong are named, and the others kept."""
        if isinstance(call.data, Mapping) == (not self._old):
            raise Rejection(400, "Invalid request data", code="invalid_body")
        sent = call.data if isinstance(call.data, list) else [call.data]
        errors = []
        for number, score in enumerate(sent):
            if fault := _fault_of(score):
                errors.append({"index": number, "message": fault})
                continue
            day = str(score.get("timestamp") or "")[:10]
            key = str(score.get("id") or len(self.scores)), str(score["name"]), day
            if self._is_kept(score):
                self.scores[key] = dict(score)
        if errors:
            taken = {"accepted": len(sent) - len(errors), "rejected": len(errors)}
            return JSONResponse({**taken, "errors": errors}, 207)
        return JSONResponse({"message": "Accepted"}, 202)

    def _is_kept(self, score: Mapping[str, Any]) -> bool:
        """A score that its config does not fit is dropped in silence, after it was accepted."""
        if not score.get("configId"):
            return True
        config = next((r for r in self._configs.rows() if r["id"] == score["configId"]), None)
        if config is None or config["isArchived"] or config["name"] != score["name"]:
            return False
        value = score["value"]
        if config["dataType"] == "CATEGORICAL":
            return value in [category["label"] for category in config["categories"]]
        low, high = config.get("minValue"), config.get("maxValue")
        return (low is None or value >= low) and (high is None or value <= high)

    def _make_config(self, call: SandboxCall) -> Row:
        """One more, of whatever name; an id that is sent is passed over."""
        row = {name: value for name, value in fields_of(call).items() if name in _CONFIG}
        demand(_CONFIG_NAME.fullmatch(str(row.get("name"))), "Invalid name")
        return self._configs.make({**_PROJECT_ID, "isArchived": False, **_checked_config(row)})

    def _change_config(self, call: SandboxCall) -> Row:
        sent = fields_of(call)
        known = self._configs.get(str(call.request.path_params["id"]))
        demand(sent.get("dataType", known["dataType"]) == known["dataType"], "dataType is fixed")
        changes = {n: v for n, v in sent.items() if n in _CONFIG | {"isArchived"} and v is not None}
        _checked_config({**known, **changes})
        return self._configs.change(known["id"], changes)

    def _list_prompts(self, call: SandboxCall) -> dict[str, Any]:
        rows = [
            {
                "name": name,
                "versions": [row["version"] for row in versions],
                "labels": sorted({label for row in versions for label in row["labels"]}),
                "tags": versions[-1]["tags"],
                "type": versions[-1]["type"],
                "lastConfig": versions[-1]["config"],
                "lastUpdatedAt": versions[-1]["updatedAt"],
            }
            for name, versions in self._prompts.items()
            if call.query.get("name") in (None, name)
        ]
        return self._configs.page(call, rows)

    def _push(self, call: SandboxCall) -> Row:
        """A new version, always; its labels move here from the others."""
        sent = fields_of(call)
        name, labels = str(sent.get("name") or ""), sent.get("labels") or []
        demand(name and "|" not in name and "prompt" in sent, "Invalid prompt")
        demand(all(map(_LABEL.fullmatch, labels)) and "latest" not in labels, "Invalid labels")
        versions = self._prompts.setdefault(name, [])
        kind = sent.get("type") or "text"
        demand(
            not versions or versions[0]["type"] == kind,
            "Previous versions have different prompt type.",
        )
        for row in versions:
            row["labels"] = [label for label in row["labels"] if label not in {*labels, "latest"}]
            row["tags"] = sent.get("tags") or row["tags"]
        versions.append(
            {
                "name": name,
                "type": kind,
                "prompt": sent["prompt"],
                "version": max((row["version"] for row in versions), default=0) + 1,
                "config": sent.get("config") or {},
                "labels": [*labels, "latest"],
                "tags": sent.get("tags") or [],
                "commitMessage": sent.get("commitMessage"),
                "updatedAt": moment(),
            }
        )
        return versions[-1]

    def _prompt(self, call: SandboxCall) -> Row:
        """By version or label; in production, where neither is named."""
        versions = self._prompts.get(call.request.path_params["name"], [])
        label, number = call.query.get("label", "production"), call.query.get("version")
        for row in versions:
            if str(row["version"]) == number if number else label in row["labels"]:
                return row
        raise Rejection(404, "Prompt not found")

    def _drop_prompt(self, call: SandboxCall) -> Response:
        name, number = call.request.path_params["name"], call.query.get("version")
        kept = [r for r in self._prompts.get(name, []) if number and str(r["version"]) != number]
        if len(kept) == len(self._prompts.get(name, [])):
            raise Rejection(404, "Prompt not found")
        self._prompts[name] = kept
        if not kept:
            del self._prompts[name]
        return Response(b"", 204)

    def _upsert_dataset(self, call: SandboxCall) -> Row:
        """By name; schemas that are sent as null are cleared."""
        sent = fields_of(call)
        demand(sent.get("name"), "name is required")
        known = self._named(str(sent["name"]))
        empty = {"description": None, "metadata": None}
        if known is None:
            return self._datasets.make({**_PROJECT_ID, **empty, **sent})
        return self._datasets.change(known["id"], sent)

    def _dataset(self, call: SandboxCall) -> Row:
        if (row := self._named(call.request.path_params["name"])) is None:
            raise Rejection(404, "Dataset not found")
        return row

    def _named(self, name: str) -> Row | None:
        return next((row for row in self._datasets.rows() if row["name"] == name), None)

    def _list_items(self, call: SandboxCall) -> dict[str, Any]:
        name = call.query.get("datasetName")
        rows = [row for row in self._items.rows() if name in (None, row["datasetName"])]
        return self._items.page(call, rows)

    def _item(self, call: SandboxCall) -> Row:
        return self._items.get(call.request.path_params["id"])

    def _drop_item(self, call: SandboxCall) -> Row:
        self._items.drop(call.request.path_params["id"])
        return {"message": "Dataset item successfully deleted"}

    def _upsert_item(self, call: SandboxCall) -> Row:
        """By id, which is one in the whole project; what is null stays as it was."""
        sent = {name: value for name, value in fields_of(call).items() if value is not None}
        dataset = self._named(str(sent.get("datasetName")))
        if dataset is None:
            raise Rejection(404, "Dataset not found")
        known = next((row for row in self._items.rows() if row["id"] == sent.get("id")), None)
        if known is None:
            empty = dict.fromkeys(("input", "expectedOutput", "metadata"))
            own = {"status": "ACTIVE", "datasetId": dataset["id"], "mediaReferences": [], **empty}
            return self._items.make({**own, **sent}, sent.get("id"))
        if known["datasetName"] != sent["datasetName"]:
            raise Rejection(409, "The id belongs to an item of another dataset")
        return self._items.change(known["id"], sent)


def _checked_config(row: Row) -> Row:
    """The same, with the categories that a BOOLEAN always has."""
    kind = row.get("dataType")
    demand(kind in _TYPES, "Invalid dataType")
    low, high = row.get("minValue"), row.get("maxValue")
    demand(low is None or high is None or high > low, "maxValue must be above minValue")
    if kind == "BOOLEAN":
        return {
            **row,
            "categories": [{"label": "True", "value": 1}, {"label": "False", "value": 0}],
        }
    categories = row.get("categories") or []
    demand(bool(categories) == (kind == "CATEGORICAL"), "Invalid categories")
    for part in ("label", "value"):
        parts = [category[part] for category in categories]
        demand(len(set(parts)) == len(parts), f"categories need a {part} of their own")
    return row


def _fault_of(score: Any) -> str | None:
    """Why a score is not taken."""
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
_PROJECT = {"id": "sandbox", "name": "sandbox"}
_PROJECTS = {"data": [{**_PROJECT, "metadata": {}, "organization": _PROJECT}]}


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
        public = RequestGateway(self._world, "langfuse", self.fault)
        keyed = RequestGateway(self._world, "langfuse", self.fault, self.guard)
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

    def fault(self, kind: str, call: SandboxCall) -> Response | None:
        """Trouble in Langfuse's words."""
        if kind == "404html":
            return HTMLResponse(_NOWHERE, 404)
        if kind not in _REFUSALS:
            return None
        status, code, message = _REFUSALS[kind]
        headers = {"Retry-After": _RETRY_AFTER} if status == 429 else None
        return JSONResponse({"message": message, "code": code}, status, headers)

    def guard(self, call: SandboxCall) -> Response | None:
        """The check of both keys."""
        keys, known = call.basic, self._world.options.langfuse_keys
        return None if all(keys) and known in (None, keys) else self.fault("401", call)

    def projects(self, call: SandboxCall) -> Response:
        """The project of the keys; none with the fault `no_project`."""
        return JSONResponse({"data": []} if call.fault == "no_project" else _PROJECTS)

    def traces(self, call: SandboxCall) -> Response:
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

    def ingest(self, call: SandboxCall) -> Response:
        """The older batch endpoint: each event's id comes back."""
        batch = call.data.get("batch", []) if isinstance(call.data, Mapping) else []
        events = [event for event in batch if isinstance(event, Mapping)]
        done = [{"id": str(event.get("id")), "status": 201} for event in events]
        return JSONResponse({"successes": done, "errors": []}, 207)


def _missing(message: str) -> Response:
    return JSONResponse({"message": message, "error": "LangfuseNotFoundError"}, 404)
