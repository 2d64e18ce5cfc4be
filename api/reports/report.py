"""The published answers: `Report` of a question and `Fetched` of one source, the same in every interface.

What is declared here is their JSON, its schema in OpenAPI and MCP, and what the store keeps. Times are UTC, to the
second. An unknown number is None, never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from typing import Annotated, ClassVar, Literal, Self

from pydantic import ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from api.choices import Aim, DepthName, Window
from api.core.domain import (
    BEFORE_JUDGING,
    PUBLISHED_VALUE,
    Agreement,
    Attempt,
    Decision,
    Outcome,
    Question,
    Sense,
    Stage,
    Status,
    Usage,
    passed_unjudged,
)
from api.core.items import Credit, Item, Thread, person_of
from api.core.published import IF_SET, WHERE_THERE, Published, Timestamp, without_default
from api.pipeline.evidence.figures import Figures

FindingKind = Literal["praise", "complaint", "request", "difference", "other"]
Backing = Literal["checked", "counted", "unverified"]
"""How far a finding is supported: a support check approved each passage; it only counts what its passages show; or
it was not checked."""


LONGEST_PASSAGE = 200
"""Longest passage, in characters; only whole sentences that fit are shown."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Words of an item that carry a sentence, exactly as they stand there."""

    __pydantic_config__: ClassVar = PUBLISHED_VALUE
    key: str
    passage: str
    """Verbatim, at most `LONGEST_PASSAGE` characters."""
    comment_id: str | None = None
    """Id of the comment that holds it; None for the item's own text."""


def people_by_source(passages: Iterable[Passage], items: Mapping[str, Item]) -> dict[str, int]:
    """Source -> number of independent people whose words the passages are, the most first; `items` by key.

    Authors are never stored, so people are counted while a report is written. Words without a known author count as
    one person for each item or comment.
    """
    people = {
        person_of(item, passage.comment_id): item.source for passage in passages if (item := items.get(passage.key))
    }
    return dict(Counter(people.values()).most_common())


LINE_PEOPLE, LINE_MONTHS = 5, 2
"""People with a date, and months, from which a claim is counted by month."""


def people_by_month(passages: Iterable[Passage], items: Mapping[str, Item]) -> dict[str, int]:
    """Month (`2026-05`, UTC) -> number of independent people whose words of that month the passages are, in order.

    Counted while authors are known, as `people_by_source`; empty below `LINE_PEOPLE` people or `LINE_MONTHS` months.
    """
    dated = set[tuple[str, str]]()
    for passage in passages:
        if item := items.get(passage.key):
            comments = (comment.created_at for comment in item.comments if comment.id == passage.comment_id)
            moment = next(comments, None) if passage.comment_id else item.created_at
            if moment is not None:
                month = moment.astimezone(UTC).date().isoformat()[:7]
                dated.add((month, person_of(item, passage.comment_id)))
    months = Counter(month for month, _ in sorted(dated))
    enough = len({person for _, person in dated}) >= LINE_PEOPLE and len(months) >= LINE_MONTHS
    return dict(months) if enough else {}


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence of a report, and the passages that support it."""

    __pydantic_config__: ClassVar = PUBLISHED_VALUE
    text: str
    kind: FindingKind
    cites: tuple[str, ...]
    """Item keys, each once."""
    evidence: tuple[Passage, ...] = ()
    """At least one per key, in the order of the keys; none in reports of older versions."""
    support: Backing = "unverified"
    people: Annotated[Mapping[str, int], IF_SET] = field(default_factory=dict)
    """Source -> number of independent people whose words are in `evidence`, most first: one author is one
    person, whatever they wrote. Counted by code while authors are known; none in older reports."""
    months: Annotated[Mapping[str, int], IF_SET] = field(default_factory=dict)
    """See `people_by_month`; none in older reports."""

    @classmethod
    def resting(
        cls,
        text: str,
        kind: FindingKind,
        evidence: Sequence[Passage],
        support: Backing,
        items: Mapping[str, Item] | None = None,
    ) -> Self:
        """The finding that cites the items of its passages; its people are counted in `items`, by key."""
        keys, known = dict.fromkeys(passage.key for passage in evidence), items or {}
        people, months = people_by_source(evidence, known), people_by_month(evidence, known)
        return cls(text, kind, tuple(keys), tuple(evidence), support, people, months)


@dataclass(frozen=True, slots=True)
class Quote:
    """Verbatim words of an item, with their address."""

    __pydantic_config__: ClassVar = PUBLISHED_VALUE
    text: str
    key: str
    url: str
    comment_id: Annotated[str | SkipJsonSchema[None], WHERE_THERE] = None


VERSION = 4
"""Version of `Report`; raised when a field changes meaning, with a step in `api/store/report_json.py`."""

Share = Annotated[float, Field(ge=0, le=1)]
_IF_MENTION = Field(
    exclude_if=lambda aim: aim == "about", json_schema_extra=without_default
)  # reports of older versions have none
Milliseconds = Annotated[int | SkipJsonSchema[None], WHERE_THERE]


Since = Annotated[Window | SkipJsonSchema[None], WHERE_THERE]
"""Time window; absent when an older version wrote the report, or nothing was asked."""


Capped = Annotated[bool | SkipJsonSchema[None], WHERE_THERE]
"""A limit cut it: the source may hold more; there unless an older program asked."""


class DroppedFacts(Published):
    """A dropped item and the reason in words."""

    key: str
    title: str
    url: str
    reason: str
    thread: Thread = ""
    created_at: Annotated[Timestamp | SkipJsonSchema[None], WHERE_THERE] = None
    place: Annotated[str | SkipJsonSchema[None], WHERE_THERE] = None
    snippet: Annotated[str, IF_SET] = ""
    """Beginning of its text on one line; present when an answer lists the item."""
    credit: Credit = None


class Assessment(Published):
    """Decisions of the judges about an item."""

    verdict: bool | None
    """The gate's verdict; None when the item was not judged."""
    judge: str | None
    probability: float | None
    score: Annotated[int, Field(ge=1, le=5)] | None
    explanation: str
    sentiment: int | None
    aspects: tuple[str, ...]
    relevance: Share | None
    defaulted: bool
    low_relevance: bool
    disputed: bool
    rank: int | None
    """Rank from 1; None for a dropped item."""
    dropped_by: Stage | None


class KeptItem(Assessment, Item):
    """A kept item: a post, a video, or a product with its reviews as comments."""


class DroppedItem(Assessment, DroppedFacts):
    """A dropped item, and why it was."""


class GateState(Published):
    """Whether the relevance gate worked: `ok`, `degraded` with a reason, or `skipped`."""

    status: Status
    reason: str | None
    model: str | None

    @property
    def unjudged(self) -> bool:
        """Whether items passed without a verdict."""
        return passed_unjudged(self.status, self.model)


class FirstSearch(Published):
    """Distinct items that the first search of any query brought, before a wider one was made."""

    fetched: int
    kept: int
    """How many of them the gate kept in the end."""


First = Annotated[FirstSearch | SkipJsonSchema[None], WHERE_THERE]
"""The part of `fetched` and `kept` that first searches found; absent when an older version wrote the report."""


class SourceReport(Published):
    """Outcome, yield, items and cost of one source in a report."""

    query: str
    source: str
    outcome: Outcome
    reason: str | None
    retry_at: Timestamp | None
    gate: GateState
    attempts: tuple[Attempt, ...]
    fetched: int
    kept: int
    yield_ratio: Share | None
    """None when items went unjudged."""
    refetched: bool
    refetch_gain: int
    disputed: Annotated[int, IF_SET] = 0
    """Verdicts of which the second judge is sure of the opposite."""
    agreement: Annotated[Agreement | SkipJsonSchema[None], WHERE_THERE] = None
    """Agreement of local judge and model; present when `LISTENPOST_AGREEMENT` is set and a model judges."""
    first: First = None
    capped: Capped = None
    upstream_calls: int
    notes: tuple[str, ...]
    dropped: tuple[DroppedItem, ...]
    sample: bool
    trace_id: str | None

    @property
    def fit(self) -> int:
        """Distinct items that were fit to be judged: not removed, and somebody's words."""
        return self.fetched - sum(item.dropped_by in BEFORE_JUDGING for item in self.dropped)


class Fetched(SourceReport):
    """The answer of one source: the `fetch` object of the interface."""

    items: tuple[KeptItem, ...]
    usage: Usage = Usage()
    """Tokens and USD of judging and grading."""


class SupportCheck(Published):
    """Whether the sentences were checked against the passages they cite."""

    status: Status = "skipped"
    """`ok`; `degraded` with a reason, when findings are unverified; `skipped` when no check was requested."""
    reason: str | None = None
    model: str | None = None
    pairs: int = 0
    """Pairs of a sentence and a passage that were checked."""
    supported: int = 0
    """Number of checked pairs in which the passage supports the sentence."""
    disputed: Annotated[int, IF_SET] = 0
    """Supported pairs that the local check doubts: they carry no checked finding."""

    @property
    def rate(self) -> float | None:
        """Supported pairs divided by checked pairs; None when nothing was checked."""
        return self.supported / self.pairs if self.pairs else None


class Cost(Published):
    """Cost of an answer; `usd` is 0 when nothing was spent, None when a model's price is unknown."""

    usd: float | None
    tokens: int
    upstream_calls: int
    """Number of requests sent to sources."""


class Timings(Published):
    """Milliseconds; none where nothing was asked."""

    evidence: Milliseconds = None
    report: Milliseconds = None
    total: Milliseconds = None


class Report(Published):
    """The answer to one question, of every decision: the `analyze` object of the interface."""

    id: str
    version: int
    query: str
    about: str
    not_about: Annotated[tuple[str, ...], IF_SET] = ()
    """Exclusions, each one other thing of the same name or one topic."""
    aim: Annotated[Aim, _IF_MENTION] = "about"
    exclude: Annotated[tuple[str, ...], IF_SET] = ()
    """Words whose posts and comments were left out before judging."""
    exclude_authors: Annotated[tuple[str, ...], IF_SET] = ()
    exclude_sites: Annotated[tuple[str, ...], IF_SET] = ()
    rewritten_queries: tuple[str, ...]
    depth: DepthName
    since: Since = None
    limit: Annotated[int | SkipJsonSchema[None], WHERE_THERE] = None
    """Items requested of each source at first; None: the number of the depth."""
    again_of: Annotated[str, IF_SET] = ""
    """Id of the report whose items this one judges anew, without asking a source."""
    compared: Annotated[tuple[str, ...], IF_SET] = ()
    """Products that the question compares; no source was asked, since a comparison answers it."""
    did_you_mean: Annotated[str, IF_SET] = ""
    """A similar name that two fetched titles or more hold (letter ratio of 0.8 or more), where nothing was kept and no
    title holds the name as it was asked."""
    senses: Annotated[tuple[Sense, ...], IF_SET] = ()
    """The things that share the name, where it has several meanings and none was chosen."""
    decision: Decision
    decision_rationale: str
    disclaimer: str | None
    explanation_text: str | None
    total_scored: int
    total_survived: int
    quality_notes: tuple[str, ...]
    grading: Literal["on", "off"]
    topic: str
    summary: str
    findings: tuple[Finding, ...]
    support: SupportCheck = SupportCheck()
    figures: Figures
    quotes: tuple[Quote, ...]
    sources: Mapping[str, SourceReport]
    coverage: str
    suggestions: tuple[str, ...]
    items: tuple[KeptItem, ...]
    """Kept items, best first."""
    dropped: tuple[DroppedItem, ...]
    sample: bool
    cost: Cost
    timings_ms: Timings
    trace_id: str | None
    observations: Annotated[Mapping[str, tuple[str, ...]], IF_SET] = {}
    """Keys of the items judged in each span of its trace, by span id, or `findings` for the span that wrote the
    text."""
    created_at: Timestamp

    @property
    def question(self) -> Question:
        """The question as judges took it, without corrections."""
        return Question(self.query, self.about, self.not_about, self.aim)

    @property
    def cited(self) -> int:
        """Distinct items that its findings rest on."""
        return len({key for finding in self.findings for key in finding.cites})


class SourceSummary(Published):
    """How asking one source ended, in a `Summary`."""

    model_config = ConfigDict(extra="ignore")
    outcome: Outcome
    reason: str | None
    fetched: int
    kept: int
    yield_ratio: Share | None


class Summary(Published):
    """What a listing shows of a report: the same fields, without texts, items and figures."""

    model_config = ConfigDict(extra="ignore")
    id: str
    version: int
    query: str
    about: str
    depth: DepthName
    decision: Decision
    decision_rationale: str
    disclaimer: str | None
    total_scored: int
    total_survived: int
    topic: str
    sample: bool
    cost: Cost
    trace_id: str | None
    created_at: Timestamp
    sources: Mapping[str, SourceSummary]
