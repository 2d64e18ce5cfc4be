"""A watch that is told as it happens, over the sandbox's stream: from the socket to the message."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from api import bootstrap
from api.bootstrap.app_context import open_app_context
from api.bootstrap.background_work import keep_watch
from api.bootstrap.stream_work import listen, open_streams, stream_in_background
from api.features.analyses.api_keys import LOCAL
from api.features.archive.search_values import ArchiveFilters
from api.features.watches.notification import run_message
from api.features.watches.watch import Watch, new_watch, target_of
from api.features.watches.watch_ports import InboxFilter
from api.features.watches.watch_run import WatchRun
from api.features.watches.watch_service import utc_now
from api.sandbox.server import Sandbox
from api.sources.bluesky_stream import BlueskyStream
from tests.forked import COMMAND, Forked
from tests.interfaces.command import inside


async def test_posts_of_the_stream_are_told(tmp_path: Path) -> None:
    """Those that the gate keeps, with their words and address; how far the stream was read is stored."""
    context = await open_app_context(bootstrap.load_settings(sandbox=True))
    told: asyncio.Queue[tuple[Watch, WatchRun]] = asyncio.Queue()
    file = tmp_path / "heard.jsonl"
    given: dict[str, Any] = {
        "about": "the notes app",
        "as_it_happens": True,
        "notify": (target_of(f"file:{file}", files=True),),
    }
    watch = replace(new_watch("local", "Obsidian", "daily 08:00", utc_now()), **given)
    await keep_watch(context.store, watch, new=True)
    async with open_streams(context, named=True) as streams:
        task = asyncio.create_task(listen(context, streams, lambda *run: told.put_nowait(run)))
        async with asyncio.timeout(120):
            _, run = await told.get()
        task.cancel()
        await asyncio.wait({task})
        position = await context.store.take_stream(
            "bluesky (sample)", "another", utc_now().replace(year=2100), utc_now()
        )

    assert run.new
    assert (run.sample, run.as_it_happens, run.report_id) == (True, True, None)
    assert all(
        "obsidian" in post.passage.casefold() and post.url.startswith("https://bsky.app/profile/did:")
        for post in run.new
    )
    assert run.new[0].passage[:40] in file.read_text("utf-8")
    assert position is not None
    assert position.cursor
    await context.aclose()


async def test_a_new_watch_is_told_what_was_written_before(tmp_path: Path) -> None:
    """Once, of a report that is kept; then the posts of its stream are in the archive."""
    context = await open_app_context(bootstrap.load_settings(sandbox=True))
    runs: asyncio.Queue[WatchRun] = asyncio.Queue()
    given: dict[str, Any] = {"about": "the notes app", "as_it_happens": True, "tell_first": True, "depth": "quick"}
    await keep_watch(
        context.store, replace(new_watch("local", "Obsidian", "daily 08:00", utc_now()), **given), new=True
    )
    async with open_streams(context, named=True) as streams:
        task = asyncio.create_task(listen(context, streams, lambda watch, run: runs.put_nowait(run)))
        async with asyncio.timeout(120):
            told = [await runs.get()]
            while told[-1].state != "baseline":
                told.append(await runs.get())
        task.cancel()
        await asyncio.wait({task})
    history = told[-1]

    assert history.new
    assert all(post.title or post.passage for post in history.new)
    assert (history.as_it_happens, history.sample, history.counts, history.gaps) == (True, True, None, ())
    report = await context.store.get("local", history.report_id or "")
    assert report is not None
    assert await context.store.without_history(utc_now(), 9) == []
    await context.aclose()


async def test_a_deleted_post_is_gone_everywhere_within_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the archive, the report that holds it as evidence, the inbox and messages that are sent again."""
    words, ahead = "hums all night", [0.0]
    row = {"source": "bluesky", "title": "", "body": f"My Lumo lamp {words}", "age_days": 1e-4, "deleted": True}
    with Sandbox.start([row], clock=lambda: time.time() + ahead[0]) as sandbox:
        monkeypatch.setenv("LISTENPOST_MODE", "live")
        for name in ("BLUESKY_URL", "BLUESKY_APPVIEW_URL"):
            monkeypatch.setenv(name, sandbox.url)
        context = await open_app_context(bootstrap.load_settings())
        store, places = context.store, (await context.product()).places
        given: dict[str, Any] = {"as_it_happens": True, "tell_first": True, "sources": ("bluesky",), "depth": "quick"}
        watch = replace(new_watch("local", "Lumo lamp", "daily 08:00", utc_now()), **given)
        await keep_watch(store, watch, new=True)

        async def held() -> set[str]:
            """Where its words stand."""
            runs = await store.watch_runs("local", watch.id, 9)
            kept = {
                "report": [await store.get("local", run.report_id) for run in runs if run.report_id],
                "message": [run_message(watch, run, places).text for run in runs],
                "inbox": await store.inbox("local", InboxFilter(), 9),
                "archive": await context.search(LOCAL, "Lumo lamp", ArchiveFilters(), None, sandbox=False),
            }
            return {name for name, value in kept.items() if words in repr(value)}

        task = asyncio.create_task(listen(context, [BlueskyStream(context.settings.sources, timedelta(minutes=5))]))
        async with asyncio.timeout(120):
            while len(await held()) < 4:
                pass
        ahead[0] = 600.0
        async with asyncio.timeout(60):
            while await held():
                pass
        task.cancel()
        await asyncio.wait({task})
        assert await held() == set()
        await context.aclose()


async def test_streams_end_before_the_store_is_closed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever closes a server's context, nothing reads a stream then."""
    monkeypatch.setenv("BLUESKY", "on")
    context = await open_app_context(bootstrap.load_settings(sandbox=True))
    context.closing_first.push_async_callback(context.store.streamed_count)  # fails when that is closed
    stream_in_background(context)
    await context.product()

    await context.aclose()

    assert "streams" not in {task.get_name() for task in asyncio.all_tasks()}
    assert not caplog.records


def test_the_command_tells_until_it_is_interrupted(tmp_path: Path) -> None:
    """What it reads, for how many, then each message."""
    added = inside("watch", "add", "Obsidian", "--as-it-happens", "--sandbox")
    with Forked([COMMAND, "listen", "--sandbox"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        told = [process.stdout.readline(), process.stdout.readline()]
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()

    assert "`listenpost listen`" in added.err
    assert "listening to Bluesky for 1 watch; Ctrl-C ends it" in said
    assert "Traceback" not in said
    assert told[0].startswith("Obsidian (made-up sample data): ")
    assert told[1].startswith("- “")
    assert process.returncode == 130


def test_a_very_common_word_is_refused() -> None:
    """With what helps; a description is enough."""
    refused = inside("watch", "add", "Things", "--as-it-happens")
    taken = inside("watch", "add", "Things", "--about", "the planning app", "--as-it-happens")
    none = inside("watch", "change", "Things", "--about", "Things")

    assert (refused.code, taken.code, none.code) == (2, 0, 2)
    assert "say with `--about` (`about`) what the product is" in refused.err
