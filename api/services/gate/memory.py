"""What one run found out, or is finding out: asked for once, whoever needs it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from api.services.flights import Flight

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
V = TypeVar("V")


@dataclass(slots=True)
class Memory(Generic[K, V]):
    """Values by key; what is not found, or forgotten, is free for the next caller."""

    _known: dict[K, V] = field(default_factory=dict)
    _finding: dict[K, Flight[Mapping[K, V]]] = field(default_factory=dict)

    async def recall(
        self,
        wanted: Mapping[K, T],
        find: Callable[[dict[K, T]], Coroutine[Any, Any, Mapping[K, V]]],
    ) -> dict[K, V]:
        """What is known of `wanted`; `find` is asked for what nobody knows or is finding out.

        `find` may find less: then that is missing here too, and for all who wait for it, as its
        error is everybody's. It goes on as long as somebody waits, whoever asked first.
        """
        known = {key: self._known[key] for key in wanted if key in self._known}
        under_way = {
            key: flight
            for key, flight in self._finding.items()
            if key in wanted and key not in known and not flight.cancelled
        }
        flights = list(dict.fromkeys(under_way.values()))
        mine = {
            key: thing for key, thing in wanted.items() if key not in known and key not in under_way
        }
        if mine:
            flight: Flight[Mapping[K, V]] = Flight()
            flight.begin(self._find(mine, find))
            self._finding |= dict.fromkeys(mine, flight)
            flight.when_over(partial(self._free, mine, flight))
            flights.append(flight)
        for flight in flights:
            flight.waiting += 1
        try:
            for flight in flights:
                known |= await flight.result()
        finally:
            for flight in flights:
                flight.leave()
            for flight in flights:
                if flight.cancelled:
                    await flight.over()
        return {key: known[key] for key in wanted if key in known}

    def forget(self, key: K) -> None:
        """Let the next caller look again; those already waiting keep what was found."""
        self._known.pop(key, None)

    async def _find(
        self,
        mine: dict[K, T],
        find: Callable[[dict[K, T]], Coroutine[Any, Any, Mapping[K, V]]],
    ) -> Mapping[K, V]:
        values = await find(mine)
        self._known |= {key: values[key] for key in mine if key in values}
        return values

    def _free(self, keys: Mapping[K, T], flight: Flight[Mapping[K, V]]) -> None:
        for key in keys:
            if self._finding.get(key) is flight:
                del self._finding[key]
