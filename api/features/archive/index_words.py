"""The pieces in which an item is indexed, and how well they fit the words of a query (BM25).

Both databases index these tokens and nothing of their own, so a text is found by the same words in
either, and its score is computed here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import regex

from api.core.items import Comment, Item
from api.core.text import one_line
from api.core.words import INDEX_TOKEN, LETTER_PAIR, index_tokens, snowball_stem, stem
from api.features.archive.search_values import ChunkId

K1, B = 1.2, 0.75
"""Robertson's usual constants: how soon a repeated word stops counting, and what length does."""
USUAL_LENGTH = 60
"""Tokens of an ordinary entry, in place of the average, which would change with every item."""
ORDINARY = 3_000
"""Least number of entries by which the rarity of a word is computed: among ten entries about one mug `mug` would have
no weight."""
LONGEST_CHUNK = 1000  # characters of one piece, without the title that goes before it
MOST_CHUNKS = 20  # pieces of one text; what comes later (of a book in a post) is not searched
TITLE = 300  # characters of the title before each piece
# Characters of an id that may be searched for: a shorter one may be the number of a row.
_SHORTEST_ID = 5
# what stands in quotation marks: `"drawn with crayons"`, `«sans fil»`
_QUOTED = regex.compile(r"[\"“„«](?P<phrase>[^\"“”„«»]{1,300})[\"”“»]")


# Endings with which a stem is tried, by language; Snowball then says which of them are forms of the word.
_ENDINGS = {
    "english": "e s es ed d ing er",
    "german": "e en er n",
    "spanish": "a o as os",
    "french": "e es",
}
# letters of a stem whose forms are looked for, and whose end may be doubled; in other languages than English a
# stem has one more: `ember` is no form of `emb`
_SHORTEST_STEM, _SHORT_WORD = 3, 4
_LETTERS = regex.compile(r"[a-z]+")


@lru_cache(maxsize=20_000)
def word_forms(word: str) -> tuple[str, ...]:
    """The tokens that are a word's inflections, itself first: `crash`, `crashe` (of `crashes`), `crashing`.

    By Snowball in English, German, Spanish and French; other words have one form.
    """
    forms = dict.fromkeys((word,))
    # words in `-ly` and words with other signs than a to z match as spelled: `Taskly` is mostly a name
    if not _LETTERS.fullmatch(word) or word.endswith("ly"):
        return tuple(forms)
    for language, endings in _ENDINGS.items():
        root = snowball_stem(word, language)
        bases = {word, root, word[: len(root)], word[: len(root) - 1]}
        bases |= {f"{root}{root[-1:]}"} if len(root) <= _SHORT_WORD else set()  # `stopped`
        shortest = _SHORTEST_STEM + (language != "english")
        for base in (base for base in bases if len(base) >= shortest):
            for form in (base + ending for ending in ("", *endings.split())):
                if snowball_stem(form, language) == root:
                    forms.setdefault(stem(form))
    return tuple(forms)


def with_forms_as(words: Iterable[str], entry: Sequence[str]) -> list[str]:
    """An entry's tokens, inflections of these words as the words themselves."""
    known = {form: word for word in reversed(list(words)) for form in reversed(word_forms(word))}
    return [known.get(token, token) for token in entry]


def unmatched_words(query: str, frequencies: Mapping[str, int]) -> list[str]:
    """The words of a query, as written, that no entry holds; `frequencies` are of its tokens.

    Scripts without spaces have no words that could be named.
    """
    missing: dict[str, str] = {}
    for match in INDEX_TOKEN.finditer(query):
        if match["run"] is None and (word := index_tokens(match[0])) and not frequencies.get(word[0]):
            missing.setdefault(word[0], match[0])
    return list(missing.values())


def quoted_phrases(text: str) -> list[list[str]]:
    """The tokens of each quotation of two words and more."""
    quoted = (index_tokens(match["phrase"]) for match in _QUOTED.finditer(text))
    return [phrase for phrase in quoted if len(phrase) > 1]


def holds_phrase(entry: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether a phrase's tokens stand in an entry, one after another."""
    size, wanted = len(phrase), tuple(phrase)
    starts = (place for place, word in enumerate(entry) if word == wanted[0])
    return any(tuple(entry[place : place + size]) == wanted for place in starts)


def bm25(query: Sequence[str], entry: Sequence[str], frequencies: Mapping[str, int], entries: int) -> float:
    """BM25 score of an entry for a query, both as tokens; 0 without a common word, unbounded above.

    `frequencies` are the numbers of entries that hold each token of the query, of `entries` in all.
    """
    counts, score = Counter(entry), 0.0
    length = 1 - B + B * len(entry) / USUAL_LENGTH
    for word in dict.fromkeys(query):
        if count := counts[word]:
            weight = rarity(frequencies.get(word, 1), entries)
            score += weight * count * (K1 + 1) / (count + K1 * length)
    return score


def held_share(query: Sequence[str], entry: Sequence[str], frequencies: Mapping[str, int], entries: int) -> float:
    """The share of a query that an entry holds, 0 to 1, rare words counting more; see `bm25`.

    A word that no entry holds counts most: an archive that never mentions a thing cannot answer
    what is asked about it, however well the other words fit. A pair of letters that no entry holds
    counts half, since every second pair is the end of a word and the beginning of the next. Unlike
    BM25 it is comparable between long and short questions, and nearly so between archives.
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
    """Robertson's weight of a word that `holding` of `entries` hold; above 0."""
    holding = min(holding, entries)
    return math.log(1 + (entries - holding + 0.5) / (holding + 0.5))


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of an item's text, or of one of its comments."""

    key: str
    comment: str  # the comment's number in its item, from 1; empty: the item's own text
    part: int  # from 0 within that text
    title: str  # of the item or its thread
    text: str  # on one line, without the title
    created_at: datetime | None = None
    name: str = ""  # the item's key or the comment's id, by which the first piece can be found

    @property
    def id(self) -> ChunkId:
        """Id of the entry, unique within a tenant."""
        return self.key, self.comment, self.part

    @property
    def full_text(self) -> str:
        """Title and piece, separated by a line end."""
        return f"{self.title}\n{self.text}".strip()

    @property
    def index_text(self) -> str:
        """The text whose words are indexed: with the name."""
        return f"{self.full_text}\n{self.name}"


def chunked(item: Item) -> list[Chunk]:
    """The pieces of an item in order, its own before its comments'; none without any text."""
    title = one_line(item.title)[:TITLE]
    texts = [("", item.key, item.id, item.body, item.created_at)]
    for number, comment in enumerate(item.comments, 1):  # numbered, since ids may be equal or empty
        when = comment.created_at or item.created_at
        texts.append((str(number), comment.id, comment.id, comment.body, when))
    chunks = []
    for comment_number, name, id_, text, when in texts:
        pieces = list(_pieces(text)) or ([""] if title and not comment_number else [])
        for part, piece in enumerate(pieces):
            known = name if part == 0 and len(id_) >= _SHORTEST_ID else ""
            chunks.append(Chunk(item.key, comment_number, part, title, piece, when, known))
    return chunks


def comment_of(item: Item, piece: Chunk) -> Comment | None:
    """The comment that this piece belongs to; None when it belongs to the item's own text."""
    return item.comments[int(piece.comment) - 1] if piece.comment else None


def _pieces(text: str) -> Iterator[str]:
    """The text cut between words, each piece as long as may be."""
    left = one_line(text[: 2 * LONGEST_CHUNK * MOST_CHUNKS])
    for _ in range(MOST_CHUNKS):
        if not left:
            return
        end = len(left)
        if end > LONGEST_CHUNK:
            # without a space it is a script that has none
            end = left.rfind(" ", LONGEST_CHUNK // 2, LONGEST_CHUNK) + 1 or LONGEST_CHUNK
        yield left[:end].strip()
        left = left[end:].lstrip()
