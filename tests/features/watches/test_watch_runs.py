"""Runs of a watch, over a store on this machine and a clock that the test moves."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from api.errors import Conflict, LimitReached, NotFound, UsageError
from api.features.analyses.store_ports import Store
from api.features.watches.notification import Message
from api.features.watches.watch import Target, Watch
from api.features.watches.watch_run import Delivery
from api.features.watches.watch_service import changed_watch, find_watch, shortest_window, utc_now
from api.reports.report import Report
from api.services.product import Ask, compared_products
from tests.features.watches.eight_weeks import CALM, COMPLAINT, HOOK, World, eight_weeks, posts
from tests.features.watches.made import MONDAY, WATCH, WEEK, about, heard
from tests.services.notebook import Notebook


async def test_eight_weeks(store: Store) -> None:
    """The planted complaint alone is unusual, no post is told twice, and the gap is a gap."""
    world = World(store, eight_weeks)
    await store.add_watch(replace(WATCH, notify=(HOOK,)), 9)

    runs = await world.weeks(8)

    assert [run.state for run in runs] == ["baseline", *["changed"] * 7]
    unusual = {
        number: [(change.measure, change.subject, change.more) for change in run.unusual]
        for number, run in enumerate(runs)
        if run.unusual
    }
    assert unusual == {6: [("complaint", "battery", True)]}
    cited = runs[6].unusual[0].cites
    assert set(cited) == {f"reddit:6-{number}" for number in range(7)}
    keys = [post.key for run in runs for post in run.new]
    assert len(keys) == len(set(keys)) == 8 * 8 + 7 * 4 + 1
    assert [key for key in keys if "long" in key or "copy" in key] == ["reddit:long"]
    assert [(gap.source, gap.outcome) for run in runs for gap in run.gaps] == [("lemmy", "timed_out")]
    assert runs[4].counts is not None
    assert set(runs[4].counts.sources) == {"reddit"}
    assert len(world.messages) == 7
    assert len({message.run_id for message in world.messages}) == 7
    assert [run.news for run in runs] == [False, *[True] * 7]
    assert [ask.since for ask in world.asked] == [*["week"] * 5, "month", "week", "week"]
    assert await store.watch_runs("local", "w1", 9) == runs[::-1]


async def test_nothing_new_is_no_notification(store: Store) -> None:
    """The first run tells only where that is wanted."""
    quiet = about("Ember", heard(CALM))
    world = World(store, lambda week: quiet)
    await store.add_watch(replace(WATCH, notify=(HOOK,)), 9)
    await store.add_watch(replace(WATCH, id="w2", name="b", notify=(HOOK,), tell_first=True), 9)
    runs = await world.weeks(2)
    assert [run.state for run in runs] == ["baseline", "baseline", "nothing", "nothing"]
    assert [run.deliveries != () for run in runs] == [False, True, False, False]
    assert (runs[2].new, runs[2].kept) == ((), 1)


async def test_runs_that_are_due_see_what_was_written_before_their_window(store: Store) -> None:
    """They end where it begins, and the next begins there; runs by hand and of the sample data end now."""
    world = World(store, eight_weeks)
    await store.add_watch(WATCH, 9)
    quarter, late = timedelta(minutes=15), timedelta(minutes=7)

    async def run(*, due: bool) -> tuple[datetime, datetime]:
        watching = replace(world.watching, window=quarter.total_seconds())
        runs = [run async for _, run in watching.run_due()] if due else [await watching.run(WATCH)]
        assert runs[0].counts is not None
        return runs[0].counts.since, runs[0].counts.until

    world.now += late
    assert await run(due=True) == (MONDAY - WEEK, MONDAY)
    world.now += WEEK
    assert await run(due=True) == (MONDAY, MONDAY + WEEK)
    by_hand = world.now + late
    world.now = by_hand
    assert await run(due=False) == (MONDAY + WEEK, by_hand)
    world.now = MONDAY + WEEK + quarter - timedelta(seconds=1)
    (kept,) = await store.watches("local")
    await store.change_watch(replace(kept, due_at=world.now))
    assert await run(due=True) == (by_hand, by_hand)
    assert [ask.as_of for ask in world.asked] == [MONDAY, MONDAY + WEEK, None, MONDAY + WEEK]
    await store.change_watch(replace(kept, due_at=world.now, sandbox=True))
    await run(due=True)
    assert world.asked[-1].as_of is None
    assert world.asked[0].digest == replace(world.asked[0], as_of=None).digest


async def test_missed_runs_are_made_up_once(store: Store) -> None:
    """Three weeks off: one run, over all of the time."""
    world = World(store, eight_weeks)
    await store.add_watch(WATCH, 9)
    await world.due()
    world.now += 3 * WEEK
    (run,) = await world.due()
    assert await world.due() == []
    assert run.counts is not None
    assert run.counts.seconds == (3 * WEEK).total_seconds()
    (watch,) = await store.watches("local")
    assert watch.due_at == world.now + WEEK


async def test_only_complaints(store: Store) -> None:
    """Other posts and other changes are no news."""
    mixed = [about("Ember", posts(week, "reddit", [CALM, COMPLAINT])) for week in range(5)]
    rush = about("Ember", posts(5, "reddit", [CALM] * 30))
    world = World(store, lambda week: [*mixed, rush][week])
    await store.add_watch(replace(WATCH, only="complaints"), 9)
    runs = await world.weeks(6)
    assert [[post.key for post in run.new] for run in runs[1:3]] == [["reddit:1-1"], ["reddit:2-1"]]
    assert (runs[5].state, runs[5].unusual, runs[5].kept) == ("nothing", (), 30)


async def test_what_was_dropped_is_told_when_the_rule_changes(store: Store) -> None:
    """From the very next run."""
    gate = {"key": "reddit:1-0", "title": "T", "url": "", "reason": "no", "dropped_by": "gate"}
    none = about("Ember", [], {"reddit": {}})
    out = about("Ember", [], {"reddit": {}}, dropped=[gate | UNDECIDED])
    kept = about("Ember", posts(1, "reddit", [CALM]))
    world = World(store, lambda week: [none, out, kept, kept][week])
    await store.add_watch(WATCH, 9)
    await world.weeks(3)
    (watch,) = await store.watches("local")
    await store.change_watch(replace(watch, about="a cup that heats"))
    (run,) = await world.due()
    assert [post.key for post in run.new] == ["reddit:1-0"]
    assert [one.state for one in await store.watch_runs("local", "w1", 9)] == [
        "changed", "nothing", "nothing", "baseline",
    ]  # fmt: skip


async def test_silence_is_told_once(store: Store) -> None:
    """A watch that hears nothing says so, and is no baseline; it is told again after it heard."""
    deaf = about("Ember", [], {"reddit": {"outcome": "refused", "reason": "key revoked"}})
    fine = about("Ember", [], {"reddit": {}})
    world = World(store, lambda week: [deaf, deaf, fine, deaf][week])
    await store.add_watch(replace(WATCH, notify=(HOOK,)), 9)
    runs = await world.weeks(4)
    assert [run.state for run in runs] == ["not_asked", "not_asked", "baseline", "not_asked"]
    assert [len(run.deliveries) for run in runs] == [1, 0, 0, 1]
    assert (runs[0].reason, runs[0].counts) == ("All were asked.", None)


async def test_run_without_a_report_says_why_and_the_next_is_due(store: Store) -> None:
    """A limit, and a question that nobody can be asked."""
    world = World(store, lambda week: about("Ember", [], sources={}, decision="clarify"))

    async def refused(watch: Watch, ask: Ask, run_id: str) -> Report:
        raise LimitReached("the day's 2 analyses are used up", 60)

    await store.add_watch(WATCH, 9)
    failing = replace(world.watching, analyze=refused)
    ((watch, run),) = [pair async for pair in failing.run_due()]
    assert (watch.id, run.state, run.report_id) == ("w1", "failed", None)
    assert run.reason == "the day's 2 analyses are used up; try again in 60 s"
    world.now += WEEK
    world.reports = lambda week: about("Ember", []).model_copy(update={"sources": {}})
    (unclear,) = await world.due()
    assert (unclear.state, unclear.reason) == ("failed", "4 of 7")


async def test_a_stored_watch_of_several_products_asks_its_text_as_one_name(store: Store) -> None:
    """It was stored before those were refused; it can still be paused."""
    world = World(store, lambda week: about("Ember", heard(CALM)))
    several = replace(WATCH, query="Ember vs “Ohom”")
    await store.add_watch(several, 9)
    (run,) = await world.due()

    assert (run.state, [ask.query for ask in world.asked]) == ("baseline", ['"Ember vs Ohom"'])
    assert [compared_products(ask) for ask in (several, *world.asked)] == [("Ember", "Ohom"), ()]
    assert changed_watch(several, {"paused": True}).paused
    with pytest.raises(UsageError, match="not of Ember and Whoop"):
        changed_watch(several, {"query": "Ember vs Whoop"})


async def test_watch_that_stumbles_holds_up_no_other(store: Store) -> None:
    """Over a defect, or a clock that this machine does not know: it has failed, and goes on."""
    world = World(store, eight_weeks)

    async def stumbling(watch: Watch, ask: Ask, run_id: str) -> Report:
        if watch.name == "defect":
            raise ZeroDivisionError
        return await world.analyze(watch, ask, run_id)

    watches = {"defect": "UTC", "elsewhere": "Mars/Base", "fine": "UTC"}
    for number, (name, zone) in enumerate(watches.items()):
        await store.add_watch(replace(WATCH, id=f"w{number}", name=name, zone=zone), 9)
    runs = [run async for _, run in replace(world.watching, analyze=stumbling).run_due()]
    due = [watch.due_at for watch in await store.watches("local")]

    assert [run.state for run in runs] == ["failed", "failed", "baseline"]
    assert runs[0].reason == "an internal error (ZeroDivisionError); the log has the details"
    assert runs[1].reason is not None
    assert runs[1].reason.startswith("there is no time zone “Mars/Base”")
    assert due == [MONDAY + WEEK, MONDAY + timedelta(days=1), MONDAY + WEEK]


async def test_one_run_at_a_time(store: Store) -> None:
    """By hand too, due or not; whoever comes second is told."""
    world = World(store, eight_weeks)
    await store.add_watch(WATCH, 9)
    assert (await world.watching.run(WATCH)).state == "baseline"
    await store.claim_watch("local", "w1", world.now, world.now + WEEK, "other")
    with pytest.raises(Conflict, match="“Ember” is being run"):
        await world.watching.run(WATCH)


async def test_run_that_is_broken_off_leaves_the_watch_free(store: Store) -> None:
    """For a run by the same id, which alone is kept."""
    world, begun = World(store, eight_weeks), asyncio.Event()
    ids: list[str] = []

    async def hanging(watch: Watch, ask: Ask, run_id: str) -> Report:
        ids.append(run_id)
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    await store.add_watch(WATCH, 9)
    running = asyncio.create_task(replace(world.watching, analyze=hanging).run(WATCH))
    await begun.wait()
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    assert [run.id for run in await world.due()] == ids


async def test_run_is_gone_on_with_and_tells_nobody_twice(store: Store) -> None:
    """By the next process: what was sent before the first died is not sent again."""
    world, notebook = World(store, lambda week: eight_weeks(6)), Notebook()
    told = replace(WATCH, notify=(HOOK,), tell_first=True)
    await store.add_watch(told, 9)
    sent = asyncio.Event()

    async def dying(watch: Watch, target: Target, message: Message) -> Delivery:
        await world.send(watch, target, message)
        if len(world.messages) == 2:
            sent.set()
            await asyncio.Event().wait()
        return Delivery(target=target.shown, delivered=True, tries=1)

    two = replace(told, notify=(HOOK, replace(HOOK, address="https://hooks.example/other")))
    await store.change_watch(two)
    (due,) = await store.due_watches(world.now, 9)
    lease = notebook.lease("watch.w1.due")
    dead = replace(world.watching, send=dying)
    running = asyncio.create_task(dead.run_as_due("local", "w1", due.due_at, "run1", lease.run_step))
    await sent.wait()
    running.cancel()
    await asyncio.wait([running])
    await world.watching.run_as_due("local", "w1", due.due_at, "run1", lease.run_step)
    (run,) = await store.watch_runs("local", "w1", 9)
    assert run.id == "run1"
    assert [delivery.delivered for delivery in run.deliveries] == [True, True]
    assert len(world.messages) == 3  # one of them was under way, and has the same id again
    assert {message.run_id for message in world.messages} == {"run1"}

    await world.watching.run_as_due("local", "w1", due.due_at, "run2", lease.run_step)
    assert len(await store.watch_runs("local", "w1", 9)) == 1


async def test_watch_is_found_by_name_or_id(store: Store) -> None:
    """Of the tenant's own; by the beginning of an id only where that is asked for, and only when it is unique."""
    await store.add_watch(replace(WATCH, id="abc1", name="first"), 9)
    await store.add_watch(replace(WATCH, id="abc2", name="second"), 9)
    for name, wanted in (("first", "abc1"), ("abc2", "abc2")):
        assert (await find_watch(store, "local", name)).id == wanted
    for name in ("abc", "a", "", "third"):
        with pytest.raises(NotFound, match="there is no watch"):
            await find_watch(store, "local", name)
    await store.add_watch(replace(WATCH, id="de", name="third"), 9)
    assert (await find_watch(store, "local", "d", abbreviated=True)).id == "de"
    with pytest.raises(UsageError, match="several watches begin with `abc`"):
        await find_watch(store, "local", "abc", abbreviated=True)
    with pytest.raises(NotFound):
        await find_watch(store, "b", "first")


@pytest.mark.parametrize(
    ("length", "window"),
    [
        (timedelta(minutes=1), "day"),
        (timedelta(days=1, minutes=5), "day"),
        (timedelta(days=1, hours=1), "week"),
        (timedelta(days=7, seconds=20), "week"),
        (timedelta(days=8), "month"),
        (timedelta(days=300), "year"),
        (timedelta(days=400), "all"),
    ],
)
def test_window(length: timedelta, window: str) -> None:
    """The shortest that reaches so far."""
    assert shortest_window(length) == window
    assert utc_now().tzinfo is not None


def test_changed_watch_is_due_by_its_new_clock() -> None:
    """Whatever else is changed; of another question alone it stays due as it was."""
    new = changed_watch(WATCH, {"every": "daily 07:30", "zone": "Asia/Tokyo", "about": "a cup"})
    assert (new.about, new.query) == ("a cup", "Ember")
    assert timedelta() < new.due_at - utc_now() <= timedelta(days=1)
    assert (new.due_at.hour, new.due_at.minute) == (22, 30)
    assert changed_watch(WATCH, {"query": "Ember mug"}).due_at == WATCH.due_at
    assert changed_watch(WATCH, {"paused": True}).due_at > WATCH.due_at


UNDECIDED: dict[str, Any] = {
    "verdict": False, "judge": "local-1", "probability": None, "score": None, "explanation": "",
    "sentiment": None, "aspects": [], "relevance": None, "defaulted": False,
    "low_relevance": False, "disputed": False, "rank": None,
}  # fmt: skip
