"""Words as the archive's index holds them, and how well they fit: BM25 over what was written.

Both databases index these tokens and nothing of their own, so a text is found by the same words in
either, and its score is computed here.

An item in the pieces that are searched: its text and, each by itself, its comments.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import regex

from api.core.items import Comment, Item
from api.core.text import one_line
from api.core.words import (
    INDEX_TOKEN,
    LETTER_PAIR,
    index_tokens,
)
from api.features.archive.entries import ChunkId

K1, B = 1.2, 0.75
"""Robertson's usual constants: how soon a repeated word stops counting, what length does."""
USUAL_LENGTH = 60
"""Tokens of an ordinary entry, in the place of the average, which would change with every item."""
ORDINARY = 3_000
"""Entries of an ordinary archive: in one of ten about one mug, `mug` would weigh nothing beside a
word that none of them happens to use."""
# what stands in quotation marks: `"drawn with crayons"`, `«sans fil»`
_QUOTED = regex.compile(r"[\"“„«](?P<phrase>[^\"“”„«»]{1,300})[\"”“»]")


def unheard(query: str, frequencies: Mapping[str, int]) -> list[str]:
    """Words of a query, as they are written, that no entry holds; scripts without blanks have none.

    Args:
        query: what was asked.
        frequencies: how many entries hold each of its tokens.
    """
    missing: dict[str, str] = {}
    for match in INDEX_TOKEN.finditer(query):
        if (
            match["run"] is None
            and (word := index_tokens(match[0]))
            and not frequencies.get(word[0])
        ):
            missing.setdefault(word[0], match[0])
    return list(missing.values())


def phrases(text: str) -> list[list[str]]:
    """The tokens of each quotation of two words and more."""
    quoted = (index_tokens(match["phrase"]) for match in _QUOTED.finditer(text))
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
        unsure = not holding and LETTER_PAIR.fullmatch(word)
        weights[word] = rarity(holding, among) / (2 if unsure else 1)
    own = sum(weights[word] for word in weights.keys() & set(entry))
    return own / sum(weights.values()) if weights else 0.0


def rarity(holding: int, entries: int) -> float:
    """Robertson's weight of a word that so many entries hold; above 0."""
    holding = min(holding, entries)
    return math.log(1 + (entries - holding + 0.5) / (holding + 0.5))


LONGEST_CHUNK = 1000
"""Characters of one piece, without the title that goes before it."""
MOST = 20
"""Pieces of one text; what comes later (of a book in a post) is not searched."""
TITLE = 300
"""Characters of the title before each piece."""
# Characters of an id.
_SHORTEST_NAME = 5


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of an item's text, or of one of its comments."""

    key: str
    """The item's."""
    comment: str
    """The comment's number in its item, from 1; empty: the item's own text."""
    part: int
    """From 0 within that text."""
    title: str
    """The item's, or that of the thread it stands in."""
    text: str
    """On one line, without the title."""
    created_at: datetime | None = None
    name: str = ""
    """By which it may be asked for: the item's key or the comment's id, in the first piece."""

    @property
    def id(self) -> ChunkId:
        """What it is, within a tenant."""
        return self.key, self.comment, self.part

    @property
    def whole(self) -> str:
        """What is searched: the title and the piece."""
        return f"{self.title}\n{self.text}".strip()

    @property
    def worded(self) -> str:
        """What its words are taken from: those of `whole`, and its name."""
        return f"{self.whole}\n{self.name}"


def chunked(item: Item) -> list[Chunk]:
    """The pieces of an item in their order, its own before its comments'; none without any text."""
    title = one_line(item.title)[:TITLE]
    own = list(_pieces(item.body)) or ([""] if title else [])
    chunks = [
        Chunk(item.key, "", part, title, text, item.created_at, _name(item.key, item.id, part))
        for part, text in enumerate(own)
    ]
    for number, comment in enumerate(item.comments, 1):  # ids may be equal, or empty
        when = comment.created_at or item.created_at
        for part, text in enumerate(_pieces(comment.body)):
            name = _name(comment.id, comment.id, part)
            chunks.append(Chunk(item.key, str(number), part, title, text, when, name))
    return chunks


def comment_of(item: Item, piece: Chunk) -> Comment | None:
    """The comment that a piece of this item is of; None: it is of the item's own text."""
    return item.comments[int(piece.comment) - 1] if piece.comment else None


def _name(whole: str, id_: str, part: int) -> str:
    """What a first piece may be asked for by; a short id, such as a row's number, is any number."""
    return whole if part == 0 and len(id_) >= _SHORTEST_NAME else ""


def _pieces(text: str) -> Iterator[str]:
    """The text cut between words, each piece as long as may be."""
    left = one_line(text[: 2 * LONGEST_CHUNK * MOST])
    for _ in range(MOST):
        if not left:
            return
        end = (
            len(left)
            if len(left) <= LONGEST_CHUNK
            else left.rfind(" ", LONGEST_CHUNK // 2, LONGEST_CHUNK) + 1
        )
        end = end or LONGEST_CHUNK  # no blank anywhere: a script without them
        yield left[:end].strip()
        left = left[end:].lstrip()
