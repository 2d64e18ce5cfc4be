"""Rules of receivers: what of a run each gets, at once or in its digest, and which one a stored delivery means."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from api.core.display_names import SourceLabels
from api.features.watches.notification import Message, digest_message, run_message
from api.features.watches.watch import Target, Watch, digest_after
from api.features.watches.watch_ports import DigestClaim
from api.features.watches.watch_run import NEWS, WITHOUT_ANSWER, Delivery, Held, WatchRun

Send = Callable[[Watch, Target, Message], Awaitable[Delivery]]


def mark_of(watch: Watch, target: Target) -> str:
    """Identifies a delivery's receiver without its address: HMAC-SHA256 with the watch's secret, shortened."""
    address = f"receiver {target.kind}:{target.address}".encode("utf-8", "surrogatepass")
    return hmac.new(watch.secret.encode(), address, hashlib.sha256).hexdigest()[:16]


def run_for(watch: Watch, run: WatchRun, target: Target) -> tuple[Watch, WatchRun] | None:
    """Watch and run as a receiver is notified of them; None when its rule excludes the run.

    Of a watch that fails or gets no answer all are notified, whatever their rule.
    """
    if target.only is None or run.state in WITHOUT_ANSWER:
        return watch, run
    if target.only == "unusual":
        return (watch, run) if run.unusual else None
    new, changes = NEWS[target.only].posts(run.new), NEWS[target.only].changes(run.unusual)
    if not (new or changes):
        return None
    # of posts that a run does not list nobody knows which are news to the receiver, unless all are
    more = run.more if watch.only == target.only else 0
    kept = {"new": new, "unusual": changes, "questions": (), "more": more}
    return replace(watch, only=target.only), run.model_copy(update=kept)


def message_to(target: Target, watch: Watch, run: WatchRun, places: SourceLabels) -> Message:
    """The message of a run for a receiver; the whole run when its present rule would exclude it."""
    return run_message(*(run_for(watch, run, target) or (watch, run)), places)


def held_back(watch: Watch, run: WatchRun, target: Target) -> Delivery | None:
    """Why a receiver is not notified of a run now; None when it is notified."""
    if run_for(watch, run, target) is None:
        without = "nothing unusual" if target.only == "unusual" else f"no {NEWS[target.only].noun}"
        return _held(watch, target, "rule", f"{without} in it")
    # a first run may say no more than how many posts it found, which a digest leaves out
    if target.digest and run.state not in WITHOUT_ANSWER and not _is_empty(run):
        return _held(watch, target, "digest", f"waits for the digest of {target.digest}")
    return None


def _held(watch: Watch, target: Target, held: Held, reason: str) -> Delivery:
    receiver = mark_of(watch, target)
    return Delivery(target=target.shown, delivered=False, tries=0, held=held, reason=reason, receiver=receiver)


def targets_of(watch: Watch, run: WatchRun) -> Mapping[int, Target]:
    """Receivers of a run by index of its delivery, if the watch still has them.

    In runs of older versions, which name none, equally shown receivers stand in their order.
    """
    shown: dict[str, list[Target]] = {}
    for target in reversed(watch.notify):
        shown.setdefault(target.shown, []).append(target)
    marked: dict[str, list[Target]] = {}
    for target in watch.notify:
        marked.setdefault(mark_of(watch, target), []).append(target)
    marks = [delivery.receiver for delivery in run.deliveries]
    receivers = {}
    for index, delivery in enumerate(run.deliveries):
        if delivery.receiver:
            same = list(marked.get(delivery.receiver, ()))
            if len(same) == marks.count(delivery.receiver):  # several rules for one address, in their order
                same = same[marks[:index].count(delivery.receiver) :]
            else:  # one was added or taken away
                same.sort(key=lambda target: bool(target.digest) != (delivery.held == "digest"))
        else:
            same = shown.get(delivery.target, [])[-1:]
            del shown.get(delivery.target, [])[-1:]
        if same:
            receivers[index] = same[0]
    return receivers


async def send_digest(
    claim: DigestClaim, now: datetime, send: Send, places: SourceLabels
) -> Mapping[str, tuple[Delivery, ...]]:
    """Send the digests of a watch that are due, one to a receiver; by id of a run its deliveries after that.

    What was sent before a process died is sent again under the same id: it depends on the receiver, its rule and the
    runs alone. Who has no digest any more is notified at once of what waited for it.
    """
    watch, since = claim.watch, claim.due_at - timedelta(microseconds=1)
    deliveries = {run.id: list(run.deliveries) for run in claim.runs}
    groups: dict[Target, list[tuple[WatchRun, int]]] = {}
    for run in claim.runs:
        targets = targets_of(watch, run)
        for index, delivery in enumerate(run.deliveries):
            if delivery.held != "digest":
                continue
            if (target := targets.get(index)) is None:
                gone = {"held": "removed", "reason": "the receiver was removed before its digest"}
                deliveries[run.id][index] = delivery.model_copy(update=gone)
            elif not target.digest or digest_after(watch, target, since) <= now:
                groups.setdefault(target, []).append((run, index))

    async def send_to(target: Target, waiting: list[tuple[WatchRun, int]]) -> None:
        parts = {run.id: part for run, _ in waiting if (part := run_for(watch, run, target)) and not _is_empty(part[1])}
        out = _held(watch, target, "rule", "nothing of it is news for this rule, or its posts were deleted")
        delivery = out
        if parts:
            shown = next(part[0] for part in parts.values())
            runs, receiver = [part[1] for part in parts.values()], f"{mark_of(watch, target)} {target.rule}"
            message = await asyncio.to_thread(digest_message, shown, runs, receiver, places)
            delivery = named(watch, target, await send(watch, target, message))
        for run, index in waiting:
            deliveries[run.id][index] = delivery if run.id in parts else out

    await asyncio.gather(*(send_to(target, waiting) for target, waiting in groups.items()))
    return {run_id: tuple(each) for run_id, each in deliveries.items()}


def named(watch: Watch, target: Target, delivery: Delivery) -> Delivery:
    """The delivery with the mark of its receiver."""
    return delivery.model_copy(update={"receiver": mark_of(watch, target)})


def _is_empty(run: WatchRun) -> bool:
    return not (run.new or run.unusual or run.questions or run.new_aspects)
