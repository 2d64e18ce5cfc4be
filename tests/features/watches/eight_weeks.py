"""Eight weekly runs of a watch: calm weeks, and complaints in the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from api.features.analyses.store_ports import Store
from api.features.watches.notification import Message
from api.features.watches.watch import Target, Watch
from api.features.watches.watch_run import Delivery, WatchRun
from api.features.watches.watch_service import WatchRunner
from api.reports.report import Report
from api.services.product import Ask
from tests.features.comparisons.made import PLACES
from tests.features.watches.made import MONDAY, WEEK, about, heard

HOOK = Target("webhook", "https://hooks.example/secret")

CALM = "My Ember stands with the tea on the desk."

COMPLAINT = "I hate the battery of the Ember."

LONG = (
    "Bought the Ember for my wife who drinks slowly, and it holds the heat for the whole of the "
    "morning on its coaster; the lid is an extra, and the colour is nicer than on the photographs."
)


@dataclass
class World:
    """What is written about a mug, who asks for it, and who is told."""

    store: Store
    reports: Callable[[int], Report]
    """Of the run of each week."""
    now: datetime = MONDAY
    asked: list[Ask] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    async def analyze(self, watch: Watch, ask: Ask, run_id: str) -> Report:
        self.asked.append(ask)
        return self.reports(len(self.asked) - 1)

    async def send(self, watch: Watch, target: Target, message: Message) -> Delivery:
        self.messages.append(message)
        return Delivery(target=target.shown, delivered=True, tries=1)

    @property
    def watching(self) -> WatchRunner:
        return WatchRunner(self.store, self.analyze, self.send, PLACES, 92, lambda: self.now)

    async def due(self) -> list[WatchRun]:
        """All that is due now."""
        return [run async for _, run in self.watching.run_due()]

    async def weeks(self, number: int) -> list[WatchRun]:
        """A run each Monday."""
        runs: list[WatchRun] = []
        for _ in range(number):
            runs += await self.due()
            self.now += WEEK
        return runs


def posts(week: int, place: str, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Written in the days before the run of a week."""
    return [
        post | {"key": f"{place}:{week}-{number}", "id": f"{week}-{number}"}
        for number, text in enumerate(texts)
        for post in heard(f"{text} ({place}, {week}, {number})", days=7 * week - 3, place=place)
    ]


def eight_weeks(week: int) -> Report:
    """Quiet, but for what is planted."""
    reddit, lemmy = [CALM] * 8, [CALM] * 4
    sources: dict[str, dict[str, Any]] = {"reddit": {}, "lemmy": {}}
    reddit[0] = COMPLAINT if week % 3 == 0 else CALM
    if week == 6:
        reddit = [COMPLAINT] * 7 + [CALM]
    items = posts(week, "reddit", reddit)
    if week == 4:
        sources["lemmy"] = {"outcome": "timed_out", "reason": "no answer"}
    else:
        items += posts(week, "lemmy", lemmy)
    if week in {2, 3, 5}:  # written in week 2, edited in week 3, posted elsewhere in week 5
        body = LONG + (" EDIT: the lid came." if week == 3 else "")
        place = "lemmy" if week == 5 else "reddit"
        day = 7 * (2 if week == 3 else week) - 2
        key = "lemmy:copy" if week == 5 else "reddit:long"
        items += heard(body, days=day, place=place, key=key)
    return about("Ember", items, sources)
