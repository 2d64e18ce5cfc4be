"""Posts with their comments, and what becomes of them from the fetch to the evidence."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import add
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from api.core.domain import (
    BEFORE_JUDGING,
    Agreement,
    Attempt,
    FetchPlan,
    Grade,
    Outcome,
    Stage,
    Status,
    Usage,
    Verdict,
    passed_unjudged,
)
from api.core.published import IF_SET, WHERE_THERE, Published, Timestamp, without_default
from api.core.text import clean, one_line

Measure = float | int | None


Credit = Annotated[str | SkipJsonSchema[None], WHERE_THERE]
"""An author as `Ada (https://...)`, where a licence asks for name and profile."""
Thread = Annotated[str, IF_SET]
"""Key of the thread whose title it bears, of a comment that was found by itself."""


def _without_defaults(schema: dict[str, Any]) -> None:
    for each in schema["properties"].values():
        without_default(each)


class _Post(Published):
    """Fields of whatever somebody wrote: strict values and a published schema."""

    # defaults are for whoever builds one: the JSON has every key, and its schema says so
    model_config = ConfigDict(json_schema_serialization_defaults_required=True, json_schema_extra=_without_defaults)

    def edited(self, **changes: Any) -> Self:
        """A copy with other values, validated like those of a new one."""
        return type(self)(**{**dict(self), **changes})


class Comment(_Post):
    """A comment, reply or buyer's review."""

    id: str
    body: str
    url: str = ""
    created_at: Timestamp | None = None
    engagement: Mapping[str, Measure] = Field(default_factory=dict)
    credit: Credit = None
    author: Annotated[str | None, SkipJsonSchema(), WHERE_THERE] = None
    """A pseudonym, stable within a source, or a name as `credit` holds it; never published."""


class Item(_Post):
    """A post, a video or a product with its reviews, as answers and the store have it, too."""

    key: str
    """Identity and what citations point at: `reddit:t3_ID`, `youtube:VIDEOID`, `amazon:ASIN`."""
    id: str
    source: str
    title: str
    body: str = ""
    url: str = ""
    created_at: Timestamp | None = None
    """Time of writing; None when the source does not give it."""
    engagement: Mapping[str, Measure] = Field(default_factory=dict)
    """The source's own measures by name, main one first; None when unknown; never summed."""
    place: str | None = None
    """Subreddit, channel or brand; None when the source has none."""
    places: tuple[str, ...] = ()
    """Every place it stood in, when copies were merged."""
    comments: tuple[Comment, ...] = ()
    notes: tuple[str, ...] = ()
    """What is missing in the item and why, for example disabled comments."""
    credit: Credit = None
    thread: Thread = ""
    crosspost_parent: Annotated[str | SkipJsonSchema[None], WHERE_THERE] = None
    """Key of the item this one is a crosspost of."""
    link: Annotated[str, IF_SET] = ""
    """Address that a link post points to."""
    language: Annotated[str, IF_SET] = ""
    """Code of its language (`de`), where a person's file says it."""
    author: Annotated[str | None, SkipJsonSchema(), WHERE_THERE] = None
    """Author, as in `Comment.author`; never published."""
    unfit: Annotated[str, SkipJsonSchema(), IF_SET] = ""
    """Why it expresses no opinion, for example a removed text; such an item is never judged."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything that people wrote in it: body, comments, and its title if it has its own."""
        own = () if self.thread else (self.title,)
        return (*own, self.body, *(comment.body for comment in self.comments))

    @property
    def original(self) -> str:
        """The key of what this is a crosspost of, or its own: one per distinct item."""
        return self.crosspost_parent or self.key

    @property
    def published(self) -> Self:
        """The item as an answer and the store may hold it: without authors."""
        comments = tuple(comment.edited(author=None) for comment in self.comments)
        return self.edited(author=None, unfit="", comments=comments)


def person_of(item: Item, comment_id: str | None = None) -> str:
    """The identity of who wrote a text of an item: its title and body, or the comment with that id.

    An author is the same in small and capital letters; a text without a known author has an identity of its own.
    """
    author, text = item.author, f"item:{item.key}"
    if comment_id is not None:
        author = next((comment.author for comment in item.comments if comment.id == comment_id), None)
        text = f"comment:{item.key}:{comment_id}"
    return f"{item.source}:author:{author.casefold()}" if author else f"{item.source}:{text}"


def pseudonym(kind: str, *names: object) -> str | None:
    """A short name that is the same for the same author, from the first non-empty name, in small or capital letters."""
    name = next((text for name in names if (text := one_line(clean(name)).casefold())), "")
    return f"{kind}-{hashlib.sha256(f'{kind}:{name}'.encode()).hexdigest()[:8]}" if name else None


@dataclass(frozen=True, slots=True)
class Batch:
    """Result of one fetch, in the source's order."""

    plan: FetchPlan
    items: tuple[Item, ...]
    """Clean and distinct by key; may be fewer than were counted."""
    full: bool
    """The source may hold more than `plan.limit` entries, counted before cleaning."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Commented:
    """Items with their comments or reviews read."""

    items: tuple[Item, ...]
    """The items asked for, in order, each with what could be read."""
    notes: tuple[str, ...] = ()
    """What could not be read, for example "1 of 5 failed"."""
    partial: bool = False
    """Some could not be read; another request may bring them."""


def sum_of_agreements(parts: Iterable[Agreement | None]) -> Agreement | None:
    """Sum over all batches that a cascade divided; None when it divided none."""
    known = [part for part in parts if part is not None]
    return reduce(add, known) if known else None


@dataclass(frozen=True, slots=True)
class Gated:
    """A batch after the gate: verdicts in order, and whether they can be trusted."""

    verdicts: tuple[Verdict, ...]
    status: Status
    reason: str | None = None
    """Why the status is not `ok`: a `ModelError.reason`."""
    model: str | None = None
    usage: Usage = Usage()
    agreement: Agreement | None = None
    """How a cascade divided the batch between two judges; None without a cascade."""

    @classmethod
    def opened(cls, items: Sequence[Item], reason: str, usage: Usage = Usage()) -> Self:
        """Every item passes unjudged; `usage` is what the judge used all the same."""
        return cls(tuple(Verdict(True) for _ in items), "degraded", reason, None, usage)

    @property
    def relevant(self) -> int:
        """Number of items that a judge found relevant; items that passed unjudged do not count."""
        return sum(v.relevant for v in self.verdicts if v.judge or self.status != "degraded")


@dataclass(frozen=True, slots=True)
class Assessed:
    """An item with everything that was decided about it."""

    item: Item
    verdict: Verdict
    grade: Grade | None = None
    relevance: float | None = None
    low_relevance: bool = False
    rank: int | None = None
    """Rank from 1; None for a dropped item."""
    dropped_by: Stage | None = None
    reason: str = ""
    """Why it was dropped, in words."""
    wider: bool = False
    """Whether only a second, wider search found it."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """Result of one source after the gate."""

    source: str
    query: str
    outcome: Outcome
    attempts: tuple[Attempt, ...] = ()
    kept: tuple[Assessed, ...] = ()
    dropped: tuple[Assessed, ...] = ()
    status: Status = "skipped"
    """The gate's status over the first attempt; a failed second one only leaves a note."""
    reason: str | None = None
    """Why the outcome is not `ok`, or why the gate is degraded."""
    model: str | None = None
    gate_reason: str | None = None
    usage: Usage = Usage()
    agreement: Agreement | None = None
    upstream_calls: int = 0
    retry_at: datetime | None = None
    notes: tuple[str, ...] = ()
    refetched: bool = False
    """A second, wider fetch was made."""
    refetch_gain: int = 0
    """Relevant items that only the second fetch brought."""
    capped: bool = False
    """A limit cut it: the source may hold more than it was asked for."""
    title: str = ""
    """Title of the source for people; empty: use its name."""

    @property
    def fetched(self) -> int:
        """Number of distinct items that were fetched."""
        return len(self.kept) + len(self.dropped)

    @property
    def fit(self) -> int:
        """Distinct items that are fit to be judged: somebody's words, not removed."""
        return self.fetched - sum(entry.dropped_by in BEFORE_JUDGING for entry in self.dropped)

    @property
    def unjudged(self) -> bool:
        """Whether items passed without a verdict."""
        return passed_unjudged(self.status, self.model)

    @property
    def relevant(self) -> tuple[Assessed, ...]:
        """Kept items that a judge found relevant."""
        return tuple(e for e in self.kept if e.verdict.judge or self.status != "degraded")

    @property
    def yield_ratio(self) -> float | None:
        """Kept items per `fit` item, 1.0 without any; None when some went unjudged or the source did not answer."""
        if self.unjudged or not self.outcome.answered:
            return None
        return len(self.kept) / self.fit if self.fit else 1.0
