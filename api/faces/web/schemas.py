"""Bodies that come in, and the shapes of answers as the OpenAPI document shows them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from api.services.listening import MAX_LIMIT, Ask
from api.settings import DepthName, Window
from api.sources import SOURCES

Format = Literal["json", "html", "markdown", "csv"]
DecisionName = Literal["full_report", "short_report", "insufficient_data", "clarify", "unjudged"]
Text = Annotated[str, Field(max_length=5_000)]
SourceName = Annotated[str, Field(max_length=100, json_schema_extra={"enum": list(SOURCES)})]
Query = Annotated[
    str, Field(max_length=5_000, description="A product or a question, as you would say it.")
]
About = Annotated[
    str, Field(max_length=5_000, description="What it is, to tell it from its namesakes.")
]
Since = Annotated[Window, Field(description="How far back; undated items stay.")]
MOST_ITEMS = 500
"""Items one call may hand in for judging."""


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AnalysisRequest(_Asked):
    """One question to every source, or to those that are named."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "plaud.ai", "depth": "quick"}]}
    )
    query: Query
    depth: DepthName = "standard"
    sources: Annotated[list[SourceName], Field(max_length=20, description="Empty: all.")] = []
    since: Since = "all"
    about: About = ""

    def ask(self) -> Ask:
        """As the product takes it."""
        return Ask(self.query, self.depth, tuple(self.sources), self.since, None, self.about)


class FetchRequest(_Asked):
    """One question to one source."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "plaud.ai", "limit": 5}]})
    query: Query
    depth: DepthName = "quick"
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] | None = None
    since: Since = "all"

    def ask(self, source: str) -> Ask:
        """As the product takes it."""
        return Ask(self.query, self.depth, (source,), self.since, self.limit)


class RelevanceRequest(_Asked):
    """Your own items, judged against a question."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query": "ember mug",
                    "source": "reddit",
                    "items": [{"title": "My Ember mug died"}, {"title": "Bread for beginners"}],
                }
            ]
        }
    )
    query: Query
    source: Text
    items: Annotated[
        list[dict[str, Any]],
        Field(
            max_length=MOST_ITEMS,
            description="Each with `title` and `body` (or `content`, `description`).",
        ),
    ]
    about: About = ""

    @field_validator("items")
    @classmethod
    def _json(cls, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Python reads `NaN` and `Infinity`, which are no JSON and could not be sent back."""
        json.dumps(items, allow_nan=False)
        return items


Moment = Annotated[str | None, Field(max_length=40, json_schema_extra={"format": "date-time"})]


class ListingQuery(_Asked):
    """Which analyses; an unknown filter is refused, since ignoring it would show too many."""

    limit: Annotated[int, Field(ge=1, le=100)] = 20
    cursor: Annotated[str | None, Field(max_length=500, description="From a page.")] = None
    decision: DecisionName | None = None
    source: Annotated[str | None, Field(max_length=100, description="One that was asked.")] = None
    since: Annotated[Moment, Field(description="Begun then or later.")] = None
    until: Annotated[Moment, Field(description="Begun before.")] = None


class ReadQuery(_Asked):
    """As what."""

    format: Annotated[Format | None, Field(description="Wins over `Accept`.")] = None


class _Told(BaseModel):
    model_config = ConfigDict(extra="allow")


class ErrorDetail(BaseModel):
    """What went wrong: `code` is for programs and stable, `message` for people."""

    code: str
    message: str
    trace_id: str


class ErrorBody(BaseModel):
    """Every error of every route."""

    error: ErrorDetail


class Gate(_Told):
    """Whether the relevance gate worked: `ok`, `degraded` with a reason, or `skipped`."""

    status: Literal["ok", "degraded", "skipped"]
    reason: str | None
    model: str | None


class Attempt(_Told):
    """One fetch and the judging of what was new in it."""

    limit: int
    fetched: int
    new: int
    relevant: int
    requests: int
    status: str
    reason: str | None


class Decided(_Told):
    """An item and what was decided about it."""

    key: str
    title: str
    url: str
    verdict: bool | None
    score: Annotated[int, Field(ge=1, le=5)] | None
    explanation: str
    relevance: Annotated[float, Field(ge=0, le=1)] | None
    defaulted: bool
    low_relevance: bool
    disputed: bool
    rank: int | None
    dropped_by: Literal["gate", "cutoff", "floor", "duplicate"] | None


class KeptItem(Decided):
    """A kept item: a post, a video, or a product with its reviews as comments."""

    id: str
    source: str
    body: str
    created_at: datetime | None
    engagement: dict[str, float | int | None]
    place: str | None
    comments: list[dict[str, Any]]


class DroppedItem(Decided):
    """A dropped item, and why it was."""

    reason: str


class SourceReport(_Told):
    """How asking one source ended."""

    query: str
    source: str
    outcome: str
    reason: str | None
    gate: Gate
    attempts: list[Attempt]
    fetched: int
    kept: int
    yield_ratio: Annotated[float, Field(ge=0, le=1)]
    refetched: bool
    refetch_gain: int
    upstream_calls: int
    dropped: list[DroppedItem]
    sample: bool
    trace_id: str | None


class Fetched(SourceReport):
    """The answer of one source."""

    items: list[KeptItem]


class Finding(_Told):
    """One sentence and the keys of the items it rests on."""

    text: str
    kind: Literal["praise", "complaint", "request", "difference", "other"]
    cites: list[str]


class Quote(_Told):
    """Verbatim words, linked back."""

    text: str
    key: str
    url: str


class Cost(_Told):
    """What it cost; `usd` is null when a model's price is unknown."""

    usd: float | None
    tokens: int
    upstream_calls: int


class Report(_Told):
    """The answer to one question, of every decision."""

    id: str
    version: int
    query: str
    rewritten_queries: list[str]
    depth: DepthName
    decision: DecisionName
    decision_rationale: str
    disclaimer: str | None
    explanation_text: str | None
    total_scored: int
    total_survived: int
    quality_notes: list[str]
    grading: Literal["on", "off"]
    topic: str
    summary: str
    findings: list[Finding]
    figures: dict[str, Any]
    quotes: list[Quote]
    sources: dict[str, SourceReport]
    coverage: str
    suggestions: list[str]
    items: list[KeptItem]
    dropped: list[DroppedItem]
    sample: bool
    cost: Cost
    timings_ms: dict[str, int]
    trace_id: str | None
    created_at: datetime


class Done(Report):
    """A finished analysis: its report and its state."""

    state: Literal["done"]


class Pending(BaseModel):
    """An analysis under way, or one that failed and why."""

    id: str
    state: Literal["running", "failed"]
    query: str
    created_at: datetime | None
    reason: str | None = None


class Listed(BaseModel):
    """One analysis in a listing."""

    id: str
    state: Literal["running", "done", "failed"]
    query: str
    created_at: datetime
    reason: str | None
    decision: DecisionName | None
    depth: str | None
    sample: bool | None
    total_survived: int | None


class Page(BaseModel):
    """Analyses, newest first; `cursor` asks for the next page and is null on the last."""

    analyses: list[Listed]
    cursor: str | None


class Relevance(BaseModel):
    """Your items as they came, in order; with a degraded gate all are relevant."""

    relevant: list[dict[str, Any]]
    dropped: list[dict[str, Any]]
    yield_ratio: Annotated[float, Field(ge=0, le=1)]
    status: Literal["ok", "degraded", "skipped"]
    reason: str | None


class SourceState(BaseModel):
    """A source, and whether it can be asked."""

    name: str
    configured: bool
    reason: str | None


class Sources(BaseModel):
    """Every source there is."""

    sources: list[SourceState]
    sample: bool


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"]


class Readiness(BaseModel):
    """The database answers; `product` says whether a first request waits for libraries."""

    status: Literal["ready"]
    product: Literal["loading", "loaded"]
    sample: bool
