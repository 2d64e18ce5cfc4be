"""`watch`: a question that is asked again and again, and what has changed meanwhile."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from api.errors import UsageError
from api.faces.cli.choices import Depth, DepthChoice, Limit, Query, Sample, Sources
from api.faces.cli.printing import as_json, say, tell
from api.faces.cli.retrospect import As, Printed
from api.faces.cli.stored import with_store
from api.faces.cli.watch_runs import Name, due_of, history, run_, show, with_watch
from api.services.text import SHORT_ID

if TYPE_CHECKING:
    from api.services.keeping.keys import Keys
    from api.services.keeping.storage import Store
    from api.services.watching.watch import Watch

watches = typer.Typer(
    help="Ask again and again, and hear of what is new; docs/watches.md.", no_args_is_help=True
)


class OnlyChoice(StrEnum):
    """What is told."""

    complaints = "complaints"


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
        tell(f"{by_hand}; else `listenpost serve`, `work` or `watch run --due` runs it")
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


def _changed(name: str, changes: dict[str, object], words: str) -> NoReturn:
    """Keep the watch with these fields, due when its clock says so next."""

    async def work(store: Store, watch: Watch) -> None:
        from api.services.watching.running import changed
        from api.wiring.watching import keep_watch

        new = changed(watch, changes)
        await keep_watch(store, new, new=False)
        tell(f"“{new.name}” {words}{'' if new.paused else f'; {due_of(new)}'}")

    with_watch(name, work)
