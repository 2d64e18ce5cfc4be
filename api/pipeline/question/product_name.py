"""The product in a question, without the words of asking: for searching, judging and display.

What a description says that the product is not: `the payments company; not crochet`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

import regex

from api.choices import MAX_EXCLUSION_LENGTH, MAX_EXCLUSIONS
from api.core.text import clean, cut, one_line
from api.core.words import canonical, stop_words

ASKING_WORDS = frozenset(
    "a about actually amazon and annoys any are be best but buy buying can compare complain"
    " complaint complaints could dislike do does for from good happens has hate have how i in is it"
    " its like love me mention my of on opinion opinions or owners people really recommend reddit"
    " regret review reviews said say saying says should tell that the their them there they thing"
    " things think thinks this to use users versus vs want was what when where which who why will"
    " with worth would you your youtube".split()
)
"""Words of asking, and sources, which are no part of a product's name."""
# what is longer is a sentence
_MAX_NAME_WORDS = 4
# `plaud.ai` is also called `plaud`
_ENDING = regex.compile(r"\.(?:ai|com|io|app|co|new|net|org)$", regex.I)
_EDGE = "?!,;:.\"“”'()’‘"
# a part of a product, without a question: `the battery of the Framework laptop`
_PART = regex.compile(r"^\W*the \p{Ll}++ of (?:(?:the|my|an?) )?\S*[\p{Lu}\p{N}.]\S")
# how a question begins; a name may begin so, too (`How I Met Your Mother`)
_OPENERS = frozenset(
    "are can could did do does has have how is should tell what whats when where which who why will would".split()
)
# what makes a sentence without a question mark a question
_OPINIONS = frozenset(
    "about annoys any best better buy complain complaints dislike good hate love opinion opinions"
    " owners people recommend regret reviews say saying says think thinks users worth".split()
)
# `amazon`, `reddit` and `youtube` may be what is asked about
_UNNAMED = (ASKING_WORDS - {"amazon", "reddit", "youtube"}) | _OPENERS | {"", "better", "wrong"}
# a word of a name has a capital or a figure
_NAMING = regex.compile(r"[\p{Lu}\p{N}]")
# the source that is asked, which is no part of the name: `on Reddit`, `in Amazon reviews`
_SOURCE = regex.compile(
    r"\b(?:(?:on|in|from)\s+(?:reddit|youtube|amazon)"
    r"|on\s+(?:hacker\s?news|hn|stack\s?(?:exchange|overflow)|github|lemmy|discourse))\b",
    regex.I,
)


def product_in(question: str, topics: Container[str] = frozenset()) -> str:
    """The product's name as written, without words of `topics` beside others; empty without one."""
    words = [word.strip(_EDGE).removesuffix("'s").removesuffix("’s") for word in question.split()]
    names = [word for word in words if word and word.casefold() not in ASKING_WORDS]
    names = [word for word in names if word.casefold() not in topics] or names
    return " ".join(names) if 0 < len(names) <= _MAX_NAME_WORDS else ""


def without_web_ending(name: str) -> str:
    """The name without its web ending: `plaud` of `plaud.ai`."""
    return _ENDING.sub("", name).strip()


def search_words(question: str) -> str:
    """The words to search for: those of an English question that do not ask, else the text.

    `is the battery of the Oura ring good?` is `battery Oura ring`; `How I Met Your Mother` stays.
    """
    return " ".join(_subject_words(question)) or question


def judged_words(question: str, kinds: Container[str] = frozenset()) -> str:
    """The words that a post must be about: the name among `search_words`.

    They reach from the first capital to the last capital, figure or word of `kinds`; without a
    capital they follow the last `of`: `the battery of the oura ring`.
    """
    subject = _subject_words(question)
    capitals = [number for number, word in enumerate(subject) if word[0].isupper()]
    if capitals:
        end = 1 + max(number for number, word in enumerate(subject) if _NAMING.search(word))
        while end < len(subject) and subject[end].casefold() in kinds:
            end += 1
        subject = subject[capitals[0] : end]
    else:
        owner = {word.strip(_EDGE) for word in question.rpartition(" of ")[2].split()}
        subject = [word for word in subject if word in owner] or subject
    return " ".join(subject) or question


def _subject_words(question: str) -> list[str]:
    """The words of a question that do not ask, in order; none of a text that is no question."""
    words = _SOURCE.sub(" ", question).split()
    plain = [word.strip(_EDGE).casefold().replace("’", "'") for word in words]
    opened = bool(plain) and plain[0].replace("'", "") in _OPENERS
    asking = opened and (question.rstrip().endswith("?") or _OPINIONS.intersection(plain))
    if not asking and not _PART.match(question):
        return []
    titled = all(word[:1].isupper() for word in words if word[:1].isalpha())
    meaningless = stop_words("en")
    return [
        regex.sub(r"['’]s$", "", word.strip(_EDGE))
        for number, (word, bare) in enumerate(zip(words, plain, strict=True))
        if bare not in _UNNAMED
        # a capital inside a sentence marks a name, also on a stop word: `the Room app`
        and (bare not in meaningless or (number and word[0].isupper() and not titled))
    ]


def new_queries(queries: Iterable[str], earlier: Iterable[str]) -> list[str]:
    """The queries without other spellings of each other and of the earlier ones, in order."""
    known = {canonical(query) for query in earlier} | {""}
    new: dict[str, str] = {}
    for query in queries:
        form = canonical(query)
        if form not in known:
            new.setdefault(form, query)
    return list(new.values())


_PIECE = r"(?:[^,;.()\[\]–—]|\([^()]*\))+"
# `; not a crochet square`, `(not the fruit)`, `, nicht der Fluss`: a clause that begins with a
# negation; inside a sentence (`it does not sync`) the word denies something else and stays.
# commas belong to it when its list ends with `or`: `not the game, an arc, or a plot`
_CLAUSE = regex.compile(
    # blanks are taken whole and from their first on, so that a long run of them costs no more
    r"(?:^|(?<!\s)\s*+[,;:.(\[–—-]|(?<!\s)\s++(?:and|but|und|aber|et|y|e|mas|pero))\s*+"
    r"(?:not|nicht|kein|keine|pas|no|não|non)\s+"
    rf"(?P<what>{_PIECE}(?:(?:,{_PIECE})*,\s*(?:or|nor|oder|ou|o)\s{_PIECE})?)[)\]]?",
    regex.IGNORECASE,
)
# within a clause: `not the fruit or the record label` excludes two things
_ALTERNATIVES = regex.compile(
    r"(?<!\s)\s*+,\s*+(?:(?:or|nor|oder|ou|o)\s++)?|(?<!\s)\s++(?:or|nor|oder|ou|o)\s++",
    regex.IGNORECASE,
)
# the blank that a clause leaves in `the soap , made by Unilever`
_BEFORE_MARK = regex.compile(r"(?<!\s)\s++(?=[,;:.])")
_ARTICLE = regex.compile(
    r"^(?:about\s+)?(?:an?|the|any|der|die|das|ein|eine|le|la|les|un|une|el|los|um|uma)\s+",
    regex.IGNORECASE,
)


def split_exclusions(about: str) -> tuple[str, tuple[str, ...]]:
    """The description without its negated clauses, and what these exclude, in order."""
    clauses: list[str] = []

    def take(match: regex.Match[str]) -> str:
        clauses.extend(_ALTERNATIVES.split(match["what"]))
        return " "

    left = _BEFORE_MARK.sub("", one_line(_CLAUSE.sub(take, about))).strip(" ,;:.-–—")
    return left, exclusions_of(clauses)


def exclusions_of(excluded: Iterable[str]) -> tuple[str, ...]:
    """Exclusions as judges take them: on one line, without article, each once."""
    plain = (_ARTICLE.sub("", one_line(clean(text))).strip(" .") for text in excluded)
    bounded = dict.fromkeys(cut(text, MAX_EXCLUSION_LENGTH) for text in plain if text)
    return tuple(bounded)[:MAX_EXCLUSIONS]
