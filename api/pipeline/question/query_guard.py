"""The one guard before a query that a model wants to send: on the subject, carrying nothing out.

What strangers wrote may tell a model to search for its instructions, a key or an address, and a
query leaves this machine. So a query must mention what the person asked about, and what it adds to
the person's own words must be few words of a shop or a forum, none of them an address or a code.

The products that a question sets against each other, and whether it points at an earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from functools import cache

import regex

from api.core.text import clean, cut, fold, one_line
from api.core.words import content_words, stop_words
from api.pipeline.question.query_screen import screen_query

MAX_QUERY_LENGTH = 100
"""Characters of a query; what is longer is cut."""
MAX_ADDED_WORDS = 5
"""Words a query may add, those without meaning (`how`, `the`) not counted."""
MAX_CODE_LENGTH, MAX_WORD_LENGTH = 11, 24
"""Signs of an added word with digits in it (`rtx4090`, `b0chx1w1xy`), or without."""
MAX_NUMBERS, MAX_DIGITS = 3, 6
"""Added words with digits in them, and digits of those that are nothing else."""

_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
# Letters that count as a word where no blanks do.
_PER_WORD = 3
# `小米`, `手环15` as `手环` and `15`, `r&d`, `c++`, `1000xm5`
_WORD = regex.compile(
    rf"(?P<unspaced>{_UNSPACED}[{_UNSPACED[1:-1]}\p{{M}}ー]*+)"
    rf"|[[\p{{L}}\p{{M}}\p{{N}}]--{_UNSPACED}]++(?:&[[\p{{L}}\p{{M}}\p{{N}}]--{_UNSPACED}]++)*+[+#]*+",
    regex.V1,
)
# `https://a`, `www.a`, `a.example/b`, `name@host`, `name at host dot com`
_ADDRESS = regex.compile(
    r"(?i)(?<![a-z0-9])[a-z][a-z0-9+.-]{1,30}+:/\S*+|(?<![\w.])www\.\S*+"
    r"|(?<![\w.-])(?:[\w-]++\.)++[a-z]{2,}+/\S*+|(?<![\w.+-])[\w.+-]++@[\w.-]++"
    r"|(?<!\w)(?:at|\(at\)|\[at\])\s++[\w-]++\s++(?:dot|\(dot\)|\[dot\])\s"
)
# Words that ask about anything and name nothing.
_ASKING = frozenset(
    "app apps best better buy buyers compare complain complaints dislike good hate like love"
    " opinion opinions owners people problem problems product products question questions review"
    " reviews said say says search think thoughts tell users versus vs want worth".split()
)

_DIGIT = regex.compile(r"\d")

Rule = Callable[[str, str], bool]
"""Whether a query may leave, given what the person wrote."""


def guarded_query(written: str, query: str, names: Sequence[str] = ()) -> str | None:
    """The query as it may leave, or None when it may not.

    Args:
        written: everything the person wrote about the subject.
        query: what a model wants to look up.
        names: parts of what the person wrote that are enough by themselves; so `X` may be looked
            up after `compare it with X`, though it is short beside what was asked before.
    """
    screened = screen_query(cut(one_line(clean(query)), MAX_QUERY_LENGTH))
    allowed = screened.ok and any(is_allowed(text, screened.query) for text in (written, *names))
    return screened.query if allowed else None


def naming_words(text: str) -> list[str]:
    """The words that name something or say what is asked about it, in one form, in order.

    None that carry no meaning (`the`) or only ask (`people`, `review`).
    """
    words = [word for word in _words(text) if content_words(word) and word not in _ASKING]
    return words + _runs(text)


def joined_spellings(text: str) -> set[str]:
    """Each word's `singular`, and up to three in a row written together: `iphone`, `iphone15`."""
    return _joined(_words(text))


def names_subject(written: str, query: str) -> bool:
    """Whether a query names something the person wrote about, in whole words of any spelling.

    `Plaud.ai` is named by `plaud note`, `iPhone 15` by `iphone15`; `Arc` is not by `search`, nor
    `HP` by `php`. Where words are not set apart, two letters in a row are enough (`小米手环怎么样`
    is named by `小米`).
    """
    pairs = letter_pairs(written)
    return not _names(written).isdisjoint(_joined(_words(query))) or any(
        pair in run for run in _runs(query) for pair in pairs
    )


def few_added_words(written: str, query: str) -> bool:
    """Whether the query adds only a few words to the person's: no sentence of somebody else's."""
    pairs = letter_pairs(written)
    count = sum(1 for word in _foreign(written, query) if content_words(word))
    for run in _runs(query):
        known = {
            at + letter
            for at in range(len(run))
            for size in (1, 2)
            if run[at : at + size] in pairs
            for letter in range(size)
        }
        added = "".join(" " if at in known else letter for at, letter in enumerate(run))
        count += sum(-(-len(part) // _PER_WORD) for part in added.split())
    return count <= MAX_ADDED_WORDS


def no_address(written: str, query: str) -> bool:
    """Whether the query adds no address of a page, a host or a mailbox."""
    known = fold(written)
    return all(match[0] in known for match in _ADDRESS.finditer(fold(query)))


def no_code(written: str, query: str) -> bool:
    """Whether no added word is as long as a key, a hash or words written together."""
    known = _joined(_words(written))
    for word in fold(query).split():
        parts = [part for part in _words(word) if singular(part) not in known]
        code = "".join(parts)
        if len(code) > MAX_CODE_LENGTH and _DIGIT.search(code):
            return False
        if any(len(part) > MAX_WORD_LENGTH for part in parts):
            return False
    return True


def few_numbers(written: str, query: str) -> bool:
    """Whether added numbers are too few and short for a card, an account or a telephone."""
    added = [word for word in _foreign(written, query) if _DIGIT.search(word)]
    return (
        len(added) <= MAX_NUMBERS
        and sum(len(word) for word in added if word.isdigit()) <= MAX_DIGITS
    )


RULES: tuple[Rule, ...] = (names_subject, few_added_words, no_address, no_code, few_numbers)


def is_allowed(written: str, query: str, rules: Sequence[Rule] = RULES) -> bool:
    """Whether every rule lets the query leave."""
    return all(rule(written, query) for rule in rules)


def singular(word: str) -> str:
    """A plural as its singular: `mugs` as `mug`."""
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


def letter_pairs(written: str) -> set[str]:
    """Two letters in a row of each run without blanks; lone letters where there is nothing else."""
    runs = _runs(written)
    return {run[at : at + 2] for run in runs for at in range(len(run) - 1)} or set(runs)


def _words(text: str) -> list[str]:
    """Words in one form, those of scripts without blanks left out."""
    return [match[0] for match in _WORD.finditer(fold(text)) if not match["unspaced"]]


def _runs(text: str) -> list[str]:
    """What stands in scripts without blanks, without words that carry no meaning."""
    runs = [match[0] for match in _WORD.finditer(fold(text)) if match["unspaced"]]
    return [part for run in runs for part in _meaningless().sub(" ", run).split()] or runs


def _joined(words: Sequence[str], telling: Set[str] | None = None) -> set[str]:
    """Each word, and up to three in a row written together; only what holds a telling word."""
    rows = (words[at : at + size] for at in range(len(words)) for size in (1, 2, 3))
    return {
        "".join(map(singular, row))
        for row in rows
        if telling is None or not telling.isdisjoint(row)
    }


def _names(written: str) -> set[str]:
    """What a query can name: the person's telling words; short ones where there is nothing else."""
    words = _words(written)
    telling = {word for word in words if content_words(word) and word not in _ASKING}
    long = {word for word in telling if len(word) > 1 and not word.isdigit()}
    return _joined(words, long or telling) or {"".join(map(singular, words))} - {""}


def _foreign(written: str, query: str) -> list[str]:
    """The query's words that the person did not write, again for each time."""
    known = _joined(_words(written))
    return [word for word in _words(query) if singular(word) not in known]


@cache
def _meaningless() -> regex.Pattern[str]:
    """Words of Chinese, Japanese, Korean and Thai that carry no meaning, the longest first."""
    words = {word for code in ("zh", "ja", "ko", "th") for word in stop_words(code)}
    unspaced = {fold(word) for word in words if regex.fullmatch(f"{_UNSPACED}{{2,}}", word)}
    return regex.compile("|".join(sorted(unspaced, key=lambda word: (-len(word), word))))


_EDGE = " ?!,;:.\"“”'‘’()"
# `compare A with B`, `how does it compare to B`, `the difference between A and B`
_LISTING = regex.compile(
    r"(?i)\b(?:compare|comparison\s+of|differences?\s+between)(?=\s)(?P<names>.+)"
)
_BETWEEN_LISTED = regex.compile(
    r"(?i)(?<!\s)\s*+,\s*+(?:and\s++)?|(?:^|(?<!\s)\s++)(?:with|to|and|against|vs\.?|versus)\s+"
)
# `A vs B`, `is it better than B`, `how is it compared to B`
_BETWEEN = regex.compile(
    r"(?i)(?<!\s)\s++(?:vs\.?|versus|(?:better|worse)\s+than|compared\s+(?:to|with))\s+"
)
# `it`, `its price`, `those`: what was asked about before
_POINTING = regex.compile(
    r"(?i)(?<!\w)(?:it|its|it['’]s|they|their|them|this|that|these|those)(?!\w)"
)
# `X`, `Best Buy`: names that are made of words of asking, or of a letter alone
_BARE_NAME = regex.compile(r"\p{Lu}|^\S$")


def compared_names(question: str) -> tuple[str, ...]:
    """The names as they are written, without the words of asking; none when nothing is compared.

    What the question only points at is left out: `compare it with Otter` gives `Otter`.
    """
    listing = _LISTING.search(question)
    sides = _BETWEEN_LISTED.split(listing["names"]) if listing else _BETWEEN.split(question)
    names = [_name(side.strip(_EDGE)) for side in sides]
    return tuple(dict.fromkeys(filter(None, names))) if len(names) > 1 and names[-1] else ()


def refers_back(question: str) -> bool:
    """Whether a question points at what was spoken of before: `it`, `their`, `those`."""
    return _POINTING.search(question) is not None


def _name(side: str) -> str:
    """The telling words of one side of a comparison; nothing when it only points back."""
    words = [word.strip(_EDGE) for word in side.split()]
    name = " ".join(word for word in words if naming_words(word))
    bare = side if _BARE_NAME.search(side) and not refers_back(side) else ""
    return name or bare
