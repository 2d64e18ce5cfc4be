"""One item of what several files, or a file and a place, say of it: pure, over stored facts.

Facts are the JSON of `ItemFacts`. What was there first stays; what was empty is filled; comments
are joined by their ids. An item of which only comments came is a stub until its own text comes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

STUB = "only comments on it were imported; its own text was in none of the files"
"""The note of an item that nobody has seen itself; its title, if any, comes from its address."""
MOST_COMMENTS = 500
"""Of one item: the best voted, the newest of those with equal votes."""
Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Merged:
    """What became of an item."""

    facts: dict[str, Any]
    comments: tuple[str, ...] = ()
    """Ids of those that were not there before and stayed."""
    again: int = 0
    """Of the item and its comments, how many were there already."""
    gain: int = 0
    """How many comments there are more."""
    over: int = 0
    """Comments beyond `MOST_COMMENTS`, also of those that were there."""
    new: bool = False
    """The item's own text was not there before."""

    def brought(self, before: Collection[str]) -> list[str]:
        """Of the comments that are left, those that came now or are among `before`."""
        ours = {*before, *self.comments}
        return [id_ for id_ in comment_ids(self.facts) if id_ in ours]


def merged(stored: Facts | None, fresh: Facts) -> Merged:
    """What is stored of an item together with what came now."""
    known = _comments(stored) if stored else []
    ids = {comment["id"] for comment in known}
    added, again = [], 0
    for comment in _comments(fresh):
        if comment["id"] in ids:
            again += 1
        else:
            ids.add(comment["id"])
            added.append(comment)
    comments = [*known, *added]
    over = max(len(comments) - MOST_COMMENTS, 0)
    if over:
        comments = sorted(comments, key=_rank, reverse=True)[:MOST_COMMENTS]
        left = {comment["id"] for comment in comments}
        added = [comment for comment in added if comment["id"] in left]
    named, had = not is_stub(fresh), stored is not None and not is_stub(stored)
    facts = _filled(stored, fresh) if stored else dict(fresh)
    if comments or "comments" in facts:
        facts["comments"] = comments
    return Merged(
        facts,
        tuple(comment["id"] for comment in added),
        again + (named and had),
        len(comments) - len(known),
        over,
        named and not had,
    )


def is_stub(facts: Facts) -> bool:
    """Whether only comments on it are known."""
    notes = facts.get("notes")
    return isinstance(notes, Sequence) and STUB in notes


def comment_ids(facts: Facts) -> list[str]:
    """Of all its comments."""
    return [comment["id"] for comment in _comments(facts)]


def without_comments(facts: Facts, ids: frozenset[str]) -> dict[str, Any]:
    """The item without these comments."""
    left = [comment for comment in _comments(facts) if comment["id"] not in ids]
    return {**facts, "comments": left}


def _filled(stored: Facts, fresh: Facts) -> dict[str, Any]:
    """The first's facts, and the other's where it has none; a stub's give way."""
    if is_stub(stored) and not is_stub(fresh):
        stored, fresh = fresh, stored
    facts = dict(stored)
    for name, value in fresh.items():
        empty = facts.get(name) in (None, "", [], {})
        if name not in facts or (empty and name not in {"notes", "thread"}):
            facts[name] = value
    return facts


def _comments(facts: Facts) -> list[dict[str, Any]]:
    listed = facts.get("comments")
    return [c for c in listed if isinstance(c, dict) and "id" in c] if listed else []


def _rank(comment: Mapping[str, Any]) -> tuple[float, str]:
    """Votes, by the first measure, which is the main one; then the time, as text in ISO order."""
    measures = comment.get("engagement") or {}
    votes = next(iter(measures.values()), None)
    worth = votes if isinstance(votes, int | float) else float("-inf")
    return worth, comment.get("created_at") or ""
