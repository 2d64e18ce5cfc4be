"""The passage behind a citation, and the products that a text is about.

A subject is a product of the conversation, written as the keywords that first named it:
`ember mug`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import regex

from api.core.text import display_title, fold, one_line, web_url
from api.core.words import languages_of
from api.features.chat.chat_turn import Citation
from api.pipeline.question import query_guard
from api.pipeline.question.product_name import question_parts
from api.reports.composition import credit_of
from api.reports.exhibits import Exhibit
from api.reports.keyless.aspects import aspects_named
from api.reports.markdown_text import md, quotation
from api.reports.quotes import ADDRESSES, LABEL, sentences
from api.reports.report import LONGEST_PASSAGE

WEB_ENDING = regex.compile(r"(?i)(?<=\w)\.(?:ai|app|co|com|dev|io|net|org|so)\b")
"""What a name may stand with or without: `.ai` of `plaud.ai`."""
# a word that is a name by its form: `Yeti`, `rtx4090`, `3m`, `cal.com`, but not `60`
_MARKED = regex.compile(r"\p{Lu}|\p{L}\d|\d\p{L}|\p{L}\.\p{L}")
# an aspect and whose it is: `the support of Oura`
_PART = regex.compile(r"(?i)\bthe (?P<part>\p{L}++) of (?P<owner>.*\S)")
# a comparison, so that the sentence may speak of several products
_COMPARING = regex.compile(r"(?i)\b(?:than|unlike|compared|versus|vs|both|either|neither|while|whereas|instead)\b")


def products_in(query: str) -> tuple[str, ...]:
    """The products that a query is about: those it compares, else one."""
    part, parts = _PART.search(query), question_parts(query)
    whose = part["owner"] if part and aspects_named(part["part"]) else query
    asks = parts.subject and not part
    taken = parts.products if asks or parts.kind == "comparison" else ()
    names = (WEB_ENDING.sub("", name) for name in query_guard.compared_names(query) or taken or (whose,))
    spelled = (" ".join(query_guard.naming_words(name)) or one_line(fold(name)) for name in names)
    return tuple(dict.fromkeys(spelled))


def is_variant(name: str, of: str) -> bool:
    """Whether `ember mug lid` is a topic of `ember mug`; with a number it is another product."""
    words, shorter = ([query_guard.singular(word) for word in text.split()] for text in (name, of))
    added = words[len(shorter) :]
    return words[: len(shorter)] == shorter and not any(map(str.isdigit, "".join(added)))


def subjects_named(text: str, subjects: Iterable[str]) -> tuple[str, ...]:
    """The subjects whose words a text holds; not `ember mug` where it holds `ember mug 2`."""
    known, folded = query_guard.joined_spellings(text), fold(text)

    def holds(word: str) -> bool:
        # in scripts that set no words apart, and languages that change their endings
        return word in known or (not word.isascii() and word in folded)

    stems = {subject: [query_guard.singular(word) for word in subject.split()] for subject in subjects}
    named = {
        subject: set(words) for subject, words in stems.items() if "".join(words) in known or all(map(holds, words))
    }
    return tuple(subject for subject, words in named.items() if not any(words < other for other in named.values()))


def subjects_meant(question: str, subjects: Iterable[str]) -> tuple[str, ...]:
    """The subjects that a question names, else the one of which it says the first word alone.

    `back to plaud` means `plaud note`, unless `plaud pin` is known, too.
    """
    known = tuple(subjects)
    if named := subjects_named(question, known):
        return named
    words = set(map(query_guard.singular, query_guard.naming_words(WEB_ENDING.sub("", question))))
    short = [name for name in known if len(first := query_guard.singular(name.split()[0])) > 2 and first in words]
    return tuple(short) if len(short) == 1 else ()


def names_product(question: str) -> bool:
    """Whether a question by its form names a product: `ember mug`, `the Yeti`, `a8x`, `cal.com`.

    Not when it points back, and not `the weight`: one plain word may be what is asked about. False
    in other languages than English, where the form does not tell.
    """
    if query_guard.refers_back(question) or "en" not in languages_of(question):
        return False
    words = question.split()
    naming = [bool(query_guard.naming_words(word)) for word in words]
    return any(map(all, pairwise(naming))) or any(
        _MARKED.search(word) for word, tells in list(zip(words, naming, strict=True))[1:] if tells
    )


def is_comparing(sentence: str) -> bool:
    """Whether a sentence holds a word of comparing, such as `than` or `versus`."""
    return _COMPARING.search(sentence) is not None


# between sentences; a citation after a full stop belongs to the one before it: `Warm. [E1]| It`
_BETWEEN = regex.compile(r"\n+|(?<=[.!?…。！？][\"'”’»)」』]?(?:\s*\[E[E\d, ]+\])?)(?!\s*\[E\d)(?:\s+|(?<=[。！？]))")


def citations_of(text: str, exhibits: Iterable[Exhibit], names: Iterable[str]) -> tuple[Citation, ...]:
    """A citation of each exhibit, with the passage that `passage_for` chooses."""
    citations = []
    for exhibit in exhibits:
        item, passage = exhibit.item, passage_for(text, exhibit, names)
        title = display_title(one_line(item.title), item.thread)
        url, credit = web_url(item.url), credit_of(item, passage)
        citations.append(Citation(exhibit.label, item.key, title, url, passage, credit))
    return tuple(citations)


def plain_text(words: str) -> str:
    """Strangers' words without markup; an ellipsis stands where an address was."""
    return md(ADDRESSES.sub("…", words))


def passage_for(text: str, exhibit: Exhibit, names: Iterable[str]) -> str:
    """The sentence of the exhibit that `text` quotes, else the nearest to what cites it, verbatim.

    Empty when none shares a word with a citing sentence. The title is taken only when nothing else
    fits. Words of `names`, the products, count only where there are no others: every post has them.
    """
    named = {query_guard.singular(word) for name in names for word in name.split()}
    citing = (
        _keywords(LABEL.sub("", sentence))
        for sentence in _BETWEEN.split(text)
        if exhibit.label in LABEL.findall(sentence)
    )
    claims = [words - named or words for words in citing]

    def likeness(passage: str) -> tuple[int, int]:
        words = _keywords(passage)
        return max((len(claim & words) for claim in claims), default=0), -len(passage)

    texts = exhibit.item.texts
    titles = () if exhibit.item.thread else texts[:1]
    # a title is quoted whole where it holds an address, which no sentence may
    quotable = (part for words in texts for part in sentences(words))
    for part in (*map(one_line, titles), *quotable):
        shown = quotation(part)
        if any(f"“{words}” [{exhibit.label}]" in text for words in (part, shown, plain_text(shown))):
            return part
    for written in (texts[len(titles) :], titles):
        passages = [part for words in written for part in sentences(words) if len(part) <= LONGEST_PASSAGE]
        best = max(passages, key=likeness, default="")
        if likeness(best)[0]:
            return best
    return ""


def _keywords(text: str) -> set[str]:
    """Naming words, and pairs of letters in scripts without spaces."""
    return {
        *map(query_guard.singular, query_guard.naming_words(WEB_ENDING.sub("", text))),
        *query_guard.letter_pairs(text),
    }
