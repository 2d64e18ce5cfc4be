"""The things that share a name, as groups of items about the same: found by word vectors alone.

A page of items for `Arc` falls apart into posts about a browser and posts about a game; a page for
`Roku` does not. Items are compared without the name itself, relative to the page's mean, and joined
from the most alike on. Measured by `scripts/training/measure_senses.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import regex

from api.core.domain import Question, Sense
from api.core.items import Item
from api.core.text import fold
from api.core.words import content_words, languages_of, split_words, stop_words_of
from api.models.local.word_vectors import Vectors, vectors
from api.pipeline.gate.name_matches import NEARLY, Name, best, everyday_parts, name_of, sightings
from api.pipeline.question.product_name import judged_words, product_in

_READ = 1_000  # characters of a text, as many as the local judge reads
_MOST_ITEMS = 150  # joining n items takes n matrices of n x n: 0.2 s at this size
# Mean cosine, above the page's mean, at which two groups are one. Chosen on the development parts
# of the mention set and the real set: at .10 and .15 one thing falls apart into its topics.
_JOINED = 0.05
_SMALLEST = 3  # items of a group; fewer have no words in common that could name it
_MOST_SENSES = 4
# Share of the items that the two largest groups hold where a name that is no everyday word has
# several meanings, where it is one, and how many items that must be. Of the 28 names of the
# development sets 5 reach them, all everyday words with namesakes; topics of one thing reach .24
# (Notion) to .57 (Rain Bird, of 8 items), so that other names need more.
_CLEAR, _EVERYDAY, _FEWEST_HELD = 0.65, 0.3, 9
_WORDS, _FEWEST_WORDS = 5, 2
_TITLES = 2
# `raiders`, `e-ink`: what can name a group; no addresses, numbers or halves of contractions
_NAMING = regex.compile(r"\p{L}[\p{L}-]+\p{L}")


@dataclass(frozen=True, slots=True)
class Grouping:
    """Groups of the items that have a name."""

    senses: tuple[Sense, ...] = ()
    """Senses, at most four, the largest group first."""
    share: float = 0.0
    """Share of the items in the two largest groups; 0 with fewer than two groups."""


def find_senses(question: Question, items: Sequence[Item], kept: Collection[str] = ()) -> tuple[Sense, ...]:
    """Two to four groups, the largest first, or none where the name means one thing.

    `kept` are the keys of the items that the gate kept. None is found either where the question
    says what it is about, or the vectors are not installed. Costs 1 to 30 ms for 30 items and 200
    ms for the 150 that are read at most.
    """
    if question.about:
        return ()
    name = name_of(_name_in(question))
    grouping = group_items(question, items, kept)
    least = _EVERYDAY if everyday_parts(name) else _CLEAR
    held = sum(sense.count for sense in grouping.senses[:2])
    return grouping.senses if grouping.share >= least and held >= _FEWEST_HELD else ()


def group_items(question: Question, items: Sequence[Item], kept: Collection[str] = ()) -> Grouping:
    """All groups that have words of their own, however many items they hold."""
    known, name = vectors(), _name_in(question)
    # a copy is no second witness for a group; what does not hold the name has none of its senses
    distinct = list({fold(item.title): item for item in reversed(items)}.values())[::-1]
    items = [item for item in distinct if _holds(name_of(name), item)][:_MOST_ITEMS]
    if known is None or len(items) < 2 * _SMALLEST:
        return Grouping()
    in_name = {word.text for word in split_words(name)}
    texts = [_telling_words(in_name, item) for item in items]
    groups = [group for group in _clusters(known, texts) if len(group) >= _SMALLEST]
    named = [
        (group, words)
        for group, words in zip(groups, _naming_words(groups, texts), strict=True)
        if len(words) >= _FEWEST_WORDS
    ][:_MOST_SENSES]
    if len(named) < 2:
        return Grouping()
    senses = tuple(
        Sense(
            number, words, tuple(items[at].title for at in group[:_TITLES]), len(group),
            sum(items[at].key in kept for at in group),
        )
        for number, (group, words) in enumerate(named, 1)
    )  # fmt: skip
    return Grouping(senses, sum(sense.count for sense in senses[:2]) / len(items))


def _name_in(question: Question) -> str:
    return product_in(judged_words(question.text)) or question.text


def _holds(name: Name, item: Item) -> bool:
    text = f"{item.title}\n{item.body[:_READ]}\n{item.place or ''}"
    return best(sightings(name, split_words(text), text)).strength >= NEARLY


def _telling_words(name: set[str], item: Item) -> list[str]:
    """The words of an item that could tell one thing from another, each once."""
    place = " ".join(word.text for word in split_words(item.place or ""))
    text = f"{item.title} {item.body[:_READ]} {place}"
    # a group of one language or source is no meaning: its small words and its name are left out
    small = stop_words_of(languages_of(text))
    return [
        word
        for word in content_words(text)
        if word not in small
        and word != item.source
        and _NAMING.fullmatch(word)
        and not name.issuperset(part.text for part in split_words(word))
    ]


def _clusters(known: Vectors, texts: Sequence[Sequence[str]]) -> list[list[int]]:
    """Numbers of the texts of each group, the largest group and its most central text first.

    Average linkage: the two groups whose texts are most alike on average become one, until none
    are more alike than `_JOINED`.
    """
    numpy = known.numpy
    rows = known.units([" ".join(words) for words in texts])
    rows = rows - rows.mean(axis=0)
    lengths = numpy.linalg.norm(rows, axis=1, keepdims=True)
    rows = numpy.divide(rows, lengths, out=rows, where=lengths > 0)
    alike = rows @ rows.T
    sums: Any = alike.copy()
    sizes = numpy.ones(len(rows))
    groups: list[list[int]] = [[at] for at in range(len(rows))]
    while len(groups) > 1:
        means = sums / numpy.outer(sizes, sizes)
        numpy.fill_diagonal(means, -numpy.inf)
        first, second = divmod(int(means.argmax()), len(groups))
        if means[first, second] < _JOINED:
            break
        low, high = sorted((first, second))
        groups[low] = groups[low] + groups.pop(high)
        sums[low] += sums[high]
        sums[:, low] += sums[:, high]
        sums = numpy.delete(numpy.delete(sums, high, 0), high, 1)
        sizes[low] += sizes[high]
        sizes = numpy.delete(sizes, high)
    central = []
    for group in sorted(groups, key=lambda group: (-len(group), min(group))):
        likeness = alike[numpy.ix_(group, group)].mean(axis=1)
        central.append([group[at] for at in numpy.argsort(-likeness, kind="stable")])
    return central


def _naming_words(groups: Sequence[Sequence[int]], texts: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """For each group the words that most of its items have and few others do, the clearest first."""
    overall = Counter(word for words in texts for word in words)
    named = []
    for group in groups:
        inside = Counter(word for at in group for word in texts[at])
        outside = len(texts) - len(group)
        weights = {}
        for word, count in inside.items():
            if count > 1:
                # odds of the word within the group to those outside, half a text added to each
                odds = (count + 0.5) / (len(group) + 1)
                odds /= (overall[word] - count + 0.5) / (outside + 1)
                weights[word] = math.log(odds) * math.sqrt(count)
        named.append(tuple(sorted(weights, key=lambda word: (-weights[word], word))[:_WORDS]))
    return named
