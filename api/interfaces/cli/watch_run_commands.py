"""`watch run`, `watch show` and `watch history`: what the runs of a watch came to.

A watch over time for a terminal: a row for each week, bars, and words where nothing is known.

`watch notify-test`, `notify-again` and `feed`: who hears of a watch, and what did not arrive.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer
from rich.cells import cell_len

from api.core.display_names import title_in
from api.core.text import SHORT_ID, quantity, utc_minute
from api.errors import UsageError
from api.features.watches.trend import SourceWeek, Trend, TrendLine, TrendWeek, WeekShare
from api.interfaces.cli.output import as_json, say, tell
from api.interfaces.cli.stats_commands import OutputFormat, StatsFormat
from api.interfaces.cli.stored_commands import with_store
from api.interfaces.cli.terminal_text import shown, wrapped
from api.interfaces.shared.chart_data import ASPECTS, UNHEARD, leading, undated_posts, weekly
from api.sources import ALL_SOURCES

if TYPE_CHECKING:
    from api.features.analyses.api_keys import Keys
    from api.features.analyses.store_ports import Store
    from api.features.watches.watch import Watch
    from api.features.watches.watch_run import Delivery, WatchRun


_BAR = 8
_GAP = "  "
_VOLUME = (
    "Posts about it, by when they were written; a bar is full in its source's largest week. In "
    "brackets: how many of the week's runs heard the source, or of how many days the posts are, "
    "where that is not all of them or not a week. `≥`: the source may have more."
)
_FEELING = "How the new posts sound, of those that a model graded; in brackets the 95 % interval."
_ASPECT = "New posts that speak of it, of all new ones; of these plain praise (+), complaint (-)."
_OTHER = "From here on another question was asked: nothing is compared with what was before."
Rows = Sequence[Sequence[str]]


def trend_text(name: str, trend: Trend, columns: int) -> str:
    """All lines of a trend, the oldest first; tables that are too wide go on below."""
    sample = " (made-up sample data)" if trend.sample else ""
    weeks = sum(len(line.weeks) for line in trend.lines)
    lines = wrapped(
        f"{name}{sample}: {quantity(weeks, 'week')} by the clock of {trend.tz}", columns
    )
    if trend.cut:
        lines += wrapped("Earlier runs are too many to be summed.", columns)
    for at, line in enumerate(trend.lines):
        lines += ["", *wrapped(_OTHER, columns)] if at else []
        for note, head, rows in _tables(line):
            lines += ["", *wrapped(note, columns), *_laid_out(line, head, rows, columns)]
        if undated := undated_posts(line):
            lines += ["", *wrapped(undated, columns)]
    return "\n".join(lines)


def _tables(line: TrendLine) -> Iterator[tuple[str, Sequence[str], Rows]]:
    """Each with its note and heads, and a row of cells for each week."""
    yield (
        _VOLUME,
        [title_in(ALL_SOURCES, name) for name in line.sources] or [""],
        [[_volume(week, name, line) for name in line.sources] or [UNHEARD] for week in line.weeks],
    )
    if any(week.positive for week in line.weeks):
        rows = [[_share(week, week.positive), _share(week, week.negative)] for week in line.weeks]
        yield _FEELING, ("positive", "negative"), rows
    if names := leading(line)[:ASPECTS]:
        yield _ASPECT, names, [[_aspect(week, name) for name in names] for week in line.weeks]


def _volume(week: TrendWeek, name: str, line: TrendLine) -> str:
    source = week.sources[name]
    if source is None:
        return UNHEARD
    rates = [weekly(other.sources[name]) for other in line.weeks]
    most = max(rate for rate in rates if rate is not None)
    number = f"{'≥' if source.capped else ''}{source.posts:,}"
    return f"{_bar(weekly(source) or 0, most)} {number:>4}{_partly(week, source)}"


def _partly(week: TrendWeek, source: SourceWeek) -> str:
    """What keeps a week from being compared with others at a glance."""
    notes = [f"{source.heard} of {week.runs} runs"] if source.heard < week.runs else []
    notes += [f"{source.days:.0f} days"] if source.days >= _LONG else []
    return f" ({', '.join(notes)})" if notes else ""


# Days from which a week is said to be long: one with a change of clocks is not.
_LONG = 7.5


def _share(week: TrendWeek, share: WeekShare | None) -> str:
    if share is None:
        return "none graded" if week.heard else UNHEARD
    low, high = share.interval
    spread = f"({low * 100:.0f}-{high * 100:.0f} %)"
    return f"{_bar(share.count, share.of)} {share.count} of {share.of} {spread}"


def _aspect(week: TrendWeek, name: str) -> str:
    if week.aspects is None or week.fresh is None:
        return UNHEARD
    aspect = week.aspects[name]
    leans = f"+{aspect.praise} -{aspect.complaint}"
    return f"{_bar(aspect.mentions, week.fresh)} {aspect.mentions} of {week.fresh} {leans}"


def _bar(value: float, most: float) -> str:
    """What there is at all is seen."""
    filled = max(round(_BAR * value / most), 1) if value else 0
    return "█" * filled + "·" * (_BAR - filled)


def _laid_out(line: TrendLine, head: Sequence[str], rows: Rows, columns: int) -> Iterator[str]:
    """The weeks to the left of each part of the table that fits into the columns."""
    labels = ["", *(week.week for week in line.weeks)]
    left = max(map(cell_len, labels))
    cells = [[shown(name) for name in head], *rows]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    start = 0
    while start < len(widths):
        end, width = start + 1, left + len(_GAP) + widths[start]
        while end < len(widths) and width + len(_GAP) + widths[end] <= columns:
            width += len(_GAP) + widths[end]
            end += 1
        for label, row in zip(labels, cells, strict=True):
            written = f"{label:<{left}}"
            for cell, wide in zip(row[start:end], widths[start:end], strict=True):
                written += _GAP + cell + " " * (wide - cell_len(cell))
            yield written.rstrip()
        start = end


_UNHEARD = 4
Name = Annotated[str, typer.Argument(help="Its name, its id, or the id's beginning.")]


def show(name: Name, form: StatsFormat = OutputFormat.text) -> NoReturn:
    """What one watch asks and tells, its last run, and what did not arrive."""

    async def work(store: Store, watch: Watch) -> None:
        from api.features.watches.notification import text_of
        from api.features.watches.watch_service import undelivered
        from api.interfaces.cli.terminal_text import shown
        from api.interfaces.shared.watch_view import undelivered_views, watch_view
        from api.sources import ALL_SOURCES

        runs = await store.watch_runs(watch.tenant, watch.id, 1)
        missing = undelivered_views(await undelivered(store, watch))
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
            _print(watch, run, text_of(watch, run, ALL_SOURCES))
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
    from api.features.watches.notification import text_of
    from api.features.watches.watch_service import Watching, watch_of
    from api.interfaces.cli.output import closing, run
    from api.sources import ALL_SOURCES

    settings = bootstrap.load_settings()

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
        async with closing(await open_app_context(settings)) as app_context:
            async for watch, ran in runs(watching_of(app_context)):
                number += 1
                code = _UNHEARD if ran.state in {"failed", "not_asked"} else code
                if form is OutputFormat.json:
                    say(as_json(ran.model_dump(mode="json")))
                else:
                    _print(watch, ran, text_of(watch, ran, ALL_SOURCES))
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
        from api.features.watches.watch_service import watch_of

        await work(store, await watch_of(store, LOCAL.id, name))

    with_store(opened)


_UNREACHED = 4


def notify_test(name: Name) -> NoReturn:
    """Send a trial to everybody who is to be told; ends with 4 when one does not arrive."""

    async def work(store: Store, watch: Watch) -> None:
        from api import bootstrap
        from api.bootstrap.background_work import notifier_of
        from api.features.watches.watch_service import trial

        if not _arrived(await trial(notifier_of(bootstrap.load_settings()).send, watch)):
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
        from api.features.watches.watch_service import run_to_tell, tell_again, undelivered
        from api.sources import ALL_SOURCES

        send = notifier_of(bootstrap.load_settings()).send
        missing = (await undelivered(store, watch))[::-1]
        runs = missing if run is None else [await run_to_tell(store, watch, run)]
        if not runs:
            tell("everybody was told; nothing is sent")
        arrived = True
        for missed in runs:
            say(f"{utc_minute(missed.created_at)}, run {missed.id[:SHORT_ID]}")
            now = await tell_again(store, send, ALL_SOURCES, watch, missed)
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
