"""Items and searches made by hand, and an archive that gives back what it was made with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from api.core.items import Comment, Item
from api.features.archive.search_values import DIMENSIONS, ArchiveFilters, Match, Matches

QUERY = "alpha bravo charlie delta echo"
WORDS = tuple(QUERY.split())
NEAREST = (100, 0)
"""The question's direction in a plane; `(60, 80)` has a cosine of 0.6 with it."""


def comment(body: str, name: str = "c1", **more: Any) -> Comment:
    """A comment under an item."""
    fields: dict[str, Any] = {"url": "", "created_at": None, "engagement": {}}
    return Comment(id=name, body=body, **{**fields, **more})


def facts(key: str = "reddit:t3_1", **more: Any) -> Item:
    """An item as it is stored."""
    source, _, id_ = key.partition(":")
    fields: dict[str, Any] = {
        "id": id_, "source": source, "title": f"Title {id_}", "body": "Its text.",
        "url": f"https://example.org/{id_}", "created_at": None, "engagement": {}, "place": "mugs",
        "places": (), "comments": (), "notes": (),
    }  # fmt: skip
    return Item(key=key, **{**fields, **more})


def vector(*plane: int) -> bytes:
    """A vector that lies in a plane."""
    return bytes(number % 256 for number in plane).ljust(DIMENSIONS, b"\0")


def match(key: str, words: int, plane: tuple[int, int] | None, **more: Any) -> Match:
    """An entry of 60 tokens, the usual length, of which so many are the question's, in another order."""
    fields: dict[str, Any] = {"id": (key, "", 0), "thread": key, "by_words": words > 0}
    return Match(
        tokens=WORDS[:words][::-1] + ("filler",) * (60 - words),
        vector=None if plane is None else vector(*plane),
        **{"by_vector": plane is not None, **fields, **more},
    )


def page(*entries: Match, vectors: bool = True) -> Matches:
    """What both searches found; each word of the question is held by 10 of 1,000 entries."""
    return Matches(entries, dict.fromkeys(WORDS, 10), 1000, vectors)


def embed(texts: Sequence[str]) -> list[bytes]:
    """All texts mean the same."""
    return [vector(*NEAREST)] * len(texts)


def no_vectors(texts: Sequence[str]) -> None:
    """Where words are all there is."""


@dataclass
class ArchiveOf:
    """An archive that finds the same whatever it is asked for."""

    found: Matches
    items: dict[str, Item] = field(default_factory=dict)
    names: Sequence[str] = ()
    searches: list[tuple[str, tuple[str, ...], ArchiveFilters]] = field(default_factory=list)

    async def matches(
        self, tenant: str, words: Sequence[str], vector: bytes | None, filters: ArchiveFilters,
        most: int, model: str = "",
    ) -> Matches:  # fmt: skip
        self.searches.append((tenant, tuple(words), filters))
        return self.found

    async def facts(self, tenant: str, keys: Iterable[str]) -> Mapping[str, Item]:
        return {key: self.items[key] for key in keys if key in self.items}

    async def queries(self, tenant: str, most: int) -> Sequence[str]:
        return self.names


def archive_of(found: Matches, **more: Any) -> ArchiveOf:
    """With an item for each key that is there, each with three comments."""
    comments = tuple(comment(f"Comment {number}.", f"c{number}") for number in range(1, 4))
    keys = dict.fromkeys(entry.id[0] for entry in found.matches)
    return ArchiveOf(found, {key: facts(key, comments=comments) for key in keys}, **more)
