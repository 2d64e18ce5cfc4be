"""Words as the archive's index holds them, and how well they fit: BM25 over what was written.

Both databases index these tokens and nothing of their own, so a text is found by the same words in
either, and its score is computed here.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import regex

from api.services.gate.words import SMALL, stem
from api.services.text import fold

K1, B = 1.2, 0.75
"""Robertson's usual constants: how soon a repeated word stops counting, what length does."""
USUAL_LENGTH = 60
"""Tokens of an ordinary entry, in the place of the average, which would change with every item."""
ORDINARY = 3_000
"""Entries of an ordinary archive: in one of ten about one mug, `mug` would weigh nothing beside a
word that none of them happens to use."""
LONGEST = 40
"""Characters of a token; what is longer is an address or a code, and is cut."""
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
"""Scripts without blanks, for a class of characters."""
# `小米手环`, or a word of a script with blanks: `batteries`, `rtx4090`
_TOKEN = regex.compile(
    rf"(?P<run>[{UNSPACED}][{UNSPACED}\p{{M}}ー]*+)|[[\p{{L}}\p{{M}}\p{{N}}]--[{UNSPACED}]]++",
    regex.V1,
)
# what stands in quotation marks: `"drawn with crayons"`, `«sans fil»`
_QUOTED = regex.compile(r"[\"“„«](?P<phrase>[^\"“”„«»]{1,300})[\"”“»]")
# two letters of a run without blanks, as `tokens` gives them: `米手`
_PAIR = regex.compile(rf"[{UNSPACED}][{UNSPACED}\p{{M}}ー]")
# the same words where all letters are English and small, in a tenth of the time
_PLAIN = re.compile(r"[a-z0-9]+")
_POSSESSIVE = regex.compile(r"['’]s(?!\p{L})")


def tokens(text: str) -> list[str]:
    """Its words folded and in the singular, without the smallest; letters in pairs without blanks.

    `小米手环` is `小米`, `米手`, `手环`, so that a word of two letters is found, too.
    """
    written: list[str] = []
    folded = fold(text)
    if "'" in folded or "’" in folded:
        folded = _POSSESSIVE.sub("", folded)
    if folded.isascii():
        return [stem(word)[:LONGEST] for word in _PLAIN.findall(folded) if word not in SMALL]
    for match in _TOKEN.finditer(folded):
        word = match[0]
        if match["run"] is None:
            if word not in SMALL:
                written.append(stem(word)[:LONGEST])
        elif len(word) == 1:
            written.append(word)
        else:
            written.extend(map("".join, pairwise(word)))
    return written


def unheard(query: str, frequencies: Mapping[str, int]) -> list[str]:
    """Words of a query, as they are written, that no entry holds; scripts without blanks have none.

    Args:
        query: what was asked.
        frequencies: how many entries hold each of its tokens.
    """
    missing: dict[str, str] = {}
    for match in _TOKEN.finditer(query):
        if match["run"] is None and (word := tokens(match[0])) and not frequencies.get(word[0]):
            missing.setdefault(word[0], match[0])
    return list(missing.values())


def phrases(text: str) -> list[list[str]]:
    """The tokens of each quotation of two words and more."""
    quoted = (tokens(match["phrase"]) for match in _QUOTED.finditer(text))
    return [phrase for phrase in quoted if len(phrase) > 1]


def quotes(entry: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether a phrase's tokens stand in an entry, one after another."""
    size, wanted = len(phrase), tuple(phrase)
    starts = (place for place, word in enumerate(entry) if word == wanted[0])
    return any(tuple(entry[place : place + size]) == wanted for place in starts)


def bm25(
    query: Sequence[str], entry: Sequence[str], frequencies: Mapping[str, int], entries: int
) -> float:
    """How well an entry fits a query; 0 without a common word, no upper bound.

    Args:
        query: its tokens.
        entry: all tokens of the entry.
        frequencies: how many entries hold each token of the query.
        entries: how many there are.
    """
    counts, score = Counter(entry), 0.0
    length = 1 - B + B * len(entry) / USUAL_LENGTH
    for word in dict.fromkeys(query):
        if count := counts[word]:
            weight = rarity(frequencies.get(word, 1), entries)
            score += weight * count * (K1 + 1) / (count + K1 * length)
    return score


def held(
    query: Sequence[str], entry: Sequence[str], frequencies: Mapping[str, int], entries: int
) -> float:
    """The share of a query that an entry holds, 0 to 1, the rarer its words the heavier.

    A word that nothing holds is the heaviest: an archive that never heard of a thing cannot answer
    what is asked about it, however well the other words fit. A pair of letters that nothing holds
    counts half: of these every second one is the end of a word and the beginning of the next.
    Unlike BM25 it says the same of long and short questions, and nearly of large and small
    archives. Arguments are as those of `bm25`.
    """
    among = max(entries, ORDINARY)
    weights = {}
    for word in query:
        holding = frequencies.get(word, 0)
        unsure = not holding and _PAIR.fullmatch(word)
        weights[word] = rarity(holding, among) / (2 if unsure else 1)
    own = sum(weights[word] for word in weights.keys() & set(entry))
    return own / sum(weights.values()) if weights else 0.0


def rarity(holding: int, entries: int) -> float:
    """Robertson's weight of a word that so many entries hold; above 0."""
    holding = min(holding, entries)
    return math.log(1 + (entries - holding + 0.5) / (holding + 0.5))
