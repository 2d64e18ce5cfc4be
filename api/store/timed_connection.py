"""Connections to PostgreSQL: psycopg's, with an end to every wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg


class TimedConnection(psycopg.AsyncConnection[Any]):
    """Gives up a statement without an answer, and has the server end it.

    The server's `statement_timeout` says nothing when the server is gone, and a pooler between
    keeps it no longer than a transaction.
    """

    statement_seconds: float

    async def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """What psycopg does for everything that it sends.

        Raises:
            TimeoutError: there was no answer; the message says for how long.
        """
        async with _answer_within(self.statement_seconds):
            return await super().wait(gen, *args, **options)


def connecting(seconds: float, statement_seconds: float) -> Callable[..., Awaitable[TimedConnection]]:
    """A function that connects as psycopg does, within so many seconds over all addresses.

    libpq's own `connect_timeout` is in whole seconds, two at least, and for each address.
    """

    async def connect(*args: Any, **options: Any) -> TimedConnection:
        try:
            async with _answer_within(seconds):
                connection = await TimedConnection.connect(*args, **options)
        except UnicodeError:  # of a name that cannot be one: `a..b`
            raise psycopg.OperationalError("failed to resolve host") from None
        connection.statement_seconds = statement_seconds
        return connection

    return connect


@asynccontextmanager
async def _answer_within(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise TimeoutError(f"no answer within {seconds:g} s") from None
