"""A watch over the sandbox, whose posts appear by date while the test moves the clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from api import bootstrap
from api.features.watches.notification import Message
from api.features.watches.watch import Target, Watch, new_watch
from api.features.watches.watch_run import Delivery, WatchRun
from api.features.watches.watch_service import WatchRunner
from api.reports.report import Report
from api.sandbox.corpus import Post
from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from api.services import product as product_service
from api.services.product import Ask
from api.sources import ALL_SOURCES
from api.store import open_store
from tests.interfaces.command import environment

WEEK = timedelta(days=7)
_TODAY = datetime.now(UTC).replace(hour=8, minute=0, second=0, microsecond=0)
MONDAY = _TODAY - timedelta(days=_TODAY.weekday()) - 8 * WEEK
"""Eight weeks ago: no place has posts of days to come."""
RISE, SILENT, EDITED, CROSSPOSTED = 6, 4, 3, 5
"""Weeks, from 0, in which it happens."""
ROOMS = ("desk", "kitchen", "office", "car", "train", "library", "workshop", "garden")
LONG = (
    "Bought the Plaud Note for my wife who talks slowly, and it records the whole of the "
    "morning on its magnet; the case is an extra, and the colour is nicer than on the photographs."
)


def written(week: int, now: int) -> list[Post]:
    """What is posted in the days before the Monday of a week, as old as it is on that of `now`."""
    age = 7.0 * (now - week) + 2
    own: list[Post] = []
    for number, room in enumerate(ROOMS):
        calm = f"My Plaud Note lay in the {room} and recorded what was said, week {week}."
        sour = f"I hate the battery of the Plaud Note. ({room}, {week})"
        complains = (week == RISE and number < 7) or (week % 3 == 0 and number == 0)
        body = sour if complains else calm
        title = f"Plaud Note in the {room}, {week}"
        own.append(Post(f"1a{week}{number}", "reddit", title, body, "recorders", age, votes=3))
        if number < 4:
            other = f"A Plaud Note on the shelf of the {room}, week {week}; it records us."
            own.append(
                Post(
                    f"90{week}{number}",
                    "lemmy",
                    f"Plaud Note {room} {week}",
                    other,
                    "gadgets",
                    age,
                )
            )
    if week == EDITED - 1:
        edit = " EDIT: the case came." if now >= EDITED else ""
        own.append(Post("1along", "reddit", "A present", LONG + edit, "recorders", age, votes=9))
    if week == CROSSPOSTED:
        own.append(Post("9999", "lemmy", "A present", LONG, "gadgets", age))
    return own


async def test_eight_weeks_over_the_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted rise alone is unusual, no post is told twice, and the gap is a gap."""
    store = await open_store(f"sqlite:///{tmp_path / 'watches.db'}")
    messages: list[Message] = []
    week = 0

    async def analyze(watch: Watch, ask: Ask, run_id: str) -> Report:
        posts = [post for past in range(week + 1) for post in written(past, week)]
        moment = (MONDAY + week * WEEK).timestamp()
        faults = ["lemmy=500"] if week == SILENT else []
        with Sandbox.start(posts, options=Options.endless(), clock=lambda: moment, faults=faults) as sandbox:
            with environment({**sandbox.environment, "LISTENPOST_MODE": "live"}):
                product = bootstrap.build(bootstrap.load_settings())
            try:
                # how far back a place is asked counts from the real day
                return await product_service.analyze(product, replace(ask, since="all"))
            finally:
                await product.aclose()

    async def send(watch: Watch, target: Target, message: Message) -> Delivery:
        messages.append(message)
        return Delivery(target=target.shown, delivered=True, tries=1)

    watching = WatchRunner(store, analyze, send, ALL_SOURCES, 92, lambda: MONDAY + week * WEEK)
    new = new_watch("local", "Plaud Note", "mon 08:00", MONDAY - WEEK)
    hook = Target("webhook", "https://hooks.example/x")
    await store.add_watch(
        replace(new, depth="quick", limit=120, sources=("reddit", "lemmy"), notify=(hook,),
                due_at=MONDAY), 9,
    )  # fmt: skip
    runs: list[WatchRun] = []
    while week < 8:
        runs += [run async for _, run in watching.run_due()]
        week += 1
    await store.aclose()

    assert [run.state for run in runs] == ["baseline", *["changed"] * 7]
    unusual = {
        number: [(change.measure, change.subject, change.more) for change in run.unusual]
        for number, run in enumerate(runs)
        if run.unusual
    }
    assert unusual == {RISE: [("complaint", "battery", True)]}
    keys = [post.key for run in runs for post in run.new]
    assert len(keys) == len(set(keys))
    long = [key for key in keys if "1along" in key or key.endswith("/9999")]
    assert long == ["reddit:t3_1along"]
    gaps = [(number, gap.source) for number, run in enumerate(runs) for gap in run.gaps]
    assert gaps == [(SILENT, "lemmy")]
    assert len(messages) == 7
