"""The words behind a citation: of a cited exhibit the sentence nearest to what cites it."""

from __future__ import annotations

from collections.abc import Iterable

import regex

from api.services.chatting.subjects import WEB_ENDING
from api.services.chatting.turns import Citation
from api.services.question.guard import pairs_of, stem, telling_words
from api.services.reporting.credits import credit_of
from api.services.reporting.dossier import Exhibit
from api.services.reporting.escaping import md, quotation
from api.services.reporting.findings import LONGEST_PASSAGE
from api.services.reporting.grounds import ADDRESSES, LABEL
from api.services.reporting.sentences import sentences
from api.services.text import called, one_line, web_url

# Between sentences; a citation behind a full stop belongs to what is before it: `Warm. [E1]| It`.
_BETWEEN = regex.compile(
    r"\n+|(?<=[.!?…。！？][\"'”’»)」』]?(?:\s*\[E[E\d, ]+\])?)(?!\s*\[E\d)(?:\s+|(?<=[。！？]))"
)


def cited(text: str, exhibits: Iterable[Exhibit], names: Iterable[str]) -> tuple[Citation, ...]:
    """The exhibits that a text cites as a person sees them; see `passage_for` for `names`."""
    citations = []
    for exhibit in exhibits:
        item, passage = exhibit.item, passage_for(text, exhibit, names)
        title = called(one_line(item.title), item.thread)
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
    named = {stem(word) for name in names for word in name.split()}
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
    return {*map(stem, telling_words(WEB_ENDING.sub("", text))), *pairs_of(text)}
