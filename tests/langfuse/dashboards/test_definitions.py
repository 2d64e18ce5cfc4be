"""The definition files against the facts of Langfuse and against the product."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from langfuse.api.core.pydantic_utilities import parse_obj_as
from langfuse.api.unstable.dashboard_widgets.types import CreateDashboardWidgetRequest
from langfuse.api.unstable.dashboards.types import CreateDashboardRequest

from api.core.display_names import MODEL_REASONS
from api.core.domain import Decision, Outcome
from api.langfuse.dashboards.definitions import DASHBOARDS, Definition, Kind, flowed, load, mark_of, undrawable
from tests.langfuse.dashboards import facts

PARTS = load().parts
WIDGETS = [part for part in PARTS if part.kind is Kind.WIDGET]
BOARDS = [part for part in PARTS if part.kind is Kind.DASHBOARD]
SCORES = {part.name: part.body for part in PARTS if part.kind is Kind.SCORE}
CONDITION = {"type": "string", "operator": "=", "value": "a"}
SHOWN = {
    name
    for part in WIDGETS
    for condition in part.body["filters"]
    if part.body["view"].startswith("scores") and condition["column"] == "name"
    for name in condition["value"]
}


def named(part: Definition) -> str:
    """For the names of tests."""
    return part.mark


@pytest.mark.parametrize("part", WIDGETS, ids=named)
def test_every_widget_is_one_that_langfuse_draws(part: Definition) -> None:
    """View, dimensions, measures, aggregations, filters and chart are in the table of facts."""
    body, view = part.body, part.body["view"]
    assert {dimension["field"] for dimension in body["dimensions"]} <= facts.DIMENSIONS[view]
    for metric in body["metrics"]:
        assert metric["measure"] in facts.MEASURES[view]
        assert metric["agg"] in facts.AGGREGATIONS
    for condition in body["filters"]:
        kind = facts.COLUMNS[view][condition["column"]]
        assert condition["operator"] in facts.FILTERS[kind][condition["type"]]
        assert condition["value"] not in ([], "")
        assert ("key" in condition) == (kind == "metadata")
    pivot = body["chartType"] == "PIVOT_TABLE"
    assert len(body["dimensions"]) <= (2 if pivot else 1)
    assert 1 <= len(body["metrics"]) <= (10 if pivot else 1)
    config = dict(body["chartConfig"])
    assert config.pop("type") == body["chartType"]
    assert set(config) <= facts.CHARTS[body["chartType"]]
    if pivot:
        assert 1 <= config["row_limit"] <= 1000
        metrics = {f"{metric['agg']}_{metric['measure']}" for metric in body["metrics"]}
        assert config["defaultSort"]["column"] in metrics
    assert list(undrawable(body)) == []


@pytest.mark.parametrize("part", [*WIDGETS, *BOARDS], ids=named)
def test_the_sdk_knows_every_field(part: Definition) -> None:
    """The models of Langfuse's SDK take the body, and nothing is left over."""
    model: Any = CreateDashboardWidgetRequest if part in WIDGETS else CreateDashboardRequest
    parsed = parse_obj_as(model, dict(part.body))

    assert parsed.model_extra == {}


@pytest.mark.parametrize("part", WIDGETS, ids=named)
def test_a_widget_shows_scores_in_the_view_of_their_type(part: Definition) -> None:
    """A BOOLEAN is shown among booleans, so that its mean is a rate.

    What stands on sources is of sources alone, and a mean over runs of analyses, not of chats.
    """
    if not part.body["view"].startswith("scores"):
        return
    (names,) = [c["value"] for c in part.body["filters"] if c["column"] == "name"]
    views = {facts.VIEW_OF_TYPE[SCORES[name]["dataType"]] for name in names}
    assert views == {part.body["view"]}
    shared = {"relevance_yield", "refetched", "refetch_gain", "fail_open"} & {*names}
    alike = {"run_yield", "run_refetched", "run_fail_open", "items_kept", "cost_per_kept_item_usd"}
    wanted = {("scope", "source")} if shared else set()
    wanted |= {("kind", "analyze")} if alike & {*names} else set()
    borne = {(c["key"], c["value"]) for c in part.body["filters"] if c["column"] == "metadata"}
    assert borne - {("kind", "analyze")} == wanted - {("kind", "analyze")}
    assert wanted <= borne


def test_every_score_is_shown_and_every_shown_score_is_defined() -> None:
    """No score without a chart, no chart over a score that is none."""
    assert set(SCORES) == SHOWN


def test_values_of_scores_are_those_of_the_product() -> None:
    """A new decision, outcome or reason needs a line in `scores.toml`."""

    def values(name: str) -> list[str]:
        categories = SCORES[name]["categories"]
        assert [category["value"] for category in categories] == list(range(len(categories)))
        return [category["label"] for category in categories]

    assert values("decision") == list(Decision)
    assert values("outcome") == list(Outcome)
    assert values("fail_open_reason") == [*MODEL_REASONS, "unknown"]


def test_names_and_marks_are_what_langfuse_takes() -> None:
    """Names of score configs are short and plain; each part bears a mark of its own."""
    assert [name for name in SCORES if not re.fullmatch(r"[\w .()-]{1,35}", name)] == []
    marks = [mark_of(part.body["description"]) for part in PARTS]
    assert marks == [part.mark for part in PARTS]
    assert len(set(marks)) == len(marks)


@pytest.mark.parametrize("part", BOARDS, ids=named)
def test_widgets_fill_the_grid(part: Definition) -> None:
    """Every widget of a dashboard has a place within 12 columns, and no two overlap."""
    placed = part.body["definition"]["widgets"]
    key = part.mark.removeprefix("dashboard.")
    cells = [
        (x, y)
        for entry in placed
        for x in range(entry["x"], entry["x"] + entry["width"])
        for y in range(entry["y"], entry["y"] + entry["height"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 12
    assert [entry["widgetId"] for entry in placed] == [
        widget.mark for widget in WIDGETS if widget.mark.startswith(f"{key}.")
    ]
    assert len({entry["id"] for entry in placed}) == len(placed)


def test_a_row_that_is_full_is_followed_by_another() -> None:
    """The next row begins below the highest widget of the one before."""
    rows = [{"key": name, "size": size} for name, size in [("a", [8, 2]), ("b", [4, 5]), ("c", [6, 1])]]

    places = [(entry["x"], entry["y"]) for entry in flowed("board", rows)]

    assert places == [(0, 0), (8, 0), (0, 5)]


def test_a_mark_is_a_word_of_its_own() -> None:
    """What merely speaks of a mark has none."""
    assert mark_of("Mine.\n\nlistenpost:gate.yield") == "gate.yield"
    assert mark_of("listenpost:gate.yield, edited") is None
    assert mark_of("see xlistenpost:gate.yield") is None
    assert mark_of(None) is None


def test_prompts_are_those_of_the_package(root: Path) -> None:
    """Each file of a prompt is pushed, whole, in the project's folder."""
    files = {path.stem: path.read_text("utf-8").strip() for path in (root / "api").rglob("*.md")}

    assert {prompt.title: prompt.text for prompt in load().prompts} == {
        f"listenpost/{name}": text for name, text in files.items()
    }


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"dimensions": [{"field": "userId"}]}, "`userId` needs a chart without time"),
        ({"dimensions": [{"field": "traceId"}], "view": "observations"}, "hidden dimension"),
        ({"metrics": [{"measure": "value", "agg": "avg"}] * 2}, "only a PIVOT_TABLE"),
        (
            {"chartConfig": {"type": "NUMBER", "defaultSort": {"column": "junk", "order": "ASC"}}},
            "`junk` is no column",
        ),
        (
            {"filters": [CONDITION | {"column": "metadata"}]},
            "`metadata` has type `stringObject`",
        ),
        (
            {"filters": [CONDITION | {"column": "metadata", "type": "stringObject"}]},
            "names a key",
        ),
        (
            {"filters": [CONDITION | {"column": "tags"}]},
            "`tags` has type `arrayOptions`",
        ),
        (
            {"filters": [CONDITION | {"column": "traceName"}]},
            "scores vanish",
        ),
    ],
)  # fmt: skip
def test_what_langfuse_accepts_and_cannot_draw_is_noticed(change: Mapping[str, Any], why: str) -> None:
    """Each of them is named; the widget without the change is fine."""
    widget = {
        "view": "scores-numeric", "dimensions": [], "filters": [], "chartType": "LINE_TIME_SERIES",
        "metrics": [{"measure": "value", "agg": "avg"}], "chartConfig": {},
    }  # fmt: skip

    assert list(undrawable(widget)) == []
    assert any(why in fault for fault in undrawable({**widget, **change}))


def test_the_page_tells_every_widget_and_score(root: Path) -> None:
    """`docs/langfuse.md` has a row for each widget, with its description, and names each score."""
    page = (root / "docs" / "langfuse.md").read_text("utf-8")
    rows = {tuple(cell.strip() for cell in line.split("|")[1:4:2]) for line in page.split("\n")}

    assert {(part.name, part.body["description"].split("\n")[0]) for part in WIDGETS} <= rows
    assert [name for name in SCORES if f"`{name}`" not in page] == []
    assert [board.name for board in BOARDS if board.name not in page] == []
    assert len(BOARDS) == len(DASHBOARDS)
