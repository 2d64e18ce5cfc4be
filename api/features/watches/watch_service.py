"""One run of a watch: an ordinary analysis, compared with the watch's own past, kept and told.

Whether everybody who is to be told can be told: a trial, and what did not arrive.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from api.choices import WINDOW_DAYS, Window
from api.core.display_names import SourceLabels
from api.core.domain import Question
from api.core.work import Failure, StepRunner, contained, run_step
from api.errors import Conflict, NotFound, StoreUnavailable, UsageError
from api.features.watches.new_posts import CountedRun, counted, sifted
from api.features.watches.new_questions import new_questions
from api.features.watches.notification import Message, message_of, trial_of
from api.features.watches.unusual_changes import FEWEST_RUNS, looks_at, new_aspects, unusual
from api.features.watches.watch import Target, Watch, chosen, length_of, next_after, zone_of
from api.features.watches.watch_ports import RunClaim, SeenPost, Watches
from api.features.watches.watch_run import VERSION, Delivery, Gap, RunCounts, State, WatchRun
from api.reports.report import Report
from api.services.product import Ask

Analyze = Callable[[Watch, Ask, str], Awaitable[Report]]
"""The report of a watch's question; of one id it is asked and paid once."""
Send = Callable[[Watch, Target, Message], Awaitable[Delivery]]
LEASE = timedelta(minutes=30)
"""After which a run that has not ended is another process's."""
PAST = timedelta(days=84)
MOST_PAST = 2100
"""How far back a run is compared, in time and in runs: a week of one each five minutes."""
MOST_WORDED = 1000
"""Posts, the last seen, of which a copy is recognised by its words."""
SLACK = timedelta(minutes=30)
"""By which a window may be too short: else what starts a minute late asks for far more."""
# For so long a source that stopped answering is asked for what it had meanwhile.
_PATIENCE = timedelta(days=31)
_COMPLAINTS = frozenset({"complaint", "sounds_negative"})


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Watching:
    """Runs watches; what is due may be run by any number of processes."""

    shelf: Watches
    analyze: Analyze
    send: Send
    places: SourceLabels
    similarity: float
    """Percent from which two long texts are copies."""
    clock: Callable[[], datetime] = utc_now

    async def run_due(self) -> AsyncIterator[tuple[Watch, WatchRun]]:
        """Run all that is due, one after the other; a run that was missed is made up once.

        Raises:
            StoreUnavailable: the database cannot be used.
        """
        now = self.clock()
        while (claim := await self.shelf.claim_due(now, now + LEASE, new_run_id())) is not None:
            yield claim.watch, await self._ended(claim)
            now = self.clock()

    async def run(
        self, watch: Watch, run_id: str | None = None, run_step: StepRunner = run_step
    ) -> WatchRun:
        """Run this one now, due or not; by the id of a run that was broken off, go on with that.

        Raises:
            Conflict: it is being run, or is gone.
            StoreUnavailable: the database cannot be used.
        """
        now = self.clock()
        claim = await self.shelf.claim_watch(
            watch.tenant, watch.id, now, now + LEASE, run_id or new_run_id()
        )
        if claim is None:
            raise Conflict(f"the watch “{watch.name}” is being run, or is gone; look again later")
        return await self._ended(claim, run_step)

    async def run_as_due(
        self, tenant: str, watch_id: str, due_at: datetime, run_id: str, run_step: StepRunner
    ) -> None:
        """Run it unless that has been done since it was due, or it has been paused or removed.

        Raises:
            StoreUnavailable: the database cannot be used.
        """
        now = self.clock()
        claim = await self.shelf.claim_watch(tenant, watch_id, now, now + LEASE, run_id, due_at)
        if claim is not None:
            await self._ended(claim, run_step)

    async def _ended(self, claim: RunClaim, run_step: StepRunner = run_step) -> WatchRun:
        """The run; one that is broken off, by a person for example, leaves the watch free."""
        run: WatchRun | None = None
        try:
            run = await self._run(claim, run_step)
        finally:
            if run is None:
                with suppress(StoreUnavailable):  # then it is free when its time is over
                    await self.shelf.let_go(claim)
        return run

    async def _run(self, claim: RunClaim, run_step: StepRunner) -> WatchRun:
        watch, now = claim.watch, self.clock()
        result = await contained(self._listened(claim, now), "a run of a watch")
        learnt: Sequence[SeenPost] = ()
        if isinstance(result, Failure):
            run = _without_report(claim, now, result.message)
        else:
            run, learnt = result
        if await self._worth_telling(claim, run):
            message = message_of(watch, run, self.places)
            sent = await asyncio.gather(
                *(
                    run_step(f"tell {number}", Delivery, partial(self.send, watch, target, message))
                    for number, target in enumerate(watch.notify)
                )
            )
            run = run.model_copy(update={"news": True, "deliveries": tuple(sent)})
        # told before it is kept: a process that dies in between tells again by the same id
        await self.shelf.finish_run(claim, run, learnt, _due_after(watch, self.clock()))
        return run

    async def _listened(
        self, claim: RunClaim, now: datetime
    ) -> tuple[WatchRun, Sequence[SeenPost]]:
        """The run, and what is known from then on."""
        watch = claim.watch
        past = await self.shelf.past_counts(watch, now - PAST, MOST_PAST)
        length = length_of(watch.schedule, now, zone_of(watch.zone))
        since = past[0].until if past else now - length
        window = window_of(now - min([since, *_last_heard(past, now)]))
        ask = Ask.of(watch, since=window)
        report = await self.analyze(watch, ask, claim.run_id)
        known = await self.shelf.known(watch, MOST_WORDED)
        sift = sifted(report, watch, known, self.similarity)
        tally = counted(report, ask, sift, since, now)
        run = self._compared(claim, report, tally, past, now)
        if watch.only is None and len(past) >= FEWEST_RUNS:
            earlier = [entry.item for entry in known if entry.item is not None]
            questions = new_questions(Question(report.query, report.about), sift.new, earlier)
            run = run.model_copy(update={"questions": questions})
        return run, sift.learnt

    def _compared(
        self,
        claim: RunClaim,
        report: Report,
        now: CountedRun,
        past: Sequence[RunCounts],
        moment: datetime,
    ) -> WatchRun:
        """The run that has this report."""
        watch, heard = claim.watch, bool(now.counts.sources)
        looks = looks_at(now.counts, past)
        changes = unusual(looks, now.keys, self.places)
        new = now.new
        if watch.only == "complaints":
            new = tuple(post for post in new if post.complains)
            changes = tuple(
                change for change in changes if change.more and change.measure in _COMPLAINTS
            )
        state: State = "changed" if new or changes else "nothing"
        if watch.began_at is None:
            state = "baseline"
        if not heard:
            state = "not_asked" if report.sources else "failed"
        return WatchRun(
            version=VERSION,
            id=claim.run_id,
            watch_id=watch.id,
            state=state,
            reason=None
            if heard
            else report.coverage
            if report.sources
            else report.decision_rationale,
            report_id=report.id,
            counts=now.counts if heard else None,
            new=new,
            kept=len(report.items),
            unusual=changes,
            looked_at=len(looks),
            new_aspects=new_aspects(now.counts, past),
            gaps=tuple(
                Gap(source=name, outcome=source.outcome, reason=source.reason or source.gate.reason)
                for name, source in report.sources.items()
                if name not in now.counts.sources
            ),
            sample=report.sample,
            created_at=moment,
        )

    async def _worth_telling(self, claim: RunClaim, run: WatchRun) -> bool:
        """Something changed, or nothing is heard any more, which is told once.

        Of a watch that was removed meanwhile nobody hears.
        """
        watch = claim.watch
        if not await self.shelf.is_held(claim):
            return False
        if run.state in {"not_asked", "failed"}:
            before = await self.shelf.watch_runs(watch.tenant, watch.id, 1)
            return not before or before[0].state not in {"not_asked", "failed"}
        return run.state == "changed" or (run.state == "baseline" and watch.tell_first)


async def watch_of(shelf: Watches, tenant: str, name: str) -> Watch:
    """The watch that a tenant calls so; see `chosen`.

    Raises:
        NotFound: there is none, or there are several.
    """
    watch = chosen(await shelf.watches(tenant), name)
    if watch is None:
        raise NotFound(f"there is no watch “{name[:60]}”; `listenpost watch list` shows them")
    return watch


def changed(watch: Watch, fields: Mapping[str, Any]) -> Watch:
    """The watch with these fields; where one of them is about its time, due at the next one.

    Raises:
        UsageError: its schedule or zone makes no sense.
    """
    new = replace(watch, **fields)
    if _timing(new) == _timing(watch):
        return new
    return replace(new, due_at=next_after(new.schedule, utc_now(), zone_of(new.zone)))


def _timing(watch: Watch) -> tuple[str, str, bool]:
    return watch.every, watch.zone, watch.paused


def window_of(length: timedelta) -> Window:
    """The shortest window that reaches so far back, but for `SLACK`."""
    fitting = (name for name, days in WINDOW_DAYS.items() if length <= timedelta(days) + SLACK)
    return next(fitting, "all")


def _due_after(watch: Watch, now: datetime) -> datetime:
    """When it is due next; a clock that this machine does not know is looked for once a day."""
    try:
        return next_after(watch.schedule, now, zone_of(watch.zone))
    except UsageError:
        return now + timedelta(days=1)


def _last_heard(past: Sequence[RunCounts], now: datetime) -> list[datetime]:
    """When each source that is still waited for was last heard."""
    heard = {name: counts.until for counts in reversed(past) for name in counts.sources}
    return [moment for moment in heard.values() if now - moment <= _PATIENCE]


def _without_report(claim: RunClaim, moment: datetime, reason: str) -> WatchRun:
    return WatchRun(
        version=VERSION, id=claim.run_id, watch_id=claim.watch.id, state="failed", reason=reason,
        report_id=None, counts=None, new=(), kept=0, unusual=(), looked_at=0, new_aspects=(),
        gaps=(), sample=claim.watch.sandbox, created_at=moment,
    )  # fmt: skip


def new_run_id() -> str:
    """By which receivers know a run."""
    return uuid.uuid4().hex


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
    shelf: Watches, send: Send, places: SourceLabels, watch: Watch, run: WatchRun
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
