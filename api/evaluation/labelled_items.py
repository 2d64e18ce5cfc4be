"""Labelled queries: lines of JSON as values, or a typed error that names the line.

What people say of a report's items, as labels: the gate's verdict, or the opposite of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import regex
from pydantic import BaseModel, Field, StrictBool, ValidationError

from api.core.domain import Item
from api.core.text import clean, fold, one_line
from api.errors import UsageError
from api.features.analyses.store_ports import Feedback, Rating
from api.reports.report import Report

_SHAPE = (
    'one object a line: {"query": "...", "source_hint": "reddit", '
    '"items": [{"title": "...", "body": "...", "relevant": true}]}'
)


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """A text with what a person said about it."""

    title: str
    body: str
    relevant: bool
    grade: int | None = None
    """1 to 5, where the label has degrees."""
    mention: bool = False
    """A word of the query is in the text; not a label, a slice to report on."""
    kind: str = ""
    """Why it is (not) relevant, in a word, for example `competitor`."""
    language: str = ""
    """As given, else a guess: `en`, `es`, `zh`, ... or `other`."""
    place: str = ""
    """Subreddit, channel or brand; `comment` for a comment, whose title is its parent's."""


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query and the items that were judged for it by people."""

    query: str
    source: str
    items: tuple[LabelledItem, ...]
    family: str = ""
    """The kind of query; reported apart."""
    about: str = ""

    def shown(self) -> tuple[Item, ...]:
        """The items as a judge sees them, without their labels."""
        return tuple(
            Item(
                key=f"{self.source}:{number}",
                id=str(number),
                source=self.source,
                title=item.title,
                body=item.body,
                place=item.place,
            )
            for number, item in enumerate(self.items)
        )


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
    query: Annotated[str, Field(min_length=1)]
    source_hint: Annotated[str, Field(min_length=1)]
    family: str = ""
    about: str = ""
    items: Annotated[list[_ItemRecord], Field(min_length=1)]


def read_labelled(lines: Iterable[str], name: str) -> list[LabelledQuery]:
    """Labelled queries out of JSON lines; blank lines are skipped.

    Raises:
        UsageError: a line is malformed (file, line number, field, remedy), or there is none.
    """
    queries = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = _QueryRecord.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            field = ".".join(map(str, first["loc"])) or "line"
            raise UsageError(
                f"`{name}` line {number}: `{field}`: {first['msg']}; write {_SHAPE}"
            ) from None
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
        queries.append(LabelledQuery(query, record.source_hint, items, record.family, about))
    if not queries:
        raise UsageError(f"`{name}` holds no labelled query; write {_SHAPE}")
    return queries


def labelled_item(
    query: str, title: str, body: str, relevant: bool, *, grade: int | None = None,
    mention: bool | None = None, kind: str = "", language: str = "", place: str = "",
) -> LabelledItem:  # fmt: skip
    """A labelled item; mention and language are found out where not given."""
    text = f"{title}\n{body}"
    mention = mentions(query, text) if mention is None else mention
    language = language or language_of(text)
    return LabelledItem(title, body, relevant, grade, mention, kind, language, place)


def pure(queries: Iterable[LabelledQuery]) -> list[LabelledQuery]:
    """Every query as two: one whose items are all relevant, one without a single relevant item."""
    return [
        replace(query, items=items)
        for query in queries
        for truth in (True, False)
        if (items := tuple(item for item in query.items if item.relevant is truth))
    ]


# `mug`, `1000xm5`: letters and digits, any script
_WORD = regex.compile(r"[\p{L}\p{N}]+")
# scripts that set no blanks between words, so that a word may stand inside another
_BOUNDLESS = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]")


def mentions(query: str, text: str) -> bool:
    """Whether a word of the query is in the text, case and accents aside."""
    folded = fold(text)
    words = set(_WORD.findall(folded))
    return any(
        word in folded if _BOUNDLESS.search(word) else word in words
        for word in _WORD.findall(fold(query))
    )


# Scripts that give a language away; Japanese stands before Chinese, whose letters it uses too.
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
    hits = sorted(
        (sum(word in common.split() for word in words), name) for name, common in _COMMON.items()
    )
    (second, _), (most, name) = hits[-2:]
    return name if most > second else "other"


def corrections(report: Report, opinions: Iterable[Feedback]) -> list[dict[str, Any]]:
    """A line of labelled queries for each source whose items were rated; read by `read_labelled`.

    A thumb up says that the gate was right about an item, a thumb down that it was wrong. Items on
    which people differ have no label, nor have those that no gate kept or dropped. Of a dropped one
    the title is all that is kept.
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
