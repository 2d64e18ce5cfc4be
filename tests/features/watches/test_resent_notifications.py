"""Who is told of a watch: a trial, and once more what did not arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from api.errors import NotFound, UsageError
from api.features.analyses.store_ports import Store
from api.features.watches.notification import Message, run_message
from api.features.watches.watch import Target, Watch
from api.features.watches.watch_run import Delivery, WatchRun
from api.features.watches.watch_service import resend, run_to_resend, send_trial, undelivered_runs, undelivered_targets
from api.store import open_store
from tests.features.comparisons.made import PLACES
from tests.features.watches.example_run import run
from tests.features.watches.made import MONDAY, WATCH, WEEK

# two of one server: what is shown of them is the same
HOOKS = tuple(Target("slack", f"https://hooks.example/{number}") for number in range(3))
HEARD = replace(WATCH, notify=HOOKS)


@dataclass
class Receivers:
    """Some answer, some do not; all keep what they get."""

    deaf: set[str] = field(default_factory=set)
    messages: list[tuple[str, Message]] = field(default_factory=list)

    async def send(self, watch: Watch, target: Target, message: Message) -> Delivery:
        self.messages.append((target.address[-1], message))
        delivered = target.address[-1] not in self.deaf
        return Delivery(target=target.shown, delivered=delivered, tries=1 if delivered else 3)


@pytest.fixture
async def store(sqlite_url: str) -> AsyncIterator[Store]:
    """With one watch that tells three."""
    opened = await open_store(sqlite_url)
    await opened.add_watch(HEARD, 9)
    yield opened
    await opened.aclose()


async def kept(store: Store, run_id: str, *reached: bool) -> WatchRun:
    """A run of which these were reached."""
    deliveries = tuple(Delivery(target="slack:hooks.example", delivered=ok, tries=1 if ok else 3) for ok in reached)
    claim = await store.claim_watch("local", "w1", MONDAY, MONDAY + WEEK, run_id)
    assert claim is not None
    number = len(await store.watch_runs("local", "w1", 9))
    made = run(
        id=run_id, news=bool(reached), deliveries=deliveries,
        created_at=MONDAY + timedelta(hours=number),
    )  # fmt: skip
    assert await store.finish_run(claim, made, (), MONDAY + WEEK)
    return made


async def test_trial_says_what_came_back_of_each() -> None:
    """By one id; a watch that tells nobody has none."""
    receivers = Receivers({"1"})
    deliveries = await send_trial(receivers.send, HEARD)
    assert [delivery.delivered for delivery in deliveries] == [True, False, True]
    assert len({message.run_id for _, message in receivers.messages}) == 1
    with pytest.raises(UsageError, match="“Ember” notifies nobody"):
        await send_trial(receivers.send, WATCH)


async def test_what_did_not_arrive_is_listed(store: Store) -> None:
    """The newest first; runs that nobody was to hear of are none."""
    await kept(store, "aa1", True, False, True)
    await kept(store, "aa2", True, True, True)
    await kept(store, "bb3")
    await kept(store, "bb4", False, False, False)
    assert [missed.id for missed in await undelivered_runs(store, HEARD)] == ["bb4", "aa1"]
    assert (await run_to_resend(store, HEARD, "bb", abbreviated=True)).id == "bb4"
    assert (await run_to_resend(store, HEARD, "aa2")).id == "aa2"
    for name in ("aa", "bb", "bb3", "", "none"):
        with pytest.raises(NotFound, match="there is no run"):
            await run_to_resend(store, HEARD, name)


async def test_who_was_not_reached_is_told_once_more(store: Store) -> None:
    """Of targets with one server the right one, by the same id and words; then it is delivered."""
    missed = await kept(store, "aa1", True, False, False)
    receivers = Receivers({"2"})
    first = await resend(store, receivers.send, PLACES, HEARD, missed)
    receivers.deaf.clear()
    (listed,) = await undelivered_runs(store, HEARD)
    second = await resend(store, receivers.send, PLACES, HEARD, listed)

    assert [(d.delivered, d.tries) for d in first.deliveries] == [(True, 1), (True, 4), (False, 6)]
    assert [(d.delivered, d.tries) for d in second.deliveries] == [(True, 1), (True, 4), (True, 7)]
    assert [address for address, _ in receivers.messages] == ["1", "2", "2"]
    assert {message for _, message in receivers.messages} == {run_message(HEARD, missed, PLACES)}
    assert await undelivered_runs(store, HEARD) == []
    assert await store.watch_runs("local", "w1", 9) == [second]


async def test_who_is_told_may_have_changed(store: Store) -> None:
    """Whoever stands elsewhere among them is told all the same; by the same words, in turn."""
    missed = await kept(store, "aa1", False, False, True)
    other = replace(HEARD, notify=(Target("file", "x"), HOOKS[0]))
    receivers = Receivers()
    now = await resend(store, receivers.send, PLACES, other, missed)
    assert [address for address, _ in receivers.messages] == ["0"]
    assert [delivery.delivered for delivery in now.deliveries] == [True, False, True]
    assert list(undelivered_targets(HEARD, missed)) == [0, 1]
    assert not undelivered_targets(other, now)
    assert not HEARD.is_signed
    assert replace(HEARD, notify=(Target("webhook", "https://hooks.example"),)).is_signed


async def test_whoever_is_told_no_more_is_not_told_again(store: Store) -> None:
    """The list may have changed since; what was not delivered stays on record."""
    missed = await kept(store, "aa1", False, False)
    other = replace(HEARD, notify=(Target("file", "x"),))
    receivers = Receivers()
    now = await resend(store, receivers.send, PLACES, other, missed)
    assert receivers.messages == []
    assert now == missed
