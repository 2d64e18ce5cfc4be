"""`watch`: a question that is asked again and again, and what has changed meanwhile.

Options and choices that several commands take.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from api.core.text import SHORT_ID
from api.errors import UsageError
from api.interfaces.cli.output import Format, ReportFormat, as_json, say, tell
from api.interfaces.cli.stats_commands import OutputFormat, StatsFormat
from api.interfaces.cli.stored_commands import with_store
from api.interfaces.cli.watch_run_commands import Name, due_of, history, run_, show, with_watch

if TYPE_CHECKING:
    from api.choices import Only
    from api.features.analyses.api_keys import Keys
    from api.features.analyses.store_ports import Store
    from api.features.watches.watch import Target, Watch


class DepthChoice(StrEnum):
    """How far to look."""

    quick = "quick"
    standard = "standard"
    deep = "deep"


class WindowChoice(StrEnum):
    """How far back to look."""

    day = "day"
    week = "week"
    month = "month"
    year = "year"
    all = "all"


Query = Annotated[str, typer.Argument(help="A product or a question, as you would say it.")]
Depth = Annotated[DepthChoice, typer.Option(help="How far to look.")]
About = Annotated[str, typer.Option(help="What it is, to tell it from its namesakes.")]
Since = Annotated[WindowChoice, typer.Option(help="How far back.")]
Limit = Annotated[int | None, typer.Option(help="Items per source at first.", min=1, max=500)]
As = Annotated[Format, typer.Option("--format", help="How to print the answer.")]
Verbose = Annotated[bool, typer.Option(help="Say more on stderr: grades, upstream requests.")]
Dropped = Annotated[bool, typer.Option("--dropped", help="Also list what was dropped and why.")]
Output = Annotated[Path | None, typer.Option(help="Write the answer to a new file.")]
Sample = Annotated[
    bool, typer.Option("--sandbox", help="Ask the sample world: made up, offline, without keys.")
]
Estimate = Annotated[bool, typer.Option("--estimate", help="Print calls and cost, then stop.")]
Sources = Annotated[list[str] | None, typer.Option(help="Only this source; repeatable.")]
ReportAs = Annotated[ReportFormat, typer.Option("--format", help="How to print the answer.")]


watches = typer.Typer(
    help="Ask again and again, and hear of what is new; docs/watches.md.", no_args_is_help=True
)


class OnlyChoice(StrEnum):
    """What is told."""

    complaints = "complaints"
    everything = "everything"

    @property
    def only(self) -> Only | None:
        """As a watch has it."""
        return "complaints" if self is OnlyChoice.complaints else None


Zone = Annotated[str, typer.Option("--tz", help="Whose clock: Europe/Berlin.")]
Every = Annotated[
    str,
    typer.Option(help="`mon,thu 08:00`, `daily 08:00`, `hourly`, `every 15 min`."),
]
OnlyOption = Annotated[OnlyChoice | None, typer.Option("--only", help="Tell nothing else.")]
Notify = Annotated[
    list[str] | None,
    typer.Option(help="Whom to tell: URL, slack:URL, mailto:ADDRESS or file:PATH; repeatable."),
]


@watches.command()
def add(
    query: Query,
    every: Every = "mon 08:00",
    zone: Zone = "UTC",
    about: Annotated[str, typer.Option(help="What it is, to tell it from its namesakes.")] = "",
    source: Sources = None,
    depth: Depth = DepthChoice.standard,
    limit: Limit = None,
    only: OnlyOption = None,
    notify: Notify = None,
    tell_first: Annotated[
        bool, typer.Option("--tell-first", help="Tell of the first run, too.")
    ] = False,
    name: Annotated[str, typer.Option(help="What to call it; else as it asks.")] = "",
    sandbox: Sample = False,
) -> NoReturn:
    """Watch a product; the first run is due at once."""
    from dataclasses import replace

    from api.features.analyses.api_keys import LOCAL
    from api.features.watches.watch import new_watch
    from api.features.watches.watch_service import utc_now

    new = new_watch(LOCAL.id, query, every, utc_now())
    watch = replace(
        new, name=name or new.name, about=about, sources=tuple(source or ()), depth=depth.value,
        limit=limit, sandbox=sandbox, zone=zone, notify=_targets(notify or ()),
        only=only.only if only else None, tell_first=tell_first,
    )  # fmt: skip

    async def work(store: Store, keys: Keys) -> None:
        from api.bootstrap.background_work import keep_watch

        await keep_watch(store, watch, new=True)
        say(watch.id)
        tell(f"watching “{watch.name}”, {watch.every} ({watch.zone}); the first run is due now:")
        by_hand = f"`listenpost watch run {watch.id[:SHORT_ID]}`"
        tell(f"{by_hand}; else `listenpost serve`, `work` or `watch run --due` runs it")
        _tell_secret(watch)

    with_store(work)


@watches.command(name="list")
def list_watches(form: StatsFormat = OutputFormat.text) -> NoReturn:
    """Every watch: id, when it is due next, name."""

    async def work(store: Store, keys: Keys) -> None:
        from api.features.analyses.api_keys import LOCAL
        from api.interfaces.cli.terminal_text import shown
        from api.interfaces.shared.watch_view import watch_view

        kept = await store.watches(LOCAL.id)
        if form is OutputFormat.json:
            say(as_json([watch_view(watch).model_dump(mode="json") for watch in kept]))
            return
        for watch in kept:
            say(f"{watch.id[:SHORT_ID]}  {due_of(watch):<27}{watch.every:<16}{shown(watch.name)}")
        if not kept:
            tell('nothing is watched; `listenpost watch add "PRODUCT"` watches one')

    with_store(work)


watches.command()(show)
watches.command()(history)
watches.command(name="run")(run_)


@watches.command()
def change(
    name: Name,
    query: Annotated[str | None, typer.Option(help="What to ask instead.")] = None,
    about: Annotated[str | None, typer.Option(help="What it is.")] = None,
    source: Sources = None,
    every: Annotated[str | None, typer.Option(help="When.")] = None,
    zone: Annotated[str | None, typer.Option("--tz", help="Whose clock.")] = None,
    depth: Annotated[DepthChoice | None, typer.Option(help="How far to look.")] = None,
    only: OnlyOption = None,
    notify: Notify = None,
    new_name: Annotated[str | None, typer.Option("--name", help="What to call it.")] = None,
) -> NoReturn:
    """Ask otherwise from the next run on: what was dropped by another question is judged anew.

    With `--notify` those who are named are told, and nobody else.
    """
    given = {
        "query": query, "about": about, "every": every, "zone": zone, "name": new_name,
        "depth": depth and depth.value,
    }  # fmt: skip
    changes: dict[str, object] = {key: value for key, value in given.items() if value is not None}
    if source:
        changes["sources"] = tuple(source)
    if only:
        changes["only"] = only.only
    if notify:
        changes["notify"] = _targets(notify)
    if not changes:
        raise UsageError("say what to change, for example `--about`")
    _changed(name, changes, "is changed")


@watches.command()
def pause(name: Name) -> NoReturn:
    """Run it no more until `resume`, except by hand."""
    _changed(name, {"paused": True}, "is paused")


@watches.command()
def resume(name: Name) -> NoReturn:
    """Run it again when it is due."""
    _changed(name, {"paused": False}, "goes on")


@watches.command()
def remove(name: Name) -> NoReturn:
    """Forget it, its runs and what it has seen; its reports stay."""

    async def work(store: Store, watch: Watch) -> None:
        await store.drop_watch(watch.tenant, watch.id)
        tell(f"“{watch.name}” is watched no more; its reports are kept")

    with_watch(name, work)


def _targets(texts: Sequence[str]) -> tuple[Target, ...]:
    """Whom these name; of a file the whole path, for whoever runs it may be in another folder."""
    from api.features.watches.watch import Target, target_of

    targets = [target_of(text, files=True) for text in texts]
    return tuple(
        Target("file", str(Path(target.address).absolute())) if target.kind == "file" else target
        for target in targets
    )


def _tell_secret(watch: Watch) -> None:
    if watch.is_signed:
        tell(f"webhooks are signed with `{watch.secret}`; it is not shown again")


def _changed(name: str, changes: dict[str, object], words: str) -> NoReturn:
    """Keep the watch with these fields, due when its clock says so next."""

    async def work(store: Store, watch: Watch) -> None:
        from api.bootstrap.background_work import keep_watch
        from api.features.watches.watch_service import changed_watch

        new = changed_watch(watch, changes)
        await keep_watch(store, new, new=False)
        tell(f"“{new.name}” {words}{'' if new.paused else f'; {due_of(new)}'}")
        if not watch.is_signed:
            _tell_secret(new)

    with_watch(name, work)
