"""Doing what a plan says, step by step, so that nothing is made twice whatever is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from api.dashboards.client import Server
from api.dashboards.definitions import Definition, Definitions, Kind
from api.dashboards.drawing import undrawable
from api.dashboards.planning import Plan, Step, fits
from api.dashboards.reading import read_prompt, read_rows
from api.errors import ConfigurationError, LangfuseError


def check(definitions: Definitions) -> None:
    """Look for what Langfuse would accept and not draw.

    Raises:
        ConfigurationError: a widget is one of these.
    """
    for part in definitions.parts:
        if part.kind is Kind.WIDGET and (faults := list(undrawable(part.body))):
            raise ConfigurationError(f"widget `{part.mark}` cannot be drawn: {'; '.join(faults)}")


def carry_out(server: Server, plan: Plan, done: Callable[[Step, str | None], None]) -> int:
    """Every step; how many could not be done for a reason that lets the others go on.

    `done` hears of each step, with the reason when it was not.

    Raises:
        ConfigurationError: the server lets these keys write nothing.
        LangfuseError: it fails; what was done stays.
    """
    widgets, left = dict(plan.widgets), 0
    for step in plan.steps:
        if step.verb in {"create", "push"}:
            row = _make(server, step, _resolved(step.body, widgets))
            if step.kind is Kind.WIDGET:
                widgets[step.mark] = str(row.get("id"))
        elif step.body is not None:
            server.patch(step.path, _resolved(step.body, widgets), step.title)
        else:
            reason = _delete(server, step)
            left += reason is not None
            done(step, reason)
            continue
        done(step, None)
    return left


def _make(server: Server, step: Step, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a POST makes; after an answer that is lost, what it made is looked for.

    It is sent again only when the server said that it did nothing and asked to wait.
    """
    while True:
        try:
            return server.post(step.path, body, step.title)
        except LangfuseError as error:
            if not error.unsure and error.wait is None:
                raise
            if error.wait is not None:
                server.wait(error.wait)
            if (row := _find(server, step)) is not None:
                return row
            if error.unsure:
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
