"""The words behind a citation: of a cited exhibit the sentence nearest to what cites it.

Which product a text is about, among those that a conversation has looked up.

A subject is written as the words that name it in the look-up that brought it up: `ember mug`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import regex

from api.core.text import display_title, fold, one_line, web_url
from api.core.words import languages_of
from api.features.chat.chat_turn import Citation
from api.pipeline.question.query_guard import (
    compared_names,
    joined_spellings,
    letter_pairs,
    naming_words,
    refers_back,
    singular,
)
from api.reports.citable import ADDRESSES, LABEL
from api.reports.composition import credit_of
from api.reports.exhibits import Exhibit
from api.reports.keyless.aspects import aspects_named
from api.reports.markdown_text import md, quotation
from api.reports.quotes import sentences
from api.reports.report import LONGEST_PASSAGE

WEB_ENDING = regex.compile(r"(?i)(?<=\w)\.(?:ai|app|co|com|dev|io|net|org|so)\b")
"""What a name may stand with or without: `.ai` of `plaud.ai`."""
# `Yeti`, `rtx4090`, `3m`, `cal.com`, but not `60`
_MARKED = regex.compile(r"\p{Lu}|\p{L}\d|\d\p{L}|\p{L}\.\p{L}")
# an aspect and whose it is: `the support of Oura`
_PART = regex.compile(r"(?i)\bthe (?P<part>\p{L}++) of (?P<owner>.*\S)")
_WEIGHING = regex.compile(
    r"(?i)\b(?:than|unlike|compared|versus|vs|both|either|neither|while|whereas|instead)\b"
)


def names_in(query: str) -> tuple[str, ...]:
    """The products that a query is about: those it compares, else one."""
    part = _PART.search(query)
    whose = part["owner"] if part and aspects_named(part["part"]) else query
    names = (WEB_ENDING.sub("", name) for name in compared_names(query) or (whose,))
    spelled = (" ".join(naming_words(name)) or one_line(fold(name)) for name in names)
    return tuple(dict.fromkeys(spelled))


def is_variant(name: str, of: str) -> bool:
    """Whether a name is another and something asked about it: `ember mug lid` of `ember mug`.

    With a number it is another product: `ember mug 2`.
    """
    words, shorter = ([singular(word) for word in text.split()] for text in (name, of))
    added = words[len(shorter) :]
    return words[: len(shorter)] == shorter and not any(map(str.isdigit, "".join(added)))


def named_in(text: str, subjects: Iterable[str]) -> tuple[str, ...]:
    """Those whose words a text holds; `ember mug` is not, where `ember mug 2` is."""
    known, folded = joined_spellings(text), fold(text)

    def holds(word: str) -> bool:
        # in scripts that set no words apart, and languages that change their endings
        return word in known or (not word.isascii() and word in folded)

    stems = {subject: [singular(word) for word in subject.split()] for subject in subjects}
    named = {
        subject: set(words)
        for subject, words in stems.items()
        if "".join(words) in known or all(map(holds, words))
    }
    return tuple(
        subject
        for subject, words in named.items()
        if not any(words < other for other in named.values())
    )


def names_another(question: str) -> bool:
    """Whether a question by its form names a product: `ember mug`, `the Yeti`, `a8x`, `cal.com`.

    Not when it points back (`is its Zigbee good?`), and not `the weight`: one plain word may be
    what is asked about something. In another language than English nobody can tell by the form.
    """
    if refers_back(question) or "en" not in languages_of(question):
        return False
    words = question.split()
    telling = [bool(naming_words(word)) for word in words]
    return any(map(all, pairwise(telling))) or any(
        _MARKED.search(word) for word, tells in list(zip(words, telling, strict=True))[1:] if tells
    )


def weighs(sentence: str) -> bool:
    """Whether a sentence sets one product against another, so that it may speak of several."""
    return _WEIGHING.search(sentence) is not None


# Between sentences; a citation behind a full stop belongs to what is before it: `Warm. [E1]| It`.
_BETWEEN = regex.compile(
    r"\n+|(?<=[.!?…。！？][\"'”’»)」』]?(?:\s*\[E[E\d, ]+\])?)(?!\s*\[E\d)(?:\s+|(?<=[。！？]))"
)


def cited(text: str, exhibits: Iterable[Exhibit], names: Iterable[str]) -> tuple[Citation, ...]:
    """The exhibits that a text cites as a person sees them; see `passage_for` for `names`."""
    citations = []
    for exhibit in exhibits:
        item, passage = exhibit.item, passage_for(text, exhibit, names)
        title = display_title(one_line(item.title), item.thread)
        url, credit = web_url(item.url), credit_of(item, passage)
        citations.append(Citation(exhibit.label, item.key, title, url, passage, credit))
    return tuple(citations)


def plain(words: str) -> str:
    """Strangers' words without markup; an ellipsis stands where an address was."""
    return md(ADDRESSES.sub("…", words))


def passage_for(text: str, exhibit: Exhibit, names: Iterable[str]) -> str:
    """A whole sentence of the exhibit, word for word: the one that is quoted, else the nearest.

    Nothing when none shares a word with `text`.

    Args:
        text: an answer that cites the exhibit; its sentences that do so are compared.
        exhibit: its title is taken only when nothing else fits.
        names: of products, whose words say nothing beside others, since every post holds them.
    """
    named = {singular(word) for name in names for word in name.split()}
    citing = (
        _telling(LABEL.sub("", sentence))
        for sentence in _BETWEEN.split(text)
        if exhibit.label in LABEL.findall(sentence)
    )
    claims = [words - named or words for words in citing]

    def likeness(passage: str) -> tuple[int, int]:
        words = _telling(passage)
        return max((len(claim & words) for claim in claims), default=0), -len(passage)

    texts = exhibit.item.texts
    titles = () if exhibit.item.thread else texts[:1]
    # a title is quoted whole where it holds an address, which no sentence may
    quotable = (part for words in texts for part in sentences(words))
    for part in (*map(one_line, titles), *quotable):
        shown = quotation(part)
        if any(f"“{words}” [{exhibit.label}]" in text for words in (part, shown, plain(shown))):
            return part
    for written in (texts[len(titles) :], titles):
        passages = [
            part for words in written for part in sentences(words) if len(part) <= LONGEST_PASSAGE
        ]
        best = max(passages, key=likeness, default="")
        if likeness(best)[0]:
            return best
    return ""


def _telling(text: str) -> set[str]:
    """What is compared: words, and two letters in a row where words are not set apart."""
    return {*map(singular, naming_words(WEB_ENDING.sub("", text))), *letter_pairs(text)}
