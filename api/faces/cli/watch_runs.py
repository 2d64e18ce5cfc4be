"""`watch run`, `watch show` and `watch history`: what the runs of a watch came to."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from api.errors import UsageError
from api.faces.cli.printing import as_json, say, tell
from api.faces.cli.retrospect import As, Printed
from api.faces.cli.stored import with_store
from api.services.text import SHORT_ID, minute

if TYPE_CHECKING:
    from api.services.keeping.keys import Keys
    from api.services.keeping.storage import Store
    from api.services.watching.run import WatchRun
    from api.services.watching.watch import Watch

_UNHEARD = 4
Name = Annotated[str, typer.Argument(help="Its name, its id, or the id's beginning.")]


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
        say(f"{heading}: {watch.every}, {watch.zone}; {due_of(watch)}")
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


def history(
    name: Name,
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1, max=1000)] = 20,
    plot: Annotated[
        bool, typer.Option("--plot", help="Over time: volume, sentiment and aspects by week.")
    ] = False,
    weeks: Annotated[int, typer.Option(help="How many of --plot.", min=1, max=260)] = 26,
    form: As = Printed.text,
) -> NoReturn:
    """Its runs, a line each, or what they held week by week."""

    async def work(store: Store, watch: Watch) -> None:
        from api.faces.cli.terminal import shown
        from api.services.watching.telling import headline

        if plot:
            await _plot(store, watch, weeks, form)
            return
        runs = await store.watch_runs(watch.tenant, watch.id, limit)
        if form is Printed.json:
            say(as_json([run.model_dump(mode="json") for run in runs]))
            return
        for run in runs:
            report = f"  report {run.report_id[:SHORT_ID]}" if run.report_id else ""
            say(f"{minute(run.created_at)}  {shown(headline(watch, run))}{report}")
        if not runs:
            _tell_idle(watch)

    with_watch(name, work)


async def _plot(store: Store, watch: Watch, weeks: int, form: Printed) -> None:
    from api.faces.cli.trend_text import trend_text
    from api.services.watching.running import utc_now
    from api.services.watching.trend import read_trend

    trend = await read_trend(store, watch, utc_now(), weeks)
    if form is Printed.json:
        say(as_json(trend.model_dump(mode="json")))
    elif trend.lines:
        say(trend_text(watch.name, trend, shutil.get_terminal_size((100, 24)).columns))
    else:
        _tell_idle(watch)


def _tell_idle(watch: Watch) -> None:
    tell(f"it has not run yet: `listenpost watch run {watch.id[:SHORT_ID]}`")


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


def due_of(watch: Watch) -> str:
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
