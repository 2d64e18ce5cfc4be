"""Answers that scheduled runs of watches share: what several need at the same time is asked once, by one of them.

Sharing happens within `answers_as_of` alone. There an answer looks as if this run had asked for it: its requests are
counted, its cost is returned and its time passes again, whoever asked. Questions of people share nothing here, since
people could time them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from time import monotonic
from typing import Any, Protocol, TypeVar

from pydantic import AwareDatetime, BaseModel, TypeAdapter, ValidationError

from api import errors
from api.core.context import count_requests, request_counter
from api.errors import SourceError, StoreUnavailable

T = TypeVar("T")
CLAIM = timedelta(seconds=20)
"""Time for which one process alone asks; after it, as after a kill, another may. Others wait for at most
1.5 times as long, since a crawl has 45 seconds."""
KEPT_SECONDS = 86_400.0
"""Longest time for which an answer is shared, in seconds; a source's answer only within its window."""
_PAUSES = (0.05, 0.1, 0.2, 0.4)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class SharedRun:
    """A scheduled run, by whose window its searches are shared; equal to itself alone."""

    as_of: datetime
    """Beginning of the window; no answer holds anything written later."""
    tenant: str = ""
    """Tenant whose share of a source's pace and quota the run uses; empty: no limit by tenant."""

    def sees(self, written: datetime | None) -> bool:
        """Whether what was written then, or at an unknown time, is in its answers."""
        return written is None or written <= self.as_of


_run: ContextVar[SharedRun | None] = ContextVar("listenpost_shared_run", default=None)


def shared_run() -> SharedRun | None:
    """The scheduled run that this task belongs to; None for a question that a person asks."""
    return _run.get()


@contextmanager
def answers_as_of(as_of: datetime | None, tenant: str = "") -> Iterator[None]:
    """Share answers inside the block with all scheduled runs of the same window; None turns sharing off."""
    token = _run.set(None if as_of is None else SharedRun(as_of, tenant))
    try:
        yield
    finally:
        _run.reset(token)


def window_of(moment: datetime, seconds: float) -> datetime:
    """The beginning of the window in which a moment lies; windows of a length are the same in every process."""
    return datetime.fromtimestamp(moment.timestamp() // seconds * seconds, UTC)


class AnswerMemory(Protocol):
    """Storage for shared answers. All methods raise `StoreUnavailable`."""

    async def page(self, key: str, ttl: float) -> str | None:
        """The text stored under a key, unless it is older than `ttl` seconds."""

    async def claim_answer(self, key: str, asker: str, now: datetime, until: datetime) -> tuple[bool, str | None]:
        """Claim to ask for what will be stored under a key, unless another's claim holds; and what is stored now."""

    async def answer_claimed_until(self, key: str) -> datetime | None:
        """When the claim on a key ends; None without a claim."""

    async def keep_answer(self, key: str, asker: str, text: str | None) -> None:
        """End one's own claim, and store the answer if there is one; delete what is a day old."""


class _KeptFailure(BaseModel):
    """A failure of a source that says until when it lasts."""

    code: str
    source: str
    detail: str
    retry_at: AwareDatetime


class _KeptAnswer(BaseModel):
    """A shared answer or failure, with its cost."""

    requests: int
    seconds: float
    value: Any = None
    failure: _KeptFailure | None = None

    @property
    def holds(self) -> bool:
        """A failure is shared no longer than it lasts."""
        return self.failure is None or self.failure.retry_at > datetime.now(UTC)


_FAILURES: dict[str, type[SourceError]] = {
    kind.code: kind for kind in (errors.RateLimited, errors.QuotaExhausted, errors.Blocked, errors.Unreachable)
}


@dataclass(frozen=True, slots=True)
class SharedAnswers:
    """Asks each question of a window once for all processes; a database that cannot be used costs the sharing alone."""

    memory: AnswerMemory | None
    claim: timedelta = CLAIM
    pauses: Sequence[float] = _PAUSES
    """Seconds between two checks for an answer that another run has claimed; the last value repeats."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def answer(
        self,
        question: Sequence[object],
        shape: TypeAdapter[T],
        ask: Callable[[], Awaitable[T]],
        worth_sharing: Callable[[T], bool] = lambda value: True,
    ) -> T:
        """What `ask` gives, or gave another run.

        Args:
            question: everything by which the answer may differ, as JSON values.
            shape: how an answer is written.
            ask: sends the requests.
            worth_sharing: False for an answer that serves its own run alone.
        """
        if shared_run() is None or self.memory is None:
            return await ask()
        key = f"shared:{hashlib.sha256(json.dumps(question).encode()).hexdigest()}"
        began, asker = monotonic(), secrets.token_hex(8)
        try:
            kept = await self._kept_or_claimed(self.memory, key, asker, began)
        except StoreUnavailable as error:
            _log.warning("answers are not shared: %s", error)
            return await ask()
        if isinstance(kept, _KeptAnswer):
            with suppress(ValidationError):  # another version of this program may have written it
                return await self._repeated(kept, shape, began)
        if kept is None:
            return await ask()
        return await self._ask(self.memory, key, asker, shape, ask, worth_sharing)

    async def _kept_or_claimed(
        self, memory: AnswerMemory, key: str, asker: str, began: float
    ) -> _KeptAnswer | bool | None:
        """The stored answer once it exists; True when this run shall ask; None when it shall ask without sharing."""
        pauses, until = chain(self.pauses, repeat(self.pauses[-1])), None
        waited = False
        while monotonic() - began <= 1.5 * self.claim.total_seconds():
            if (kept := _held(await memory.page(key, KEPT_SECONDS))) is not None:
                return kept
            now = datetime.now(UTC)
            if waited and (until := await memory.answer_claimed_until(key)) is None:
                # who asked failed, or got what serves its run alone, unless it answered between the two looks
                return _held(await memory.page(key, KEPT_SECONDS))
            if until is None or until <= now:
                claimed, text = await memory.claim_answer(key, asker, now, now + self.claim)
                if claimed and (kept := _held(text)) is not None:
                    await memory.keep_answer(key, asker, None)
                if claimed:
                    return kept or True
            await self.sleep(next(pauses))
            waited = True
        return None

    async def _repeated(self, kept: _KeptAnswer, shape: TypeAdapter[T], began: float) -> T:
        """The answer with the requests and the time that it takes who asks alone; raises the failure that was kept."""
        value = None if kept.failure is not None else shape.validate_python(kept.value)
        count_requests(kept.requests)
        await self.sleep(max(0.0, kept.seconds - (monotonic() - began)))
        if kept.failure is not None:
            failure = kept.failure
            raise _FAILURES[failure.code](failure.source, failure.detail, retry_at=failure.retry_at)
        return value  # type: ignore[return-value]

    async def _ask(
        self,
        memory: AnswerMemory,
        key: str,
        asker: str,
        shape: TypeAdapter[T],
        ask: Callable[[], Awaitable[T]],
        worth_sharing: Callable[[T], bool],
    ) -> T:
        asked_at = monotonic()
        kept: _KeptAnswer | None = None
        try:
            with request_counter() as calls:
                try:
                    value = await ask()
                except SourceError as error:
                    if (failure := _lasting(error)) is not None:
                        kept = _KeptAnswer(requests=calls.made, seconds=monotonic() - asked_at, failure=failure)
                    raise
            if worth_sharing(value):
                written = shape.dump_python(value, mode="json")
                kept = _KeptAnswer(requests=calls.made, seconds=monotonic() - asked_at, value=written)
            return value
        finally:
            try:
                await memory.keep_answer(key, asker, None if kept is None else kept.model_dump_json())
            except StoreUnavailable as error:
                _log.warning("an answer is not shared: %s", error)


def _held(text: str | None) -> _KeptAnswer | None:
    """A stored answer that may be shared still."""
    if text is None:
        return None
    try:
        kept = _KeptAnswer.model_validate_json(text)
    except ValidationError:
        return None
    return kept if kept.holds else None


def _lasting(error: SourceError) -> _KeptFailure | None:
    """What is stored of a failure that lasts until a stated time; None for any other failure."""
    if error.code not in _FAILURES or error.retry_at is None or error.retry_at <= datetime.now(UTC):
        return None
    return _KeptFailure(code=error.code, source=error.source, detail=error.detail, retry_at=error.retry_at)
