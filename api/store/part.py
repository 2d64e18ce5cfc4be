"""What every part of the store has: the one database, and calls that are not broken off."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from api.store.database import Database

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Part")


class Part:
    """One part; the store is all of them over one database."""

    def __init__(self, database: Database) -> None:
        """The tables are there already; see `open_store`."""
        self._database = database


def unbroken(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """A method that ends its transaction although its caller is cancelled; see `Database`."""

    @wraps(method)
    async def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._database.unbroken(method(self, *args, **kwargs))

    return call
