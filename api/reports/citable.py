"""What written words may rest on: exhibits and their addresses, and the numbers that were given."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from unicodedata import decimal

import regex

from api.core.text import one_line
from api.reports.exhibits import Exhibit, measure

NAME = r"\b[Ee]\d+\b"
"""Pattern of an exhibit's name."""
# A name as it stands in running text, where a small `e5` is none: `as E12 says`.
LABEL = regex.compile(r"\bE\d+\b")
_ENDS = (
    "com net org io ai co app dev me ly gg to cc ru cn info biz xyz shop site store online link"
    " top club click live icu vip"
)
# The rest of an address: no blank and no bracket, but for a pair: `/wiki/Mug_(cup)`.
_PART = r"[^\s<>\"'“”‘’()\[\]（）【】、。，！？；：]"
_REST = rf"(?:{_PART}|\({_PART}*+\))"
ADDRESS = (
    r"(?<![a-zA-Z0-9])(?i:[a-z][a-z0-9+.-]{0,30}+://|www\.|(?:mailto|javascript|vbscript|data|tel):)"
    rf"{_REST}++"
    r"|(?<![a-zA-Z0-9-])(?<![a-zA-Z0-9-]\.)(?i:(?:[a-z0-9-]++\.)++"
    rf"(?:{'|'.join(_ENDS.split())}))/{_REST}*+"
)
"""Pattern of an address: `https://a.example/b`, `www.a.example`, `mailto:a@b`, `a-b.com/login`."""
ADDRESSES = regex.compile(ADDRESS)
_DATE = regex.compile(r"(?<!\d)\d{4}-\d{2}(?:-\d{2})?(?!\d)")
_CURRENCY = "USD|EUR|GBP|CHF|INR|JPY|CNY|Rs"
# A run of digits with what it hangs on: `EUR99`, `1,200.50`, `40 %`; in `r9` and `v2.1` a `name`.
_NUMBER = regex.compile(
    rf"(?:\b(?:{_CURRENCY})|(?P<name>\p{{Latin}}))?+"
    r"(?P<digits>\d++(?:[.,:]\d++)*+)(?P<share>\s?(?:[%％]|per\s?cent\b))?"
)
_NUMERALS = dict(
    zip(
        "two three four five six seven eight nine ten eleven twelve".split(),
        map(str, range(2, 13)),
        strict=True,
    )
)
# A number of people in words: `seven of the angry reviewers`, `half of users`.
_COUNTED = regex.compile(
    rf"\b({'|'.join(_NUMERALS)}|dozens?|hundreds|thousands|millions|half)\b"
    r"(?:\s++of\b)?+(?:\s++(?:all|the|these|those)\b)?+\s++(?:\w++\s++)??(?:people|users|buyers"
    r"|owners|customers|reviewers|reviews|viewers|commenters|comments|posts|posters|videos|exhibits"
    r"|items|sources)\b",
    regex.I,
)
_THOUSANDS = regex.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class CitableText:
    """What a sentence may rest on."""

    exhibits: Mapping[str, Exhibit]
    """What may be cited, by label."""
    numbers: frozenset[str]
    """As `numbers` writes them."""
    lookalikes: frozenset[str]
    """Words of theirs that look like exhibit names (`E27`)."""
    addresses: Mapping[str, str]
    """What may be named, with the label of the exhibit there; a person's own has an empty one."""
    elsewhere: frozenset[str] = frozenset()
    """Labels of exhibits on something else: a sentence that rests on those alone does not stand."""

    def holds(self, number: str) -> bool:
        """Whether the number was given, in digits or (`seven reviewers`) in words."""
        return number in self.numbers or _NUMERALS.get(number) in self.numbers


def citable_text(
    exhibits: Mapping[str, Exhibit],
    questions: Sequence[str],
    given: Sequence[str] = (),
    cited: Collection[str] | None = None,
    elsewhere: Collection[str] = (),
) -> CitableText:
    """What these exhibits and texts allow; digits in an address are no number that was given.

    Args:
        exhibits: what may be cited, by label.
        questions: what the person wrote; addresses in it may be linked.
        given: what else the model was shown.
        cited: labels of the exhibits whose numbers count; without it, of all.
        elsewhere: labels of exhibits on something else.
    """
    texts, known = [" ".join((*questions, *given))], set[str]()
    for label, exhibit in exhibits.items():
        if cited is None or label in cited:
            item = exhibit.item
            comments = (comment.body for comment in item.comments)
            texts.append(" ".join((item.title, item.body, item.place or "", *comments)))
            measures = (value for value in item.engagement.values() if value is not None)
            known |= {measure(value) for value in measures}
            if item.created_at is not None:
                known |= _parts(f"{item.created_at:%Y-%m-%d}")
    spoken = [_figures_in(text) for text in texts]
    addresses = {bare(match[0]): "" for words in questions for match in ADDRESSES.finditer(words)}
    for label, exhibit in exhibits.items():
        item = exhibit.item
        urls = (item.url, *(comment.url for comment in item.comments))
        addresses |= {url: label for url in urls if url}
    return CitableText(
        exhibits,
        frozenset(known).union(*(numbers for numbers, _ in spoken)),
        frozenset().union(*(labels for _, labels in spoken)).difference(elsewhere),
        addresses,
        frozenset(elsewhere),
    )


@lru_cache(maxsize=256)
def _figures_in(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The numbers and dates in a text, and the words that look like an exhibit's name."""
    text = ADDRESSES.sub(" ", one_line(text))
    dates = (part for match in _DATE.finditer(text) for part in _parts(match[0]))
    return frozenset({*numbers(text), *dates}), frozenset(LABEL.findall(text))


def bare(address: str) -> str:
    """An address without the punctuation and emphasis of the sentence it stands in."""
    return address.rstrip(".,;:!?…*_~`|")


def numbers(text: str) -> list[str]:
    """Dates, numbers and counts of people in words; digits in a name (`r1`) or address are none.

    Written alike: `1,200` is 1200, `4.50` is 4.5, `40 percent` is 40%, which is not 40; digits of
    every script are those of ASCII.
    """
    plain = ADDRESSES.sub(" ", text)
    rest = _DATE.sub(" ", plain)
    return [
        *(match[0] for match in _DATE.finditer(plain)),
        *(
            _plain(match["digits"]) + ("%" if match["share"] else "")
            for match in _NUMBER.finditer(rest)
            if not match["name"]
        ),
        *(match[1].lower() for match in _COUNTED.finditer(rest)),
    ]


def says_count(text: str, count: int) -> bool:
    """Whether a text says this number, in digits or (`seven reviewers`) in words."""
    return any(str(count) in (number, _NUMERALS.get(number)) for number in numbers(text))


def _parts(day: str) -> set[str]:
    """A date, its month and its year."""
    return {day, day[:7], day[:4]}


def _plain(number: str) -> str:
    number = "".join(sign if sign in ".,:" else str(decimal(sign)) for sign in number)
    if _THOUSANDS.fullmatch(number):
        number = number.replace(",", "")
    return number.rstrip("0").rstrip(".") if regex.fullmatch(r"\d+\.\d+", number) else number
