"""What each verb takes: one model per verb, with each option described once.

The HTTP bodies and the OpenAPI document, the input schemas of the MCP tools, the options of the
command line (`interfaces/cli/main.py`) and the forms of the pages (`interfaces/pages/forms.py`) are
made from these fields. A new option is a field here and one in the value that the product works
with: `QuestionOptions` or `Watch`. `tests/interfaces/test_request_table.py` lists which interface
lacks an option, and why.

What converts a request imports the product where it is called: the help of a command needs the
fields alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Number
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, model_validator, with_config
from typing_extensions import TypedDict

from api.choices import (
    MAX_ABOUT_LENGTH,
    MAX_BLOCKED,
    MAX_BLOCKED_LENGTH,
    MAX_EXCLUSION_LENGTH,
    MAX_EXCLUSIONS,
    MAX_LIMIT,
    MAX_OWN_ITEMS,
    MAX_PRODUCTS,
    MAX_QUESTION_LENGTH,
    MAX_SESSION_ID_LENGTH,
    MIN_PRODUCTS,
    Aim,
    DepthName,
    Window,
)
from api.core.text import quantity
from api.errors import UsageError
from api.pipeline.gate.caller_items import FIELDS, TEXT_FIELD_NAMES
from api.sources import ASKABLE_SOURCES, ITEM_SOURCES

if TYPE_CHECKING:
    from api.services.product import Ask


_JSON: Mapping[type, dict[str, Any]] = {
    str: {"type": "string"},
    Number: {"type": "number"},
    list: {"type": "array"},
    NoneType: {"type": "null"},
    Mapping: {"type": "object", "properties": {"body": {"description": "Or another text."}}},
}


def _field(name: str, description: str = "") -> WithJsonSchema:
    """The JSON schema of a field of an item, by what `FIELDS` lets it hold; the product checks the values."""
    holding = FIELDS[name]
    each = {"anyOf": [_JSON[part] for part in holding.each]}
    kinds = []
    for kind in (*holding.types, NoneType):
        if kind is list:
            kinds.append({"type": "array", "items": each})
        elif kind is Mapping:
            kinds.append({"type": "object", "additionalProperties": each})
        elif kind in _JSON:  # Python's tuples and dates do not exist in JSON
            kinds.append(_JSON[kind])
    return WithJsonSchema({"anyOf": kinds, **({"description": description} if description else {})})


@with_config(ConfigDict(extra="allow"))
class OwnItem(TypedDict, total=False):
    """A post, video or review of yours: a text, and what else is known of it."""

    title: Annotated[Any, _field("title")]
    body: Annotated[Any, _field("body", f"Or another text: {TEXT_FIELD_NAMES}.")]
    id: Annotated[Any, _field("id")]
    source: Annotated[Any, _field("source", "Where it is from.")]
    url: Annotated[Any, _field("url")]
    author: Annotated[Any, _field("author", "Stored as a pseudonym only.")]
    created_at: Annotated[Any, _field("created_at", "ISO 8601, or seconds since 1970.")]
    place: Annotated[Any, _field("place", "A subreddit, channel or brand.")]
    engagement: Annotated[Any, _field("engagement", "Numbers by name, such as votes.")]
    comments: Annotated[Any, _field("comments", "Texts, or objects like this one.")]


def _strict_json(items: list[Any]) -> list[Any]:
    """Refuse `NaN` and `Infinity`, which Python reads and no JSON can send back; raises `ValueError`."""
    try:
        json.dumps(items, allow_nan=False)
    except ValueError:
        raise ValueError("holds `NaN` or `Infinity`, which are no JSON") from None
    return items


OwnItems = Annotated[list[OwnItem], Field(max_length=MAX_OWN_ITEMS), AfterValidator(_strict_json)]


class RequestBody(BaseModel):
    """What a caller sends; an unknown field is refused."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Label:
    """How the pages' forms offer an option; an option without a label is not offered."""

    text: str
    hint: str = ""
    words: tuple[tuple[str, str], ...] = ()
    """Text of each value of a choice; for "" the text of no choice."""
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CliOption:
    """How the command line writes an option, when that differs from the field's name."""

    spelling: str
    value: str = ""
    """Value that a flag sets."""
    help: str = ""
    """Help of a flag; empty: the field's description."""


# Options of several verbs


Query = Annotated[
    str,
    Label("A product, or a question about one"),
    Field(
        description="A product, or a question about one, in your own words.",
        max_length=MAX_QUESTION_LENGTH,
    ),
]
About = Annotated[
    str,
    Label("What it is", "tells it from its namesakes; may be empty"),
    Field(
        description="What the product is, to tell it from other things of the same name: `the notes app`.",
        max_length=MAX_ABOUT_LENGTH,
    ),
]
NotAbout = Annotated[
    tuple[Annotated[str, Field(max_length=MAX_EXCLUSION_LENGTH)], ...],
    Label("What it is not", "things of the same name, one a line; may be empty"),
    CliOption("--not"),
    Field(
        description="What the product is not, such as another thing of the same name: `the crochet square`.",
        max_length=MAX_EXCLUSIONS,
    ),
]
WhatCounts = Annotated[
    Aim,
    Label(
        "What counts",
        words=(("about", "posts about it"), ("mention", "posts that only mention it, too")),
    ),
    CliOption("--mentions", "mention", "Keep posts that only mention the product, too."),
    Field(
        description="What makes a post relevant: to be `about` the product, or to `mention` it.",
    ),
]
_Blocked = Annotated[str, Field(max_length=MAX_BLOCKED_LENGTH)]
ExcludedWords = Annotated[
    tuple[_Blocked, ...],
    Label("Words", "posts and comments that have one, one a line"),
    Field(
        description="Words or phrases: posts and comments that have one are left out before judging.",
        max_length=MAX_BLOCKED,
    ),
]
ExcludedAuthors = Annotated[
    tuple[_Blocked, ...],
    Label("Authors", "by their names in the place, one a line"),
    CliOption("--exclude-author"),
    Field(
        description="Authors, as their place writes them, whose posts and comments are left out before judging.",
        max_length=MAX_BLOCKED,
    ),
]
ExcludedSites = Annotated[
    tuple[_Blocked, ...],
    Label("Sites", "example.com or r/deals, one a line"),
    CliOption("--exclude-site"),
    Field(
        description="Sites (`example.com`, `example.com/deals`) or places (`r/deals`) whose posts are left out "
        "before judging.",
        max_length=MAX_BLOCKED,
    ),
]
Depth = Annotated[
    DepthName,
    Label("How deep"),
    Field(
        description="How far to look: quick (seconds), standard, or deep (minutes).",
    ),
]
SourceName = Annotated[str, Field(max_length=100, json_schema_extra={"enum": list(ASKABLE_SOURCES)})]
SourceNames = Annotated[
    tuple[SourceName, ...],
    Label("Where"),
    CliOption("--source"),
    Field(
        description="Ask only these sources (default: all that are configured).",
        max_length=20,
    ),
]
Since = Annotated[
    Window,
    Label(
        "How far back",
        words=(
            ("all", "any time"),
            ("year", "the last year"),
            ("month", "the last month"),
            ("week", "the last week"),
            ("day", "the last day"),
        ),
    ),
    Field(
        description="How old posts may be; undated posts are always included.",
    ),
]
Limit = Annotated[
    int | None,
    Field(
        description="Items asked of each source at first, 1 to 500 (default: set by the depth).",
        strict=True,
        ge=1,
        le=MAX_LIMIT,
    ),
]
Sandbox = Annotated[
    bool,
    Field(
        description="Answer from the offline sandbox: made-up data, without keys.",
        strict=True,
    ),
]
TimeSpan = Annotated[
    str,
    Field(
        description="How far back: days or weeks (`30d`, `12w`), a date or time (UTC), or `all`.",
        max_length=40,
    ),
]


def _item_source(name: str) -> str:
    if name not in ITEM_SOURCES:
        known = ", ".join(f"`{source}`" for source in ITEM_SOURCES)
        raise ValueError(f"names no source; there are {known}")
    return name


ItemSource = Annotated[
    str,
    AfterValidator(_item_source),
    Field(max_length=100, json_schema_extra={"enum": list(ITEM_SOURCES)}),
]


class SubjectOptions(RequestBody):
    """The query, what the product is and is not, and what makes an item relevant."""

    query: Query
    about: About = ""
    not_about: NotAbout = ()
    aim: WhatCounts = "about"


class AskOptions(RequestBody):
    """How a question is asked, whatever it is about."""

    depth: Depth = "standard"
    limit: Limit = None
    sandbox: Sandbox = False


class ExcludeOptions(RequestBody):
    """What is left out before anything is judged."""

    exclude: ExcludedWords = ()
    exclude_authors: ExcludedAuthors = ()
    exclude_sites: ExcludedSites = ()


# Items of the caller


class EvidenceOptions(BaseModel):
    """What an answer rests on, if not on what the configured sources hold."""

    items: Annotated[
        Annotated[OwnItems, Field(min_length=1)] | None,
        Field(description="Your own items; they are the only source then."),
    ] = None
    sandbox: Sandbox = False

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if self.items and self.sandbox:
            raise ValueError("your `items` are no made-up data: leave `sandbox` out")
        if self.items and set(getattr(self, "sources", ())) - {"items"}:
            raise ValueError("your `items` are the only source: leave `sources` out")
        return self

    @property
    def own(self) -> tuple[dict[str, Any], ...]:
        """The items as the product takes them."""
        return tuple(map(dict, self.items or ()))


# Questions


class QuestionRequest(ExcludeOptions, AskOptions, SubjectOptions):
    """One question to every source, or to those that are named."""

    sources: SourceNames = ()
    since: Since = "all"

    def ask(self) -> Ask:
        """The question as the product takes it."""
        from api.services.product import Ask

        return Ask.of(self, items=self.own if isinstance(self, EvidenceOptions) else ())


class AnalysisRequest(EvidenceOptions, QuestionRequest):
    """One question to every source, to those that are named, or to your own items."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "plaud.ai", "depth": "quick"}]})


class FetchRequest(ExcludeOptions, AskOptions, SubjectOptions):
    """One question to one source."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "plaud.ai", "limit": 5}]})
    depth: Depth = "quick"
    since: Since = "all"

    def ask(self, source: str) -> Ask:
        """The question as the product takes it."""
        from api.services.product import Ask

        return Ask.of(self, sources=(source,))


class ProductOptions(RequestBody):
    """Names and descriptions of the compared products."""

    products: Annotated[
        list[Query],
        Field(description="Two to five products.", min_length=MIN_PRODUCTS, max_length=MAX_PRODUCTS),
    ]
    about: Annotated[
        tuple[About, ...],
        Field(
            description="What each product is, in the order of the products; for all or none.",
            max_length=MAX_PRODUCTS,
        ),
    ] = ()
    not_about: Annotated[NotAbout, Field(description="What none of the products is.")] = ()
    aim: WhatCounts = "about"


class ComparisonRequest(ExcludeOptions, AskOptions, ProductOptions):
    """The same question about each of several products."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"products": ["Oura", "Whoop"], "depth": "quick"}]})
    sources: SourceNames = ()
    since: Since = "all"

    def asks(self) -> tuple[Ask, ...]:
        """A question for each product, as the product takes them; `a vs b` as the only one is two.

        Raises:
            UsageError: the same product twice, one that names nothing, or `about` of some only.
        """
        from api.features.comparisons.compare import asks_of
        from api.pipeline.question.query_guard import compared_names
        from api.services.product import Ask

        products = self.products
        if len(products) == 1:
            products = list(compared_names(products[0])) or products
        abouts = self.about or ("",) * len(products)
        if len(abouts) != len(products):
            texts = quantity(len(abouts), "text")
            raise UsageError(f"`about` has {texts} for {len(products)} products")
        like = Ask.of(self, query="", about="")
        return asks_of(list(zip(products, abouts, strict=True)), like)


class RelevanceRequest(SubjectOptions):
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
    source: Annotated[str, Field(description="Where the items are from: any name.", max_length=5_000)]
    items: Annotated[OwnItems, Field(description=f"Each with at least one text: {TEXT_FIELD_NAMES}.")]

    @property
    def own(self) -> list[dict[str, Any]]:
        """The items as the product takes them."""
        return list(map(dict, self.items))


SessionId = Annotated[str, Field(min_length=1, max_length=MAX_SESSION_ID_LENGTH)]


class ChatRequest(EvidenceOptions):
    """A question: a follow-up in a session, or the first one over a report.

    A session over a report knows its items and answers from them.
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"message": "What do people say about plaud.ai?"}]},
    )
    message: Annotated[str, Field(description="The question.", max_length=MAX_QUESTION_LENGTH)]
    session_id: Annotated[
        SessionId | None,
        CliOption("--session"),
        Field(description="Session to continue (default: a new one)."),
    ] = None
    report_id: Annotated[
        str | None,
        CliOption("--report"),
        Field(
            description="Report whose items a new session starts with.",
            min_length=1,
            max_length=64,
        ),
    ] = None

    @model_validator(mode="after")
    def _begins_or_continues(self) -> Self:
        if self.session_id is not None and self.report_id is not None:
            raise ValueError("`report_id` begins a session: leave `session_id` out")
        return self
