"""Runs of watches: an ordinary analysis, compared with the watch's own past, sent and stored.

Also trial messages, and sending again what did not arrive. All of it raises `StoreUnavailable`
when the database cannot be used.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import starmap
from typing import Any

from api.choices import WINDOW_DAYS, Window
from api.core.display_names import SourceLabels
from api.core.shared_answers import window_of
from api.core.work import Failure, StepRunner, contained, run_step
from api.errors import Conflict, NotFound, StoreUnavailable, UsageError
from api.features.watches import unusual_changes
from api.features.watches.new_posts import CountedRun, counted, sifted, sources_heard
from api.features.watches.new_questions import new_questions
from api.features.watches.notification import trial_message
from api.features.watches.receiver_rules import Send, held_back, message_to, named, send_digest, targets_of
from api.features.watches.watch import Target, Watch, check_one_product, length_of, next_after, zone_of
from api.features.watches.watch_ports import RunClaim, SeenPost, Watches
from api.features.watches.watch_run import NEWS, VERSION, WITHOUT_ANSWER, Delivery, Gap, RunCounts, State, WatchRun
from api.reports.report import Report
from api.services.product import Ask, compared_products, with_one_name

Analyze = Callable[[Watch, Ask, str], Awaitable[Report]]
"""The report for a watch's request; for one run id it is made and paid once."""
LEASE = timedelta(minutes=30)  # after this time another process may take a run that has not ended
PAST = timedelta(days=84)
MOST_PAST = 2100
"""Most past runs that a run is compared with: a week of one run every five minutes."""
MOST_WORDED = 1000  # posts, the last seen, whose copies are recognised by their words
SLACK = timedelta(minutes=30)
"""How much shorter than required a window may be, so that a late start does not need another run."""
MOST_NEWS = 100  # runs with news, the newest, that can be sent again
# Within this time a source that stopped answering is asked for all it had meanwhile.
_PATIENCE = timedelta(days=31)
# Time after which another process sends digests whose process was killed, and watches whose digests are sent at a time.
_DIGEST_LEASE, _DIGESTS = timedelta(minutes=5), 4


def utc_now() -> datetime:
    """The current time in UTC, with its time zone."""
    return datetime.now(UTC)


def new_run_id() -> str:
    """The id by which receivers recognise a run."""
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True)
class WatchRunner:
    """Runs watches; any number of processes may run what is due."""

    store: Watches
    analyze: Analyze
    send: Send
    places: SourceLabels
    similarity: float  # percent from which two long texts are copies
    clock: Callable[[], datetime] = utc_now
    window: float = 0.0
    """Seconds in which due runs share answers of sources; 0: they share nothing."""

    async def run_due(self) -> AsyncIterator[tuple[Watch, WatchRun]]:
        """Run all that is due, one after the other; missed runs are made up by a single one."""
        now = self.clock()
        while (claim := await self.store.claim_due(now, now + LEASE, new_run_id())) is not None:
            yield claim.watch, await self._run_claimed(claim, scheduled=True)
            now = self.clock()

    async def run(self, watch: Watch, run_id: str | None = None, run_step: StepRunner = run_step) -> WatchRun:
        """Run a watch now, due or not; with the id of an interrupted run, continue that one.

        Raises:
            Conflict: it is being run, or was removed.
        """
        now = self.clock()
        claim = await self.store.claim_watch(watch.tenant, watch.id, now, now + LEASE, run_id or new_run_id())
        if claim is None:
            raise Conflict(f"the watch “{watch.name}” is being run, or is gone; look again later")
        return await self._run_claimed(claim, run_step)

    async def run_as_due(self, tenant: str, watch_id: str, due_at: datetime, run_id: str, run_step: StepRunner) -> None:
        """Run a watch unless it was run since `due_at`, or has been paused or removed."""
        now = self.clock()
        claim = await self.store.claim_watch(tenant, watch_id, now, now + LEASE, run_id, due_at)
        if claim is not None:
            await self._run_claimed(claim, run_step, scheduled=True)

    async def give_up(self, tenant: str, watch_id: str, due_at: datetime | None, run_id: str, reason: str) -> None:
        """Store an interrupted run as failed, unless the watch was run since `due_at`, is being run or is gone."""
        now = self.clock()
        claim = await self.store.claim_watch(tenant, watch_id, now, now + LEASE, run_id, due_at)
        if claim is not None:
            await self.sent_and_stored(claim, _failed_run(claim, reason, now), ())

    async def _run_claimed(
        self, claim: RunClaim, run_step: StepRunner = run_step, *, scheduled: bool = False
    ) -> WatchRun:
        """Make and store a run; an interruption, for example by a person, releases the watch."""
        run: WatchRun | None = None
        try:
            run = await self._run(claim, run_step, scheduled)
        finally:
            if run is None:
                with suppress(StoreUnavailable):  # then the watch is free when the lease is over
                    await self.store.release_claim(claim)
        return run

    async def _run(self, claim: RunClaim, run_step: StepRunner, scheduled: bool) -> WatchRun:
        watch, now = claim.watch, self.clock()
        as_of = window_of(now, self.window) if scheduled and self.window and not watch.sandbox else None
        result = await contained(self._analyzed(claim, now, as_of), "a run of a watch")
        seen: Sequence[SeenPost] = ()
        if isinstance(result, Failure):
            run = _failed_run(claim, result.message, now)
        else:
            run, seen = result
        return await self.sent_and_stored(claim, run, seen, run_step=run_step)

    async def sent_and_stored(
        self,
        claim: RunClaim,
        run: WatchRun,
        learnt: Sequence[SeenPost],
        judged: Sequence[str] = (),
        *,
        judged_from: datetime | None = None,
        unjudged_before: int = 0,
        run_step: StepRunner = run_step,
    ) -> WatchRun:
        """Send a run that is news, and store it with what it learnt.

        `judged` and `unjudged_before` as in `finish_run`, and `judged_from`, too, where it is news.
        """
        watch = claim.watch
        if await self._is_news(claim, run):

            async def tell(number: int, target: Target) -> Delivery:
                if held := held_back(watch, run, target):
                    return held
                message = message_to(target, watch, run, self.places)
                sending = partial(self.send, watch, target, message)
                return named(watch, target, await run_step(f"tell {number}", Delivery, sending))

            sent = await asyncio.gather(*starmap(tell, enumerate(watch.notify)))
            run = run.model_copy(update={"news": True, "deliveries": tuple(sent)})
        due_at = watch.due_at if run.as_it_happens else self._next_due(watch)
        # sent before it is stored: a process that dies in between sends again by the same run id
        following = judged_from if run.news else None
        await self.store.finish_run(claim, run, learnt, due_at, judged, following, unjudged_before)
        return run

    async def send_digests(self) -> Sequence[Watch]:
        """Send all due digests; returns the watches whose receivers were notified."""
        watches: list[Watch] = []

        async def send_next() -> None:
            now = self.clock()
            while (claim := await self.store.claim_digest(now, now + _DIGEST_LEASE)) is not None:
                await self.store.finish_digest(claim, await send_digest(claim, now, self.send, self.places), now)
                watches.append(claim.watch)

        await asyncio.gather(*(send_next() for _ in range(_DIGESTS)))
        return watches

    def _next_due(self, watch: Watch) -> datetime:
        now = self.clock()
        try:
            return next_after(watch.schedule, now, zone_of(watch.zone))
        except UsageError:  # a time zone that this machine does not know is tried once a day
            return now + timedelta(days=1)

    async def _analyzed(
        self, claim: RunClaim, now: datetime, as_of: datetime | None
    ) -> tuple[WatchRun, Sequence[SeenPost]]:
        watch = claim.watch
        past = await self.store.past_counts(watch, now - PAST, MOST_PAST)
        length = length_of(watch.schedule, now, zone_of(watch.zone))
        since = past[0].until if past else (as_of or now) - length
        # when each source that is still waited for answered last
        last = {name: counts.until for counts in reversed(past) for name in counts.sources}
        waiting = [time for time in last.values() if now - time <= _PATIENCE]
        ask = Ask.of(watch, since=shortest_window(now - min([since, *waiting])), as_of=as_of)
        if compared_products(ask):  # stored before such watches were refused
            ask = with_one_name(ask)
        report = await self.analyze(watch, ask, claim.run_id)
        known = await self.store.seen_posts(watch, MOST_WORDED)
        sift = sifted(report, watch, known, self.similarity)
        # what was written after the beginning of the window is the next run's
        until = now if as_of is None else max(as_of, since)
        run = self._run_of(claim, report, counted(report, ask, sift, since, until), past, now)
        if watch.only is None and len(past) >= unusual_changes.FEWEST_RUNS:
            earlier = [entry.item for entry in known if entry.item is not None]
            questions = new_questions(report.question, sift.new, earlier)
            run = run.model_copy(update={"questions": questions})
        return run, sift.learnt

    async def history(self, claim: RunClaim, ask: Ask) -> tuple[WatchRun, Sequence[SeenPost]] | None:
        """The first run of a watch that notifies as it happens: what was written before, in one report.

        None where no source answered, so that it is tried again. It has no counts: no run of the schedule is measured
        by it.
        """
        watch = claim.watch
        report = await self.analyze(watch, ask, claim.run_id)
        if not sources_heard(report):
            return None
        sift = sifted(report, watch, await self.store.seen_posts(watch, MOST_WORDED), self.similarity)
        now = self.clock()
        run = self._run_of(claim, report, counted(report, ask, sift, now, now), (), now)
        first = {"state": "baseline", "counts": None, "as_it_happens": True}
        return run.model_copy(update=first), sift.learnt

    def _run_of(
        self,
        claim: RunClaim,
        report: Report,
        now: CountedRun,
        past: Sequence[RunCounts],
        created_at: datetime,
    ) -> WatchRun:
        watch, answered = claim.watch, bool(now.counts.sources)
        measurements = unusual_changes.measurements_of(now.counts, past)
        news = NEWS[watch.only]
        new = news.posts(now.new)
        changes = news.changes(unusual_changes.marked_changes(measurements, now.keys, self.places))
        state: State = "changed" if new or changes else "nothing"
        reason = None
        if watch.began_at is None:
            state = "baseline"
        if not answered:
            state = "not_asked" if report.sources else "failed"
            reason = report.coverage if report.sources else report.decision_rationale
        return WatchRun(
            version=VERSION,
            id=claim.run_id,
            watch_id=watch.id,
            state=state,
            reason=reason,
            report_id=report.id,
            counts=now.counts if answered else None,
            new=new,
            kept=len(report.items),
            unusual=changes,
            looked_at=len(measurements),
            new_aspects=unusual_changes.new_aspects(now.counts, past),
            gaps=tuple(
                Gap(source=name, outcome=source.outcome, reason=source.reason or source.gate.reason)
                for name, source in report.sources.items()
                if name not in now.counts.sources
            ),
            sample=report.sample,
            created_at=created_at,
        )

    async def _is_news(self, claim: RunClaim, run: WatchRun) -> bool:
        """Whether something changed, or no source answers any more, which is sent once."""
        watch = claim.watch
        if not await self.store.holds_claim(claim):  # the watch was removed meanwhile
            return False
        if run.state in WITHOUT_ANSWER:
            # those of streams stand between
            runs = await self.store.watch_runs(watch.tenant, watch.id, MOST_NEWS)
            before = [earlier.state for earlier in runs if not earlier.as_it_happens]
            return not before or before[0] not in WITHOUT_ANSWER
        if run.state == "baseline" and watch.tell_first:  # of the stream or of the schedule, whichever comes first
            sent = await self.store.watch_runs(watch.tenant, watch.id, MOST_NEWS, news=True)
            return all(earlier.state != "baseline" for earlier in sent)
        return run.state == "changed"


def _failed_run(claim: RunClaim, reason: str, now: datetime) -> WatchRun:
    return WatchRun(
        version=VERSION, id=claim.run_id, watch_id=claim.watch.id, state="failed", reason=reason, report_id=None,
        counts=None, new=(), kept=0, unusual=(), looked_at=0, new_aspects=(), gaps=(), sample=claim.watch.sandbox,
        created_at=now,
    )  # fmt: skip


async def find_watch(store: Watches, tenant: str, name: str, *, abbreviated: bool = False) -> Watch:
    """A tenant's watch by name or id; `abbreviated` takes the beginning of an id too, as the terminal does.

    Raises:
        NotFound: there is none.
        UsageError: several ids begin so.
    """
    watches = await store.watches(tenant)
    fitting = [watch for watch in watches if name in {watch.name, watch.id}]
    if not fitting and abbreviated and name:
        fitting = [watch for watch in watches if watch.id.startswith(name)]
    if len(fitting) > 1:
        raise UsageError(f"several watches begin with `{name[:60]}`; write more of the id, or a name")
    if not fitting:
        raise NotFound(f"there is no watch “{name[:60]}”; `listenpost watch list` shows them")
    return fitting[0]


def changed_watch(watch: Watch, fields: Mapping[str, Any]) -> Watch:
    """The watch with these fields, due anew where its time changed.

    Raises:
        UsageError: the schedule makes no sense, or a changed question compares products.
    """
    new = replace(watch, **fields)
    if (new.query, new.about) != (watch.query, watch.about):
        check_one_product(new)
    if (new.every, new.zone, new.paused) == (watch.every, watch.zone, watch.paused):
        return new
    return replace(new, due_at=next_after(new.schedule, utc_now(), zone_of(new.zone)))


def shortest_window(length: timedelta) -> Window:
    """The shortest window that reaches so far back, but for `SLACK`."""
    fitting = (name for name, days in WINDOW_DAYS.items() if length <= timedelta(days) + SLACK)
    return next(fitting, "all")


async def send_trial(send: Send, watch: Watch) -> Sequence[Delivery]:
    """Send a trial message to every target; raises `UsageError` without any."""
    if not watch.notify:
        raise UsageError(f"“{watch.name}” notifies nobody: add a target with `notify`")
    message = trial_message(watch, new_run_id())
    return await asyncio.gather(*(send(watch, target, message) for target in watch.notify))


async def undelivered_runs(store: Watches, watch: Watch) -> Sequence[WatchRun]:
    """Runs with news that some target has not received, the newest first."""
    runs = await store.watch_runs(watch.tenant, watch.id, MOST_NEWS, news=True)
    return [run for run in runs if any(delivery.missed for delivery in run.deliveries)]


async def run_to_resend(store: Watches, watch: Watch, run_id: str, *, abbreviated: bool = False) -> WatchRun:
    """The run with news of this id; `abbreviated` takes the beginning of one too. `NotFound` unless exactly one."""
    runs = await store.watch_runs(watch.tenant, watch.id, MOST_NEWS, news=True)
    fitting = [run for run in runs if run.id == run_id or (abbreviated and run_id and run.id.startswith(run_id))]
    if len(fitting) != 1:
        words = f"there is no run “{run_id[:60]}” with news of “{watch.name}”"
        raise NotFound(f"{words}; `listenpost watch show` lists what did not arrive")
    return fitting[0]


def undelivered_targets(watch: Watch, run: WatchRun) -> Mapping[int, Target]:
    """Receivers that missed a run, by index of the delivery."""
    return {index: target for index, target in targets_of(watch, run).items() if run.deliveries[index].missed}


async def resend(store: Watches, send: Send, places: SourceLabels, watch: Watch, run: WatchRun) -> WatchRun:
    """Send a run, by its id, to the targets that have not received it, and store the deliveries."""
    deliveries = list(run.deliveries)

    async def repeat(index: int, target: Target) -> None:
        now = await send(watch, target, message_to(target, watch, run, places))
        kept = {"tries": deliveries[index].tries + now.tries, "receiver": deliveries[index].receiver}
        deliveries[index] = now.model_copy(update=kept)

    missed = undelivered_targets(watch, run)
    await asyncio.gather(*(repeat(index, target) for index, target in missed.items()))
    await store.keep_deliveries(watch, run.id, tuple(deliveries))
    return run.model_copy(update={"deliveries": tuple(deliveries)})
