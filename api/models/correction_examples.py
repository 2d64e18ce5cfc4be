"""Corrections as examples for a model: those most like the batch, both kinds alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest

from api.core.domain import Correction, Item
from api.core.text import Fence, cut
from api.core.words import index_tokens

MOST = 8
"""Examples in one call."""
# An example is quoted as short as the items it stands beside: about 40 tokens, 320 for all.
_LENGTH = 160


def nearest(
    corrections: Sequence[Correction], items: Iterable[Item], most: int = MOST
) -> tuple[Correction, ...]:
    """At most `most` corrections, relevant and irrelevant in turn, those most like `items` first.

    Likeness is the share of a correction's words that the batch holds; the newest wins a tie.
    """
    batch = set(chain.from_iterable(index_tokens(f"{item.title} {item.body}") for item in items))

    def likeness(entry: tuple[int, Correction]) -> tuple[float, int]:
        words = set(index_tokens(f"{entry[1].title} {entry[1].body}"))
        return len(words & batch) / max(1, len(words)), entry[0]

    ranked = [said for _, said in sorted(enumerate(corrections), key=likeness, reverse=True)]
    kinds = [[said for said in ranked if said.relevant is kind] for kind in (True, False)]
    balanced = (said for pair in zip_longest(*kinds) for said in pair if said is not None)
    return tuple(balanced)[:most]


def quoted_examples(examples: Sequence[Correction], fence: Fence) -> list[str]:
    """Lines of the examples for the prompt: our label in the clear, a stranger's words fenced."""
    return [
        fence.quote(
            cut(f"{said.title} {said.body}", _LENGTH),
            "judged relevant" if said.relevant else "judged irrelevant",
        )
        for said in examples
    ]
