"""What a written text may hold of its sources: quotes, and what else it may rest on.

A quote stands in an item or one of its comments, word for word, and has its address. A text may
name labels of exhibits, their addresses, and numbers that it was given.
"""

from __future__ import annotations

import html
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from unicodedata import decimal, normalize

import regex

from api.core.items import Item
from api.core.text import clean, one_line
from api.reports.exhibits import Exhibit, measure
from api.reports.report import Quote

READ = 40_000
"""Characters of one text that are read: as many as the longest post of any source has."""

# Where a sentence ends: after `.!?…` (and a closing quote) before a blank, after `。`, and at a
# line's end. Not after `e.g.`, `vs.`, `Dr.`, `3.` or a letter alone (`U. S.`).
_END = regex.compile(
    r"(?<=[.!?…][\"'”’)»]?)(?<!\b(?:e\.g|i\.e|vs|mr|mrs|dr|st|no|etc|approx|\d|\p{L})\.)\s++(?=\S)"
    r"|(?<=[。！？])(?![」』”’）])|\n\s*+",
    regex.I,
)
_ADDRESS = regex.compile(r"https?:|www\.", regex.I)
# chapters of a video's description, alone or on one line: `0:50 method`, `0:00 a 2:40 b`
_CHAPTER = regex.compile(r"^\W*\d{1,2}:\d{2}\b|\b\d{1,2}:\d{2}\b.*\b\d{1,2}:\d{2}\b")
# a row of hashtags: `#ember #mug`
_TAGS = regex.compile(r"^#\S++(?:\s++#\S++)*+$")


def beginning(text: str) -> str:
    """All of a text, or of one that is longer than `READ` the whole sentences before that.

    A person's own item may have millions of characters: looking through them takes seconds, in
    which nobody else is answered.
    """
    if len(text) <= READ:
        return text
    *_, end = (0, *(match.start() for match in _END.finditer(text, endpos=READ)))
    return text[:end]


def sentences(text: str) -> list[str]:
    """The sentences of a text as they stand; links, chapters and rows of hashtags left out."""
    parts = (part.strip() for part in _END.split(text))
    return [
        part for part in parts if part and not (_ADDRESS.search(part) or _CHAPTER.search(part) or _TAGS.match(part))
    ]


LONGEST_QUOTE = 600
"""Characters of a quote; more is no quote."""

_ALIKE = str.maketrans(dict.fromkeys("’‘‛`´′", "'") | dict.fromkeys("“”„‟«»″", '"') | dict.fromkeys("‐‑", "-"))
_OUTER = "\"'「」『』 "
# what is compared at once: `I’m fine` is `I`, `’`, `m`, a blank and `fine`; a run of plain signs
# ends before the one to which an accent behind it may belong
_PART = regex.compile(r"\s+|(?P<plain>[!-~]+)(?=[\t-\r -~]|\Z)|\X")
_INVISIBLE = regex.compile(r"\p{Cf}+")
# A letter or digit of a script that sets words apart.
_SPACED = (
    r"[[\p{L}\p{M}\p{N}]--[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}"
    r"\p{Myanmar}\p{Tibetan}]]"
)
# Between two letters of one word: `batt|ery`, `can|'t`, `non|-stick`, `4.|5` of `4.5`.
_WITHIN = regex.compile(
    rf"(?<={_SPACED})(?=['-]?{_SPACED})|(?<={_SPACED}['-])(?={_SPACED})"
    r"|(?<=\p{N})(?=[.,]\p{N})|(?<=\p{N}[.,])(?=\p{N})",
    regex.V1,
)


def verbatim(words: object, item: Item) -> Quote | None:
    """The quote with its link, if the item or one of its comments holds it word for word.

    White space, invisible characters, Unicode form and width, the kind of quotation mark and HTML
    entities may differ; what comes back is theirs. No word is cut (`attery las`, `I can` of
    `I can't`), and something must be said in letters.
    """
    quote = clean(words)
    if len(quote) > LONGEST_QUOTE:
        return None
    spelled = (_comparable(text).letters.strip(_OUTER) for text in (quote, html.unescape(quote)))
    needles = [letters for letters in dict.fromkeys(spelled) if regex.search(r"\p{L}", letters)]
    places: list[tuple[str, str, str | None]]
    places = [] if item.thread else [(item.title, item.url, None)]
    places.append((item.body, item.url, None))
    places += [(comment.body, comment.url or item.url, comment.id) for comment in item.comments]
    for text, url, comment_id in places:
        if passage := _comparable(beginning(text)).passage(needles):
            return Quote(passage, item.key, url, comment_id)
    return None


class _Comparable:
    """A text in the form that is compared, with the position of each letter in the original."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts: list[tuple[int, int, bool]] = []
        """Start and end of each part in the original, and whether each of its characters is one letter of the
        compared form."""
        self._begins: list[int] = []
        """Number of letters before each part."""
        letters, count = [], 0
        for match in _PART.finditer(text):
            plain = match["plain"] is not None
            if plain:
                form = match[0].translate(_ALIKE)
            elif match[0].isspace():
                form = " "
            else:
                form = _INVISIBLE.sub("", normalize("NFKC", match[0].translate(_ALIKE)))
            if form:
                self._parts.append((*match.span(), plain))
                self._begins.append(count)
                letters.append(form)
                count += len(form)
        self.letters = "".join(letters)

    def _span(self, at: int) -> tuple[int, int]:
        """Start and end of a letter in the original text."""
        part = bisect_right(self._begins, at) - 1
        start, end, plain = self._parts[part]
        start += (at - self._begins[part]) * plain
        return start, start + 1 if plain else end

    def passage(self, needles: list[str]) -> str:
        """The first needle found here as whole words, in the original spelling; empty when none is."""
        for needle in needles:
            at = self.letters.find(needle)
            while at >= 0:
                end = at + len(needle)
                if not (_WITHIN.match(self.letters, at) or _WITHIN.match(self.letters, end)):
                    return self._text[self._span(at)[0] : self._span(end - 1)[1]]
                at = self.letters.find(needle, at + 1)
        return ""


@lru_cache(maxsize=256)
def _comparable(text: str) -> _Comparable:
    """The text, not taken apart again for the next words that may stand in it."""
    return _Comparable(text)


NAME = r"\b[Ee]\d+\b"
"""Pattern of an exhibit's name."""
# A name as it stands in running text, where a small `e5` is none: `as E12 says`.
LABEL = regex.compile(r"\bE\d+\b")
_ENDS = (
    "com net org io ai co app dev me ly gg to cc ru cn info biz xyz shop site store online link"
    " top club click live icu vip"
)
# The rest of an address: no blank and no bracket, but for a pair: `/wiki/Mug_(cup)`.
_ADDRESS_PART = r"[^\s<>\"'“”‘’()\[\]（）【】、。，！？；：]"
_REST = rf"(?:{_ADDRESS_PART}|\({_ADDRESS_PART}*+\))"
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
    """Numbers of the exhibits, in the form that the function `numbers` gives them."""
    lookalikes: frozenset[str]
    """Words in the quoted texts that look like exhibit labels, such as `E27`."""
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
    """An address without the punctuation and emphasis of its sentence."""
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


def without_stop(text: str) -> str:
    """A sentence without its full stop, as it stands between quotation marks."""
    return text.rstrip(" .。")
