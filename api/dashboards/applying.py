"""Doing what a plan says, step by step, so that nothing is made twice whatever is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from api.dashboards.client import Server
from api.dashboards.definitions import Definition, Definitions, Kind
from api.dashboards.drawing import undrawable
from api.dashboards.planning import Plan, Step, fits, plan_apply
from api.dashboards.reading import Stock, read_prompt, read_rows
from api.errors import ConfigurationError, LangfuseError


def check(definitions: Definitions) -> None:
    """Look for what Langfuse would accept and not draw.

    Raises:
        ConfigurationError: a widget is one of these.
    """
    for part in definitions.parts:
        if part.kind is Kind.WIDGET and (faults := list(undrawable(part.body))):
            raise ConfigurationError(f"widget `{part.mark}` cannot be drawn: {'; '.join(faults)}")


def carry_out(server: Server, plan: Plan, done: Callable[[Step, str | None], None]) -> set[str]:
    """Every step; the ids of what is surely of this run.

    `done` hears of each step, with the reason when it could not be done and the others could.

    Raises:
        ConfigurationError: the server lets these keys write nothing.
        LangfuseError: it fails; what was done stays.
    """
    widgets, made = dict(plan.widgets), set[str]()
    for step in plan.steps:
        if step.verb in {"create", "push"}:
            row = _make(server, step, _resolved(step.body, widgets), made)
            if step.kind is Kind.WIDGET:
                widgets[step.mark] = str(row.get("id"))
        elif step.kind is Kind.DATASET and step.body is not None:
            server.post(step.path, step.body, step.title)
        elif step.body is not None:
            server.patch(step.path, _resolved(step.body, widgets), step.title)
        else:
            done(step, _delete(server, step))
            continue
        done(step, None)
    return made


def plan_settling(server: Server, definitions: Definitions, stock: Stock, made: Set[str]) -> Plan:
    """What is still to be done when another run made the same at the same moment.

    Langfuse has no lock and no unique names. So each run looks again after its writes: of what is
    there more than once the oldest stays, for both, and each takes back its own alone. Whoever made
    the later one finds the older one there. `stock` is what there was before.
    """
    rows = {kind: read_rows(server, kind) for kind in Kind}
    plan = plan_apply(replace(definitions, prompts=()), replace(stock, rows=rows), made)
    return replace(plan, notes=())  # a copy that the other run is about to take back is no news


def _make(server: Server, step: Step, body: Mapping[str, Any], made: set[str]) -> Mapping[str, Any]:
    """What a POST makes; after an answer that is lost, what it made is looked for.

    It is sent again only when the server said that it did nothing and asked to wait. Of two who
    push one prompt at the same moment Langfuse refuses one with 400. What was looked for may be
    another's, and is not in `made`.
    """
    while True:
        try:
            row = server.post(step.path, body, step.title)
            made.add(str(row.get("id")))
            return row
        except LangfuseError as error:
            raced = step.verb == "push" and error.http == HTTPStatus.BAD_REQUEST
            if not (error.unsure or raced) and error.wait is None:
                raise
            if error.wait is not None:
                server.wait(error.wait)
            if (there := _find(server, step)) is not None:
                return there
            if error.wait is None:
                raise


def _find(server: Server, step: Step) -> Mapping[str, Any] | None:
    if step.body is None or not isinstance(step.kind, Kind):
        pushed = read_prompt(server, step.name)
        same = step.body is not None and pushed.text == step.body["prompt"]
        return {} if same else None
    part = Definition(step.kind, step.mark, step.body)
    return next((row for row in read_rows(server, step.kind) if fits(part, row)), None)


def _delete(server: Server, step: Step) -> str | None:
    """Why something stays; None when it is gone."""
    query = {} if step.version is None else {"version": step.version}
    try:
        server.delete(step.path, step.title, **query)
    except LangfuseError as error:
        if error.http == HTTPStatus.CONFLICT and step.kind is Kind.WIDGET:
            return "it is still on a dashboard that is not ours; take it off there, then run again"
        raise
    return None


def _resolved(body: Mapping[str, Any] | None, widgets: Mapping[str, str]) -> Mapping[str, Any]:
    """The same with the ids of widgets where it has marks."""
    if not body or "definition" not in body:
        return body or {}
    placed = [
        {**entry, "widgetId": widgets.get(entry["widgetId"], entry["widgetId"])}
        if "widgetId" in entry
        else entry
        for entry in body["definition"]["widgets"]
    ]
    return {**body, "definition": {"widgets": placed}}
