"""Opportunistic reranking: a second look at the order when even the best item is a borderline one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from api.services.schemas import Assessed
from api.services.small_talk import content_words, words

Reranker = Callable[[Sequence[Assessed]], Sequence[Assessed]]
"""Returns the same items in another order."""


def by_words(question: str) -> Reranker:
    """Orders by the share of the question's content words that an item's text holds.

    Costs no call; items that hold equally many keep their order.
    """
    wanted = frozenset(content_words(question))

    def held(one: Assessed) -> int:
        item = one.item
        return len(wanted.intersection(words(f"{item.title} {item.body}")))

    return lambda window: sorted(window, key=held, reverse=True)
