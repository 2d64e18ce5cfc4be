"""The same question about each product."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from api.errors import UsageError
from api.services.containment import Failure, contained
from api.services.listening import Ask
from api.services.progress import Listener, ProductEvent, silent
from api.services.question.accepting import question_of
from api.services.question.query import canonical
from api.services.reporting.report import Report
from api.services.text import clean, cut, one_line

FEWEST, MOST = 2, 5
"""Products of one comparison."""


def check_number(number: int) -> None:
    """Whether so many can stand beside one another.

    Raises:
        UsageError: too few or too many.
    """
    if not FEWEST <= number <= MOST:
        raise UsageError(f"a comparison takes {FEWEST} to {MOST} products, not {number}")


def check_products(names: Sequence[str]) -> None:
    """Whether these can stand beside one another.

    Raises:
        UsageError: too few or too many, or the same one twice.
    """
    check_number(len(names))
    known: dict[str, str] = {}
    for name, form in zip(map(_shown, names), map(canonical, names), strict=True):
        if form in known:
            raise UsageError(f"“{known[form]}” and “{name}” are the same product: name each once")
        known[form] = name


def asks_of(products: Sequence[tuple[str, str]], like: Ask) -> tuple[Ask, ...]:
    """An `Ask` for each product and what it is; all else as in `like`.

    Raises:
        UsageError: too few or too many, one that names nothing, or the same one twice.
    """
    asks = []
    for query, about in products:
        try:
            question = question_of(query, about)
        except UsageError as error:
            raise UsageError(f"“{_shown(query)}”: {error}") from None
        asks.append(replace(like, query=question.text, about=question.about))
    check_products([ask.query for ask in asks])
    return tuple(asks)


async def analyze_each(
    analyze: Callable[[Ask, Listener], Awaitable[Report]],
    asks: Sequence[Ask],
    listener: Listener = silent,
) -> list[Report | Failure]:
    """Analyze all at once, so at one moment; one that fails leaves the others alone.

    The listener hears `ProductEvent`s.
    """

    def heard(ask: Ask) -> Listener:
        return lambda event: listener(ProductEvent(product=ask.query, event=event))

    return await asyncio.gather(
        *(contained(analyze(ask, heard(ask)), "an analysis to compare") for ask in asks)
    )


def _shown(name: str) -> str:
    """A product as a message calls it."""
    return cut(one_line(clean(name)), 60)
