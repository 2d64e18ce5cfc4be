"""Bodies that come in, and the shapes of answers as the OpenAPI document shows them.

Objects that may hold more than is known: a person's own items, and the parts of messages.

They come in as they are; what is known of them is published.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from numbers import Number
from types import NoneType
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
    with_config,
)
from typing_extensions import TypedDict

from api.choices import DepthName, Window
from api.core.domain import Decision, Gated, Status
from api.features.analyses.analysis_job import AnalysisTask
from api.features.analyses.store_ports import AnalysisSummary, State, StoredAnalysis
from api.pipeline.gate.caller_items import FIELDS, TEXT_FIELD_NAMES
from api.pipeline.question.query_screen import MAX_QUESTION_LENGTH
from api.reports.report import Report, Share
from api.services.product import MAX_LIMIT, Ask
from api.sources import ASKABLE_SOURCES, ITEM_SOURCES

MOST_ITEMS = 500
"""Items one call may hand in for judging."""


def _json(items: list[Any]) -> list[Any]:
    """Python reads `NaN` and `Infinity`, which could not be sent back."""
    try:
        json.dumps(items, allow_nan=False)
    except ValueError:
        raise ValueError("holds `NaN` or `Infinity`, which are no JSON") from None
    return items


_JSON: Mapping[type, dict[str, Any]] = {
    str: {"type": "string"},
    Number: {"type": "number"},
    list: {"type": "array"},
    NoneType: {"type": "null"},
    Mapping: {"type": "object", "properties": {"body": {"description": "Or another text."}}},
}


def _field(name: str, says: str = "") -> WithJsonSchema:
    """What `FIELDS` lets a field of an item hold, as it is published; the product checks it."""
    holding = FIELDS[name]
    each = {"anyOf": [_JSON[part] for part in holding.each]}
    kinds = []
    for kind in (*holding.types, NoneType):
        if kind is list:
            kinds.append({"type": "array", "items": each})
        elif kind is Mapping:
            kinds.append({"type": "object", "additionalProperties": each})
        elif kind in _JSON:  # a tuple or a date is none of JSON's
            kinds.append(_JSON[kind])
    return WithJsonSchema({"anyOf": kinds, **({"description": says} if says else {})})


@with_config(ConfigDict(extra="allow"))
class OwnItem(TypedDict, total=False):
    """A post, video or review of yours: a text, and what else is known of it."""

    title: Annotated[Any, _field("title")]
    body: Annotated[Any, _field("body", f"Or another text: {TEXT_FIELD_NAMES}.")]
    id: Annotated[Any, _field("id")]
    source: Annotated[Any, _field("source", "Where it is from.")]
    url: Annotated[Any, _field("url")]
    author: Annotated[Any, _field("author", "Kept as a pseudonym only.")]
    created_at: Annotated[Any, _field("created_at", "ISO 8601, or seconds since 1970.")]
    place: Annotated[Any, _field("place", "A subreddit, channel or brand.")]
    engagement: Annotated[Any, _field("engagement", "Numbers by name, such as votes.")]
    comments: Annotated[Any, _field("comments", "Texts, or objects like this one.")]


OwnItems = Annotated[list[OwnItem], Field(max_length=MOST_ITEMS), AfterValidator(_json)]


@with_config(ConfigDict(extra="allow"))
class MessagePart(TypedDict, total=False):
    """A piece of a message; of type `text` it is read."""

    type: Any
    text: Any


Format = Literal["json", "html", "markdown", "csv", "events"]
Text = Annotated[str, Field(max_length=5_000)]
SourceName = Annotated[
    str, Field(max_length=100, json_schema_extra={"enum": list(ASKABLE_SOURCES)})
]
Query = Annotated[
    str,
    Field(
        max_length=MAX_QUESTION_LENGTH, description="A product or a question, as you would say it."
    ),
]
About = Annotated[
    str, Field(max_length=5_000, description="What it is, to tell it from its namesakes.")
]
Back = Annotated[
    str,
    Field(
        max_length=40,
        description="Days or weeks back (`30d`, `12w`), a date or time (UTC), or `all`.",
    ),
]
Since = Annotated[Window, Field(description="How far back; undated items stay.")]


def _known(name: str) -> str:
    if name not in ITEM_SOURCES:
        known = ", ".join(f"`{source}`" for source in ITEM_SOURCES)
        raise ValueError(f"names no source; there are {known}")
    return name


PlaceName = Annotated[
    str,
    AfterValidator(_known),
    Field(max_length=100, json_schema_extra={"enum": list(ITEM_SOURCES)}),
]


class RequestBody(BaseModel):
    """What somebody sends; a field that nobody knows is refused."""

    model_config = ConfigDict(extra="forbid")


class Grounds(BaseModel):
    """What an answer shall rest on, if not on what the configured sources hold."""

    items: Annotated[
        Annotated[OwnItems, Field(min_length=1)] | None,
        Field(description="Your own, instead of all sources."),
    ] = None
    sandbox: Annotated[
        bool, Field(strict=True, description="Made-up data, on a server that is live too.")
    ] = False

    @model_validator(mode="after")
    def _are_one(self) -> Self:
        if self.items and self.sandbox:
            raise ValueError("your `items` are no made-up data: leave `sandbox` out")
        return self

    @property
    def own(self) -> tuple[dict[str, Any], ...]:
        """The items as the product takes them."""
        return tuple(map(dict, self.items or ()))


class QuestionRequest(RequestBody):
    """One question to every source, or to those that are named."""

    query: Query
    depth: DepthName = "standard"
    sources: Annotated[list[SourceName], Field(max_length=20, description="Empty: all.")] = []
    since: Since = "all"
    about: About = ""

    def ask(self) -> Ask:
        """As the product takes it."""
        return Ask(self.query, self.depth, tuple(self.sources), self.since, None, self.about)


class AnalysisRequest(Grounds, QuestionRequest):
    """One question to every source, to those that are named, or to your own items."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "plaud.ai", "depth": "quick"}]}
    )

    @model_validator(mode="after")
    def _has_one_ground(self) -> Self:
        if self.items and set(self.sources) - {"items"}:
            raise ValueError("your `items` are the only source: leave `sources` out")
        return self

    def ask(self) -> Ask:
        """As the product takes it."""
        return replace(super().ask(), own=self.own, sandbox=self.sandbox)


class FetchRequest(RequestBody):
    """One question to one source."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "plaud.ai", "limit": 5}]})
    query: Query
    depth: DepthName = "quick"
    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_LIMIT)] | None = None
    since: Since = "all"
    about: About = ""

    def ask(self, source: str) -> Ask:
        """As the product takes it."""
        return Ask(self.query, self.depth, (source,), self.since, self.limit, self.about)


class RelevanceRequest(RequestBody):
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
        OwnItems, Field(description=f"Each with at least one text: {TEXT_FIELD_NAMES}.")
    ]
    about: About = ""

    @property
    def own(self) -> list[dict[str, Any]]:
        """The items as the product takes them."""
        return list(map(dict, self.items))


When = Annotated[str | None, Field(max_length=40, json_schema_extra={"format": "date-time"})]


class ListingQuery(RequestBody):
    """Which analyses; an unknown filter is refused, since ignoring it would show too many."""

    limit: Annotated[int, Field(ge=1, le=100)] = 20
    cursor: Annotated[str | None, Field(max_length=500, description="From a page.")] = None
    decision: Decision | None = None
    source: Annotated[PlaceName, Field(description="One that was asked.")] | None = None
    since: Annotated[When, Field(description="Begun then or later.")] = None
    until: Annotated[When, Field(description="Begun before.")] = None


class ReadQuery(RequestBody):
    """As what."""

    format: Annotated[Format | None, Field(description="Wins over `Accept`.")] = None


class ErrorDetail(BaseModel):
    """What went wrong: `code` is for programs and stable, `message` for people."""

    code: str
    message: str
    trace_id: str


class ErrorBody(BaseModel):
    """Every error of every route."""

    error: ErrorDetail


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

    @classmethod
    def of(cls, kept: AnalysisTask | StoredAnalysis) -> Self:
        """One that runs here, or what the store has of one without a report."""
        if isinstance(kept, AnalysisTask):
            return cls(id=kept.id, state="running", query=kept.query, created_at=kept.began)
        return cls(
            id=kept.id,
            state="failed" if kept.state == "failed" else "running",
            query=kept.query,
            created_at=kept.created_at,
            reason=kept.reason,
        )


class ListedAnalysis(BaseModel):
    """One analysis in a listing; of its report, what a table needs."""

    id: str
    state: State
    query: str
    created_at: datetime
    about: str | None
    reason: str | None
    decision: Decision | None
    depth: DepthName | None
    sample: bool | None
    fetched: int | None
    """Found by all sources together."""
    kept: int | None
    """Of these, what the report kept in the end, past grades and copies."""
    total_survived: int | None
    """The same, under its name in the report."""

    @classmethod
    def of(cls, listed: AnalysisSummary) -> Self:
        """From what the store lists."""
        summary = listed.summary
        sources = summary.sources.values() if summary else ()
        return cls(
            id=listed.id,
            state=listed.state,
            query=listed.query,
            created_at=listed.created_at,
            about=summary.about if summary else None,
            reason=listed.reason,
            decision=summary.decision if summary else None,
            depth=summary.depth if summary else None,
            sample=summary.sample if summary else None,
            fetched=sum(source.fetched for source in sources) if summary else None,
            kept=summary.total_survived if summary else None,
            total_survived=summary.total_survived if summary else None,
        )


class AnalysesPage(BaseModel):
    """Analyses, newest first; `cursor` asks for the next page and is null on the last."""

    analyses: list[ListedAnalysis]
    cursor: str | None


class Relevance(BaseModel):
    """Your items as they came, in order; with a degraded gate all are relevant."""

    relevant: list[OwnItem]
    dropped: list[OwnItem]
    yield_ratio: Share
    status: Status
    reason: str | None

    @classmethod
    def of(cls, items: Sequence[dict[str, Any]], gated: Gated) -> Self:
        """The items by their verdicts."""
        pairs = list(zip(cast(Sequence[OwnItem], items), gated.verdicts, strict=True))
        relevant = [item for item, verdict in pairs if verdict.relevant]
        return cls(
            relevant=relevant,
            dropped=[item for item, verdict in pairs if not verdict.relevant],
            yield_ratio=len(relevant) / len(pairs) if pairs else 1.0,
            status=gated.status,
            reason=gated.reason,
        )


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
