"""Entries of the archive: what a search asks of the store, its filters, and the answer with its hits."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Protocol

from pydantic import Field

from api.core.items import Credit, Item, Thread
from api.core.published import Published, Timestamp
from api.core.text import clean, one_line
from api.core.words import LANGUAGES
from api.errors import UsageError
from api.reports.report import Share

Embed = Callable[[Sequence[str]], Sequence[bytes] | None]
"""Turns texts into vectors of `DIMENSIONS` signed bytes, of length 127; None when there are no vectors."""
DIMENSIONS = 256
MOST_COUNTED = 20_000
"""Entries of a tenant up to which they are counted."""
ChunkId = tuple[str, str, int]
"""The item's key, the comment's number in it (from 1) or nothing, the number of the piece."""


@dataclass(frozen=True, slots=True)
class ArchiveFilters:
    """Conditions on the searched entries; None sets no condition."""

    source: str | None = None
    since: datetime | None = None
    """Only entries written at this time or later; entries without a date are excluded."""
    until: datetime | None = None
    """Only entries written before this time."""
    kept: bool | None = None
    """True: kept by a report or imported; False: dropped by every report that saw it."""
    product: str | None = None
    """Only entries seen by an analysis with this query, in any case."""
    language: str | None = None
    """Code of a language (`de`): only entries whose small words may mostly be of it; a short text may be of several
    languages. Hits are filtered by it, not the search."""
    sample: bool = False
    """Whether entries of the sample data are searched instead of real ones; they are never mixed."""


EVERYTHING = ArchiveFilters()


@dataclass(frozen=True, slots=True)
class Match:
    """An entry that one of the two searches found."""

    id: ChunkId
    thread: str
    """Key of the item, or of the thread whose title it bears."""
    tokens: tuple[str, ...]
    vector: bytes | None
    """Vector as signed bytes, by the question's model; None when there is none."""
    by_words: bool
    """Whether its words were found, not only its meaning."""
    by_vector: bool
    """Whether the vector is among the nearest."""


@dataclass(frozen=True, slots=True)
class Matches:
    """Results of both searches, with the counts for scoring."""

    matches: tuple[Match, ...]
    """Each entry once, in the order of their ids."""
    frequencies: Mapping[str, int]
    """Number of entries that hold each word, counted up to a bound."""
    entries: int
    """Number of entries of the tenant, up to `MOST_COUNTED`."""
    vectors: bool
    """Whether there were vectors to compare."""
    unread: int = 0
    """Entries whose vectors were not compared, since they are still being made or read."""


class Archive(Protocol):
    """Everything a tenant has stored, by words and by meaning.

    All methods raise `StoreUnavailable` when the database cannot be used, and nothing else.
    """

    async def matches(
        self, tenant: str, words: Sequence[str], vector: bytes | None, filters: ArchiveFilters,
        most: int, model: str = "",
    ) -> Matches:  # fmt: skip
        """The best `most` entries by words and the nearest `most` by vector.

        `vector` is of `model` (see `ModelVectors.model`), and only that model's are compared with it.
        """

    async def facts(self, tenant: str, keys: Iterable[str]) -> Mapping[str, Item]:
        """Items as stored; deleted or damaged ones are missing."""

    async def queries(self, tenant: str, most: int) -> Sequence[str]:
        """Queries of this tenant's analyses, the newest first, each once."""


class ArchiveHit(Published):
    """One stored entry: an item's own text or one comment on it."""

    label: str
    """`E1` and so on, in the order of the answer."""
    key: str
    """Key of the stored item, such as `reddit:t3_1abc`."""
    comment_id: str | None
    """Id of the comment; None for the item's own text."""
    source: str
    title: str
    """Title of the item, or of the thread that holds the comment."""
    url: str
    place: str | None
    created_at: Timestamp | None
    passage: str
    """The sentence of the entry that is nearest to the question, verbatim."""
    relevance: Share
    """Relevance beside the other hits of this answer: of both scores, each stretched over all hits."""
    low_relevance: bool
    credit: Credit = None
    thread: Thread = ""


class FloorCounts(Published):
    """Entries that a floor left out."""

    absolute: int = 0
    score: int = 0
    vector: int = 0


class Retrieval(Published):
    """Scores and counts of a search: the best raw ones, and what the floor removed."""

    vectorMax: float | None = None  # noqa: N815
    """Highest raw cosine similarity found; None when vectors were not compared."""
    keywordMax: float | None = None  # noqa: N815
    """Highest raw BM25 score found; None when no word was found."""
    combinedTop: float | None = None  # noqa: N815
    usedRerank: bool = False  # noqa: N815
    rerankMs: Annotated[int, Field(ge=0)] | None = None  # noqa: N815
    filteredByFloor: FloorCounts = FloorCounts()  # noqa: N815
    candidates: int = 0
    """Entries that either search found."""
    shown: int = 0
    cacheHit: bool = False  # noqa: N815
    words_only: bool = False
    """Whether no vectors could be compared."""
    unread: Annotated[int, Field(ge=0)] = 0
    """Entries whose vectors were not compared, since they are still being made or read."""
    embedding_failed: str | None = None
    """Why the question has no vector of the embedding server, so that only words were searched."""
    rerank_failed: str | None = None
    """Why reranking failed, so that the order stayed the same."""
    checked: Annotated[int, Field(ge=0)] = 0
    """Entries that a model was asked about, since none held enough of the question's words."""
    check_tokens: Annotated[int, Field(ge=0)] = 0
    check_usd: float | None = 0.0
    """Cost of the model's check in USD; None when the price is unknown."""
    check_failed: str | None = None
    """Why the model's check failed, so that none of these entries is shown; None when it succeeded or was not made."""


class ArchiveAnswer(Published):
    """Stored entries about a question; `text` says how many, `hits` hold them."""

    query: str
    text: str
    guidance: str
    """What to search for instead when nothing was searched; otherwise empty."""
    hits: tuple[ArchiveHit, ...]
    """Entries that were found, at most as many as were asked for, in falling order of relevance."""
    sample: bool = False
    """Whether the entries are sample data."""
    retrieval: Retrieval


def filters_of(
    source: str | None,
    since: datetime | None,
    about: str,
    sources: Container[str],
    language: str | None = None,
    kept: bool | None = None,
) -> ArchiveFilters:
    """An interface's filters as values; an empty text sets no condition.

    Raises:
        UsageError: there is no such source, or no language with that code.
    """
    if source and source not in sources:
        raise UsageError(f"there is no source `{one_line(clean(source))[:40]}`")
    code = one_line(clean(language)).lower()
    if code and code not in LANGUAGES:
        raise UsageError(f"`{code[:20]}` is no code of a language that is known, such as `de`")
    return ArchiveFilters(
        source=source or None,
        since=since,
        product=one_line(clean(about)) or None,
        language=code or None,
        kept=kept,
    )
