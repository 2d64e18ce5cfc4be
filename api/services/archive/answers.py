"""What a search of the archive answers: entries that stand there, and how they were found."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from api.services.reporting.report import Credit, Share, Thread, Timestamp
from api.services.schemas import Published


class ArchiveHit(Published):
    """One stored entry: an item's own text, or a comment under it."""

    label: str
    """`E1` and so on, in the order of the answer."""
    key: str
    """The item's."""
    comment_id: str | None
    """None: the item's own text."""
    source: str
    title: str
    """The item's, or that of the thread it stands in."""
    url: str
    place: str | None
    created_at: Timestamp | None
    passage: str
    """Its sentence that is nearest to the question, verbatim."""
    relevance: Share
    """Beside the other hits of this answer: both scores stretched over them."""
    low_relevance: bool
    credit: Credit = None
    thread: Thread = ""


class FloorCounts(Published):
    """Entries that a floor left out."""

    absolute: int = 0
    score: int = 0
    vector: int = 0


class Retrieval(Published):
    """How the hits were found."""

    vectorMax: float | None = None  # noqa: N815
    """Highest raw cosine of all that was found; None: nobody looked for the nearest."""
    keywordMax: float | None = None  # noqa: N815
    """Highest raw BM25; None: no word was found."""
    combinedTop: float | None = None  # noqa: N815
    usedRerank: bool = False  # noqa: N815
    rerankMs: Annotated[int, Field(ge=0)] | None = None  # noqa: N815
    filteredByFloor: FloorCounts = FloorCounts()  # noqa: N815
    candidates: int = 0
    """Entries that either search found."""
    shown: int = 0
    cacheHit: bool = False  # noqa: N815
    words_only: bool = False
    """There were no vectors to compare."""
    unread: Annotated[int, Field(ge=0)] = 0
    """Entries whose vectors were not compared, since they are still being read."""
    rerank_failed: str | None = None
    """Why the order stayed as it was."""


class ArchiveAnswer(Published):
    """What is stored about a question; `text` says how much, the hits say what."""

    query: str
    text: str
    guidance: str
    """What to ask instead, when nothing was searched; else empty."""
    hits: tuple[ArchiveHit, ...]
    """The best first."""
    sample: bool = False
    """Everything in it is made up."""
    retrieval: Retrieval
