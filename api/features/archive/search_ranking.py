"""Which of the entries that both searches found are shown, in which order: the rules, no I/O.

The same input gives the same order; ties go by the entry's id.

Raw scores of what both searches found: BM25 and the cosine of vectors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import mul

from api.core.words import diversify
from api.features.archive.entries import DIMENSIONS, ChunkId, Matches
from api.features.archive.index_words import bm25, held, quotes
from api.settings import RankingSettings, RetrievalSettings

SURE_OF_WORDS = 0.9
"""Normalised score by words from which the best such hit passes the floor of likeness."""

# Of the question, as `held` says it: a sum of fractions.
_ALL = 0.999


@dataclass(frozen=True, slots=True)
class Scored:
    """An entry with its raw scores, and what is made of them."""

    id: ChunkId
    thread: str
    """Key of its item, or of the thread whose title that bears."""
    words: float
    """BM25; 0 without a common word."""
    cosine: float | None
    """None: no vector, of the entry or of the query."""
    by_words: bool = True
    """Among the best by words."""
    by_vector: bool = True
    """Among the nearest."""
    held: float = 1.0
    """Share of the question's words that it holds, see `api/features/archive/index_words.py`."""
    quoted: bool = False
    """It holds, word for word, all that the question quotes."""
    words_share: float = 0.0
    """`words` within what was found by words, 0 to 1; 0 for what was not."""
    vector_share: float = 0.0
    combined: float = 0.0


@dataclass(frozen=True, slots=True)
class BelowFloors:
    """How many entries each floor left out."""

    absolute: int = 0
    """Neither near enough nor fitting enough by words; all, when none holds enough of them."""
    score: int = 0
    vector: int = 0


def combined(entries: Sequence[Scored], weight: float, *, vectors: bool) -> list[Scored]:
    """Both scores stretched to 0 to 1 within their own page and added, the best first.

    Args:
        entries: what was found; of an id that stands there twice the first counts.
        weight: the share of likeness.
        vectors: whether the nearest were looked for; else words are all there is.
    """
    distinct = list({entry.id: entry for entry in reversed(entries)}.values())
    words = _stretched({e.id: e.words for e in distinct if e.by_words})
    near = _stretched({e.id: e.cosine for e in distinct if e.by_vector and e.cosine is not None})
    share = weight if vectors else 0.0
    whole = []
    for entry in distinct:
        by_words, by_vector = words.get(entry.id, 0.0), near.get(entry.id, 0.0)
        sum_ = share * by_vector + (1 - share) * by_words
        whole.append(replace(entry, words_share=by_words, vector_share=by_vector, combined=sum_))
    return sorted(whole, key=lambda entry: (-entry.combined, entry.id))


def floored(
    line: Sequence[Scored], retrieval: RetrievalSettings, *, vectors: bool
) -> tuple[list[Scored], BelowFloors]:
    """What passes the floors, in the order of `line`, and how many each left out.

    The strongest hit by words passes the floors of its page at `keyword_floor`, and that of
    likeness at `SURE_OF_WORDS` when the settings allow it; nothing passes the absolute ones. One of
    these is of the whole page: where no entry holds enough of the question, nothing is cited, and
    beside one that does nothing with less than half of that. What holds a question's quotation
    passes all floors.
    """
    if not any(entry.quoted or entry.held >= retrieval.evidence_floor for entry in line):
        return [], BelowFloors(absolute=len(line))
    strongest = max((e for e in line if e.by_words), key=lambda e: e.words_share, default=None)
    passed, out = [], BelowFloors()
    for entry in line:
        share = entry.words_share if entry is strongest else 0.0
        sure = retrieval.allow_keyword_top1_override and share >= SURE_OF_WORDS
        strange = entry.held < retrieval.evidence_floor / 2
        far = (entry.cosine or 0.0) < retrieval.min_cosine and entry.words < retrieval.min_bm25
        if entry.quoted:
            passed.append(entry)
        elif strange or far:
            out = replace(out, absolute=out.absolute + 1)
        elif share >= retrieval.keyword_floor and share > 0:
            passed.append(entry)
        elif entry.combined < retrieval.score_floor:
            out = replace(out, score=out.score + 1)
        elif vectors and entry.vector_share < retrieval.vector_floor and not sure:
            out = replace(out, vector=out.vector + 1)
        else:
            passed.append(entry)
    return passed, out


def holding(entries: Sequence[Scored]) -> tuple[list[Scored], bool]:
    """For a search of few words: those that hold all of them pass the floors as a quotation does.

    Where none holds all, those that hold any do, which the second value says.
    """
    scattered = not any(entry.held > _ALL for entry in entries)
    least = 0.0 if scattered else _ALL
    return [replace(entry, quoted=entry.held > least) for entry in entries], scattered


def in_doubt(line: Sequence[Scored], retrieval: RetrievalSettings) -> bool:
    """Whether the best score is good enough to show and too weak to trust its order."""
    top = line[0].combined if line else 0.0
    return retrieval.score_floor <= top < retrieval.rerank_trigger_max


def reranked(line: Sequence[Scored], scores: Sequence[float], window: int) -> list[Scored]:
    """The head of the line by other scores, one for each of its entries; ties keep their order."""
    head = sorted(zip(scores, line[:window], strict=True), key=lambda pair: -pair[0])
    return [entry for _, entry in head] + list(line[window:])


def diverse(line: Sequence[Scored], ranking: RankingSettings) -> list[Scored]:
    """Few of one thread before others; an item's own entries are of one."""
    return diversify(line, lambda entry: [entry.thread], lambda entry: entry.combined, ranking)


def _stretched(scores: Mapping[ChunkId, float]) -> dict[ChunkId, float]:
    """From 0 for the least to 1 for the best; all 1 where they are equal."""
    least, best = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    if least == best:
        return dict.fromkeys(scores, 1.0)
    return {name: (score - least) / (best - least) for name, score in scores.items()}


def scored(
    matches: Matches,
    words: Sequence[str],
    vector: bytes | None,
    phrases: Sequence[Sequence[str]] = (),
) -> list[Scored]:
    """Every entry with both scores, in the order of their ids.

    Args:
        matches: what was found.
        words: tokens of the question.
        vector: of the question; None: nothing is near.
        phrases: what the question quotes, as tokens.
    """
    near: dict[int, float] = {}
    vectors = {place: match.vector for place, match in enumerate(matches.matches)}
    # one of another length was damaged, and hides no other
    whole = {place: v for place, v in vectors.items() if v is not None and len(v) == DIMENSIONS}
    if vector is not None and whole:
        near = dict(zip(whole, cosines(vector, list(whole.values())), strict=True))
    return [
        Scored(
            id=match.id,
            thread=match.thread,
            words=bm25(words, match.tokens, matches.frequencies, matches.entries),
            cosine=near.get(place),
            by_words=match.by_words,
            by_vector=match.by_vector,
            held=held(words, match.tokens, matches.frequencies, matches.entries),
            quoted=bool(phrases) and all(quotes(match.tokens, phrase) for phrase in phrases),
        )
        for place, match in enumerate(matches.matches)
    ]


def cosines(vector: bytes, others: Sequence[bytes]) -> list[float]:
    """How alike vectors of signed bytes are to one, -1 to 1; 0 beside one of zeros.

    Some 50 us each: a page of them costs less than to load a library.
    """
    query, length = memoryview(vector).cast("b"), _length(vector)
    shares = []
    for other in others:
        both = length * _length(other)
        shares.append(sum(map(mul, query, memoryview(other).cast("b"))) / both if both else 0.0)
    return shares


def _length(vector: bytes) -> float:
    signed = memoryview(vector).cast("b")
    return math.sqrt(sum(map(mul, signed, signed)))
