"""Whether everybody who is to be told can be told: a trial, and what did not arrive."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence

from api.errors import NotFound, UsageError
from api.services.places import Places
from api.services.watching.run import Delivery, WatchRun
from api.services.watching.running import Send
from api.services.watching.shelf import Watches
from api.services.watching.telling import message_of, trial_of
from api.services.watching.watch import Target, Watch

MOST_TOLD = 100
"""Runs that were worth telling, the newest, of which one may be told again."""


async def trial(send: Send, watch: Watch) -> Sequence[Delivery]:
    """Send a trial to everybody who is to be told.

    Raises:
        UsageError: nobody is.
    """
    if not watch.notify:
        raise UsageError(f"“{watch.name}” tells nobody; change it, and say whom with `notify`")
    message = trial_of(watch, uuid.uuid4().hex)
    return await asyncio.gather(*(send(watch, target, message) for target in watch.notify))


async def undelivered(shelf: Watches, watch: Watch) -> Sequence[WatchRun]:
    """Runs of which somebody who was to be told was not, the newest first.

    Raises:
        StoreUnavailable: the database cannot be used.
    """
    runs = await shelf.watch_runs(watch.tenant, watch.id, MOST_TOLD, news=True)
    return [run for run in runs if not all(delivery.delivered for delivery in run.deliveries)]


async def run_to_tell(shelf: Watches, watch: Watch, run_id: str) -> WatchRun:
    """The run of this id, or the only one whose id begins so, that was worth telling.

    Raises:
        NotFound: there is none, or there are several.
        StoreUnavailable: the database cannot be used.
    """
    runs = await shelf.watch_runs(watch.tenant, watch.id, MOST_TOLD, news=True)
    fitting = [run for run in runs if run_id and run.id.startswith(run_id)]
    if len(fitting) != 1:
        words = f"there is no run “{run_id[:60]}” of “{watch.name}” that anybody was to hear of"
        raise NotFound(f"{words}; `listenpost watch show` lists what did not arrive")
    return fitting[0]


def still_to_tell(watch: Watch, run: WatchRun) -> Mapping[int, Target]:
    """Those who were not reached and are still to be told, by the place of their delivery.

    Of several whom the same words stand for, the first is taken for the first.
    """
    targets: dict[str, list[Target]] = {}
    for target in reversed(watch.notify):
        targets.setdefault(target.shown, []).append(target)
    named = [(place, targets.get(each.target)) for place, each in enumerate(run.deliveries)]
    pairs = {place: fitting.pop() for place, fitting in named if fitting}
    return {place: to for place, to in pairs.items() if not run.deliveries[place].delivered}


async def tell_again(
    shelf: Watches, send: Send, places: Places, watch: Watch, run: WatchRun
) -> WatchRun:
    """Tell those once more who were not reached, by the id of the run, and keep what came of it.

    Whoever got it after all sees the same run again.

    Raises:
        StoreUnavailable: the database cannot be used.
    """
    message = message_of(watch, run, places)

    async def repeated(before: Delivery, target: Target) -> Delivery:
        now = await send(watch, target, message)
        return now.model_copy(update={"tries": before.tries + now.tries})

    missed = still_to_tell(watch, run)
    sent = await asyncio.gather(
        *(repeated(run.deliveries[place], target) for place, target in missed.items())
    )
    now = dict(zip(missed, sent, strict=True))
    deliveries = tuple(now.get(place, before) for place, before in enumerate(run.deliveries))
    await shelf.keep_deliveries(watch, run.id, deliveries)
    return run.model_copy(update={"deliveries": deliveries})
