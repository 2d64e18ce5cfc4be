"""Streams that are read for watches that notify as it happens: by `listenpost listen`, and inside a server."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from api.bootstrap import pointed
from api.bootstrap.background_work import watching_of
from api.core.domain import Question
from api.core.items import Gated, Item
from api.core.shared_answers import answers_as_of
from api.core.work import contained
from api.errors import AccessDenied, StoreUnavailable
from api.features.analyses.api_keys import REVOKED
from api.features.watches.stream_watching import StreamListener, StreamNotifier
from api.features.watches.watch import Watch
from api.features.watches.watch_ports import Stream, WatchId
from api.features.watches.watch_run import WatchRun
from api.features.watches.watch_service import utc_now
from api.pipeline.gate.name_index import NameIndex
from api.services.product import Ask
from api.settings.value_types import feeds_in
from api.sources import ARCHIVE

if TYPE_CHECKING:
    from api.bootstrap.app_context import AppContext

_log = logging.getLogger(__name__)
LOOK_SECONDS = 5.0
"""Seconds between two looks for posts whose turn has come; new ones are looked at as they come."""
GATHER_SECONDS = 0.5
"""Seconds that are waited after a post for others that go into the same message."""
MOST_TURNS = 8
"""Turns of a loop that run at the same time; a turn ends when all of its messages are sent."""
# of a sandbox: all that its stream holds
_LOOK_BACK = timedelta(hours=36)
FEEDS = "feeds"
STREAMED = frozenset({"bluesky", FEEDS})
"""Streams that a watch may name even where they are not read: it follows those it names, and without a name all."""
OnNews = Callable[[Watch, WatchRun], None]
"""Called with each run that is news."""


def notifier_of_streams(context: AppContext, notifies: Callable[[Watch], bool] = lambda watch: True) -> StreamNotifier:
    """Judges and notifies within the limits of each watch's tenant, for watches that `notifies` takes."""

    async def judge(watch: Watch, posts: Sequence[Item]) -> Gated:
        tenant = await context.keys.tenant(watch.tenant)
        if tenant is None:
            raise AccessDenied(REVOKED)
        with answers_as_of(utc_now()):  # a model's verdicts on the same posts, for the same description
            return await context.judge_posts(tenant, Ask.of(watch), posts)

    return StreamNotifier(context.store, watching_of(context), judge, context.sample, notifies)


async def history_of(context: AppContext, streams: Sequence[Stream], watch: Watch) -> Ask:
    """The question when a watch begins to follow streams: the last month in the archive and in these sources."""
    names = [ARCHIVE.name, *(stream.name for stream in streams if _is_for(stream, watch, streams))]
    if not (context.settings.sources.feeds or await context.store.followed(watch.tenant)):
        names = [name for name in names if name != FEEDS]
    return Ask.of(watch, sources=tuple(names), since="month")


def _is_for(stream: Stream, watch: Watch, streams: Sequence[Stream]) -> bool:
    named = (STREAMED | {each.name for each in streams}).intersection(watch.sources)
    return not named or stream.name in named


@asynccontextmanager
async def open_streams(context: AppContext, *, named: bool = False) -> AsyncIterator[Sequence[Stream]]:
    """Enabled streams; with `named` also Bluesky when disabled; in a sandbox, from its first post.

    Followed feeds are read without a switch, but not in a sandbox, where none can be followed.
    """
    from api.sources.bluesky_stream import BlueskyStream  # loads what reads it
    from api.sources.feed_stream import FeedStream
    from api.sources.news_stream import NewsStream

    settings = context.settings
    with ExitStack() as closing:
        look_back = timedelta()
        if context.sample:
            from api.sandbox.server import Sandbox

            settings = pointed(settings, closing.enter_context(Sandbox.start()).url)
            look_back = _LOOK_BACK
        streams: list[Stream] = []
        if named or settings.sources.bluesky:
            streams.append(BlueskyStream(settings.sources, look_back))
        if settings.sources.news:
            streams.append(NewsStream(settings.sources))
        if not context.sample:
            streams.append(FeedStream(context.feeds, context.store, feeds_in(settings.sources.feeds)))
        yield streams


async def listen(
    context: AppContext,
    streams: Sequence[Stream],
    on_news: OnNews = lambda watch, run: None,
    *,
    made_up_only: bool = False,
) -> None:
    """Read the streams and notify of posts until cancelled; `on_news` is called with each run that is news.

    With `made_up_only` only watches of the sample data notify; else, on a live server, only the others do.
    """

    def may_notify(watch: Watch) -> bool:
        return watch.sandbox if made_up_only else context.sample or not watch.sandbox

    def follows(stream: Stream, watch: Watch) -> bool:
        return _is_for(stream, watch, streams) and may_notify(watch)

    await _load(context)
    came = asyncio.Event()
    reader = secrets.token_hex(8)
    listeners = [
        StreamListener(
            stream,
            context.store,
            NameIndex[WatchId](),
            reader,
            utc_now,
            on_match=came.set,
            sample=context.sample,
            follows=partial(follows, stream),
        )
        for stream in streams
    ]
    notifier = notifier_of_streams(context, may_notify)
    async with asyncio.TaskGroup() as tasks:
        for listener in listeners:
            tasks.create_task(listener.run(), name=f"stream of {listener.stream.name}")
        tasks.create_task(_notify(notifier.run_pending, came, on_news), name="posts of streams")
        # apart from the posts: a first run takes half a minute
        histories = partial(notifier.run_histories, partial(history_of, context, streams))
        tasks.create_task(_notify(histories, asyncio.Event(), on_news), name="first runs of streams")
        if context.engine is None:  # an engine looks for digests itself

            async def digests() -> Sequence[tuple[Watch, WatchRun]]:
                await notifier.watching.send_digests()
                return ()

            tasks.create_task(_notify(digests, asyncio.Event(), on_news), name="digests")


def stream_in_background(context: AppContext) -> None:
    """Read the enabled streams in the background, from when a watch follows one until the context is closed."""

    async def read() -> None:
        await _followed(context)
        async with open_streams(context) as streams:
            await listen(context, streams)

    task = asyncio.create_task(contained(read(), "reading streams"), name="streams")

    async def stop() -> None:
        task.cancel()
        await asyncio.wait({task})

    context.closing_first.push_async_callback(stop)


async def _followed(context: AppContext) -> None:
    """Wait for a watch that notifies as it happens: until then nothing is loaded, read or written."""
    while True:
        try:
            if await context.store.streamed_count():
                return
        except StoreUnavailable as error:
            _log.warning("streams wait: %s", error)
        await asyncio.sleep(LOOK_SECONDS)


async def _load(context: AppContext) -> None:
    """Import what the first message needs; no model is asked."""
    product = await context.product()
    modules = ("api.bootstrap.estimates", "api.notifications.delivery", "api.models.local.judge")
    await asyncio.to_thread(lambda: [import_module(name) for name in modules])
    from api.models.local.judge import LocalJudge

    if isinstance(product.gate.primary, LocalJudge):
        await product.gate.judge(Question("Listenpost"), [Item(key="", id="", source="", title="Listenpost")], "")


async def _notify(
    run_pending: Callable[[], Awaitable[Sequence[tuple[Watch, WatchRun]]]], came: asyncio.Event, on_news: OnNews
) -> None:
    async def run_once() -> None:
        try:
            for watch, run in await run_pending():
                if run.news:
                    on_news(watch, run)
        except StoreUnavailable as error:
            _log.warning("posts of streams wait: %s", error)

    async with asyncio.TaskGroup() as tasks:
        under_way: set[asyncio.Task[None]] = set()
        while True:
            came.clear()
            under_way = {task for task in under_way if not task.done()}
            if len(under_way) < MOST_TURNS:  # a receiver that does not answer holds up no other
                under_way.add(tasks.create_task(run_once()))
            with suppress(TimeoutError):
                await asyncio.wait_for(came.wait(), LOOK_SECONDS)
                await asyncio.sleep(GATHER_SECONDS)
