"""A ranked line in which no group takes every place, such as one author or thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

from api.settings import RankingSettings

T = TypeVar("T")


def diversify(
    line: Sequence[T],
    groups: Callable[[T], Iterable[Hashable]],
    worth: Callable[[T], float],
    ranking: RankingSettings,
) -> list[T]:
    """Best first, at most `diversity_max` of a group unless it costs over `diversity_delta`."""
    left, chosen, seen = list(line), list[T](), Counter[Hashable]()
    most = ranking.diversity_max  # 0 is off: no group is below it, so the best stays first
    while left:
        free = (at for at, entry in enumerate(left) if all(seen[g] < most for g in groups(entry)))
        at = next(free, 0)
        if worth(left[0]) - worth(left[at]) > ranking.diversity_delta:
            at = 0
        entry = left.pop(at)
        seen.update(groups(entry))
        chosen.append(entry)
    return chosen
