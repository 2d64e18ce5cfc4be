"""What the sandbox's Langfuse keeps of a project, and what it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from langfuse.api import LangfuseAPI

from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from tests.sandbox.conftest import Start

KEYS = ("pk", "sk")
WIDGET: dict[str, Any] = {
    "name": "Yield", "view": "scores-numeric", "filters": [], "chartType": "LINE_TIME_SERIES",
    "metrics": [{"measure": "value", "agg": "avg"}],
}  # fmt: skip
PLACE: dict[str, Any] = {"type": "widget", "id": "a", "x": 0, "y": 0, "width": 6, "height": 6}
TRACES = [{"measure": "traceId", "agg": "avg"}]
WIDGETS, BOARDS = "unstable/dashboard-widgets", "unstable/dashboards"


def call(sandbox: Sandbox, method: str, path: str, body: Any = None, **query: Any) -> tuple[int, Any]:
    """Status and JSON of one request."""
    url = f"{sandbox.url}/api/public/{path}"
    answer = httpx.request(method, url, json=body, params=query or None, auth=KEYS)
    kind = answer.headers.get("content-type", "")
    return answer.status_code, answer.json() if "json" in kind else answer.text


def made(sandbox: Sandbox, path: str, body: Any) -> Any:
    """What a POST that works makes."""
    status, row = call(sandbox, "POST", path, body)
    assert status in {200, 201}, row
    return row


def filtered(column: str, kind: str, operator: str, value: Any) -> dict[str, Any]:
    """A widget with one filter."""
    return {"filters": [{"column": column, "type": kind, "operator": operator, "value": value}]}


def test_lists_have_pages_and_the_newest_change_first(sandbox: Sandbox) -> None:
    """50 rows unless said otherwise, 100 at most; names may repeat and ids are the server's."""
    rows = [made(sandbox, WIDGETS, WIDGET) for _ in range(60)]
    call(sandbox, "PATCH", f"{WIDGETS}/{rows[5]['id']}", {"name": "Changed"})

    _, first = call(sandbox, "GET", WIDGETS)
    _, second = call(sandbox, "GET", WIDGETS, page=2)

    assert first["meta"] == {"page": 1, "limit": 50, "totalItems": 60, "totalPages": 2}
    assert [row["name"] for row in first["data"][:2]] == ["Changed", "Yield"]
    assert len(second["data"]) == 10
    assert len({row["id"] for row in [*first["data"], *second["data"]]}) == 60
    assert call(sandbox, "GET", WIDGETS, limit=101)[0] == 400


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (WIDGETS, WIDGET),
        (BOARDS, {}),
        ("score-configs", {"dataType": "BOOLEAN"}),
        ("v2/prompts", {"prompt": "p"}),
        ("v2/datasets", {}),
        ("dataset-items", {"datasetName": "d"}),
    ],
)
def test_every_list_has_two_pages(sandbox: Sandbox, path: str, body: Any) -> None:
    """Each row is on one of them."""
    made(sandbox, "v2/datasets", {"name": "d"})
    sent = [body | {"name": f"n{number}"} for number in range(6)]
    for row in sent if path != "dataset-items" else [body | {"id": row["name"]} for row in sent]:
        made(sandbox, path, row)
    count = 7 if path == "v2/datasets" else 6
    pages = [call(sandbox, "GET", path, limit=4, page=page)[1] for page in (1, 2)]

    assert [page["meta"]["totalPages"] for page in pages] == [2, 2]
    names = {row.get("name", row.get("id")) for page in pages for row in page["data"]}
    assert (len(names), [len(page["data"]) for page in pages]) == (count, [4, count - 4])


def test_a_chart_gets_its_type_and_loses_its_config_with_another(sandbox: Sandbox) -> None:
    """What is not sent is filled in; a new type alone resets the config."""
    limit = {"type": "PIE", "row_limit": 5}
    row = made(sandbox, WIDGETS, {**WIDGET, "chartType": "PIE", "chartConfig": limit, "junk": 1})
    assert (row["chartConfig"], row["description"], "junk" in row) == (limit, "", False)

    _, changed = call(sandbox, "PATCH", f"{WIDGETS}/{row['id']}", {"chartType": "NUMBER"})

    assert changed["chartConfig"] == {"type": "NUMBER"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"dimensions": [{"field": "bogus"}]}, "dimensions[0].field"),
        ({"view": "scores-categorical"}, "metrics[0].agg"),
        ({"view": "observations", "metrics": TRACES}, "metrics[0].agg"),
        (filtered("observationPromptName", "string", "=", "a"), "filters"),
        ({"view": "traces"}, None),
        ({"metrics": []}, None),
        ({"chartConfig": {"type": "PIE"}}, None),
        ({"chartType": "NUMBER", "chartConfig": {"row_limit": 1001}}, None),
        ({"dimensions": [{"field": "name"}, {"field": "source"}]}, None),
        (filtered("name", "stringOptions", "any of", []), None),
        (filtered("name", "string", "any of", "a"), None),
        (filtered("value", "numbers", "=", 1), None),
    ],
)  # fmt: skip
def test_what_a_widget_may_not_hold(sandbox: Sandbox, change: Mapping[str, Any], field: str | None) -> None:
    """400, with the field where the meaning is wrong."""
    status, refusal = call(sandbox, "POST", WIDGETS, {**WIDGET, **change})

    assert status == 400
    assert refusal.get("details", {}).get("field") == field


def test_what_cannot_be_drawn_is_taken(sandbox: Sandbox) -> None:
    """As by the server: a metadata filter of the wrong type, a second metric, a junk sort."""
    two = [{"measure": "value", "agg": "avg"}, {"measure": "count", "agg": "count"}]
    sort = {"defaultSort": {"column": "junk", "order": "ASC"}}

    for change in (
        filtered("metadata", "string", "=", "a"),
        {"metrics": two},
        {"chartConfig": sort},
    ):
        status, _ = call(sandbox, "POST", WIDGETS, {**WIDGET, **change})
        assert status == 200


def test_a_placed_widget_stays(sandbox: Sandbox) -> None:
    """409 names the dashboards; after they are gone it can go."""
    widget = made(sandbox, WIDGETS, WIDGET)
    placed = {"widgets": [{**PLACE, "widgetId": widget["id"]}]}
    board = made(sandbox, BOARDS, {"name": "Mine", "definition": placed})

    status, refusal = call(sandbox, "DELETE", f"{WIDGETS}/{widget['id']}")
    assert (status, refusal["code"]) == (409, "conflict")
    assert "Mine" in refusal["message"]
    place = {"type": "widget", "widgetId": widget["id"]}
    below = made(sandbox, f"{BOARDS}/{board['id']}/placements", place)
    assert (below["y"], below["width"], below["height"]) == (6, 6, 6)
    again = f"{BOARDS}/{board['id']}/placements", {**PLACE, "widgetId": widget["id"]}
    assert call(sandbox, "POST", *again)[0] == 409
    assert call(sandbox, "DELETE", f"{BOARDS}/{board['id']}")[0] == 200
    assert call(sandbox, "DELETE", f"{WIDGETS}/{widget['id']}")[0] == 200
    assert call(sandbox, "GET", f"{WIDGETS}/{widget['id']}")[0] == 404


@pytest.mark.parametrize(
    ("placements", "status"),
    [
        ([PLACE | {"widgetId": "nothing"}], 404),
        ([PLACE | {"widgetId": "w", "x_size": 3}], 400),
        ([PLACE | {"widgetId": "w", "x": -1}], 400),
        ([PLACE | {"widgetId": "w", "width": 0}], 400),
        ([PLACE | {"type": "preset", "presetId": "p"}] * 2, 400),
        ([PLACE | {"type": "preset", "presetId": "p", "x": 30, "width": 40}], 200),
    ],
)
def test_placements_are_strict(sandbox: Sandbox, placements: Any, status: int) -> None:
    """Known keys, whole numbers, ids of their own and widgets that exist; no bound to the right."""
    board = {"name": "Mine", "definition": {"widgets": placements}}

    assert call(sandbox, "POST", BOARDS, board)[0] == status


def test_an_old_server_knows_no_dashboards(start: Start) -> None:
    """A page instead of JSON; it says its version, and takes one score at a time."""
    old = start(options=Options(langfuse_version="4.16.0"))
    score = {"name": "relevance_yield", "value": 0.4, "traceId": "t"}

    status, page = call(old, "GET", BOARDS)
    assert (status, page[:15]) == (404, "<!DOCTYPE html>")
    assert call(old, "GET", "health")[1]["version"] == "4.16.0"
    assert call(old, "GET", "score-configs")[0] == 200
    assert call(old, "POST", "scores", [score])[0] == 400
    assert call(old, "POST", "scores", score)[0] == 202


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": 1, "traceId": "t"},
        {"name": "n", "traceId": "t"},
        {"name": "n", "value": 1},
        {"name": "n", "value": 2, "traceId": "t", "dataType": "BOOLEAN"},
        {"name": "n", "value": 2, "traceId": "t", "dataType": "CATEGORICAL"},
        {"name": "n", "value": "2", "traceId": "t", "dataType": "NUMERIC"},
        {"name": "n", "value": 2, "traceId": "t", "dataType": "EVAL"},
        {"name": "n", "value": 2, "traceId": "t", "source": "EVAL"},
    ],
)
def test_scores_that_are_wrong_are_named(sandbox: Sandbox, wrong: Any) -> None:
    """207 for a list of which a part is taken."""
    fine = {"name": "decision", "value": "full_report", "traceId": "t", "dataType": "CATEGORICAL"}

    status, answer = call(sandbox, "POST", "scores", [fine, wrong])

    assert (status, answer["accepted"], answer["rejected"]) == (207, 1, 1)
    assert answer["errors"][0]["index"] == 1
    assert call(sandbox, "POST", "scores", fine)[0] == 400


def test_score_configs_are_checked_and_never_deleted(sandbox: Sandbox) -> None:
    """An id that is sent counts for nothing, the type is fixed, a boolean has its two values."""
    numeric = {"name": "run_yield", "dataType": "NUMERIC", "minValue": 0, "maxValue": 1, "id": "x"}
    one, two = made(sandbox, "score-configs", numeric), made(sandbox, "score-configs", numeric)
    assert one["id"] != two["id"] != "x"
    boolean = made(sandbox, "score-configs", {"name": "thumb", "dataType": "BOOLEAN"})
    assert [category["value"] for category in boolean["categories"]] == [1, 0]

    path = f"score-configs/{one['id']}"
    assert call(sandbox, "PATCH", path, {"dataType": "BOOLEAN"})[0] == 400
    assert call(sandbox, "PATCH", path, {})[0] == 400
    assert call(sandbox, "PATCH", path, {"maxValue": 0})[0] == 400
    assert call(sandbox, "PATCH", path, {"maxValue": None, "isArchived": True})[1]["maxValue"] == 1
    assert call(sandbox, "DELETE", path)[0] == 405
    for wrong in (
        {"name": "a" * 36, "dataType": "NUMERIC"},
        {"name": "a", "dataType": "CATEGORICAL"},
        {"name": "a", "dataType": "NUMERIC", "categories": [{"label": "x", "value": 1}]},
        {"name": "a", "dataType": "CATEGORICAL", "categories": [{"label": "x", "value": 1}] * 2},
        {"name": "a", "dataType": "OTHER"},
    ):
        assert call(sandbox, "POST", "score-configs", wrong)[0] == 400, wrong


def test_labels_move_to_the_newest_version(sandbox: Sandbox) -> None:
    """A label is on one version, tags are on all, the type stays, and a version can go."""
    path = "v2/prompts/listenpost%2Fgate"
    body = {"name": "listenpost/gate", "prompt": "p", "labels": ["production"], "tags": ["a"]}
    made(sandbox, "v2/prompts", body)
    made(sandbox, "v2/prompts", {**body, "prompt": "q", "tags": ["b"]})

    _, first = call(sandbox, "GET", path, version=1)
    _, second = call(sandbox, "GET", path)
    assert (first["labels"], first["tags"]) == ([], ["b"])
    assert (second["prompt"], sorted(second["labels"])) == ("q", ["latest", "production"])
    _, listed = call(sandbox, "GET", "v2/prompts", name="listenpost/gate")
    assert (listed["data"][0]["versions"], listed["data"][0]["labels"]) == (
        [1, 2], ["latest", "production"],
    )  # fmt: skip
    for wrong in ({"type": "chat"}, {"labels": ["latest"]}, {"labels": ["UP"]}, {"name": "a|b"}):
        assert call(sandbox, "POST", "v2/prompts", {**body, **wrong})[0] == 400
    assert call(sandbox, "DELETE", path, version=2)[0] == 204
    assert call(sandbox, "DELETE", path, version=2)[0] == 404
    assert call(sandbox, "GET", path)[0] == 404
    assert call(sandbox, "DELETE", path)[0] == 204


def test_datasets_and_items_are_upserted(sandbox: Sandbox) -> None:
    """A dataset by its name, schemas cleared by null; an item by its id, merged."""
    data = {"name": "gate", "inputSchema": {"type": "object"}}
    one = made(sandbox, "v2/datasets", data)
    two = made(sandbox, "v2/datasets", {"name": "gate", "inputSchema": None})
    made(sandbox, "v2/datasets", {"name": "other"})
    item = {"id": "listenpost:gate:1", "datasetName": "gate", "input": {"query": "a"}}
    made(sandbox, "dataset-items", item)
    again = made(sandbox, "dataset-items", {**item, "input": None, "expectedOutput": True})

    assert (one["id"], two["inputSchema"]) == (two["id"], None)
    assert call(sandbox, "GET", "v2/datasets/gate")[1]["id"] == one["id"]
    assert call(sandbox, "GET", "v2/datasets/none")[0] == 404
    assert (again["input"], again["expectedOutput"]) == ({"query": "a"}, True)
    _, listed = call(sandbox, "GET", "dataset-items", datasetName="gate")
    assert [row["id"] for row in listed["data"]] == ["listenpost:gate:1"]
    assert call(sandbox, "POST", "dataset-items", {**item, "datasetName": "other"})[0] == 409
    assert call(sandbox, "POST", "dataset-items", {**item, "datasetName": "none"})[0] == 404


@pytest.mark.parametrize(
    ("kind", "status"),
    [("401", 401), ("403", 403), ("404html", 404), ("409", 409), ("422", 422), ("429", 429),
     ("503", 503)],
)  # fmt: skip
def test_trouble_is_in_langfuses_words(sandbox: Sandbox, kind: str, status: int) -> None:
    """JSON with a code, but for the page of an unknown path; 429 says when to come back."""
    sandbox.fault(f"langfuse.dashboards={kind}")
    answer = httpx.get(f"{sandbox.url}/api/public/{BOARDS}", auth=KEYS)

    assert answer.status_code == status
    assert answer.headers.get("retry-after") == ("7" if status == 429 else None)
    assert ("code" in answer.text) == (kind != "404html")


def test_keys_without_a_project(sandbox: Sandbox) -> None:
    """The list of projects is empty."""
    sandbox.fault("langfuse=no_project")

    assert call(sandbox, "GET", "projects") == (200, {"data": []})


def test_langfuses_sdk_reads_every_answer(sandbox: Sandbox) -> None:
    """Its models are strict: a field that is missing or of another type would be an error."""
    with httpx.Client() as client:
        sdk = LangfuseAPI(base_url=sandbox.url, username=KEYS[0], password=KEYS[1], httpx_client=client)
        widget = made(sandbox, WIDGETS, WIDGET)
        place = {**PLACE, "widgetId": widget["id"]}
        made(sandbox, BOARDS, {"name": "Mine", "definition": {"widgets": [place]}})
        made(sandbox, "score-configs", {"name": "thumb", "dataType": "BOOLEAN"})
        made(sandbox, "v2/prompts", {"name": "listenpost/gate", "prompt": "p"})
        sdk.datasets.create(name="gate")
        item = sdk.dataset_items.create(dataset_name="gate", input={"query": "a"})

        assert sdk.unstable.dashboards.list().data[0].definition.widgets[0].id == "a"
        assert sdk.unstable.dashboard_widgets.list().data[0].id == widget["id"]
        assert [category.value for category in sdk.score_configs.get().data[0].categories or []] == [
            1,
            0,
        ]
        assert sdk.prompts.get("listenpost%2Fgate", label="latest").version == 1
        assert sdk.prompts.list().data[0].versions == [1]
        assert sdk.datasets.list().data[0].id == sdk.datasets.get("gate").id == item.dataset_id
        assert sdk.dataset_items.list(dataset_name="gate").data == [sdk.dataset_items.get(item.id)]
        sdk.dataset_items.delete(item.id)
        assert sdk.dataset_items.list(dataset_name="gate").data == []
        assert sdk.health.health().version == "4.59.0"
