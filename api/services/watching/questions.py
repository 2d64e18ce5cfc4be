"""What people ask for the first time: questions of new posts that no earlier post asked.

A sentence counts only where it surely asks for something about the product: rather one too few than
a rhetorical one. No model has a say. How often it is right: docs/watches.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import zip_longest

from api.services.archive.words import tokens
from api.services.gate.words import stem
from api.services.question.query import stop_words
from api.services.reporting.composing import item_of
from api.services.reporting.polarity import ASKING
from api.services.reporting.report import KeptItem
from api.services.reporting.sentences import beginning, sentences
from api.services.reporting.subjects import Subject
from api.services.reporting.threads import is_elsewhere, is_topic
from api.services.schemas import Item, Question
from api.services.text import fold
from api.services.watching.asking import asks, generic_words, is_headline, own_words
from api.services.watching.run import NewQuestion

MOST = 5
"""Questions of a run."""
_ALIKE = 0.5
"""From this share of the shorter one's telling words on, two questions ask the same."""
_ROOT = 5
"""Letters by which words are compared: `charging`, `charges`."""
_BROADCAST = frozenset({"amazon", "youtube"})
"""Where a shop or a channel speaks: its questions are bait."""


def new_questions(
    question: Question, new: Sequence[KeptItem], earlier: Iterable[Item]
) -> tuple[NewQuestion, ...]:
    """What the new posts ask, and none of the earlier ones did: what most ask first.

    Args:
        question: it names the product.
        new: posts, the best first.
        earlier: the posts of earlier runs, as far as their words are known.
    """
    items = [item_of(kept) for kept in new]
    subject = Subject.of(question, [beginning(text) for item in items for text in item.texts])
    candidates = [
        (_sense(sentence, subject), sentence, item.key)
        for item in items
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
    if item.source in _BROADCAST or is_elsewhere(item, subject):
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
    words = set(tokens(subject.pattern.sub(" ", sentence))) - _idle() - subject.name_words
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
