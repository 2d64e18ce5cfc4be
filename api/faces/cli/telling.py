"""`watch notify-test`, `notify-again` and `feed`: who hears of a watch, and what did not arrive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from api.errors import UsageError
from api.faces.cli.printing import say, tell
from api.faces.cli.watch_runs import Name, with_watch
from api.services.text import SHORT_ID, minute

if TYPE_CHECKING:
    from api.services.keeping.storage import Store
    from api.services.watching.run import Delivery
    from api.services.watching.watch import Watch

_UNREACHED = 4


def notify_test(name: Name) -> NoReturn:
    """Send a trial to everybody who is to be told; ends with 4 when one does not arrive."""

    async def work(store: Store, watch: Watch) -> None:
        from api import wiring
        from api.services.watching.deliveries import trial
        from api.wiring.watching import notifier_of

        if not _arrived(await trial(notifier_of(wiring.load_settings()).send, watch)):
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
        from api import wiring
        from api.services.watching.deliveries import run_to_tell, tell_again, undelivered
        from api.sources import EVERYWHERE
        from api.wiring.watching import notifier_of

        send = notifier_of(wiring.load_settings()).send
        missing = (await undelivered(store, watch))[::-1]
        runs = missing if run is None else [await run_to_tell(store, watch, run)]
        if not runs:
            tell("everybody was told; nothing is sent")
        arrived = True
        for missed in runs:
            say(f"{minute(missed.created_at)}, run {missed.id[:SHORT_ID]}")
            now = await tell_again(store, send, EVERYWHERE, watch, missed)
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
        from api.services.keeping.sharing import open_feed

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
