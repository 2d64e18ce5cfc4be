"""What the sources of one command remember from earlier ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from api import wiring
from api.errors import ConfigurationError, StoreUnavailable
from api.faces.cli.printing import tell
from api.faces.cli.running import closing
from api.services.keeping.storage import SourceMemory
from api.settings import Settings


@asynccontextmanager
async def remembered(settings: Settings) -> AsyncIterator[SourceMemory | None]:
    """The searches that are left today and the pages of the last minutes; None in the sandbox.

    A database that cannot be used is one warning: then nothing is remembered or counted.
    """
    if wiring.mode_of(settings) == "sandbox":
        yield None
        return
    from api.wiring.serving import open_store_of  # loads the database's libraries

    try:
        store = await open_store_of(settings)
    except (StoreUnavailable, ConfigurationError) as error:
        tell(f"listenpost: warning: no searches are counted and no pages remembered: {error}")
        yield None
        return
    async with closing(store):
        yield SourceMemory(store, store)
