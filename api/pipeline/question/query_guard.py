"""The guard of queries that a model wants to send, and the products that a question compares.

Text of strangers may tell a model to search for its instructions, a key or an address, and a query
leaves this machine. So a query must mention what the person asked about, and may add only a few
words to the person's own, none of them an address or a code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from functools import cache

import regex

from api.core.text import clean, cut, fold, one_line
from api.core.words import content_words, stop_words
from api.pipeline.question.query_screen import screen_query

MAX_QUERY_LENGTH = 100
"""Characters to which a query is cut."""
MAX_ADDED_WORDS = 5
"""Words that a query may add, beside those without meaning (`how`, `the`)."""
MAX_CODE_LENGTH, MAX_WORD_LENGTH = 11, 24
"""Characters of an added word with digits (`rtx4090`, `b0chx1w1xy`), and of one without."""
MAX_NUMBERS, MAX_DIGITS = 3, 6
"""Added words with digits, and all digits of added numbers."""

_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
# letters that count as one word in scripts without blanks between words
_PER_WORD = 3
# a word, or a run of a script without blanks: `r&d`, `c++`, `1000xm5`, `小米`, `手环` of `手环15`
_WORD = regex.compile(
    rf"(?P<unspaced>{_UNSPACED}[{_UNSPACED[1:-1]}\p{{M}}ー]*+)"
    rf"|[[\p{{L}}\p{{M}}\p{{N}}]--{_UNSPACED}]++(?:&[[\p{{L}}\p{{M}}\p{{N}}]--{_UNSPACED}]++)*+[+#]*+",
    regex.V1,
)
# an address: `https://a`, `www.a`, `a.example/b`, `name@host`, `name at host dot com`
_ADDRESS = regex.compile(
    r"(?i)(?<![a-z0-9])[a-z][a-z0-9+.-]{1,30}+:/\S*+|(?<![\w.])www\.\S*+"
    r"|(?<![\w.-])(?:[\w-]++\.)++[a-z]{2,}+/\S*+|(?<![\w.+-])[\w.+-]++@[\w.-]++"
    r"|(?<!\w)(?:at|\(at\)|\[at\])\s++[\w-]++\s++(?:dot|\(dot\)|\[dot\])\s"
)
# words that ask about anything and name nothing
_ASKING = frozenset(
    "app apps best better buy buyers compare complain complaints dislike good hate like love"
    " opinion opinions owners people problem problems product products question questions review"
    " reviews said say says search think thoughts tell users versus vs want worth".split()
)
_DIGIT = regex.compile(r"\d")
Rule = Callable[[str, str], bool]
"""`rule(written, query)`: whether the query may be sent, by what the person wrote."""


def guarded_query(written: str, query: str, names: Sequence[str] = ()) -> str | None:
    """The query as it may be sent, or None when it may not; `written` is all that the person wrote about it.

    `names` are parts of it that may be looked up by themselves: `X` of `compare it with X`.
    """
    screened = screen_query(cut(one_line(clean(query)), MAX_QUERY_LENGTH))
    allowed = screened.ok and any(is_allowed(text, screened.query) for text in (written, *names))
    return screened.query if allowed else None


def rewritten_query(written: str, query: str) -> str | None:
    """A rewritten query as it may be sent, or None when it may not.

    It need not name what the person asked about, since the maker's name may replace the product's, but it must hold two
    letters in a row, be no small talk, and keep the other rules; `2` fails.
    """
    screened = screen_query(cut(one_line(clean(query)), MAX_QUERY_LENGTH))
    naming = any(len(word) > 1 and not word.isdigit() for word in naming_words(screened.query))
    rules = [rule for rule in RULES if rule is not names_subject]
    return screened.query if screened.ok and naming and is_allowed(written, screened.query, rules) else None


def naming_words(text: str) -> list[str]:
    """The folded words that name something, in order: no stop words and none that only ask."""
    words = [word for word in _words(text) if content_words(word) and word not in _ASKING]
    return words + _runs(text)


def joined_spellings(text: str) -> set[str]:
    """Each word's `singular`, and up to three in a row written together: `iphone`, `iphone15`."""
    return _joined(_words(text))


def names_subject(written: str, query: str) -> bool:
    """Whether a query names something the person wrote about, in whole words of any spelling.

    `plaud note` names `Plaud.ai`, `iphone15` names `iPhone 15`; `search` does not name `Arc`. In
    scripts without blanks two letters in a row are enough: `小米` names `小米手环怎么样`.
    """
    words = _words(written)
    naming = {word for word in words if content_words(word) and word not in _ASKING}
    # single letters and numbers are in many queries: they only count where nothing else names it
    long = {word for word in naming if len(word) > 1 and not word.isdigit()}
    names = _joined(words, long or naming) or {"".join(map(singular, words))} - {""}
    pairs = letter_pairs(written)
    return not names.isdisjoint(_joined(_words(query))) or any(pair in run for run in _runs(query) for pair in pairs)


def few_added_words(written: str, query: str) -> bool:
    """Whether the query adds only a few words to the person's, so no sentence of a stranger."""
    pairs = letter_pairs(written)
    count = sum(1 for word in _added_words(written, query) if content_words(word))
    for run in _runs(query):
        known = {
            at + letter
            for at in range(len(run))
            for size in (1, 2)  # a run of one letter is its own pair
            if run[at : at + size] in pairs
            for letter in range(size)
        }
        added = "".join(" " if at in known else letter for at, letter in enumerate(run))
        count += sum(-(-len(part) // _PER_WORD) for part in added.split())
    return count <= MAX_ADDED_WORDS


def no_address(written: str, query: str) -> bool:
    """Whether the query adds no address of a page, host or mailbox."""
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
    """Whether added numbers are too few and short for a card, an account or a telephone number."""
    added = [word for word in _added_words(written, query) if _DIGIT.search(word)]
    return len(added) <= MAX_NUMBERS and sum(len(word) for word in added if word.isdigit()) <= MAX_DIGITS


RULES: tuple[Rule, ...] = (names_subject, few_added_words, no_address, no_code, few_numbers)


def is_allowed(written: str, query: str, rules: Sequence[Rule] = RULES) -> bool:
    """Whether every rule lets the query be sent."""
    return all(rule(written, query) for rule in rules)


def singular(word: str) -> str:
    """The word without a plural `s`: `mugs` is `mug`."""
    return word[:-1] if len(word) > 3 and word.endswith("s") else word


def letter_pairs(written: str) -> set[str]:
    """All pairs of neighbouring letters in runs without blanks; the runs themselves when each is one letter."""
    runs = _runs(written)
    return {run[at : at + 2] for run in runs for at in range(len(run) - 1)} or set(runs)


def _words(text: str) -> list[str]:
    return [match[0] for match in _WORD.finditer(fold(text)) if not match["unspaced"]]


def _runs(text: str) -> list[str]:
    """The runs of scripts without blanks, without words that carry no meaning."""
    runs = [match[0] for match in _WORD.finditer(fold(text)) if match["unspaced"]]
    return [part for run in runs for part in _meaningless().sub(" ", run).split()] or runs


def _joined(words: Sequence[str], naming: Set[str] | None = None) -> set[str]:
    """Each word, and up to three in a row written together; only those with a naming word."""
    rows = (words[at : at + size] for at in range(len(words)) for size in (1, 2, 3))
    rows = (row for row in rows if naming is None or not naming.isdisjoint(row))
    return {"".join(map(singular, row)) for row in rows}


def _added_words(written: str, query: str) -> list[str]:
    """The query's words that the person did not write, with repetitions."""
    known = _joined(_words(written))
    return [word for word in _words(query) if singular(word) not in known]


@cache
def _meaningless() -> regex.Pattern[str]:
    """Stop words of Chinese, Japanese, Korean and Thai, the longest first: the first match wins."""
    words = {word for code in ("zh", "ja", "ko", "th") for word in stop_words(code)}
    unspaced = {fold(word) for word in words if regex.fullmatch(f"{_UNSPACED}{{2,}}", word)}
    return regex.compile("|".join(sorted(unspaced, key=lambda word: (-len(word), word))))


_EDGE = " ?!,;:.\"“”'‘’()"
# `compare A with B`, `how does it compare to B`, `the difference between A and B`
_LISTING = regex.compile(r"(?i)\b(?:compare|comparison\s+of|differences?\s+between)(?=\s)(?P<names>.+)")
_BETWEEN_LISTED = regex.compile(
    r"(?i)(?<!\s)\s*+,\s*+(?:and\s++)?|(?:^|(?<!\s)\s++)(?:with|to|and|against|vs\.?|versus)\s+"
)
# `A vs B`, `is it better than B`, `how is it compared to B`
_BETWEEN = regex.compile(r"(?i)(?<!\s)\s++(?:vs\.?|versus|(?:better|worse)\s+than|compared\s+(?:to|with))\s+")
# what was asked about before: `it`, `its price`, `those`
_POINTING = regex.compile(
    r"(?i)(?<!\w)(?:it|its|it['’]s|they|their|them|this|that|these|those"
    r"|dessen|davon|damit|dazu|ello|eso|esto|ça|cela|isso|isto)(?!\w)|它|それ|これ"
)
# names of one letter, or made of words of asking: `X`, `Best Buy`
_BARE_NAME = regex.compile(r"\p{Lu}|^\S$")


def compared_names(question: str) -> tuple[str, ...]:
    """The compared names, as written: `compare it with Otter` gives `Otter`; none without two."""
    listing = _LISTING.search(question)
    sides = _BETWEEN_LISTED.split(listing["names"]) if listing else _BETWEEN.split(question)
    names = []
    for side in (side.strip(_EDGE) for side in sides):
        words = (word.strip(_EDGE) for word in side.split())
        bare = side if _BARE_NAME.search(side) and not refers_back(side) else ""
        names.append(" ".join(word for word in words if naming_words(word)) or bare)
    return tuple(dict.fromkeys(filter(None, names))) if len(names) > 1 and names[-1] else ()


def refers_back(question: str) -> bool:
    """Whether a question refers to an earlier one: `it`, `their`, `those`."""
    return _POINTING.search(question) is not None
