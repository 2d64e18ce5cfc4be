"""What a question names, without the words of asking: to search for, to judge by, to speak of."""

from __future__ import annotations

from collections.abc import Container, Iterable

import regex

from api.core.words import canonical, stop_words

ASKING_WORDS = frozenset(
    "a about and annoys any are be best but buy buying can compare complain complaint"
    " complaints could"
    " dislike do "
    "does for from good happens has hate have how i in is it its like love me mention my of on"
    " opinion "
    "opinions or owners people really recommend regret reddit review reviews said say saying says"
    " should tell "
    "that the their them there they thing things think thinks this to use users versus vs want"
    " was what "
    "when where which who why will with worth would you your youtube amazon actually".split()
)
"""Words of asking and of places, which are no part of a product's name."""
# Words of a name at most; what is longer names nothing.
_LONGEST = 4
_ENDING = regex.compile(r"\.(?:ai|com|io|app|co|new|net|org)$", regex.I)
_EDGE = "?!,;:.\"“”'()’‘"
# a part and whose it is, without a question: `the battery of the Framework laptop`
_PART = regex.compile(r"^\W*the \p{Ll}++ of (?:(?:the|my|an?) )?\S*[\p{Lu}\p{N}.]\S")
_PLACES = frozenset(("amazon", "reddit", "youtube"))
# How a question begins; a name may begin so, too (`How I Met Your Mother`).
_OPENERS = frozenset(
    "are can could did do does has have how is should tell what whats when where which who why will"
    " would".split()
)
# What makes a sentence without a question mark a question: `people`, `worth`, `about`.
_OPINIONS = frozenset(
    "about annoys any best better buy complain complaints dislike good hate love opinion opinions"
    " owners people recommend regret reviews say saying says think thinks users worth".split()
)
_UNNAMED = (ASKING_WORDS - _PLACES) | _OPENERS | {"", "better", "wrong"}
# a word of a name: with a capital or a figure
_NAMING = regex.compile(r"[\p{Lu}\p{N}]")
# where it is asked, which is no part of the name: `on Reddit`, `in Amazon reviews`
_PLACE = regex.compile(
    r"\b(?:(?:on|in|from)\s+(?:reddit|youtube|amazon)"
    r"|on\s+(?:hacker\s?news|hn|stack\s?(?:exchange|overflow)|github|lemmy|discourse))\b",
    regex.I,
)


def product_in(question: str, topics: Container[str] = frozenset()) -> str:
    """The product's name as written; "" when the question names none.

    `topics` are words that are asked about and no part of a name when others are left (`battery`).
    """
    words = [word.strip(_EDGE).removesuffix("'s").removesuffix("’s") for word in question.split()]
    names = [word for word in words if word and word.casefold() not in ASKING_WORDS]
    names = [word for word in names if word.casefold() not in topics] or names
    return " ".join(names) if 0 < len(names) <= _LONGEST else ""


def without_web_ending(name: str) -> str:
    """The name without its web ending: `plaud` of `plaud.ai`."""
    return _ENDING.sub("", name).strip()


def search_words(question: str) -> str:
    """What to search for: the name and the telling words of a question, else the text itself.

    `what do people dislike about Notion?` is `Notion`, `is the battery of the Oura ring any good?`
    is `battery Oura ring`; a text that does not ask (`How I Met Your Mother`) stays as it is,
    but for `the battery of the Oura ring`. English questions only.
    """
    return " ".join(_telling(question)) or question


def judged_words(question: str, kinds: Container[str] = frozenset()) -> str:
    """What to judge by: of `search_words`, its first capital to the last capital, figure or kind.

    Without a capital, what follows the last `of`: `is the battery of the Oura ring any good?` is
    about `Oura ring`, of which a post must speak, and that of plaud.ai about `plaud.ai`.
    """
    telling = _telling(question)
    capital = [number for number, word in enumerate(telling) if word[0].isupper()]
    if not capital:
        _, _, owner = question.rpartition(" of ")
        owners = {word.strip(_EDGE) for word in owner.split()}
        telling = [word for word in telling if word in owners] or telling
    if capital:
        ends = [number for number, word in enumerate(telling) if _NAMING.search(word)]
        end = ends[-1] + 1
        while end < len(telling) and telling[end].casefold() in kinds:
            end += 1
        telling = telling[capital[0] : end]
    return " ".join(telling) or question


def _telling(question: str) -> list[str]:
    """The words of a question that are not of asking, in order; none where nothing is asked."""
    words = _PLACE.sub(" ", question).split()
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
        # a capital inside a sentence is a name's, whatever the word means elsewhere: `the Room app`
        and (bare not in meaningless or (number and word[0].isupper() and not titled))
    ]


def new_queries(queries: Iterable[str], earlier: Iterable[str]) -> list[str]:
    """Those that are more than another spelling of one that was asked, each once, in order."""
    known = {canonical(query) for query in earlier} | {""}
    new: dict[str, str] = {}
    for query in queries:
        form = canonical(query)
        if form not in known:
            new.setdefault(form, query)
    return list(new.values())
