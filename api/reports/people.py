"""Who wrote the words of a passage: reports count independent people, not posts.

An author is a pseudonym that is stable within a source and is never published or stored, so people are counted
while a report is written. Words without a known author count as one person for each item or comment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from api.core.items import Item, person_of
from api.reports.report import Passage


def people_by_source(passages: Iterable[Passage], items: Mapping[str, Item]) -> dict[str, int]:
    """Source -> number of people whose words the passages are, the most first; `items` by key."""
    people = {
        person_of(item, passage.comment_id): item.source for passage in passages if (item := items.get(passage.key))
    }
    return dict(Counter(people.values()).most_common())
