"""A house whose analyses and watches outlive it, over the real engine, store and sandbox."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from api import bootstrap
from api.bootstrap.app_context import AppContext, open_app_context
from api.bootstrap.background_work import (
    GIVEN_UP,
    LOST,
    WATCH_RUN,
    RunRequest,
    give_up_work,
    keep_watch,
    resume_run,
    run_watch,
)
from api.core.context import Caller
from api.core.progress import Event, Writing
from api.core.work import WorkLease
from api.errors import Conflict
from api.features.analyses.analysis_job import AnalysisTask, WorkOrder
from api.features.analyses.api_keys import LOCAL
from api.features.analyses.runner import KIND
from api.features.analyses.store_ports import StoredAnalysis
from api.features.watches.watch import Target, Watch, new_watch
from api.features.watches.watch_run import WatchRun
from api.features.watches.watch_service import utc_now
from api.sandbox.server import Sandbox
from api.services.product import Ask

ASK = Ask("plaud.ai", depth="quick", sources=("reddit", "hackernews"))


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """The environment points at it."""
    with Sandbox.start() as started:
        monkeypatch.setenv("LISTENPOST_MODE", "live")
        for name, value in started.environment.items():
            if not name.startswith("LANGFUSE"):
                monkeypatch.setenv(name, value)
        yield started


@asynccontextmanager
async def app_context() -> AsyncIterator[AppContext]:
    """One that looks at what others have left all the time."""
    opened = await open_app_context(bootstrap.load_settings(), durable=True)
    assert opened.engine is not None
    opened.engine.pause = 0.05
    opened.engine.patience = 0.1
    try:
        await opened.product()
        yield opened
    finally:
        await opened.aclose()


def watch() -> Watch:
    """Due at once."""
    new = new_watch(LOCAL.id, "plaud.ai", "daily 08:00", utc_now())
    return replace(new, depth="quick", sources=("hackernews",))


async def test_the_next_house_goes_on(sandbox: Sandbox) -> None:
    """No place is asked again, the id is the same, and the writer is."""
    sandbox.latency("openai.agent=600s")
    writing = asyncio.Event()

    def hear(event: Event) -> None:
        if isinstance(event, Writing):
            writing.set()

    async with app_context() as first:
        task = await first.runner.join(LOCAL, ASK, detached=True)
        assert isinstance(task, AnalysisTask)
        task.detached = True
        task.listen(hear)
        await writing.wait()
    paid = len(sandbox.requests("reddit")), len(sandbox.requests("hackernews"))
    sandbox.heal()
    async with app_context() as second:
        kept = await second.runner.follow(LOCAL, task.id)
        if isinstance(kept, AnalysisTask):
            report = await kept.result()
        else:
            assert isinstance(kept, StoredAnalysis)
            report = await second.runner.outcome(kept)
    assert report.id == task.id
    assert report.findings
    assert (len(sandbox.requests("reddit")), len(sandbox.requests("hackernews"))) == paid


async def test_what_is_due_is_run_once(sandbox: Sandbox) -> None:
    """However often the house looks."""
    async with app_context() as opened:
        await keep_watch(opened.store, watch(), new=True)
        assert opened.engine is not None
        runs: list[WatchRun] = []
        while not runs:
            await opened.engine.look()
            (kept,) = await opened.store.watches(LOCAL.id)
            runs = list(await opened.store.watch_runs(LOCAL.id, kept.id, 9))
        engine = await opened.engine.opened()
        for _ in range(3):
            await opened.engine.look()
            await engine.tend(opened.store.gone, opened.engine.give_up)
        runs = list(await opened.store.watch_runs(LOCAL.id, kept.id, 9))
    assert [run.state for run in runs] == ["baseline"]


async def test_a_defect_in_a_look_ends_no_other(sandbox: Sandbox) -> None:
    """Else a server would begin no watch and send no digest any more, and say nothing of it."""
    async with app_context() as opened:
        engine, looks, again = opened.engine, iter((ValueError("unforeseen"),)), asyncio.Event()
        assert engine is not None

        async def look() -> None:
            if (defect := next(looks, None)) is not None:
                raise defect
            again.set()

        engine.look, engine.pause = look, 0.01
        await engine.opened()
        await asyncio.wait_for(again.wait(), 30)


async def test_no_look_outlives_an_engine_that_is_closed_while_it_opens() -> None:
    """A look over a closed engine would fail, and the log would call that a defect."""
    opened = await open_app_context(bootstrap.load_settings(), durable=True)
    assert opened.engine is not None
    opening = asyncio.create_task(opened.engine.opened())
    await asyncio.sleep(0)
    await opened.aclose()

    await opening
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "tending the engine"]


async def test_a_watch_runs_at_once_where_it_is_asked_to(sandbox: Sandbox) -> None:
    """Nobody waits for the queue; once it has ended, nobody goes on with it."""
    async with app_context() as opened:
        paused = replace(watch(), paused=True)
        await keep_watch(opened.store, paused, new=True)
        run = await run_watch(opened, paused)
        order = RunRequest(LOCAL.id, paused.id, run.id, None)
        await resume_run(opened, TypeAdapter(RunRequest).dump_json(order).decode(), WorkLease())
        runs = await opened.store.watch_runs(LOCAL.id, paused.id, 9)
    assert (run.state, run.watch_id) == ("baseline", paused.id)
    assert [kept.id for kept in runs] == [run.id]


async def test_a_server_sends_digests_that_are_due(sandbox: Sandbox, tmp_path: Path) -> None:
    """Once, however often it looks; here what waited for a digest that was taken away."""
    file = tmp_path / "heard.jsonl"
    waiting = Target("file", str(file), digest="08:00")
    async with app_context() as opened:
        paused = replace(watch(), every="every 31 days", paused=True, tell_first=True, notify=(waiting,))
        await keep_watch(opened.store, paused, new=True)
        run = await run_watch(opened, paused)
        await keep_watch(opened.store, replace(paused, notify=(replace(waiting, digest=""),)), new=False)
        assert opened.engine is not None
        while not all(delivery.delivered for delivery in run.deliveries):
            await opened.engine.look()
            (run,) = await opened.store.watch_runs(LOCAL.id, paused.id, 9)
        for _ in range(3):
            await opened.engine.look()
    (line,) = file.read_text("utf-8").splitlines()
    assert [part["id"] for part in json.loads(line)["runs"]] == [run.id]


async def test_run_whose_process_stops_has_not_failed(sandbox: Sandbox) -> None:
    """Nobody is told so, and the next process goes on with it."""
    sandbox.latency("hackernews=600s")
    async with app_context() as opened:
        paused = replace(watch(), paused=True)
        await keep_watch(opened.store, paused, new=True)
        running = asyncio.create_task(run_watch(opened, paused))
        while not await opened.store.durable():
            await opened.store.watches(LOCAL.id)
        await opened.runner.aclose()
        with pytest.raises(Conflict, match="stops"):
            await running
        assert await opened.store.watch_runs(LOCAL.id, paused.id, 9) == []
    sandbox.heal()
    async with app_context() as second:
        while not (runs := await second.store.watch_runs(LOCAL.id, paused.id, 9)):
            await second.store.watches(LOCAL.id)
    assert [run.state for run in runs] == ["baseline"]


async def test_work_whose_record_is_gone_has_failed(sandbox: Sandbox) -> None:
    """Nobody will go on with it."""
    async with app_context() as opened:
        await opened.store.begin(LOCAL.id, "lost", "mug", "lost.1", "digest")
        kept = await opened.store.get(LOCAL.id, "lost")
        assert kept is not None
        with pytest.raises(Conflict, match=LOST):
            await opened.runner.outcome(kept)


async def test_what_is_given_up_has_failed_and_says_why(sandbox: Sandbox) -> None:
    """An analysis that still runs; a run of a watch that was due, which is due again at its next time alone."""
    async with app_context() as opened:
        await opened.store.begin(LOCAL.id, "poison", "mug", "poison.1", "digest")
        await give_up_work(opened, KIND, WorkOrder("poison", LOCAL.id, ASK, "", Caller()).written)
        kept = await opened.store.get(LOCAL.id, "poison")
        report = await opened.runner.run(LOCAL, ASK)
        await give_up_work(opened, KIND, WorkOrder(report.id, LOCAL.id, ASK, "", Caller()).written)
        ended = await opened.store.get(LOCAL.id, report.id)

        due = replace(watch(), due_at=utc_now() + timedelta(hours=1))
        await keep_watch(opened.store, due, new=True)
        order = _written(due, "due", due.due_at)
        await give_up_work(opened, WATCH_RUN, order)
        await give_up_work(opened, WATCH_RUN, order)
        runs = await opened.store.watch_runs(LOCAL.id, due.id, 9)
        (changed,) = await opened.store.watches(LOCAL.id)
        asked = await run_watch(opened, changed)
        await give_up_work(opened, WATCH_RUN, _written(due, asked.id, None))
        (last, _) = await opened.store.watch_runs(LOCAL.id, due.id, 9)

    assert kept is not None
    assert ended is not None
    assert (kept.state, kept.reason, ended.state) == ("failed", GIVEN_UP, "done")
    assert [(run.id, run.state, run.reason) for run in runs] == [("due", "failed", GIVEN_UP)]
    assert changed.due_at != due.due_at
    assert (last.id, last.state) == (asked.id, "baseline")


def _written(of: Watch, run_id: str, due_at: datetime | None) -> str:
    return TypeAdapter(RunRequest).dump_json(RunRequest(LOCAL.id, of.id, run_id, due_at)).decode()
