"""A source, a judge and a gate small enough to be read at a glance."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from api.core.context import count_requests
from api.core.domain import FetchPlan, Question, Usage, Verdict
from api.core.items import Batch, Comment, Commented, Gathered, Item
from api.core.ports import Facts, Judge, Judgement, Observer, Probe, Source
from api.core.published import Published
from api.errors import ModelError
from api.pipeline.gate.refetch import RefetchPolicy, gather
from api.pipeline.gate.verdicts import Gate, RunGate

PLAUD = Question("plaud note")
ANSWER = Published.model_validate({"summary": "fine", "items": [1]})


@dataclass
class ShopSource:
    """Numbered items; the first fetch is a full batch, served from a thread of its own."""

    name: str = "reddit"
    within: Callable[[], None] = lambda: None
    """Called in the thread."""
    fails: Exception | None = None
    hangs: asyncio.Event | None = None
    """Set when a fetch hangs for good."""

    async def fetch(self, plan: FetchPlan) -> Batch:
        if self.fails is not None:
            raise self.fails
        if self.hangs is not None:
            self.hangs.set()
            await asyncio.Event().wait()
        count_requests()
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        context = contextvars.copy_context()

        def work() -> None:
            context.run(self.within)
            loop.call_soon_threadsafe(done.set)

        threading.Thread(target=work, daemon=True).start()
        await done.wait()
        items = tuple(self.item(number) for number in range(plan.limit))
        return Batch(plan, items, full=plan.limit <= 5)

    def item(self, number: int) -> Item:
        key = f"{self.name}:{number}"
        return Item(key=key, id=str(number), source=self.name, title=f"Post {number}")

    async def comments(self, items: Sequence[Item]) -> Commented:
        count_requests(len(items))
        said = (Comment(id="c", body="good"),)
        return Commented(
            tuple(Item(key=one.key, id=one.id, source=one.source, title=one.title, comments=said) for one in items)
        )

    async def with_best_comments(self, item: Item) -> Item:
        return (await self.comments((item,))).items[0]

    async def probe(self) -> Probe:
        return Probe("ok")

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass
class EvenJudge:
    """Every third item is relevant; each call costs 100 tokens in and 10 out."""

    name: str = "gpt-4o-mini"
    fails: ModelError | None = None
    asked: list[int] = field(default_factory=list)

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        self.asked.append(len(items))
        if self.fails is not None:
            raise self.fails
        verdicts = tuple(Verdict(int(item.id) % 3 == 0, self.name) for item in items)
        return Judgement(verdicts, "gpt-4o-mini-2024-07-18", Usage(100, 10, 0.0002))


async def run(
    observer: Observer, sources: Sequence[Source], judge: Judge, question: Question = PLAUD
) -> list[Gathered]:
    """One analysis as the product makes it: all sources at once through the real loop."""
    verdicts = partial(RunGate(Gate(judge)).judge, question)
    plan = FetchPlan(question.text, 5)
    with observer.analysis("analyze", question) as span:
        found = await asyncio.gather(
            *(gather(source, plan, verdicts, RefetchPolicy(), observer=observer) for source in sources)
        )
        kept = sum(len(gathered.kept) for gathered in found)
        calls = sum(gathered.upstream_calls for gathered in found)
        span.record(Facts("full_report", kept, calls, 0.0004, ANSWER))
    return found
