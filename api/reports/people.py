"""Who wrote the words of a passage: reports count independent people, not posts.

An author is a pseudonym that is stable within a source and is never published or stored, so people are counted
while a report is written. Words without a known author count as one person for each item or comment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from api.core.items import Item
from api.reports.report import Passage


def person_of(item: Item, comment_id: str | None = None) -> str:
    """The identity of who wrote a text of an item: its title and body, or the comment with that id."""
    if comment_id is None:
        return f"{item.source}:author:{item.author}" if item.author else f"{item.source}:item:{item.key}"
    author = next((comment.author for comment in item.comments if comment.id == comment_id), None)
    return f"{item.source}:author:{author}" if author else f"{item.source}:comment:{item.key}:{comment_id}"


def people_by_source(passages: Iterable[Passage], items: Mapping[str, Item]) -> dict[str, int]:
    """Source -> number of people whose words the passages are, the most first; `items` by key."""
    people = {
        person_of(item, passage.comment_id): item.source for passage in passages if (item := items.get(passage.key))
    }
    return dict(Counter(people.values()).most_common())
