"""`langfuse`: dashboards, score configs, prompts and datasets of Listenpost in a project."""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.errors import LangfuseError
from api.interfaces.cli.output import say, tell

if TYPE_CHECKING:
    from api.langfuse.dashboards.apply_plan import Difference, Plan, Step
    from api.langfuse.dashboards.dashboard_client import Server


DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done, and write nothing.")]
_UNREACHABLE, _NONE, _LEFT = 4, 3, 4
_PAST = {"create": "created", "push": "pushed", "change": "changed", "archive": "archived",
         "delete": "deleted"}  # fmt: skip


def apply(
    dry_run: DryRun = False,
    diff: Annotated[bool, typer.Option("--diff", help="Also print what differs.")] = False,
) -> int:
    """Create what is missing and update what differs; what others created is left alone."""
    from api import bootstrap
    from api.langfuse.dashboards import definitions
    from api.langfuse.dashboards.apply_plan import check, plan_apply, plan_settling
    from api.langfuse.dashboards.dashboard_client import read_stock

    with _opened_server() as server:
        wanted = definitions.load()
        check(wanted)
        stock = read_stock(server, wanted.prompts)
        plan = plan_apply(wanted, stock)
        settle = partial(plan_settling, server, wanted, stock)
        code = _carry_out(server, plan, stock.project.name, settle, dry_run=dry_run, diff=diff)
    if bootstrap.mode_of(bootstrap.load_settings()) == "sandbox":
        tell("listenpost: note: in sandbox mode nothing is sent there, so the charts stay empty")
    return code


def remove(dry_run: DryRun = False) -> int:
    """Delete what `apply` created, and nothing else; score configs are archived, datasets stay."""
    from api.langfuse.dashboards import definitions
    from api.langfuse.dashboards.apply_plan import plan_remove
    from api.langfuse.dashboards.dashboard_client import read_stock, read_versions

    with _opened_server() as server:
        prompts = definitions.load().prompts
        stock = read_stock(server, ())
        plan = plan_remove(stock, {p.title: read_versions(server, p.title) for p in prompts})
        return _carry_out(server, plan, stock.project.name, dry_run=dry_run)


def open_dashboards() -> int:
    """Print the addresses of the dashboards."""
    from api.interfaces.cli.terminal_text import shown
    from api.langfuse.dashboards.apply_plan import ours
    from api.langfuse.dashboards.dashboard_client import read_project, read_rows
    from api.langfuse.dashboards.definitions import Kind

    with _opened_server() as server:
        project = read_project(server)
        rows = ours(read_rows(server, Kind.DASHBOARD))
        for row in rows:
            page = f"{server.address}/project/{project.id}/dashboards/{row['id']}"
            say(f"{page}  {shown(row.get('name'))}")
    if not rows:
        tell("there are no dashboards yet; `listenpost langfuse apply` creates them")
    return 0 if rows else _NONE


def _carry_out(
    server: Server,
    plan: Plan,
    project: str,
    settle: Callable[[Set[str]], Plan] | None = None,
    *,
    dry_run: bool,
    diff: bool = False,
) -> int:
    """Carry out the steps, or only print them; returns the exit code. `settle` adds steps afterwards."""
    from api.core.text import clean
    from api.interfaces.cli.terminal_text import shown
    from api.langfuse.dashboards.apply_plan import carry_out

    reasons: list[str | None] = []

    def done(step: Step, reason: str | None) -> None:
        reasons.append(reason)
        verb = f"would {step.verb}" if dry_run else _PAST[step.verb]
        say(f"{verb if reason is None else 'kept'} {shown(step.title)}" + (f": {reason}" if reason else ""))
        if diff:
            for line in _differences(step):
                say(f"    {clean(line)}")

    for note in plan.notes:
        tell(f"listenpost: note: {shown(note)}")
    if dry_run:
        for step in plan.steps:
            done(step, None)
    elif (made := carry_out(server, plan, done)) and settle and (again := settle(made)).steps:
        tell("listenpost: note: another run made the same at this moment; the older of two is kept")
        carry_out(server, again, done)
    count = reasons.count(None)
    summary = f"{count} {'to do' if dry_run else 'done'}"
    if settle:
        summary += f", {plan.unchanged} as they should be"
    tell(f"Langfuse project `{shown(project)}` at `{server.host}`: {summary}")
    return 0 if count == len(reasons) else _LEFT


def _differences(step: Step) -> Iterator[str]:
    for difference in step.differences:
        yield f"{difference.field}:"
        yield from _lines(difference)


def _lines(difference: Difference) -> Iterator[str]:
    """A difference in the form of a unified diff without its header."""
    there, wanted = _text(difference.there), _text(difference.wanted)
    changes = difflib.unified_diff(there, wanted, lineterm="", n=1)
    for line in itertools.islice(changes, 2, None):
        if line.strip() and not line.startswith("@@"):
            yield line


def _text(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return value.splitlines()
    rows = value if isinstance(value, list) else [value]
    return [json.dumps(row, ensure_ascii=False, sort_keys=True) for row in rows]


@contextmanager
def _opened_server() -> Iterator[Server]:
    """The Langfuse of the settings; a command that it fails ends with 4."""
    from api import bootstrap
    from api.langfuse.dashboards.dashboard_client import Server

    settings = bootstrap.load_settings()
    server = Server(settings.tracing, notice=lambda line: tell(f"listenpost: {line}"))
    try:
        yield server
    except LangfuseError as error:
        tell(f"listenpost: error: {error}")
        raise typer.Exit(_UNREACHABLE) from None
    finally:
        server.close()
