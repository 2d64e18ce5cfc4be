"""What exhibits and question say: the numbers, and the words that look like exhibit names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import regex

from api.services.reporting.dossier import Exhibit, measure
from api.services.schemas import Item, Question
from api.services.text import one_line

LABEL = regex.compile(r"\bE\d+\b")
_ENDS = "com net org io ai co app dev me ly gg to cc ru cn info biz xyz shop site store online link"
_REST = r"[^\s<>\"'“”‘’()\[\]]"
LINK = regex.compile(
    rf"\b(?:[a-z][a-z0-9+.-]*://|www\.|(?:mailto|javascript|vbscript|data|tel):){_REST}+"
    rf"|\b[\w-]+(?:\.[\w-]+)*\.(?:{'|'.join(_ENDS.split())})/{_REST}*",
    regex.I,
)
_DATE = regex.compile(r"(?<!\d)\d{4}-\d{2}(?:-\d{2})?(?!\d)")
_CURRENCY = "USD|EUR|GBP|CHF|INR|JPY|CNY|Rs"
_NUMBER = regex.compile(
    rf"(?:(?<!\p{{Latin}}\d[\d.,:]*)(?<![\p{{Latin}}\d])|(?<=\b(?:{_CURRENCY})))"
    r"(\d+(?:[.,:]\d+)*)(\s?(?:%|per\s?cent\b))?"
)
_COUNTED = regex.compile(
    r"\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozens?|hundreds|thousands"
    r"|millions|half)\b(?:\s+of)?(?:\s+(?:all|the|these|those))?\s+(?:\w+\s+)?(?:people|users|buyers"
    r"|owners|customers|reviewers|reviews|viewers|commenters|comments|posts|posters|videos|exhibits"
    r"|items|sources)\b",
    regex.I,
)
_THOUSANDS = regex.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Said:
    """What a sentence may rest on."""

    numbers: frozenset[str]
    labels: frozenset[str]
    """Words of theirs that look like exhibit names (`E27`)."""


def said_by(exhibits: Iterable[Exhibit], question: Question) -> Said:
    """Numbers and lookalikes in the question and in these exhibits; addresses say nothing."""
    texts, known = [question.text, question.about], set[str]()
    for exhibit in exhibits:
        texts += _texts(exhibit.item)
        known |= {measure(value) for value in exhibit.item.engagement.values() if value is not None}
        if exhibit.item.created_at is not None:
            known |= _parts(f"{exhibit.item.created_at:%Y-%m-%d}")
    text = LINK.sub(" ", one_line(" ".join(texts)))
    dates = (part for match in _DATE.finditer(text) for part in _parts(match[0]))
    return Said(frozenset({*known, *numbers(text), *dates}), frozenset(LABEL.findall(text)))


def numbers(text: str) -> list[str]:
    """Dates, numbers and counts of people in words; digits in a name (`r1`) or address are none.

    Written alike: `1,200` is 1200, `4.50` is 4.5, `40 percent` is 40%, which is not 40.
    """
    plain = LINK.sub(" ", text)
    rest = _DATE.sub(" ", plain)
    return [
        *(match[0] for match in _DATE.finditer(plain)),
        *(_plain(match[1]) + ("%" if match[2] else "") for match in _NUMBER.finditer(rest)),
        *(match[1].lower() for match in _COUNTED.finditer(rest)),
    ]


def _texts(item: Item) -> list[str]:
    return [item.title, item.body, item.place or "", *(comment.body for comment in item.comments)]


def _parts(day: str) -> set[str]:
    """A date, its month and its year."""
    return {day, day[:7], day[:4]}


def _plain(number: str) -> str:
    if _THOUSANDS.fullmatch(number):
        number = number.replace(",", "")
    return number.rstrip("0").rstrip(".") if regex.fullmatch(r"\d+\.\d+", number) else number
