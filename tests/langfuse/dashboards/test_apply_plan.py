"""Bringing a project to what is defined: once, again, after edits and after lost answers."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from api.errors import ConfigurationError, LangfuseError
from api.langfuse.dashboards import dashboard_client
from api.langfuse.dashboards.apply_plan import plan_apply, plan_remove
from api.langfuse.dashboards.definitions import Definition, Definitions, Kind, load, mark_of
from tests.langfuse.dashboards.kit import Losing, Project, few

PATHS = ("/score-configs", "/v2/prompts", "/dashboard-widgets", "/dashboards")
WIDGETS, BOARDS, CONFIGS = "/unstable/dashboard-widgets", "/unstable/dashboards", "/score-configs"
DATASETS = "/v2/datasets"
FOREIGN: dict[str, Any] = {
    "name": "Yield by source", "description": "Mine, not of listenpost.", "view": "observations",
    "metrics": [{"measure": "count", "agg": "count"}], "filters": [], "chartType": "NUMBER",
    "dimensions": [], "chartConfig": {"type": "NUMBER"},
}  # fmt: skip


def changed(definitions: Definitions, mark: str, **fields: Any) -> Definitions:
    """The same with other fields of one part."""
    parts = (replace(part, body={**part.body, **fields}) if part.mark == mark else part for part in definitions.parts)
    return replace(definitions, parts=tuple(parts))


def whole(project: Project) -> dict[Kind, list[Any]]:
    """Everything that is there."""
    return {kind: project.rows(kind) for kind in Kind}


def test_everything_is_made_once(project: Project) -> None:
    """All parts are there as defined, widgets on their dashboards; a second run writes nothing."""
    definitions = load()
    project.apply(definitions)

    for part in definitions.parts:
        row = project.row(part.kind, part.mark)
        own = {field: row[field] for field in part.body if field != "definition"}
        assert own == {field: value for field, value in part.body.items() if field != "definition"}
    for board in (part for part in definitions.parts if part.kind is Kind.DASHBOARD):
        placed = project.row(Kind.DASHBOARD, board.mark)["definition"]["widgets"]
        ids = {row["id"]: mark_of(row["description"]) for row in project.rows(Kind.WIDGET)}
        assert [{**e, "widgetId": ids[e["widgetId"]]} for e in placed] == (board.body["definition"]["widgets"])
    project.sandbox.forget()
    assert project.apply(definitions) == []
    assert project.writes() == []
    assert project.plan(definitions).unchanged == len(definitions.parts) + len(definitions.prompts)


def test_everything_is_read_before_anything_is_written(project: Project) -> None:
    """Lists change their order with each write, so no GET stands between the writes.

    After them the lists are read once more, for what another run made meanwhile.
    """
    project.apply()

    methods = [entry.method for entry in project.sandbox.requests("langfuse")]
    writes = methods.count("POST")
    assert methods[-writes - 4 :] == ["POST"] * writes + ["GET"] * 4


def test_a_changed_definition_changes_exactly_that(project: Project) -> None:
    """One PATCH with the one field."""
    project.apply()
    project.sandbox.forget()

    project.apply(changed(few(), "gate.yield", name="Yield of each source"))

    (write,) = project.writes()
    row = project.row(Kind.WIDGET, "gate.yield")
    assert (write.method, write.path) == ("PATCH", f"/api/public{WIDGETS}/{row['id']}")
    assert write.body == {"name": "Yield of each source"}


def test_a_chart_of_another_type_keeps_its_config(project: Project) -> None:
    """A type alone would reset the config, so both are sent."""
    project.apply()
    config = {"type": "BAR_TIME_SERIES"}
    bars = changed(few(), "gate.yield", chartType="BAR_TIME_SERIES", chartConfig=config)

    (step,) = project.apply(bars)

    assert step.body == {"chartType": "BAR_TIME_SERIES", "chartConfig": config}
    assert project.apply(bars) == []


def test_a_type_that_the_server_leaves_out_is_no_difference() -> None:
    """Whether it fills in the type of a config or not, and whatever is null beside it."""
    (part,) = [part for part in few().parts if part.mark == "gate.latency"]
    config = {name: value for name, value in part.body["chartConfig"].items() if name != "type"}
    row = {**part.body, "id": "c1", "chartConfig": {**config, "bins": None}, "minVersion": 2}
    rows = {Kind.WIDGET: (row,), Kind.SCORE: (), Kind.DASHBOARD: ()}

    plan = plan_apply(
        Definitions((part,), ()),
        dashboard_client.ProjectState(dashboard_client.Project("p", "p"), rows, {}),
    )

    assert (plan.steps, plan.unchanged) == ((), 1)


@pytest.mark.parametrize(
    ("kind", "mark", "edit"),
    [
        (Kind.WIDGET, "gate.yield", {"filters": []}),
        (Kind.WIDGET, "gate.latency", {"metrics": [{"measure": "latency", "agg": "p99"}]}),
        (Kind.WIDGET, "gate.decisions", {"chartType": "PIE", "chartConfig": {"type": "PIE"}}),
        (Kind.DASHBOARD, "dashboard.gate", {"name": "My gate"}),
        (Kind.DASHBOARD, "dashboard.reports", {"definition": {"widgets": []}}),
        (Kind.SCORE, "score.run_yield", {"maxValue": 7}),
        (Kind.SCORE, "score.decision", {"isArchived": True}),
    ],
)
def test_an_edit_by_hand_is_repaired(project: Project, kind: Kind, mark: str, edit: dict[str, Any]) -> None:
    """One write, and everything is as it was."""
    project.apply()
    before = project.row(kind, mark)
    paths = {Kind.WIDGET: WIDGETS, Kind.DASHBOARD: BOARDS, Kind.SCORE: CONFIGS}
    project.call("PATCH", f"{paths[kind]}/{before['id']}", edit)
    project.sandbox.forget()

    project.apply()

    assert [write.method for write in project.writes()] == ["PATCH"]
    assert {**project.row(kind, mark), "updatedAt": ""} == {**before, "updatedAt": ""}


def test_a_widget_that_was_deleted_comes_back_to_its_place(project: Project) -> None:
    """It is made again, and the dashboard holds it where it was."""
    project.apply()
    board, widget = (
        project.row(Kind.DASHBOARD, "dashboard.gate"),
        project.row(Kind.WIDGET, "gate.yield"),
    )
    rest = [e for e in board["definition"]["widgets"] if e["widgetId"] != widget["id"]]
    project.call("PATCH", f"{BOARDS}/{board['id']}", {"definition": {"widgets": rest}})
    project.call("DELETE", f"{WIDGETS}/{widget['id']}")

    project.apply()

    again = project.row(Kind.WIDGET, "gate.yield")
    (place,) = [
        entry
        for entry in project.row(Kind.DASHBOARD, "dashboard.gate")["definition"]["widgets"]
        if entry["widgetId"] == again["id"]
    ]
    assert place["id"] == "listenpost-gate.yield"
    assert project.apply() == []


def test_what_is_not_ours_stays(project: Project) -> None:
    """Two pages of foreign widgets, a dashboard of our name and a placement on ours are kept."""
    for number in range(120):
        project.call("POST", WIDGETS, {**FOREIGN, "name": f"Foreign {number}"})
    theirs = project.call("POST", WIDGETS, FOREIGN)
    board = {"name": "Listenpost: the gate", "description": "see listenpost:dashboard.gate."}
    project.call("POST", BOARDS, board)
    before = whole(project)
    project.apply()
    ours = project.row(Kind.DASHBOARD, "dashboard.gate")
    place = {"type": "widget", "id": "mine", "widgetId": theirs["id"], "x": 0, "y": 99}
    project.call("POST", f"{BOARDS}/{ours['id']}/placements", place)
    project.sandbox.forget()

    assert project.apply() == []
    project.apply(changed(few(), "dashboard.gate", name="Another name"))

    assert {write.path for write in project.writes()} == {f"/api/public{BOARDS}/{ours['id']}"}
    placed = project.row(Kind.DASHBOARD, "dashboard.gate")["definition"]["widgets"]
    assert [entry["id"] for entry in placed if entry["widgetId"] == theirs["id"]] == ["mine"]
    for kind, rows in before.items():
        assert [row for row in project.rows(kind) if row in rows] == rows


def test_a_placement_of_somebody_else_survives_a_repair(project: Project) -> None:
    """Ours go back to their places, and theirs is sent along."""
    project.apply()
    theirs = project.call("POST", WIDGETS, FOREIGN)
    ours = project.row(Kind.DASHBOARD, "dashboard.gate")
    place = {
        "type": "widget", "id": "mine", "widgetId": theirs["id"], "x": 1, "y": 0, "width": 2,
        "height": 2,
    }  # fmt: skip
    edited = {"definition": {"widgets": [place]}}
    project.call("PATCH", f"{BOARDS}/{ours['id']}", edited)

    project.apply()

    placed = project.row(Kind.DASHBOARD, "dashboard.gate")["definition"]["widgets"]
    assert placed == [*ours["definition"]["widgets"], place]
    assert project.apply() == []


def test_a_score_config_of_somebody_else_is_not_doubled(project: Project) -> None:
    """It keeps its name, and a note says so."""
    theirs = {"name": "decision", "dataType": "CATEGORICAL", "description": "Mine.",
              "categories": [{"label": "yes", "value": 1}]}  # fmt: skip
    project.call("POST", CONFIGS, theirs)

    plan = project.plan()
    project.apply()

    assert plan.notes == ("score config `decision` is there and not ours; it stays as it is",)
    assert [row["description"] for row in project.rows(Kind.SCORE) if row["name"] == "decision"] == ["Mine."]


def test_a_dataset_is_changed_by_its_name(project: Project) -> None:
    """Its description comes back; its schema and items are no business of this."""
    project.apply()
    name = {"name": "listenpost/relevance"}
    edit = {
        "description": "Mine.\n\nlistenpost:dataset.relevance",
        "inputSchema": {"type": "object"},
    }
    project.call("POST", DATASETS, name | edit)
    project.sandbox.forget()

    project.apply()

    (write,) = project.writes()
    assert (write.method, write.path) == ("POST", f"/api/public{DATASETS}")
    row = project.row(Kind.DATASET, "dataset.relevance")
    assert row["inputSchema"] == {"type": "object"}
    assert row["description"].startswith("Queries with labelled items")


def test_a_dataset_of_somebody_else_is_left(project: Project) -> None:
    """Since there is one of a name, it is not made."""
    project.call("POST", DATASETS, {"name": "listenpost/relevance", "description": "Mine."})

    plan = project.plan()
    project.apply()

    assert plan.notes == ("dataset `listenpost/relevance` is there and not ours; it stays as it is",)
    assert [row["description"] for row in project.rows(Kind.DATASET)] == ["Mine."]


def test_a_score_config_that_cannot_be_changed_is_replaced(project: Project) -> None:
    """A type, and a limit that is there, stay for good: the old one is archived."""
    project.apply()
    definitions = few()
    (old,) = [part for part in definitions.parts if part.mark == "score.run_yield"]
    body = {name: value for name, value in old.body.items() if name != "maxValue"}
    parts = tuple(replace(p, body=body) if p is old else p for p in definitions.parts)
    wider = replace(definitions, parts=parts)

    project.transport = Losing("/score-configs", arrives=False)
    with pytest.raises(LangfuseError):  # the old one is not taken for what was to be made
        project.apply(wider)
    project.transport = None
    steps = project.apply(wider)

    assert [(step.verb, step.mark) for step in steps] == [
        ("create", old.mark), ("archive", old.mark),
    ]  # fmt: skip
    rows = [row for row in project.rows(Kind.SCORE) if row["name"] == "run_yield"]
    assert [row["isArchived"] for row in rows] == [True, False]
    assert project.apply(wider) == []


def test_what_is_no_longer_defined_goes(project: Project) -> None:
    """A widget of an earlier version is taken from its dashboard, then deleted."""
    definitions = few()
    extra = Definition(Kind.WIDGET, "gate.old", {**FOREIGN, "description": "Old.\n\nlistenpost:gate.old"})
    (board,) = [part for part in definitions.parts if part.mark == "dashboard.gate"]
    place = {
        "type": "widget", "id": "listenpost-gate.old", "widgetId": "gate.old", "x": 0, "y": 90,
        "width": 3, "height": 3,
    }  # fmt: skip
    widgets = [*board.body["definition"]["widgets"], place]
    longer = changed(definitions, board.mark, definition={"widgets": widgets})
    project.apply(replace(longer, parts=(extra, *longer.parts)))

    steps = project.apply()

    assert [(step.verb, step.mark) for step in steps] == [
        ("change", "dashboard.gate"), ("delete", "gate.old"),
    ]  # fmt: skip


def test_a_copy_is_named_and_left(project: Project) -> None:
    """Langfuse copies the description of a dashboard along; the oldest counts as ours."""
    project.apply()
    ours = project.row(Kind.DASHBOARD, "dashboard.gate")
    copied = {name: ours[name] for name in ("description", "definition")}
    copy = project.call("POST", BOARDS, {**copied, "name": "Listenpost: the gate (Clone)"})
    project.call("PATCH", f"{BOARDS}/{ours['id']}", {"name": "Changed after it was copied"})

    plan = project.plan()

    assert [step.path for step in plan.steps] == [f"{BOARDS}/{ours['id']}"]
    assert [note.partition(";")[0] for note in plan.notes] == [
        f"1 more dashboard with the mark `listenpost:dashboard.gate`: `{copy['id']}`"
    ]


def assert_settled(project: Project) -> None:
    """Everything is there once, on its dashboards, and nothing is left to be done or said."""
    definitions = few()
    for part in definitions.parts:
        rows = [row for row in project.rows(part.kind) if mark_of(row["description"]) == part.mark]
        assert [row.get("isArchived") for row in rows].count(True) == len(rows) - 1
    plan = project.plan()
    assert (plan.steps, plan.notes) == ((), ())
    assert plan.unchanged == len(definitions.parts) + len(definitions.prompts)


@pytest.mark.parametrize("number", [1, 4, 7, 8])
def test_another_run_amid_this_one_leaves_no_copies(project: Project, number: int) -> None:
    """Both saw an empty project; of each thing the older stays, whoever made it."""
    mine, other = project.begun(few()), project.begun(few())
    steps = itertools.count(1)

    mine(lambda: next(steps) == number and other(lambda: None))

    assert_settled(project)


def test_three_runs_at_once_leave_no_copies(project: Project) -> None:
    """In whatever order their requests arrive."""
    runs = [project.begun(few()) for _ in range(3)]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda run: run(lambda: None), runs))

    assert_settled(project)


def test_a_prompt_that_another_run_pushes_at_that_moment(project: Project) -> None:
    """Langfuse refuses the second of two with 400; it is there, and this run goes on."""
    project.transport = Losing("/v2/prompts", status=400)

    project.apply()

    assert_settled(project)
    project.transport = Losing("/v2/prompts", arrives=False, status=400)
    with pytest.raises(LangfuseError, match=r"refuses prompt `listenpost/\w+` \(HTTP 400\)"):
        project.apply(replace(load(), parts=()))


def test_only_what_this_run_made_is_taken_back(project: Project) -> None:
    """What somebody copied in that moment bears the mark too, and stays."""
    steps = itertools.count(1)

    def copy() -> None:
        if next(steps) == 4:
            ours = project.row(Kind.WIDGET, "gate.yield")
            body = {name: ours[name] for name in ("description", "view", "metrics", "filters")}
            project.call("POST", WIDGETS, {**body, "name": "Mine", "chartType": "LINE_TIME_SERIES"})

    project.begun(few())(copy)

    names = [row["name"] for row in project.rows(Kind.WIDGET)]
    assert names.count("Mine") == names.count("Yield by source") == 1


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("number", [1, 2])
def test_a_lost_answer_makes_no_duplicate(project: Project, path: str, number: int) -> None:
    """The POST arrived and its answer did not: what it made is found, and this run goes on."""
    project.transport = Losing(path, number)

    project.apply()
    project.transport = None

    assert project.apply() == []
    definitions = few()
    assert {kind: len(project.rows(kind)) for kind in Kind} == {
        kind: sum(part.kind is kind for part in definitions.parts) for kind in Kind
    }
    listed = project.call("GET", "/v2/prompts", limit=100)["data"]
    assert [row["versions"] for row in listed] == [[1]] * len(definitions.prompts)


@pytest.mark.parametrize("path", PATHS)
def test_a_lost_request_is_told_and_not_repeated(project: Project, path: str) -> None:
    """Nothing shows whether it will still arrive, so this run ends; the next one completes it."""
    project.transport = Losing(path, arrives=False)

    with pytest.raises(LangfuseError, match="run this again: what is done stays"):
        project.apply()
    project.transport = None
    project.apply()

    assert project.apply() == []
    assert len(project.rows(Kind.DASHBOARD)) == 2


def test_a_definition_that_cannot_be_drawn_is_never_sent(project: Project) -> None:
    """It is named before the first request."""
    broken = changed(few(), "gate.yield", dimensions=[{"field": "userId"}])

    with pytest.raises(ConfigurationError, match=r"`gate\.yield` cannot be drawn: `userId`"):
        project.apply(broken)
    assert project.sandbox.requests("langfuse") == ()


def test_remove_takes_away_ours_alone(project: Project) -> None:
    """Dashboards, then widgets; configs are archived, and what others made stays."""
    theirs = project.call("POST", WIDGETS, FOREIGN)
    project.call("POST", CONFIGS, {"name": "mine", "dataType": "BOOLEAN"})
    edited = {"name": "listenpost/relevance", "prompt": "Mine", "labels": ["production"]}
    project.apply()
    project.call("POST", "/v2/prompts", edited)

    verbs = [(step.verb, step.kind) for step in project.remove()]

    assert verbs == sorted(verbs, key=lambda verb: ["dashboard", "widget", "score config", "prompt"].index(verb[1]))
    assert project.rows(Kind.DASHBOARD) == []
    assert [row["id"] for row in project.rows(Kind.WIDGET)] == [theirs["id"]]
    assert [row["name"] for row in project.rows(Kind.SCORE) if not row["isArchived"]] == ["mine"]
    (prompt,) = project.call("GET", "/v2/prompts", limit=100)["data"]
    assert (prompt["name"], prompt["versions"]) == ("listenpost/relevance", [2])
    assert project.remove() == []


def test_what_somebody_put_on_a_dashboard_of_ours_is_named_and_stays(project: Project) -> None:
    """Before that dashboard goes; of a chart of Langfuse's own its id is all there is."""
    project.apply()
    theirs = project.call("POST", WIDGETS, {**FOREIGN, "name": "My own"})
    ours = project.row(Kind.DASHBOARD, "dashboard.gate")
    for place in ({"widgetId": theirs["id"]}, {"type": "preset", "presetId": "latencies"}):
        path = f"{BOARDS}/{ours['id']}/placements"
        project.call("POST", path, {"type": "widget", **place})

    plan = plan_remove(project.stock(), {})
    project.remove()

    assert plan.notes == (
        "Langfuse deletes no datasets by its API: delete `listenpost/relevance` in its UI",
        "dashboard `Listenpost: the gate` also holds `My own`, `latencies`, not ours: that goes "
        "from it, and stays among your widgets",
    )
    assert [row["id"] for row in project.rows(Kind.WIDGET)] == [theirs["id"]]


def test_a_widget_on_a_dashboard_of_somebody_else_is_kept(project: Project) -> None:
    """The others go; it can go once it is taken off there."""
    project.apply()
    widget = project.row(Kind.WIDGET, "gate.yield")
    theirs = project.call("POST", BOARDS, {"name": "Mine"})
    place = {"type": "widget", "widgetId": widget["id"]}
    project.call("POST", f"{BOARDS}/{theirs['id']}/placements", place)

    project.remove()
    assert [row["id"] for row in project.rows(Kind.WIDGET)] == [widget["id"]]
    project.call("DELETE", f"{BOARDS}/{theirs['id']}")

    assert [step.mark for step in project.remove()] == ["gate.yield"]


def test_a_dashboard_that_changed_meanwhile_is_no_widget_in_use(project: Project) -> None:
    """A 409 is told as what it is."""
    project.apply()
    project.sandbox.fault("langfuse.dashboards=409@2x1")  # the first one reads

    with pytest.raises(LangfuseError, match="somebody may have changed it meanwhile"):
        project.remove()


def test_apply_after_remove_brings_everything_back(project: Project) -> None:
    """Configs come out of the archive, so that none is there twice."""
    project.apply()
    configs = [row["id"] for row in project.rows(Kind.SCORE)]
    project.remove()
    project.apply()

    assert [row["id"] for row in project.rows(Kind.SCORE)] == configs
    assert project.apply() == []
