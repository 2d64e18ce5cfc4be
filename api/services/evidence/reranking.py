"""Reordering by the words of the question: borderline items, and the comments of an item."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from api.services.question.query import content_words, words
from api.services.schemas import Assessed, Comment, Item

Reranker = Callable[[Sequence[Assessed]], Sequence[Assessed]]
"""Returns the same items in another order."""


def by_words(question: str) -> Reranker:
    """Orders by the share of the question's content words that an item's text holds.

    Costs no call; items that hold equally many keep their order.
    """
    wanted = frozenset(content_words(question))

    def held(entry: Assessed) -> int:
        item = entry.item
        return len(wanted.intersection(words(f"{item.title} {item.body}")))

    return lambda window: sorted(window, key=held, reverse=True)


def best_comments(item: Item, question: str) -> tuple[Comment, ...]:
    """All comments of an item, those that share words with question or post first, then by votes.

    So that a joke with thousands of votes does not stand before what was asked about.
    """
    about = frozenset(content_words(f"{question} {item.title} {item.body}"))

    def order(comment: Comment) -> tuple[bool, float, str]:
        votes = next(iter(comment.engagement.values()), None)
        return (about.isdisjoint(words(comment.body)), -(votes or 0), comment.id)

    return tuple(sorted(item.comments, key=order))
