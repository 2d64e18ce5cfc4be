"""What a watch comes to over many runs: its weeks, its questions, and its end under way."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from api.features.analyses.store_ports import Store
from api.features.watches import trend
from api.features.watches.trend import read_trend
from api.features.watches.watch import Watch, zone_of
from api.features.watches.watch_run import WatchRun
from api.reports.report import Report
from api.services.product import Ask
from tests.features.watches.eight_weeks import CALM, HOOK, World, eight_weeks, posts
from tests.features.watches.made import MONDAY, WATCH, WEEK, about

MINUTE = timedelta(minutes=1)


async def test_eight_weeks_as_a_line(store: Store) -> None:
    """The rise is in the week in which it was written, and the silent week is a hole."""
    world = World(store, eight_weeks)
    await store.add_watch(WATCH, 9)
    await world.weeks(8)

    over_time = await read_trend(store, WATCH, world.now)

    (line,) = over_time.lines
    assert [week.week for week in line.weeks] == [f"2026-W{number}" for number in range(44, 52)]
    volumes = {
        name: [source and source.posts for week in line.weeks for source in [week.sources[name]]]
        for name in line.sources
    }
    assert volumes == {"lemmy": [4, 4, 4, 4, None, 4, 4, 4], "reddit": [8, 8, 9, 8, 8, 8, 8, 8]}
    complaints = [week.aspects and week.aspects["battery"].complaint for week in line.weeks]
    assert complaints == [1, 0, 0, 1, 0, 0, 7, 0]
    assert (over_time.watch_id, over_time.tz, over_time.cut, over_time.sample) == (
        "w1", "UTC", False, False,
    )  # fmt: skip


async def test_trend_reaches_so_many_weeks_back(store: Store) -> None:
    """This one is the first of them; where there are too many runs, whole weeks are left out."""
    world = World(store, eight_weeks)
    await store.add_watch(WATCH, 9)
    await world.weeks(8)
    (line,) = (await read_trend(store, WATCH, world.now - WEEK, 3)).lines
    assert [week.week for week in line.weeks] == ["2026-W50", "2026-W51"]
    few = await read_trend(store, WATCH, world.now, most=4)
    assert few.cut
    assert [week.week for line in few.lines for week in line.weeks] == [
        "2026-W49", "2026-W50", "2026-W51",
    ]  # fmt: skip
    assert (await read_trend(store, WATCH, world.now + 60 * WEEK)).lines == ()
    assert trend.MOST_RUNS > 7 * 24 * 60


async def test_changed_question_breaks_the_line(store: Store) -> None:
    """What was heard before is another line."""
    world = World(store, eight_weeks)
    await store.add_watch(WATCH, 9)
    await world.weeks(4)
    (watch,) = await store.watches("local")
    await store.change_watch(replace(watch, about="a cup that heats"))
    runs = await world.weeks(4)
    lines = (await read_trend(store, watch, world.now)).lines
    assert [len(line.weeks) for line in lines] == [4, 4]
    assert [run.looked_at for run in runs[:3]] == [0, 0, 0]


async def test_questions_are_told_once(store: Store) -> None:
    """From the fourth run on; what an earlier post asked, or asks for show, is none."""
    asking = {
        1: "Does the lid of my Ember fit the dishwasher?",
        4: "Can the Ember lid go in a dishwasher?",
        5: "Can I descale the Ember with vinegar?",
        6: "The Ember leaks vinegar. Great, right?",
        7: "Would vinegar descale my Ember?",
    }
    world = World(store, lambda week: about("Ember", posts(week, "reddit", [CALM, asking.get(week, CALM)])))
    await store.add_watch(replace(WATCH, notify=(HOOK,)), 9)
    await store.add_watch(replace(WATCH, id="w2", name="picky", only="complaints"), 9)
    reports = world.reports
    world.reports = lambda number: reports(number // 2)
    runs = [run for run in await world.weeks(8) if run.watch_id == "w1"]
    asked = {
        number: [(question.text, question.cites) for question in run.questions]
        for number, run in enumerate(runs)
        if run.questions
    }
    words = "Can I descale the Ember with vinegar?"
    assert asked == {5: [(words, ("reddit:5-1",))]}
    heard = [f"Asked for the first time: “{words}" in message.text for message in world.messages]
    assert [number for number, is_told in enumerate(heard, 1) if is_told] == [5]
    assert all(not run.questions for run in await store.watch_runs("local", "w2", 9))


async def test_watch_that_is_removed_under_way(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """Its run ends; nothing is kept, nobody is told, and nothing has gone wrong."""
    world, begun, removed = World(store, eight_weeks), asyncio.Event(), asyncio.Event()

    async def slow(watch: Watch, ask: Ask, run_id: str) -> Report:
        begun.set()
        await removed.wait()
        return eight_weeks(0)

    await store.add_watch(replace(WATCH, notify=(HOOK,), tell_first=True), 9)
    running = asyncio.create_task(replace(world.watching, analyze=slow).run(WATCH))
    await begun.wait()
    await store.drop_watch("local", "w1")
    removed.set()
    with caplog.at_level(logging.INFO):
        assert (await running).state == "baseline"
    assert world.messages == []
    assert await store.watch_runs("local", "w1", 9) == []
    assert await store.seen_posts(WATCH, 9) == []
    assert await world.due() == []
    assert caplog.records == []


async def test_watch_of_every_minute(store: Store) -> None:
    """One run a minute, none twice, without drift; each post is told once and counted once."""
    texts = [f"{CALM} {number}" for number in range(90)]
    made = [
        post | {"key": f"reddit:{number}", "created_at": (MONDAY + number * MINUTE).isoformat()}
        for number, text in enumerate(texts)
        for post in posts(0, "reddit", [text])
    ]
    world = World(store, lambda run: about("Ember", made[max(0, run - 60) : run + 1]))
    await store.add_watch(replace(WATCH, every="every 1 min"), 9)
    runs: list[WatchRun] = []
    for second in range(0, 30 * 60, 20):
        world.now = MONDAY + timedelta(seconds=second + 1)
        runs += await world.due()
    assert len(runs) == 30
    assert {ask.since for ask in world.asked} == {"day"}
    keys = [post.key for run in runs for post in run.new]
    assert len(keys) == len(set(keys)) == 30
    (line,) = (await read_trend(store, WATCH, world.now)).lines
    (source,) = [week.sources["reddit"] for week in line.weeks]
    assert source is not None
    assert (source.posts, source.heard) == (30, 30)


@pytest.mark.parametrize("day", ["2026-03-29", pytest.param("2026-10-25", marks=pytest.mark.nightly)])
async def test_days_on_which_clocks_change(store: Store, day: str) -> None:
    """A run a day, also where 02:30 does not come or comes twice; the weeks stay whole."""
    clock = zone_of("Europe/Berlin")
    start = datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=clock).astimezone(UTC) - 3 * WEEK
    world = World(store, lambda run: about("Ember", []), now=start)
    await store.add_watch(replace(WATCH, every="daily 02:30", zone="Europe/Berlin", due_at=start), 9)
    watch = (await store.watches("local"))[0]
    moments = []
    while world.now < start + 5 * WEEK:
        moments += [run.created_at for run in await world.due()]
        world.now += timedelta(minutes=30)
    local = [moment.astimezone(clock).date() for moment in moments[1:]]
    assert local == [local[0] + timedelta(days=at) for at in range(len(local))]
    (line,) = (await read_trend(store, watch, world.now)).lines
    assert [week.runs for week in line.weeks[1:-1]] == [7] * (len(line.weeks) - 2)
