"""The product that a command asks: built, and closed when the command ends."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

from api.core.display_names import title_in
from api.errors import ConfigurationError, SourceError, StoreUnavailable
from api.interfaces.cli.output import closing, tell
from api.sources import ARCHIVE, ASKABLE_SOURCES, default_sources

if TYPE_CHECKING:
    from api.features.analyses.store_ports import Store
    from api.services.product import Product
    from api.settings import Settings
    from api.sources.own_items import OwnItems


@asynccontextmanager
async def built(settings: Settings, own: OwnItems | None, sources: Sequence[str]) -> AsyncIterator[Product]:
    """A product for a question to `sources`, with the store's memory of earlier requests; closed at the end."""
    from api import bootstrap
    from api.bootstrap.storage import open_store_of, with_agreement, with_archive

    # each loads its client: praw takes 60 ms, Google's 80; a wrong name is refused with the names of all
    only = sources or (default_sources(settings.sources) if own is None else ())
    only = only if all(name in ASKABLE_SOURCES for name in only) else ASKABLE_SOURCES
    async with AsyncExitStack() as stack:
        memory = None if own else await stack.enter_async_context(remembered(settings))
        product = await stack.enter_async_context(closing(bootstrap.build(settings, own, memory=memory, only=only)))
        if own is None:
            greet(product, sources)
        if memory is not None:
            product = with_agreement(await with_followed_feeds(stack, product, settings, memory), settings, memory)
        if ARCHIVE.name in sources:
            store = await stack.enter_async_context(closing(await open_store_of(settings)))
            product = with_archive(product, settings, store)
        yield product


async def with_followed_feeds(stack: AsyncExitStack, product: Product, settings: Settings, store: Store) -> Product:
    """The product with the feeds that this machine's user follows; `stack` closes what it opens."""
    from api.bootstrap.storage import with_feeds
    from api.sources.feeds import FeedReader

    reader = FeedReader(settings.sources, store)
    stack.push_async_callback(reader.aclose)
    return await with_feeds(product, settings, store, reader)


@asynccontextmanager
async def remembered(settings: Settings) -> AsyncIterator[Store | None]:
    """The store with counted searches and recent pages; None in the sandbox.

    A database that cannot be used is one warning: then nothing is remembered or counted.
    """
    from api import bootstrap
    from api.bootstrap.storage import open_store_of

    store = None
    if bootstrap.mode_of(settings) != "sandbox":
        try:
            store = await open_store_of(settings)
        except (StoreUnavailable, ConfigurationError) as error:
            words = "no searches are counted and no pages remembered"
            tell(f"listenpost: warning: {words}: {error}")
    try:
        yield store
    finally:
        if store is not None:
            await store.aclose()


def greet(product: Product, sources: Sequence[str] = ()) -> None:
    """Say at the first question that leaves this machine where it goes, and remember it in a file.

    `sources` are those that the question names; empty: it names none.
    """
    from api.settings import data_folder

    mark = data_folder() / "greeted"
    if product.sample or not sys.stderr.isatty() or mark.exists():
        return
    titles = [
        title_in(product.places, name)
        for name in sources or product.usual
        if not isinstance(product.sources.get(name), SourceError | None)
    ]
    tell(
        f"Your question is sent to {', '.join(titles) or 'nobody'}. `LISTENPOST_SOURCES` or "
        "`--source` choose others, `--sandbox` asks nobody, `listenpost doctor` shows all. "
        "(This is said once.)"
    )
    with suppress(OSError):  # then it is said again
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
