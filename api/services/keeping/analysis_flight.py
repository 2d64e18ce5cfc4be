"""An analysis under way in this process, and what another needs to go on with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from api.services.callers import Caller
from api.services.durable import Keep
from api.services.flights import Flight
from api.services.keeping.keys import Tenant
from api.services.keeping.storage import Kept
from api.services.listening import Ask
from api.services.progress import Listener
from api.services.reporting.report import Report


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """What a process needs to go on with an analysis that another began."""

    analysis_id: str
    tenant: str
    ask: Ask
    trace_id: str
    """Of the trace to which what is done later belongs too."""
    caller: Caller

    @property
    def written(self) -> str:
        """As JSON."""
        return _REQUEST.dump_json(self).decode()

    @classmethod
    def read(cls, text: str) -> WorkOrder:
        """From JSON."""
        return _REQUEST.validate_json(text)


_REQUEST = TypeAdapter(WorkOrder)


@dataclass(slots=True, eq=False, kw_only=True)
class AnalysisFlight(Flight[Report]):
    """An analysis under way in this process; `result` is its finished report.

    Raises:
        Conflict: it was cancelled.
        LimitReached: it may not be begun.
        ListenpostError: it failed, code `error`.
    """

    id: str
    tenant: Tenant
    ask: Ask
    began: datetime = field(init=False)
    """As it is stored; known once `join` has returned it."""
    first: int = field(default_factory=lambda: time.time_ns() // 1_000)
    """Number of its first event: microseconds since 1970, which a later run under the same id, in
    whatever process, has more of than this one will have numbers."""
    resumed: bool = False
    """Another process began it, or left it in the queue."""
    abandoned: bool = False
    """Another process goes on with it."""
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """It is known whether it may begin."""
    work: asyncio.Task[Report] | None = None

    @property
    def query(self) -> str:
        """What is asked."""
        return self.ask.query

    def cancel(self) -> None:
        """End the work; what became of it is still noted."""
        self.cancelled = True
        if self.work is not None:
            self.work.cancel()

    def abandon(self) -> None:
        """Work at it no longer, so that another process goes on."""
        self.abandoned = True
        if self.work is not None:
            self.work.cancel()


Analyze = Callable[[Tenant, Ask, Listener, str, Keep], Coroutine[Any, Any, Report]]
"""The report of a question under the id that is given."""
Estimate = Callable[[Ask], Coroutine[Any, Any, float]]
"""USD that an analysis may cost at most; raises `UsageError` for what cannot be asked."""
Tenants = Callable[[str], Coroutine[Any, Any, Tenant | None]]
"""The tenant of an id; None of a key that is no longer valid."""
Begin = Callable[[Tenant, Ask, str], Coroutine[Any, Any, "AnalysisFlight | Kept"]]
"""Begins a question under an id: here, or wherever there is room."""
Ended = Callable[[Report | None, str], None]
"""Told at the end: the report, or None and why there is none."""


async def nobody(tenant: str) -> Tenant | None:
    """Nobody is known: no work of other processes is gone on with."""
    return None
