"""Labelled items and claims from JSON lines, and from people's feedback on a report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self, TypeVar

import regex
from pydantic import BaseModel, Field, StrictBool, ValidationError, model_validator

from api.choices import Aim, Rating
from api.core.domain import Question
from api.core.items import Item
from api.core.ports import Claim
from api.core.text import clean, fold, one_line
from api.errors import UsageError
from api.features.analyses.store_ports import Feedback
from api.reports.report import Report

R = TypeVar("R", bound=BaseModel)
_QUERY_SHAPE = (
    'one object a line: {"query": "...", "source_hint": "reddit", '
    '"items": [{"title": "...", "body": "...", "relevant": true}]}'
)
_CLAIM_SHAPE = '{"query": "...", "sentence": "...", "passage": "...", "supported": true}'
NonEmpty = Annotated[str, Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """A text with its label by a person."""

    title: str
    body: str
    relevant: bool
    grade: int | None = None  # 1 to 5, where the label is a grade
    mention: bool = False  # whether a word of the query is in the text; results have a slice for it
    kind: str = ""  # why it is (not) relevant, for example `competitor`
    language: str = ""  # as given, else guessed: `en`, `es`, `zh`, ... or `other`
    place: str = ""
    """Subreddit, channel or brand; `comment` for a comment, whose title is its parent's."""
    id: str = ""
    """Id in a benchmark set; empty: the item's number in the query."""


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query and its items, labelled by people."""

    query: str
    source: str
    items: tuple[LabelledItem, ...]
    family: str = ""  # the kind of query; results have a slice for it
    about: str = ""
    not_about: tuple[str, ...] = ()
    aim: Aim = "about"

    def question(self, *, about: bool = True) -> Question:
        """What was asked, without its description and exclusions when `about` is False."""
        described = (self.about, self.not_about) if about else ("", ())
        return Question(self.query, *described, self.aim)

    def shown(self) -> tuple[Item, ...]:
        """The items as a judge sees them, without their labels."""
        return tuple(
            Item(
                key=f"{self.source}:{number}", id=item.id or str(number), source=self.source,
                title=item.title, body=item.body, place=item.place,
            )
            for number, item in enumerate(self.items)
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim of a report about a product, and whether its passage supports it."""

    question: Question
    claim: Claim
    supported: bool


class _ItemRecord(BaseModel):
    title: Any = None
    body: Any = None
    relevant: StrictBool
    grade: Annotated[int, Field(ge=1, le=5)] | None = None
    mention: StrictBool | None = None
    neg_kind: str | None = None
    kind: str | None = None
    language: str | None = None
    place: str | None = None


class _QueryRecord(BaseModel):
    query: NonEmpty
    source_hint: NonEmpty
    family: str = ""
    about: str = ""
    not_about: tuple[str, ...] = ()
    aim: Aim = "about"
    items: Annotated[list[_ItemRecord], Field(min_length=1)]


class _Reading(BaseModel):
    supported: bool


class _ClaimRecord(BaseModel):
    query: str
    sentence: str
    passage: str
    about: str = ""
    item: str = ""
    supported: bool | None = None
    first: _Reading | None = None
    second: _Reading | None = None

    @property
    def label(self) -> bool | None:
        if self.supported is not None or self.first is None or self.second is None:
            return self.supported
        return self.first.supported and self.second.supported

    @model_validator(mode="after")
    def _check_label(self) -> Self:
        if self.label is None:
            raise ValueError("`supported`, or `first` and `second`, is missing")
        return self


def read_rows(lines: Iterable[str], name: str, row: type[R], what: str, shape: str) -> list[R]:
    """Rows out of JSON lines; blank lines are skipped.

    Raises `UsageError` for a malformed line (file, line, field, shape), or if there is none.
    """
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append(row.model_validate_json(line))
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            field = ".".join(map(str, first["loc"])) or "line"
            message = f"`{name}` line {number}: `{field}`: {first['msg']}; write {shape}"
            raise UsageError(message) from None
    if not rows:
        raise UsageError(f"`{name}` holds no labelled {what}; write {shape}")
    return rows


def read_claims(lines: Iterable[str], name: str) -> list[LabelledClaim]:
    """Labelled claims; a claim with two readings is supported when both say so. See `read_rows`."""
    return [
        LabelledClaim(
            Question(row.query, row.about),
            Claim(row.sentence, row.passage, f"{row.item} {row.passage}".strip()),
            bool(row.label),
        )
        for row in read_rows(lines, name, _ClaimRecord, "claim", _CLAIM_SHAPE)
    ]


def read_labelled(lines: Iterable[str], name: str) -> list[LabelledQuery]:
    """Labelled queries, mention and language filled in where not given. See `read_rows`."""
    queries = []
    for record in read_rows(lines, name, _QueryRecord, "query", _QUERY_SHAPE):
        query = one_line(clean(record.query))
        items = tuple(
            labelled_item(
                query, clean(item.title), clean(item.body), item.relevant, grade=item.grade,
                mention=item.mention, kind=item.kind or item.neg_kind or "",
                language=item.language or "", place=clean(item.place),
            )
            for item in record.items
        )  # fmt: skip
        about = one_line(clean(record.about))
        queries.append(
            LabelledQuery(query, record.source_hint, items, record.family, about, record.not_about, record.aim)
        )
    return queries


def labelled_item(
    query: str, title: str, body: str, relevant: bool, *, grade: int | None = None,
    mention: bool | None = None, kind: str = "", language: str = "", place: str = "", item_id: str = "",
) -> LabelledItem:  # fmt: skip
    """A labelled item; mention and language are computed where not given."""
    text = f"{title}\n{body}"
    mention = mentions(query, text) if mention is None else mention
    language = language or language_of(text)
    return LabelledItem(title, body, relevant, grade, mention, kind, language, place, item_id)


def pure(queries: Iterable[LabelledQuery]) -> list[LabelledQuery]:
    """Split each query into its relevant and its other items; empty ones are left out."""
    return [
        replace(query, items=items)
        for query in queries
        for truth in (True, False)
        if (items := tuple(item for item in query.items if item.relevant is truth))
    ]


# `mug`, `1000xm5`: letters and digits, any script
_WORD = regex.compile(r"[\p{L}\p{N}]+")
# scripts without blanks between words, where any part of the text may be a word
_BOUNDLESS = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]")


def mentions(query: str, text: str) -> bool:
    """Whether a word of the query is in the text, case and accents aside."""
    folded = fold(text)
    words = set(_WORD.findall(folded))
    return any(word in folded if _BOUNDLESS.search(word) else word in words for word in _WORD.findall(fold(query)))


# Languages by script; Japanese before Chinese, whose characters it uses too.
_SCRIPTS = {
    "ja": r"[\p{Hiragana}\p{Katakana}]", "ko": r"\p{Hangul}", "zh": r"\p{Han}", "ar": r"\p{Arabic}",
    "ru": r"\p{Cyrillic}", "el": r"\p{Greek}", "he": r"\p{Hebrew}", "th": r"\p{Thai}",
}  # fmt: skip
_COMMON = {
    "en": "the and to of is it in this for that with you my on are was not have but be we an at so",
    "es": "el la los las de que y en un una por con para del se es no su al lo mas muy como",
    "pt": "o a os as de que e em um uma por com para do da no na se nao mais muito como foi",
    "it": "il la gli le di che e in un una per con del della si non piu come sono nel alla",
    "fr": "le la les de des que et en un une pour avec du au est pas je ce qui sur dans vous",
    "de": "der die das und ist nicht ich ein eine mit von auf den zu es fur im dem sich auch",
}


def language_of(text: str) -> str:
    """A guess from script and common words, good enough to slice a table; `other` when unsure."""
    for name, script in _SCRIPTS.items():
        if len(regex.findall(script, text)) * 5 > len(text):
            return name
    words = _WORD.findall(fold(text))
    hits = sorted((sum(word in common.split() for word in words), name) for name, common in _COMMON.items())
    (second, _), (most, name) = hits[-2:]
    return name if most > second else "other"


def corrections(report: Report, opinions: Iterable[Feedback]) -> list[dict[str, Any]]:
    """A labelled query for each source whose items were rated, as `read_labelled` reads them.

    A thumb up confirms the gate's verdict, a thumb down reverses it. Items on which people differ,
    or that no gate judged, are left out; dropped ones have their title alone.
    """
    thumbs: dict[str, set[Rating]] = {}
    for opinion in opinions:
        if opinion.item_key is not None:
            thumbs.setdefault(opinion.item_key, set()).add(opinion.rating)
    judged: dict[str, tuple[str, bool, dict[str, Any]]] = {}
    for item in report.items:
        if item.verdict is not None:
            texts = {"title": item.title, "body": item.body, "place": item.place or ""}
            judged[item.key] = item.source, True, texts
    for name, source in report.sources.items():
        for gone in source.dropped:
            if gone.dropped_by == "gate":
                judged[gone.key] = name, False, {"title": gone.title}
    labelled: dict[str, list[dict[str, Any]]] = {}
    for key, given in thumbs.items():
        if key in judged and len(given) == 1:
            name, kept, texts = judged[key]
            labelled.setdefault(name, []).append({**texts, "relevant": kept == (given == {"up"})})
    return [
        {"query": report.query, "about": report.about, "source_hint": name, "items": items}
        for name, items in labelled.items()
    ]
