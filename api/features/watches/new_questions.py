"""What people ask for the first time: questions of new posts that no earlier post asked.

A sentence counts only where it surely asks for something about the product: rather one too few than
a rhetorical one. No model has a say. How often it is right: docs/watches.md.

Whether a sentence surely asks for something; what is in doubt asks nothing.

The signs stand in `asking.toml`; with a question mark any language counts, without one English,
German, Spanish and French.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from tomllib import loads

import regex

from api.core.domain import Question
from api.core.items import Item
from api.core.text import fold, one_line
from api.core.words import index_tokens, stem, stop_words
from api.features.watches.watch_run import NewQuestion
from api.reports.keyless.polarity import ASKING, is_english
from api.reports.keyless.subjects import Subject, is_excluded, is_topic
from api.reports.quotes import beginning, sentences
from api.reports.report import LONGEST_PASSAGE, KeptItem

# Of a question, at least; in scripts without blanks letters by the pair.
_WORDS = 3
# Letters of words that headlines write small, and their share of others that begin large.
_SMALL, _SHOUTED = 3, 0.8
# `?` at the end, also of Chinese and Arabic, and before a bracket: `(does it work?)`
_MARK = regex.compile(r"[?？؟][!?？]*[\"'”’»)」』]?$")
# somebody else's words: `“Does it work?” she said`
_QUOTATION = regex.compile(r"^[\"“”„«‘'「『]")
# whose words follow: `On Mon, Ann wrote:`, `Am 3. Mai schrieb Ann:`, `-----Original Message-----`
_REPLIED = regex.compile(
    r"^[^\w\n]*+(?:on .{4,80} wrote|am .{4,80} schrieb.{0,60}|le .{4,80} a écrit"
    r"|el .{4,80} escribió) ?:"
    r"|^-{2,} ?(?:original message|ursprüngliche nachricht|message d'origine|mensaje original)"
    r"|^(?:from|von|de|sent|gesendet) ?: .*@.*$",
    regex.I | regex.M,
)
# what is quoted or no prose: `> does it?`, a block of code, `Q: what is it?` of a list of answers
_ASIDE = regex.compile(
    r"^[ \t]*[>|].*$|```[^`]*(?:```|\Z)|^[^\w\n]*(?:q|f|p) ?\d*[:.)] .*$", regex.M | regex.I
)


def asks(sentence: str, following: str = "") -> bool:
    """Whether it asks for something, not for show, and what follows it is no answer."""
    text = one_line(sentence).replace("’", "'")
    words = max(len(text.split()), len(index_tokens(text)))
    if words < _WORDS or len(text) > LONGEST_PASSAGE or _QUOTATION.search(text):
        return False
    if _sign("rhetorical").search(text) or _sign("answered").match(following):
        return False
    if not _MARK.search(text):
        return _sign("unmarked").match(text) is not None and not text.endswith(":")
    return not is_english(text) or _sign("english").search(text) is not None


def is_headline(title: str) -> bool:
    """Whether a title is made to be clicked, not to be answered, as `Is This Stock A Buy?` is."""
    long = [word for word in title.split() if len(word) > _SMALL]
    capitals = sum(word[0].isupper() for word in long)
    shouted = len(long) >= _WORDS and capitals >= _SHOUTED * len(long)
    return shouted or _sign("headline").search(title) is not None


def own_words(text: str) -> str:
    """A text without what it quotes: an e-mail that it answers, code, a list of answers."""
    reply = _REPLIED.search(text)
    return _ASIDE.sub("", text[: reply.start()] if reply else text)


@cache
def generic_words() -> frozenset[str]:
    """Words that say nothing of what is asked for."""
    return frozenset(_signs()["generic"].split())


@cache
def _sign(name: str) -> regex.Pattern[str]:
    """The patterns of this name; `match` finds them behind a greeting only."""
    lines = (line for line in _signs()[name].split("\n") if line and not line.startswith("#"))
    pattern = "|".join(f"(?:{line})" for line in lines)
    if name in _FIRST:
        pattern = rf"{_FIRST[name]}(?:{pattern})"
    return regex.compile(pattern, regex.I)


# What comes before the patterns of a name that hold at the beginning alone.
_FIRST = {
    # what may stand before a question: `Hi, anyone know`
    "unmarked": r"\W*(?:(?:hi|hey|hello|ok|so|also|and|but|question|quick question)\W+)*+",
    "answered": r"\W*",
}


@cache
def _signs() -> dict[str, str]:
    read: dict[str, str] = loads(
        files("api.features.watches").joinpath("new_questions.toml").read_text("utf-8")
    )
    return read


MOST = 5
"""Questions of a run."""
# From this share of the shorter one's telling words on, two questions ask the same.
_ALIKE = 0.5
# Letters by which words are compared: `charging`, `charges`.
_ROOT = 5
# Where a shop or a channel speaks: its questions are bait.
_BROADCAST = frozenset({"amazon", "youtube"})


def new_questions(
    question: Question, new: Sequence[KeptItem], earlier: Iterable[Item]
) -> tuple[NewQuestion, ...]:
    """What the new posts ask, and none of the earlier ones did: what most ask first.

    Args:
        question: it names the product.
        new: posts, the best first.
        earlier: the posts of earlier runs, as far as their words are known.
    """
    subject = Subject.of(question, [beginning(text) for item in new for text in item.texts])
    candidates = [
        (_sense(sentence, subject), sentence, item.key)
        for item in new
        for sentence in questions_of(item, subject)
    ]
    if not candidates:
        return ()
    # as they stand in any form of their word: `fl` of `fly` in `flies`
    roots = {root.removesuffix("y") for sense, _, _ in candidates for root in sense}
    known = [_sense(sentence, subject) for item in earlier for sentence in _loosely(item, roots)]
    groups: list[tuple[frozenset[str], str, list[str]]] = []
    for sense, sentence, key in candidates:
        if any(_alike(sense, other) for other in known):
            continue
        same = next((keys for other, _, keys in groups if _alike(sense, other)), None)
        if same is None:
            groups.append((sense, sentence, [key]))
        elif key not in same:
            same.append(key)
    groups.sort(key=lambda group: -len(group[2]))
    return tuple(NewQuestion(text=text, cites=tuple(keys)) for _, text, keys in groups[:MOST])


def questions_of(item: Item, subject: Subject) -> Iterator[str]:
    """The sentences of a post that surely ask something about the product, as they stand."""
    if item.source in _BROADCAST or is_excluded(item, subject):
        return
    topic = is_topic(item, subject)
    # what links to a page bears that page's headline
    titles = () if item.thread or item.link or is_headline(item.title) else (item.title,)
    for text in (*titles, own_words(item.body)):
        follows = False
        spoken = sentences(beginning(text))
        for sentence, following in zip_longest(spoken, spoken[1:], fillvalue=""):
            about = subject.is_subject(sentence, topic=topic, follows=follows)
            follows = subject.is_named(sentence) or (follows and about)
            if about and asks(sentence, following) and _sense(sentence, subject):
                yield sentence


def _loosely(item: Item, roots: Collection[str]) -> Iterator[str]:
    """All that may be a question with one of these in it: better too much, so that less is new.

    A thousand posts are looked through, so what takes long goes last.
    """
    for text in (item.title, item.body):
        if _holds(text, roots):
            for sentence in sentences(beginning(text)):
                if _holds(sentence, roots) and ASKING.search(sentence):
                    yield sentence


def _holds(text: str, roots: Collection[str]) -> bool:
    folded = fold(text)
    return any(root in folded for root in roots)


def _sense(sentence: str, subject: Subject) -> frozenset[str]:
    """What it asks for: the roots of its telling words, without the product's name."""
    words = set(index_tokens(subject.pattern.sub(" ", sentence))) - _idle() - subject.name_words
    return frozenset(word[:_ROOT] for word in words)


@cache
def _idle() -> frozenset[str]:
    """Words that tell nothing of what is asked for, in four languages."""
    words = generic_words().union(*map(stop_words, ("en", "de", "es", "fr")))
    return words.union(map(stem, words))


def _alike(sense: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two ask the same, in doubt yes."""
    shorter = min(len(sense), len(other))
    return shorter > 0 and len(sense & other) >= _ALIKE * shorter
