"""Running one command: what it remembers, and its clean stop on Ctrl-C and SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import NoReturn, Protocol, TypeVar

from api import wiring
from api.errors import ConfigurationError, StoreUnavailable
from api.faces.cli.printing import finish, tell
from api.services.keeping.storage import SourceMemory
from api.settings import Settings

INTERRUPTED, TERMINATED = 130, 143


class Closable(Protocol):
    """What a command builds and must close."""

    async def aclose(self) -> None:
        """Let go of everything."""
        ...


B = TypeVar("B", bound=Closable)


@asynccontextmanager
async def closing(built: B) -> AsyncIterator[B]:
    """The built product, closed at the end even when the command is interrupted."""
    try:
        yield built
    finally:
        await built.aclose()


@asynccontextmanager
async def remembered(settings: Settings) -> AsyncIterator[SourceMemory | None]:
    """The searches that are left today and the pages of the last minutes; None in the sandbox.

    A database that cannot be used is one warning: then nothing is remembered or counted.
    """
    if wiring.mode_of(settings) == "sandbox":
        yield None
        return
    from api.wiring.storing import open_store_of  # loads the database's libraries

    try:
        store = await open_store_of(settings)
    except (StoreUnavailable, ConfigurationError) as error:
        tell(f"listenpost: warning: no searches are counted and no pages remembered: {error}")
        yield None
        return
    async with closing(store):
        yield SourceMemory(store, store)


def run(command: Callable[[], Awaitable[int]]) -> int:
    """The command's exit code; 130 after Ctrl-C and 143 after SIGTERM, without a traceback.

    An interrupted process leaves at once: threads that hang in an upstream call or in a look-up of
    a name are not waited for.
    """
    stopped: list[int] = []

    async def main() -> int:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()

        def stop(code: int) -> None:
            if stopped:
                leave(code)
            stopped.append(code)
            if task is not None:
                task.cancel()

        with suppress(NotImplementedError):  # Windows: Ctrl-C arrives as KeyboardInterrupt
            loop.add_signal_handler(signal.SIGINT, stop, INTERRUPTED)
            loop.add_signal_handler(signal.SIGTERM, stop, TERMINATED)
        try:
            return await command()
        except asyncio.CancelledError:
            tell("listenpost: interrupted")
            leave(stopped[0] if stopped else INTERRUPTED)

    return asyncio.run(main())


def leave(code: int) -> NoReturn:
    """End the process now, with what was printed handed over."""
    finish()
    os._exit(code)
