"""`watch run`, `watch show` and `watch history`: what the runs of a watch came to.

A watch over time for a terminal: a row for each week, bars, and words where nothing is known.

`watch notify-test`, `notify-again` and `feed`: who hears of a watch, and what did not arrive.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from api.core.text import SHORT_ID, utc_minute
from api.errors import UsageError
from api.interfaces.cli.output import as_json, say, tell
from api.interfaces.cli.stats_commands import OutputFormat, StatsFormat
from api.interfaces.cli.stored_commands import with_store
from api.sources import ALL_SOURCES

if TYPE_CHECKING:
    from api.features.analyses.api_keys import Keys
    from api.features.analyses.store_ports import Store
    from api.features.watches.watch import Watch
    from api.features.watches.watch_run import Delivery, WatchRun


_UNHEARD = 4
Name = Annotated[str, typer.Argument(help="Its name, its id, or the id's beginning.")]


def show(name: Name, form: StatsFormat = OutputFormat.text) -> NoReturn:
    """What one watch asks and tells, its last run, and what did not arrive."""

    async def work(store: Store, watch: Watch) -> None:
        from api.features.watches.notification import run_text
        from api.features.watches.watch_service import undelivered_runs
        from api.interfaces.cli.terminal_text import shown
        from api.interfaces.shared.watch_view import undelivered_views, watch_view
        from api.sources import ALL_SOURCES

        runs = await store.watch_runs(watch.tenant, watch.id, 1)
        missing = undelivered_views(await undelivered_runs(store, watch))
        if form is OutputFormat.json:
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
            _print(watch, run, run_text(watch, run, ALL_SOURCES))
        for delivery in missing:
            when = f"{utc_minute(delivery.created_at)}, run {delivery.run_id[:SHORT_ID]}"
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
    form: StatsFormat = OutputFormat.text,
) -> NoReturn:
    """Its runs, a line each, or what they held week by week."""

    async def work(store: Store, watch: Watch) -> None:
        from api.features.watches.notification import headline
        from api.interfaces.cli.terminal_text import shown

        if plot:
            await _plot(store, watch, weeks, form)
            return
        runs = await store.watch_runs(watch.tenant, watch.id, limit)
        if form is OutputFormat.json:
            say(as_json([run.model_dump(mode="json") for run in runs]))
            return
        for run in runs:
            report = f"  report {run.report_id[:SHORT_ID]}" if run.report_id else ""
            say(f"{utc_minute(run.created_at)}  {shown(headline(watch, run))}{report}")
        if not runs:
            _tell_idle(watch)

    with_watch(name, work)


async def _plot(store: Store, watch: Watch, weeks: int, form: OutputFormat) -> None:
    from api.features.watches.trend import read_trend
    from api.features.watches.watch_service import utc_now
    from api.interfaces.cli.trend_text import trend_text

    trend = await read_trend(store, watch, utc_now(), weeks)
    if form is OutputFormat.json:
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
    form: StatsFormat = OutputFormat.text,
) -> NoReturn:
    """Run one watch now, or all that is due; ends with 4 when a run heard nothing or failed."""
    if (name is None) != due:
        raise UsageError("name one watch, or use `--due`")
    from api import bootstrap  # with the database's libraries
    from api.bootstrap.app_context import open_app_context
    from api.bootstrap.background_work import watching_of
    from api.features.analyses.api_keys import LOCAL
    from api.features.watches.notification import run_text
    from api.features.watches.watch_service import WatchRunner, find_watch
    from api.interfaces.cli.output import closing, run

    settings = bootstrap.load_settings()

    async def runs(watching: WatchRunner) -> AsyncIterator[tuple[Watch, WatchRun]]:
        if name is None:
            async for pair in watching.run_due():
                yield pair
        else:
            watch = await find_watch(watching.store, LOCAL.id, name)
            tell(f"running “{watch.name}” ...")
            yield watch, await watching.run(watch)

    async def work() -> int:
        code, number = 0, 0
        async with closing(await open_app_context(settings)) as app_context:
            async for watch, ran in runs(watching_of(app_context)):
                number += 1
                code = _UNHEARD if ran.state in {"failed", "not_asked"} else code
                if form is OutputFormat.json:
                    say(as_json(ran.model_dump(mode="json")))
                else:
                    _print(watch, ran, run_text(watch, ran, ALL_SOURCES))
        if not number:
            tell("nothing is due")
        return code

    raise typer.Exit(run(work))


def _print(watch: Watch, run: WatchRun, text: str) -> None:
    from api.core.text import web_url
    from api.interfaces.cli.terminal_text import shown

    for line in text.splitlines():
        address = web_url(line.strip())  # alone on its line; within others nothing is to be opened
        say(f"{'  ' if line.startswith('  ') else ''}{address or shown(line)}")
    for delivery in run.deliveries:
        outcome = "delivered" if delivery.delivered else f"undelivered: {delivery.reason}"
        tell(f"{delivery.target}: {outcome}")


def due_of(watch: Watch) -> str:
    """When it is due, by its own clock."""
    from api.features.watches.watch import zone_of

    if watch.paused:
        return "paused"
    return f"due {watch.due_at.astimezone(zone_of(watch.zone)):%Y-%m-%d %H:%M %Z}"


def with_watch(name: str, work: Callable[[Store, Watch], Awaitable[None]]) -> NoReturn:
    """Hand the watch of this name to `work`."""

    async def opened(store: Store, keys: Keys) -> None:
        from api.features.analyses.api_keys import LOCAL
        from api.features.watches.watch_service import find_watch

        await work(store, await find_watch(store, LOCAL.id, name))

    with_store(opened)


_UNREACHED = 4


def notify_test(name: Name) -> NoReturn:
    """Send a trial to everybody who is to be told; ends with 4 when one does not arrive."""

    async def work(store: Store, watch: Watch) -> None:
        from api import bootstrap
        from api.bootstrap.background_work import notifier_of
        from api.features.watches.watch_service import send_trial

        if not _arrived(await send_trial(notifier_of(bootstrap.load_settings()).send, watch)):
            raise typer.Exit(_UNREACHED)

    with_watch(name, work)


def notify_again(
    name: Name,
    run: Annotated[
        str | None,
        typer.Argument(help="Its id or the beginning; else all that `show` lists as undelivered."),
    ] = None,
) -> NoReturn:
    """Tell those once more who were not reached, by the same id; ends with 4 when one still is not.

    Of several runs the oldest is told first.
    """

    async def work(store: Store, watch: Watch) -> None:
        from api import bootstrap
        from api.bootstrap.background_work import notifier_of
        from api.features.watches.watch_service import resend, run_to_resend, undelivered_runs

        send = notifier_of(bootstrap.load_settings()).send
        missing = (await undelivered_runs(store, watch))[::-1]
        runs = missing if run is None else [await run_to_resend(store, watch, run)]
        if not runs:
            tell("everybody was told; nothing is sent")
        arrived = True
        for missed in runs:
            say(f"{utc_minute(missed.created_at)}, run {missed.id[:SHORT_ID]}")
            now = await resend(store, send, ALL_SOURCES, watch, missed)
            arrived = _arrived(now.deliveries) and arrived
        if not arrived:
            raise typer.Exit(_UNREACHED)

    with_watch(name, work)


def feed(
    name: Name,
    renew: Annotated[
        bool, typer.Option("--renew", help="A new address; the one before reads nothing any more.")
    ] = False,
    close: Annotated[
        bool, typer.Option("--close", help="No feed; its address reads nothing any more.")
    ] = False,
) -> NoReturn:
    """Give it an Atom feed, and print the feed's address below that of the server, this once."""
    if renew and close:
        raise UsageError("use one of `--renew` and `--close`")

    async def work(store: Store, watch: Watch) -> None:
        from api.features.analyses.share_links import open_feed

        if close:
            await store.set_feed(watch, None)
            tell(f"“{watch.name}” has no feed")
            return
        if watch.feed and not renew:
            raise UsageError(
                f"“{watch.name}” has a feed, whose address was shown once; `--renew` makes another"
            )
        say(await open_feed(store, watch))
        tell(
            "below the address of your server (`listenpost serve`: http://localhost:8420); whoever "
            "has it reads this feed without a key, and it is not shown again"
        )

    with_watch(name, work)


def _arrived(deliveries: Sequence[Delivery]) -> bool:
    """Print what came back of each; whether all arrived."""
    for delivery in deliveries:
        words = "arrived" if delivery.delivered else f"did not arrive: {delivery.reason}"
        say(f"{delivery.target}: {words}")
    return all(delivery.delivered for delivery in deliveries)
