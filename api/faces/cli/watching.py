"""`watch`: a question that is asked again and again, and what has changed meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from api.errors import UsageError
from api.faces.cli.choices import Depth, DepthChoice, Limit, Query, Sample, Sources
from api.faces.cli.printing import as_json, say, tell
from api.faces.cli.retrospect import As, Printed
from api.faces.cli.stored import with_store
from api.services.text import SHORT_ID, minute

if TYPE_CHECKING:
    from api.services.keeping.keys import Keys
    from api.services.keeping.storage import Store
    from api.services.watching.run import WatchRun
    from api.services.watching.watch import Watch

watches = typer.Typer(
    help="Ask again and again, and hear of what is new; docs/watches.md.", no_args_is_help=True
)
_UNHEARD = 4


class OnlyChoice(StrEnum):
    """What is told."""

    complaints = "complaints"


Name = Annotated[str, typer.Argument(help="Its name, its id, or the id's beginning.")]
Zone = Annotated[str, typer.Option("--tz", help="Whose clock: Europe/Berlin.")]
Every = Annotated[
    str,
    typer.Option(help="`mon,thu 08:00`, `daily 08:00`, `hourly`, `every 15 min`."),
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
    only: Annotated[OnlyChoice | None, typer.Option(help="Tell nothing else.")] = None,
    notify: Annotated[
        list[str] | None,
        typer.Option(help="Whom to tell: URL, slack:URL, mailto:ADDRESS or file:PATH; repeatable."),
    ] = None,
    tell_first: Annotated[
        bool, typer.Option("--tell-first", help="Tell of the first run, too.")
    ] = False,
    name: Annotated[str, typer.Option(help="What to call it; else as it asks.")] = "",
    sandbox: Sample = False,
) -> NoReturn:
    """Watch a product; the first run is due at once."""
    from dataclasses import replace

    from api.services.keeping.keys import LOCAL
    from api.services.watching.running import utc_now
    from api.services.watching.watch import Target, new_watch, target_of

    targets = [target_of(text, files=True) for text in notify or ()]
    targets = [
        # whoever runs it later may be in another folder
        Target("file", str(Path(target.address).absolute())) if target.kind == "file" else target
        for target in targets
    ]
    new = new_watch(LOCAL.id, query, every, utc_now())
    watch = replace(
        new, name=name or new.name, about=about, sources=tuple(source or ()), depth=depth.value,
        limit=limit, sandbox=sandbox, zone=zone, notify=tuple(targets),
        only="complaints" if only else None, tell_first=tell_first,
    )  # fmt: skip

    async def work(store: Store, keys: Keys) -> None:
        from api.wiring.watching import keep_watch

        await keep_watch(store, watch, new=True)
        say(watch.id)
        tell(f"watching “{watch.name}”, {watch.every} ({watch.zone}); the first run is due now:")
        by_hand = f"`listenpost watch run {watch.id[:SHORT_ID]}`"
        tell(f"{by_hand}, or `listenpost watch run --due` from cron")
        if any(target.kind == "webhook" for target in watch.notify):
            tell(f"webhooks are signed with `{watch.secret}`; it is not shown again")

    with_store(work)


@watches.command(name="list")
def list_watches(form: As = Printed.text) -> NoReturn:
    """Every watch: id, when it is due next, name."""

    async def work(store: Store, keys: Keys) -> None:
        from api.faces.cli.terminal import shown
        from api.faces.watches import watch_view
        from api.services.keeping.keys import LOCAL

        kept = await store.watches(LOCAL.id)
        if form is Printed.json:
            say(as_json([watch_view(watch).model_dump(mode="json") for watch in kept]))
            return
        for watch in kept:
            say(f"{watch.id[:SHORT_ID]}  {_due(watch):<27}{watch.every:<16}{shown(watch.name)}")
        if not kept:
            tell('nothing is watched; `listenpost watch add "PRODUCT"` watches one')

    with_store(work)


@watches.command()
def show(name: Name, form: As = Printed.text) -> NoReturn:
    """What one watch asks and tells, its last run, and what did not arrive."""

    async def work(store: Store, watch: Watch) -> None:
        from api.faces.cli.terminal import shown
        from api.faces.watches import undelivered_views, watch_view
        from api.services.watching.deliveries import undelivered
        from api.services.watching.telling import text_of
        from api.sources import EVERYWHERE

        runs = await store.watch_runs(watch.tenant, watch.id, 1)
        missing = undelivered_views(await undelivered(store, watch))
        if form is Printed.json:
            more = {
                "last_run": runs[0].model_dump(mode="json") if runs else None,
                "undelivered": [delivery.model_dump(mode="json") for delivery in missing],
            }
            say(as_json({**watch_view(watch).model_dump(mode="json"), **more}))
            return
        heading = f"{shown(watch.name)} ({watch.id[:SHORT_ID]})"
        say(f"{heading}: {watch.every}, {watch.zone}; {_due(watch)}")
        if watch.about or watch.query != watch.name:
            say(f"asks: {shown(watch.query)}{f' - {shown(watch.about)}' if watch.about else ''}")
        places = ", ".join(watch.sources) or "all that are set"
        say(f"of: {places}; depth {watch.depth}{'; sample world' if watch.sandbox else ''}")
        tells = ", ".join(target.shown for target in watch.notify) or "nobody"
        only, feed = f"; only {watch.only}" if watch.only else "", "; a feed" if watch.feed else ""
        say(f"tells: {tells}{only}{feed}")
        for run in runs:
            say("")
            _print(watch, run, text_of(watch, run, EVERYWHERE))
        for delivery in missing:
            when = f"{minute(delivery.created_at)}, run {delivery.run_id[:SHORT_ID]}"
            say(f"undelivered: {when}, to {delivery.target}: {delivery.reason}")
        if missing:
            tell(f"`listenpost watch notify-again {watch.id[:SHORT_ID]}` tells once more")

    with_watch(name, work)


@watches.command()
def history(
    name: Name,
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1, max=1000)] = 20,
    form: As = Printed.text,
) -> NoReturn:
    """Its runs, a line each."""

    async def work(store: Store, watch: Watch) -> None:
        from api.faces.cli.terminal import shown
        from api.services.watching.telling import headline

        runs = await store.watch_runs(watch.tenant, watch.id, limit)
        if form is Printed.json:
            say(as_json([run.model_dump(mode="json") for run in runs]))
            return
        for run in runs:
            report = f"  report {run.report_id[:SHORT_ID]}" if run.report_id else ""
            say(f"{minute(run.created_at)}  {shown(headline(watch, run))}{report}")
        if not runs:
            tell(f"it has not run yet: `listenpost watch run {watch.id[:SHORT_ID]}`")

    with_watch(name, work)


@watches.command()
def change(
    name: Name,
    query: Annotated[str | None, typer.Option(help="What to ask instead.")] = None,
    about: Annotated[str | None, typer.Option(help="What it is.")] = None,
    source: Sources = None,
    every: Annotated[str | None, typer.Option(help="When.")] = None,
    zone: Annotated[str | None, typer.Option("--tz", help="Whose clock.")] = None,
) -> NoReturn:
    """Ask otherwise from the next run on: what was dropped by another question is judged anew."""
    given = {"query": query, "about": about, "every": every, "zone": zone}
    changes: dict[str, object] = {key: value for key, value in given.items() if value is not None}
    if source:
        changes["sources"] = tuple(source)
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


@watches.command(name="run")
def run_(
    name: Annotated[str | None, typer.Argument(help="Its name or id; or use --due.")] = None,
    due: Annotated[bool, typer.Option("--due", help="Run all that is due, for cron.")] = False,
    form: As = Printed.text,
) -> NoReturn:
    """Run one watch now, or all that is due; ends with 4 when a run heard nothing or failed."""
    if (name is None) != due:
        raise UsageError("name one watch, or use `--due`")
    from api import wiring  # with the database's libraries
    from api.faces.cli.running import closing, run
    from api.services.keeping.keys import LOCAL
    from api.services.watching.running import Watching, watch_of
    from api.services.watching.telling import text_of
    from api.sources import EVERYWHERE
    from api.wiring.serving import open_house
    from api.wiring.watching import watching_of

    settings = wiring.load_settings()

    async def runs(watching: Watching) -> AsyncIterator[tuple[Watch, WatchRun]]:
        if name is None:
            async for pair in watching.run_due():
                yield pair
        else:
            watch = await watch_of(watching.shelf, LOCAL.id, name)
            tell(f"running “{watch.name}” ...")
            yield watch, await watching.run(watch)

    async def work() -> int:
        code, number = 0, 0
        async with closing(await open_house(settings)) as house:
            async for watch, ran in runs(watching_of(house)):
                number += 1
                code = _UNHEARD if ran.state in {"failed", "not_asked"} else code
                if form is Printed.json:
                    say(as_json(ran.model_dump(mode="json")))
                else:
                    _print(watch, ran, text_of(watch, ran, EVERYWHERE))
        if not number:
            tell("nothing is due")
        return code

    raise typer.Exit(run(work))


def _print(watch: Watch, run: WatchRun, text: str) -> None:
    from api.faces.cli.terminal import shown
    from api.services.text import web_url

    for line in text.splitlines():
        address = web_url(line.strip())  # alone on its line; within others nothing is to be opened
        say(f"{'  ' if line.startswith('  ') else ''}{address or shown(line)}")
    for delivery in run.deliveries:
        outcome = "delivered" if delivery.delivered else f"undelivered: {delivery.reason}"
        tell(f"{delivery.target}: {outcome}")


def _due(watch: Watch) -> str:
    """When it is due, by its own clock."""
    from api.services.watching.schedule import zone_of

    if watch.paused:
        return "paused"
    return f"due {watch.due_at.astimezone(zone_of(watch.zone)):%Y-%m-%d %H:%M %Z}"


def with_watch(name: str, work: Callable[[Store, Watch], Awaitable[None]]) -> NoReturn:
    """Hand the watch of this name to `work`."""

    async def opened(store: Store, keys: Keys) -> None:
        from api.services.keeping.keys import LOCAL
        from api.services.watching.running import watch_of

        await work(store, await watch_of(store, LOCAL.id, name))

    with_store(opened)


def _changed(name: str, changes: dict[str, object], words: str) -> NoReturn:
    """Keep the watch with these fields, due when its clock says so next."""

    async def work(store: Store, watch: Watch) -> None:
        from api.services.watching.running import changed
        from api.wiring.watching import keep_watch

        new = changed(watch, changes)
        await keep_watch(store, new, new=False)
        tell(f"“{new.name}” {words}{'' if new.paused else f'; {_due(new)}'}")

    with_watch(name, work)
