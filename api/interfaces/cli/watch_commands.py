"""`watch`: a question that is asked again and again, what its runs came to, and who is notified of them."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.choices import MAX_TREND_WEEKS, TREND_WEEKS
from api.core.text import SHORT_ID, quantity, utc_minute
from api.errors import UsageError
from api.interfaces.cli.output import Data, DataFormat, as_json, closing, say, tell
from api.interfaces.cli.report_commands import opened_store
from api.sources import ALL_SOURCES

if TYPE_CHECKING:
    from api.features.analyses.store_ports import Store
    from api.features.watches.watch import Watch
    from api.features.watches.watch_run import Delivery, WatchRun
    from api.interfaces.shared.watch_requests import WatchOptions, WatchPatch, WatchRequest

_UNHEARD = _UNREACHED = 4
WatchName = Annotated[str, typer.Argument(metavar="NAME", help="Name or id of a watch, or the id's beginning.")]


@asynccontextmanager
async def opened_watch(name: str, *, abbreviated: bool = True) -> AsyncIterator[tuple[Store, Watch]]:
    """The watch of this name or id, or with `abbreviated` of the id that begins so, and the store that holds it.

    Raises:
        NotFound: there is none.
        UsageError: several ids begin so.
    """
    from api.features.analyses.api_keys import LOCAL
    from api.features.watches.watch_service import find_watch

    async with opened_store() as store:
        yield store, await find_watch(store, LOCAL.id, name, abbreviated=abbreviated)


async def add(request: WatchRequest) -> None:
    """Watch a product; the first run is due at once. Prints the id of the watch."""
    from api.bootstrap.background_work import keep_watch
    from api.features.analyses.api_keys import LOCAL
    from api.interfaces.cli.terminal_text import shown
    from api.interfaces.shared.watch_view import meaning_note, requested_watch

    requested = requested_watch(_with_whole_paths(request), LOCAL.id, files=True)
    async with opened_store() as store:
        watch = await keep_watch(store, requested, new=True)
    say(watch.id)
    if note := meaning_note(requested, watch):
        tell(shown(note.replace("`about`", "`--about`")))
    tell(f"watching “{watch.name}”, {watch.every} ({watch.zone}); the first run is due now:")
    if watch.as_it_happens:
        tell(
            "posts of Bluesky, of followed feeds and, with `NEWS=on`, articles are sent as they come while "
            "`listenpost listen` runs, or a server (for Bluesky with `BLUESKY=on`)"
        )
    by_hand = f"`listenpost watch run {watch.id[:SHORT_ID]}`"
    tell(f"{by_hand}; else `listenpost serve`, `work` or `watch run --due` runs it")
    _tell_secret(watch)


async def list_watches(form: Data = "text") -> None:
    """List every watch: id, when it is due next, schedule, name."""
    from api.features.analyses.api_keys import LOCAL
    from api.interfaces.cli.terminal_text import shown
    from api.interfaces.shared.watch_view import watch_view

    async with opened_store() as store:
        watches = await store.watches(LOCAL.id)
    if form == "json":
        say(as_json([watch_view(watch).model_dump(mode="json") for watch in watches]))
        return
    for watch in watches:
        at_once = "  (posts of streams as it happens)" if watch.as_it_happens else ""
        say(f"{watch.id[:SHORT_ID]}  {due_of(watch):<27}{watch.every:<16}{shown(watch.name)}{at_once}")
    if not watches:
        tell('nothing is watched; `listenpost watch add "PRODUCT"` watches one')


async def change(request: WatchPatch, watch: WatchName) -> None:
    """Change a watch from its next run on; what is not named stays.

    Posts that another question dropped are judged again. `--notify` replaces all receivers.
    """
    from api.interfaces.shared.watch_view import watch_fields

    if not request.model_fields_set:
        raise UsageError("say what to change, for example `--about`")
    await _change(watch, watch_fields(_with_whole_paths(request), files=True), "is changed")


async def pause(watch: WatchName) -> None:
    """Stop running a watch on schedule, until `resume`."""
    await _change(watch, {"paused": True}, "is paused")


async def resume(watch: WatchName) -> None:
    """Run a paused watch on schedule again."""
    await _change(watch, {"paused": False}, "goes on")


async def remove(watch: Annotated[str, typer.Argument(metavar="NAME", help="Name or whole id of a watch.")]) -> None:
    """Delete a watch, its runs and what it has seen; its reports stay."""
    async with opened_watch(watch, abbreviated=False) as (store, stored):
        await store.drop_watch(stored.tenant, stored.id)
    tell(f"“{stored.name}” is watched no more; its reports are kept")


def _with_whole_paths(request: WatchOptions) -> WatchOptions:
    """The request with absolute paths of files, since the watch may run in another folder."""
    texts = getattr(request, "notify", None)
    if not texts:
        return request
    kinds = [text.partition(":") for text in texts]
    whole = tuple(
        f"file:{Path(path).absolute()}" if kind == "file" and path else text
        for text, (kind, _, path) in zip(texts, kinds, strict=True)
    )
    return request.model_copy(update={"notify": whole})


def _tell_secret(watch: Watch) -> None:
    if watch.is_signed:
        tell(f"webhooks are signed with `{watch.secret}`; it is not shown again")


async def _change(name: str, fields: dict[str, object], words: str) -> None:
    """Keep the watch with these fields, due when its clock says so next."""
    from api.bootstrap.background_work import keep_watch
    from api.features.watches.watch_service import changed_watch

    async with opened_watch(name) as (store, watch):
        new = changed_watch(watch, fields)
        await keep_watch(store, new, new=False)
    tell(f"“{new.name}” {words}{'' if new.paused else f'; {due_of(new)}'}")
    if not watch.is_signed:
        _tell_secret(new)


async def show(name: WatchName, form: Data = "text") -> None:
    """Show one watch: its question, its receivers, its last run, what did not arrive and what rules held back."""
    from api.features.watches.notification import run_text
    from api.features.watches.watch import dated_notes
    from api.features.watches.watch_service import MOST_NEWS, undelivered_runs
    from api.interfaces.cli.terminal_text import shown
    from api.interfaces.shared.watch_view import held_views, meaning_words, undelivered_views, watch_view

    async with opened_watch(name) as (store, watch):
        runs = await store.watch_runs(watch.tenant, watch.id, 1)
        missing = undelivered_views(await undelivered_runs(store, watch))
        held = held_views(await store.watch_runs(watch.tenant, watch.id, MOST_NEWS, news=True))
    if form == "json":
        more = {
            "last_run": runs[0].model_dump(mode="json") if runs else None,
            "undelivered": [delivery.model_dump(mode="json") for delivery in missing],
            "held_back": [back.model_dump(mode="json") for back in held],
        }
        say(as_json({**watch_view(watch).model_dump(mode="json"), **more}))
        return
    heading = f"{shown(watch.name)} ({watch.id[:SHORT_ID]})"
    say(f"{heading}: {watch.every}, {watch.zone}; {due_of(watch)}")
    meaning = meaning_words(watch)
    if meaning or watch.query != watch.name:
        say(f"asks: {shown(watch.query)}{f' - {shown(meaning)}' if meaning else ''}")
    sources = ", ".join(watch.sources) or "all that are set"
    limit = f", limit {watch.limit}" if watch.limit else ""
    say(f"of: {sources}; depth {watch.depth}{limit}{'; sample data' if watch.sandbox else ''}")
    receivers = ", ".join(target.described for target in watch.notify) or "nobody"
    only, feed = f"; only {watch.only}" if watch.only else "", "; a feed" if watch.feed else ""
    at_once = "; posts of streams as it happens" if watch.as_it_happens else ""
    say(f"receivers: {receivers}{only}{feed}{at_once}")
    if watch.notes:
        say(f"notes: {'; '.join(f'{day} {shown(text)}' for day, text in dated_notes(watch.notes))}")
    for run in runs:
        say("")
        _print(run, run_text(watch, run, ALL_SOURCES))
    for back in held:
        number = quantity(back.runs, "run")
        last = f"{utc_minute(back.created_at)}, run {back.run_id[:SHORT_ID]}"
        say(f"held back: {number} from {back.target}: {back.reason} (the last {last})")
    for delivery in missing:
        when = f"{utc_minute(delivery.created_at)}, run {delivery.run_id[:SHORT_ID]}"
        say(f"undelivered: {when}, to {delivery.target}: {delivery.reason}")
    if missing:
        tell(f"`listenpost watch notify-again {watch.id[:SHORT_ID]}` notifies once more")


async def history(
    name: WatchName,
    limit: Annotated[int, typer.Option(help="Number of runs at most, newest first.", min=1, max=1000)] = 20,
    plot: Annotated[bool, typer.Option("--plot", help="Show volume, sentiment and aspects by week instead.")] = False,
    weeks: Annotated[int, typer.Option(help="Weeks that --plot shows.", min=1, max=MAX_TREND_WEEKS)] = TREND_WEEKS,
    form: Data = "text",
) -> None:
    """List the runs of a watch, a line each, or show what they counted week by week."""
    from api.features.watches.notification import headline
    from api.interfaces.cli.terminal_text import shown

    async with opened_watch(name) as (store, watch):
        if plot:
            await _plot(store, watch, weeks, form)
            return
        runs = await store.watch_runs(watch.tenant, watch.id, limit)
    if form == "json":
        say(as_json([run.model_dump(mode="json") for run in runs]))
        return
    for run in runs:
        report = f"  report {run.report_id[:SHORT_ID]}" if run.report_id else ""
        say(f"{utc_minute(run.created_at)}  {shown(headline(watch, run))}{report}")
    if not runs:
        _tell_idle(watch)


async def _plot(store: Store, watch: Watch, weeks: int, form: DataFormat) -> None:
    from api.features.watches.trend import read_trend
    from api.features.watches.watch_service import utc_now
    from api.interfaces.cli.trend_text import trend_text

    trend = await read_trend(store, watch, utc_now(), weeks)
    if form == "json":
        say(as_json(trend.model_dump(mode="json")))
    elif trend.lines:
        say(trend_text(watch.name, trend, shutil.get_terminal_size((100, 24)).columns))
    else:
        _tell_idle(watch)


def _tell_idle(watch: Watch) -> None:
    tell(f"it has not run yet: `listenpost watch run {watch.id[:SHORT_ID]}`")


async def run_watches(
    name: Annotated[str | None, typer.Argument(help="Name or id of one watch; or use --due.")] = None,
    due: Annotated[bool, typer.Option("--due", help="Run every watch that is due.")] = False,
    form: Data = "text",
) -> int:
    """Run one watch now, or all that are due, and send digests that are due; see docs/watches.md.

    Exits with 4 when a run failed, or no source answered it.
    """
    if (name is None) != due:
        raise UsageError("name one watch, or use `--due`")
    from api import bootstrap
    from api.bootstrap.app_context import open_app_context
    from api.bootstrap.background_work import watching_of
    from api.features.analyses.api_keys import LOCAL
    from api.features.watches.notification import run_text
    from api.features.watches.watch_service import find_watch
    from api.interfaces.cli.terminal_text import shown

    code, number = 0, 0
    async with closing(await open_app_context(bootstrap.load_settings())) as app_context:
        watching = watching_of(app_context)

        async def runs() -> AsyncIterator[tuple[Watch, WatchRun]]:
            if name is None:
                async for pair in watching.run_due():
                    yield pair
            else:
                watch = await find_watch(app_context.store, LOCAL.id, name, abbreviated=True)
                tell(f"running “{watch.name}” ...")
                yield watch, await watching.run(watch)

        async for watch, run in runs():
            number += 1
            code = _UNHEARD if run.state in {"failed", "not_asked"} else code
            if form == "json":
                say(as_json(run.model_dump(mode="json")))
            else:
                _print(run, run_text(watch, run, ALL_SOURCES))
        for watch in await watching.send_digests() if due else ():
            number += 1
            tell(f"the digest of “{shown(watch.name)}” was sent")
    if not number:
        tell("nothing is due")
    return code


async def notify_test(name: WatchName) -> int:
    """Send a test message to every receiver; exits with 4 when one does not arrive."""
    from api import bootstrap
    from api.bootstrap.background_work import notifier_of
    from api.features.watches.watch_service import send_trial

    async with opened_watch(name) as (_, watch):
        deliveries = await send_trial(notifier_of(bootstrap.load_settings()).send, watch)
    return 0 if _all_arrived(deliveries) else _UNREACHED


async def notify_again(
    name: WatchName,
    run: Annotated[
        str | None,
        typer.Argument(help="Id of a run, or its beginning (default: all that `show` lists as undelivered)."),
    ] = None,
) -> int:
    """Send notifications that did not arrive again; exits with 4 when one still does not.

    Receivers get the same id as before. Of several runs the oldest is sent first.
    """
    from api import bootstrap
    from api.bootstrap.background_work import notifier_of
    from api.features.watches.watch_service import resend, run_to_resend, undelivered_runs

    send, arrived = notifier_of(bootstrap.load_settings()).send, True
    async with opened_watch(name) as (store, watch):
        if run is None:
            runs = (await undelivered_runs(store, watch))[::-1]
        else:
            runs = [await run_to_resend(store, watch, run, abbreviated=True)]
        if not runs:
            tell("every receiver was notified; nothing is sent")
        for missed in runs:
            say(f"{utc_minute(missed.created_at)}, run {missed.id[:SHORT_ID]}")
            now = await resend(store, send, ALL_SOURCES, watch, missed)
            arrived = _all_arrived(now.deliveries) and arrived
    return 0 if arrived else _UNREACHED


async def feed(
    name: WatchName,
    renew: Annotated[bool, typer.Option("--renew", help="Replace the address; the old one stops working.")] = False,
    close: Annotated[bool, typer.Option("--close", help="Close the feed; its address stops working.")] = False,
) -> None:
    """Give a watch an Atom feed and print its path, which cannot be shown again."""
    if renew and close:
        raise UsageError("use one of `--renew` and `--close`")
    from api.features.analyses.share_links import open_feed

    async with opened_watch(name) as (store, watch):
        if close:
            await store.set_feed(watch, None)
            tell(f"“{watch.name}” has no feed")
            return
        if watch.feed and not renew:
            raise UsageError(f"“{watch.name}” has a feed, whose address was shown once; `--renew` makes another")
        say(await open_feed(store, watch))
    tell(
        "below the address of your server (`listenpost serve`: http://localhost:8420); whoever "
        "has it reads this feed without a key, and it is not shown again"
    )


def due_of(watch: Watch) -> str:
    """When the watch is due, in its time zone: `due 2026-11-30 08:00 CET`, or `paused`."""
    from api.features.watches.watch import zone_of

    if watch.paused:
        return "paused"
    return f"due {watch.due_at.astimezone(zone_of(watch.zone)):%Y-%m-%d %H:%M %Z}"


def _print(run: WatchRun, text: str) -> None:
    from api.core.text import web_url
    from api.interfaces.cli.terminal_text import shown

    for line in text.splitlines():
        address = web_url(line.strip())  # alone on its line; within others nothing is to be opened
        say(f"{'  ' if line.startswith('  ') else ''}{address or shown(line)}")
    for delivery in run.deliveries:
        failed = "held back" if delivery.held else "undelivered"
        outcome = "delivered" if delivery.delivered else f"{failed}: {delivery.reason}"
        tell(f"{delivery.target}: {outcome}")


def _all_arrived(deliveries: Sequence[Delivery]) -> bool:
    """Print what became of each; whether all arrived."""
    for delivery in deliveries:
        failed = "held back" if delivery.held else "did not arrive"
        words = "arrived" if delivery.delivered else f"{failed}: {delivery.reason}"
        say(f"{delivery.target}: {words}")
    return not any(delivery.missed for delivery in deliveries)
