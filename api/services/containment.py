"""The one place where what nobody foresaw is contained: logged in full, answered in safe words."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from api.errors import ListenpostError

T = TypeVar("T")
_INTERNAL = "an internal error"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """How some work failed, in words that are safe to show."""

    code: str
    """A `ListenpostError`'s own code, or `internal` for a defect."""
    message: str


class Defect(ListenpostError):
    """What nobody foresaw, in words that are safe to show."""

    code = "internal"


async def contained(work: Awaitable[T], name: str) -> T | Failure:
    """What `work` gives, or how it failed; `name` is what the log calls it.

    An error of ours speaks for itself. Any other is a defect: the log has its traceback, and the
    failure names its kind alone. Cancellation is no failure and passes through.
    """
    try:
        return await translated(work, name, Defect)
    except TimeoutError:
        return Failure("timed_out", "no answer in time")
    except ListenpostError as error:
        return Failure(error.code, error.public)


async def translated(
    work: Awaitable[T],
    name: str,
    to: Callable[[str], ListenpostError],
    known: tuple[type[Exception], ...] = (),
) -> T:
    """What `work` gives; a defect leaves as the error that `to` makes of its kind, logged in full.

    So one source or model step that stumbles over what nobody foresaw fails like any other. Errors
    of ours, a deadline that passed, cancellation and what the caller has `known` go through.
    """
    expected: tuple[type[Exception], ...] = (TimeoutError, *known)
    try:
        return await work
    except expected:
        raise
    except Exception as error:
        leaves = list(_leaves(error))
        if all(isinstance(leaf, ListenpostError) for leaf in leaves):
            raise leaves[0] from None
        _log.error("%s failed", name, exc_info=error)
        kind = next(type(leaf) for leaf in leaves if not isinstance(leaf, ListenpostError))
        raise to(f"{_INTERNAL} ({kind.__name__}); the log has the details") from None


def is_defect(reason: str | None) -> bool:
    """Whether a failure's words are those of a defect."""
    return _INTERNAL in (reason or "")


def _leaves(error: Exception) -> Iterator[Exception]:
    """What one task, or several tasks at once, failed with."""
    if isinstance(error, ExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
