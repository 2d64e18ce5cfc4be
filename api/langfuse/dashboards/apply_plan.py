"""The steps that make a Langfuse project as defined, and doing them without doing one twice.

Values are compared as parsed, since the server reorders keys and adds some. Only what has a mark of
ours is ever changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Literal, cast

from api.core.prompts import Prompt
from api.errors import ConfigurationError, LangfuseError
from api.langfuse.dashboards import dashboard_client as client
from api.langfuse.dashboards.definitions import COMMITTED, LABEL, Definition, Definitions, Kind, mark_of, undrawable

Verb = Literal["create", "push", "change", "archive", "delete"]
_PRODUCTION = "production"
_LIMITS = ("minValue", "maxValue")
_STILL_PLACED = "it is still on a dashboard that is not ours; take it off there, then run again"


@dataclass(frozen=True, slots=True)
class Difference:
    """One field whose value differs from its definition; None means that it is missing."""

    field: str
    there: Any
    wanted: Any


@dataclass(frozen=True, slots=True)
class Step:
    """A request that creates or changes one part in Langfuse."""

    verb: Verb
    kind: Kind | Literal["prompt"]
    name: str
    mark: str
    path: str
    body: Mapping[str, Any] | None = None
    """A placement's `widgetId` may be the mark of a widget that an earlier step creates."""
    differences: tuple[Difference, ...] = ()
    version: int | None = None  # of a prompt, where one is taken away

    @property
    def title(self) -> str:
        """Kind and name, for people; widgets of two dashboards may have one name."""
        if self.kind is Kind.WIDGET:
            return f"widget `{self.name}` ({self.mark.partition('.')[0]})"
        version = "" if self.version is None else f" version {self.version}"
        return f"{self.kind} `{self.name}`{version}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in the order in which they are done."""

    steps: tuple[Step, ...]
    widgets: Mapping[str, str]  # mark -> id of those that are there
    notes: tuple[str, ...] = ()  # what is left alone although it looks like ours
    unchanged: int = 0


def plan_apply(definitions: Definitions, stock: client.ProjectState, made: Set[str] = frozenset()) -> Plan:
    """The fewest steps after which everything is as defined: create, change, then delete.

    Of copies the oldest is used. Those in `made` are deleted, since this run made them at the same
    time as another run; any other may be a person's, and gets a note.
    """
    steps: list[Step] = []
    notes: list[str] = []
    widgets: dict[str, str] = {}
    surplus: set[str] = set()
    unchanged = 0
    for part in definitions.parts:
        kind, rows = part.kind, [row for row in ours(stock.rows[part.kind]) if fits(part, row)]
        # score configs of one name look the same to people, and datasets of one name are one
        unique = kind in {Kind.SCORE, Kind.DATASET}
        foreign = (
            mark_of(row.get("description")) is None and not row.get("isArchived")
            for row in stock.rows[kind] if row.get("name") == part.name
        )  # fmt: skip
        if not rows and unique and any(foreign):
            notes.append(f"{kind} `{part.name}` is there and not ours; it stays as it is")
        elif not rows:
            path = client.PATHS[kind]
            steps.append(Step("create", kind, part.name, part.mark, path, part.body))
        else:
            row = min(rows, key=lambda row: bool(row.get("isArchived")))  # else the oldest
            if kind is Kind.WIDGET:
                widgets[part.mark] = str(row["id"])
            others = {str(other["id"]) for other in rows if other is not row}
            surplus |= others & made
            if (copies := sorted(others - made)) and kind is not Kind.SCORE:
                notes.append(
                    f"{len(copies)} more {kind} with the mark `listenpost:{part.mark}`: "
                    f"`{'`, `'.join(copies)}`; delete it in Langfuse, or, if the copy is yours, "
                    "take that mark out of its description"
                )
            step = _changed(part, row, widgets)
            steps += [step] if step else []
            unchanged += step is None
    for prompt in definitions.prompts:
        step = _pushed(prompt, stock.prompts[prompt.title])
        steps += [step] if step else []
        unchanged += step is None
    wanted = {(part.kind, part.mark): part for part in definitions.parts}
    for kind, row in _removable(stock):
        part_of_row = wanted.get((kind, str(mark_of(row.get("description")))))
        if part_of_row is None or not fits(part_of_row, row) or row["id"] in surplus:
            steps.append(_removed(kind, row))
    return Plan(tuple(steps), widgets, tuple(notes), unchanged)


def plan_remove(stock: client.ProjectState, versions: Mapping[str, Sequence[int]]) -> Plan:
    """Delete what has our marks, dashboards before their widgets, and our prompt versions."""
    prompts = [
        Step("delete", "prompt", name, name, client.prompt_path(name), version=number)
        for name, numbers in versions.items()
        for number in numbers
    ]
    steps = (*(_removed(kind, row) for kind, row in _removable(stock)), *prompts)
    return Plan(steps, {}, tuple(_lasting(stock)))


def _lasting(stock: client.ProjectState) -> Iterator[str]:
    """Notes about what stays: datasets, and widgets of people on a dashboard of ours."""
    if sets := [f"`{row.get('name')}`" for row in ours(stock.rows[Kind.DATASET])]:
        yield f"Langfuse deletes no datasets by its API: delete {', '.join(sets)} in its UI"
    marked = {str(row["id"]) for row in ours(stock.rows[Kind.WIDGET])}
    names = {str(row.get("id")): f"`{row.get('name')}`" for row in stock.rows[Kind.WIDGET]}
    for board in ours(stock.rows[Kind.DASHBOARD]):
        entries = _placements(board)
        placed = [str(entry.get("widgetId") or entry.get("presetId")) for entry in entries]
        if theirs := [names.get(key, f"`{key}`") for key in placed if key not in marked]:
            yield (
                f"dashboard `{board.get('name')}` also holds {', '.join(theirs)}, not ours: "
                "that goes from it, and stays among your widgets"
            )


def ours(rows: Iterable[client.Row]) -> list[client.Row]:
    """The rows with a mark of ours."""
    return [row for row in rows if mark_of(row.get("description")) and row.get("id")]


def _removable(stock: client.ProjectState) -> Iterator[tuple[Kind, client.Row]]:
    """Our rows in the order in which they can be deleted, without archived score configs."""
    for kind in (Kind.DASHBOARD, Kind.WIDGET, Kind.SCORE):
        yield from ((kind, row) for row in ours(stock.rows[kind]) if not row.get("isArchived"))


def _removed(kind: Kind, row: client.Row) -> Step:
    path, mark = f"{client.PATHS[kind]}/{row['id']}", str(mark_of(row.get("description")))
    # Langfuse deletes no score config
    verb, body = ("archive", {"isArchived": True}) if kind is Kind.SCORE else ("delete", None)
    return Step(cast(Verb, verb), kind, str(row.get("name")), mark, path, body)


def fits(part: Definition, row: client.Row) -> bool:
    """Whether the row has the mark, and the values that can never be changed, of a definition."""
    same = mark_of(row.get("description")) == part.mark
    if part.kind is Kind.DATASET:  # identified by its name
        return same and row.get("name") == part.name
    if part.kind is not Kind.SCORE:
        return same
    kept_limits = [name for name in _LIMITS if name not in part.body and row.get(name) is not None]
    return same and row.get("dataType") == part.body["dataType"] and not kept_limits


def _changed(part: Definition, row: client.Row, widgets: Mapping[str, str]) -> Step | None:
    differences = [
        difference for field, wanted in part.body.items() for difference in _compared(field, row, wanted, widgets)
    ]
    fields = (difference.field.partition(" ")[0] for difference in differences)
    body = {field: part.body[field] for field in fields}
    if "definition" in body:
        theirs = [entry for entry in _placements(row) if not _is_ours(entry)]
        body["definition"] = {"widgets": [*part.body["definition"]["widgets"], *theirs]}
    if row.get("isArchived"):
        differences.append(Difference("isArchived", True, False))
        body["isArchived"] = False
    if not differences:
        return None
    path = f"{client.PATHS[part.kind]}/{row['id']}"
    if part.kind is Kind.DATASET:  # changed by a POST of its name; what that leaves out stays
        path, body = client.PATHS[part.kind], dict(part.body)
    return Step("change", part.kind, part.name, part.mark, path, body, tuple(differences))


def _compared(field: str, row: client.Row, wanted: Any, widgets: Mapping[str, str]) -> Iterator[Difference]:
    there = row.get(field)
    if field == "definition":
        yield from _misplaced(wanted["widgets"], _placements(row), widgets)
        return
    if field == "chartConfig" and isinstance(there, Mapping):
        there = {"type": row.get("chartType"), **there}
    if _plain(there) != _plain(wanted):
        yield Difference(field, there, wanted)


def _misplaced(
    wanted: Sequence[client.Row], there: Sequence[client.Row], widgets: Mapping[str, str]
) -> Iterator[Difference]:
    """Differences of our placements: missing, changed or superfluous."""
    placed = {str(entry.get("id")): entry for entry in there if _is_ours(entry)}
    for entry in wanted:
        known = {**entry, "widgetId": widgets.get(entry["widgetId"], entry["widgetId"])}
        place = placed.pop(entry["id"], None)
        if place is None:
            where = {name: known[name] for name in ("x", "y", "width", "height")}
            yield Difference(f"definition {entry['id']}", None, where)
        elif fields := [name for name, value in known.items() if place.get(name) != value]:
            yield Difference(
                f"definition {entry['id']}",
                {name: place.get(name) for name in fields},
                {name: known[name] for name in fields},
            )
    for name, entry in placed.items():
        yield Difference(f"definition {name}", entry, None)


def _placements(row: client.Row) -> list[client.Row]:
    definition = row.get("definition")
    placed = definition.get("widgets") if isinstance(definition, Mapping) else None
    return [entry for entry in placed or () if isinstance(entry, Mapping)]


def _is_ours(placement: client.Row) -> bool:
    return str(placement.get("id")).startswith("listenpost-")


def _pushed(prompt: Prompt, there: client.Pushed) -> Step | None:
    """Step that adds a new version of a prompt; None when the text is the same.

    It takes the label `production` until a person gives that to another version.
    """
    if there.text is not None and there.text.strip() == prompt.text:
        return None
    follows = _PRODUCTION in there.labels if there.text is not None else not there.in_production
    body = {
        "name": prompt.title, "type": "text", "prompt": prompt.text, "commitMessage": COMMITTED,
        "labels": [LABEL, _PRODUCTION] if follows else [LABEL], "tags": [LABEL],
    }  # fmt: skip
    difference = Difference("prompt", there.text, prompt.text)
    return Step("push", "prompt", prompt.title, prompt.title, client.PROMPTS, body, (difference,))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items() if part is not None}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def check(definitions: Definitions) -> None:
    """Raise `ConfigurationError` for a widget that Langfuse would accept and not draw."""
    for part in definitions.parts:
        if part.kind is Kind.WIDGET and (faults := list(undrawable(part.body))):
            raise ConfigurationError(f"widget `{part.mark}` cannot be drawn: {'; '.join(faults)}")


def carry_out(server: client.Server, plan: Plan, done: Callable[[Step, str | None], None]) -> set[str]:
    """Do every step; returns the ids that surely this run created.

    `done` gets each step, with the reason if it failed and the others can go on. Raises
    `ConfigurationError` or `LangfuseError`; what was done stays.
    """
    widgets, made = dict(plan.widgets), set[str]()
    for step in plan.steps:
        why = None
        if step.verb in {"create", "push"}:
            row = _make(server, step, _resolved(step.body, widgets), made)
            if step.kind is Kind.WIDGET:
                widgets[step.mark] = str(row.get("id"))
        elif step.kind is Kind.DATASET and step.body is not None:
            server.post(step.path, step.body, step.title)
        elif step.body is not None:
            server.patch(step.path, _resolved(step.body, widgets), step.title)
        else:
            query = {} if step.version is None else {"version": step.version}
            try:
                server.delete(step.path, step.title, **query)
            except LangfuseError as error:
                if error.http_status != HTTPStatus.CONFLICT or step.kind is not Kind.WIDGET:
                    raise
                why = _STILL_PLACED
        done(step, why)
    return made


def plan_settling(server: client.Server, definitions: Definitions, stock: client.ProjectState, made: Set[str]) -> Plan:
    """The remaining steps when another run created the same objects at the same time.

    Langfuse has no lock and no unique names, so each run reads again after its writes: the oldest
    copy stays, and each run deletes its own. `stock` is what there was before.
    """
    rows = {kind: client.read_rows(server, kind) for kind in Kind}
    plan = plan_apply(replace(definitions, prompts=()), replace(stock, rows=rows), made)
    return replace(plan, notes=())  # a copy that the other run is about to take back is no news


def _make(server: client.Server, step: Step, body: Mapping[str, Any], made: set[str]) -> Mapping[str, Any]:
    """What a POST creates; if the answer is lost, what it created is looked for.

    It is sent again only if the server did nothing and asked to wait. Of two concurrent pushes of a
    prompt Langfuse answers 400 to one. A row that was looked for may be another run's: not `made`.
    """
    while True:
        try:
            row = server.post(step.path, body, step.title)
            made.add(str(row.get("id")))
            return row
        except LangfuseError as error:
            raced = step.verb == "push" and error.http_status == HTTPStatus.BAD_REQUEST
            if not (error.maybe_done or raced) and error.retry_after is None:
                raise
            if error.retry_after is not None:
                server.wait(error.retry_after)
            if isinstance(step.kind, Kind):
                part = Definition(step.kind, step.mark, body)
                for row in client.read_rows(server, step.kind):
                    if fits(part, row):
                        return row
            elif client.read_prompt(server, step.name).text == body["prompt"]:
                return {}
            if error.retry_after is None:
                raise


def _resolved(body: Mapping[str, Any] | None, widgets: Mapping[str, str]) -> Mapping[str, Any]:
    if not body or "definition" not in body:
        return body or {}
    placed = [dict(entry) for entry in body["definition"]["widgets"]]
    for entry in placed:
        if "widgetId" in entry:
            entry["widgetId"] = widgets.get(entry["widgetId"], entry["widgetId"])
    return {**body, "definition": {"widgets": placed}}
