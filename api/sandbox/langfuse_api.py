"""The sandbox's Langfuse: scores and their configs, prompts, datasets and their items."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.sandbox.langfuse_shelf import Rejection, Row, Rows, answering, demand, fields_of, moment
from api.sandbox.world import Call, Gateway

_CONFIG = {"name", "dataType", "description", "minValue", "maxValue", "categories"}
_CONFIG_NAME = re.compile(r"[\w .()-]{1,35}")
"""What a score config may be called: `run_cost_usd`, `my score (2)`."""
_LABEL = re.compile(r"[a-z0-9_.-]{1,36}")
"""A label of a prompt: `production`, `listenpost`."""
_OWN = {"projectId": "sandbox"}
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

    def routes(self, keyed: Gateway, root: str) -> list[Route]:
        """Their paths below the root of the API."""
        configs, prompts = f"{root}/score-configs", f"{root}/v2/prompts"
        datasets, items = f"{root}/v2/datasets", f"{root}/dataset-items"
        endpoints: list[tuple[str, str, str, Callable[[Call], Any], int]] = [
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

    def _take_scores(self, call: Call) -> Response:
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

    def _make_config(self, call: Call) -> Row:
        """One more, of whatever name; an id that is sent is passed over."""
        row = {name: value for name, value in fields_of(call).items() if name in _CONFIG}
        demand(_CONFIG_NAME.fullmatch(str(row.get("name"))), "Invalid name")
        return self._configs.make({**_OWN, "isArchived": False, **_checked_config(row)})

    def _change_config(self, call: Call) -> Row:
        sent = fields_of(call)
        known = self._configs.get(str(call.request.path_params["id"]))
        demand(sent.get("dataType", known["dataType"]) == known["dataType"], "dataType is fixed")
        changes = {n: v for n, v in sent.items() if n in _CONFIG | {"isArchived"} and v is not None}
        _checked_config({**known, **changes})
        return self._configs.change(known["id"], changes)

    def _list_prompts(self, call: Call) -> dict[str, Any]:
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

    def _push(self, call: Call) -> Row:
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

    def _prompt(self, call: Call) -> Row:
        """By version or label; in production, where neither is named."""
        versions = self._prompts.get(call.request.path_params["name"], [])
        label, number = call.query.get("label", "production"), call.query.get("version")
        for row in versions:
            if str(row["version"]) == number if number else label in row["labels"]:
                return row
        raise Rejection(404, "Prompt not found")

    def _drop_prompt(self, call: Call) -> Response:
        name, number = call.request.path_params["name"], call.query.get("version")
        kept = [r for r in self._prompts.get(name, []) if number and str(r["version"]) != number]
        if len(kept) == len(self._prompts.get(name, [])):
            raise Rejection(404, "Prompt not found")
        self._prompts[name] = kept
        if not kept:
            del self._prompts[name]
        return Response(b"", 204)

    def _upsert_dataset(self, call: Call) -> Row:
        """By name; schemas that are sent as null are cleared."""
        sent = fields_of(call)
        demand(sent.get("name"), "name is required")
        known = self._named(str(sent["name"]))
        empty = {"description": None, "metadata": None}
        if known is None:
            return self._datasets.make({**_OWN, **empty, **sent})
        return self._datasets.change(known["id"], sent)

    def _dataset(self, call: Call) -> Row:
        if (row := self._named(call.request.path_params["name"])) is None:
            raise Rejection(404, "Dataset not found")
        return row

    def _named(self, name: str) -> Row | None:
        return next((row for row in self._datasets.rows() if row["name"] == name), None)

    def _list_items(self, call: Call) -> dict[str, Any]:
        name = call.query.get("datasetName")
        rows = [row for row in self._items.rows() if name in (None, row["datasetName"])]
        return self._items.page(call, rows)

    def _item(self, call: Call) -> Row:
        return self._items.get(call.request.path_params["id"])

    def _drop_item(self, call: Call) -> Row:
        self._items.drop(call.request.path_params["id"])
        return {"message": "Dataset item successfully deleted"}

    def _upsert_item(self, call: Call) -> Row:
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
