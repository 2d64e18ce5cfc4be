"""Scores the entries that word and vector search found, and selects which to show; no I/O.

The same input gives the same order; ties go by the entry's id.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import mul

from api.core.diversity import diversify
from api.features.archive.index_words import bm25, held_share, holds_phrase, with_forms_as
from api.features.archive.search_values import ChunkId, FloorCounts, Matches
from api.settings import RankingSettings, RetrievalSettings

WORDS_IN_ORDER = 3
"""Fewest words of a question for the rule of order: an entry that holds all of them one after another passes every
floor and is first."""
ASPECT_FLOOR = 0.6
"""Share that one entry must hold of what is asked about a product, beside `evidence_floor` of all words:
a name of three words would pass that floor alone. Fitted with it on the dev part: docs/archive.md."""
SURE_OF_WORDS = 0.9  # share by words from which the strongest such hit passes the vector floor
# A held share that is all of the question, although it is a sum of fractions.
_ALL = 0.999


@dataclass(frozen=True, slots=True)
class Scored:
    """An entry with its raw scores, and the shares made of them."""

    id: ChunkId
    thread: str
    words: float  # BM25; 0 without a common word
    cosine: float | None  # None: the entry or the query has no vector
    by_words: bool = True  # among the best by words
    by_vector: bool = True  # among the nearest vectors
    held: float = 1.0  # share of the question that it holds; see `held_share`
    quoted: bool = False  # it holds, word for word, all that the question quotes
    aspect: float = 1.0  # share of what is asked about the product that it holds
    in_order: bool = False  # it holds all of the question's words, one after another
    words_share: float = 0.0
    """`words` scaled to 0 to 1 over all entries found by words; 0 for others."""
    vector_share: float = 0.0  # `cosine` stretched likewise
    combined: float = 0.0


def score_matches(
    matches: Matches,
    words: Sequence[str],
    vector: bytes | None,
    phrases: Sequence[Sequence[str]] = (),
    aspect: Sequence[str] = (),
) -> list[Scored]:
    """Every match with both raw scores, in the order of ids.

    `words` are the tokens of the question, `vector` is its vector (None: nothing is near), and
    `phrases` are the tokens of what it quotes.
    """
    near: dict[int, float] = {}
    vectors = {index: match.vector for index, match in enumerate(matches.matches)}
    # a vector of another length is damaged, and must not hide the others
    whole = {index: v for index, v in vectors.items() if vector and v is not None and len(v) == len(vector)}
    if vector and whole:
        near = dict(zip(whole, cosines(vector, list(whole.values())), strict=True))
    tokens = [with_forms_as(words, match.tokens) for match in matches.matches]
    distinct = len(set(words))
    return [
        Scored(
            id=match.id,
            thread=match.thread,
            words=bm25(words, tokens[index], matches.frequencies, matches.entries),
            cosine=near.get(index),
            by_words=match.by_words,
            by_vector=match.by_vector,
            held=held_share(words, tokens[index], matches.frequencies, matches.entries),
            quoted=bool(phrases) and all(holds_phrase(match.tokens, p) for p in phrases),
            aspect=held_share(aspect, tokens[index], matches.frequencies, matches.entries) if aspect else 1.0,
            in_order=distinct >= WORDS_IN_ORDER and holds_phrase(match.tokens, words),
        )
        for index, match in enumerate(matches.matches)
    ]


def cosines(vector: bytes, others: Sequence[bytes]) -> list[float]:
    """Cosines of vectors of signed bytes with one, 0 beside zeros; about 50 us each."""
    query, length = memoryview(vector).cast("b"), _length(vector)
    shares = []
    for other in others:
        both = length * _length(other)
        shares.append(sum(map(mul, query, memoryview(other).cast("b"))) / both if both else 0.0)
    return shares


def _length(vector: bytes) -> float:
    signed = memoryview(vector).cast("b")
    return math.sqrt(sum(map(mul, signed, signed)))


def combine_scores(entries: Sequence[Scored], weight: float, *, vectors: bool) -> list[Scored]:
    """Both scores stretched to 0 to 1 within this page and added, the best first.

    `weight` is the share of the vectors; without `vectors`, and for an entry without one, words are
    all there is. Of an id that stands there twice the first counts.
    """
    distinct = list({entry.id: entry for entry in reversed(entries)}.values())
    words = _stretched({e.id: e.words for e in distinct if e.by_words})
    near = _stretched({e.id: e.cosine for e in distinct if e.by_vector and e.cosine is not None})
    ranked = []
    for entry in distinct:
        share = weight if vectors and entry.cosine is not None else 0.0
        by_words, by_vector = words.get(entry.id, 0.0), near.get(entry.id, 0.0)
        sum_ = share * by_vector + (1 - share) * by_words
        ranked.append(replace(entry, words_share=by_words, vector_share=by_vector, combined=sum_))
    return sorted(ranked, key=lambda entry: (-entry.combined, entry.id))


def _stretched(scores: Mapping[ChunkId, float]) -> dict[ChunkId, float]:
    """Scores scaled from 0 (least) to 1 (best); all 1 when they are equal."""
    least, best = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    if least == best:
        return dict.fromkeys(scores, 1.0)
    return {name: (score - least) / (best - least) for name, score in scores.items()}


def above_floors(
    ranked: Sequence[Scored], retrieval: RetrievalSettings, *, vectors: bool
) -> tuple[list[Scored], FloorCounts]:
    """The entries that pass the floors, in order, and how many each floor left out.

    Where no entry holds enough of the question and of what it asks about, none passes; beside one
    that does, none with less than half of that passes. What holds the question's quotations, or all
    of its words in order, passes all floors. The strongest hit by words passes the relative floors
    at `keyword_floor`, and that of vectors at `SURE_OF_WORDS` when the settings allow it; it never
    passes the absolute ones.
    """
    least = ASPECT_FLOOR if retrieval.evidence_floor else 0.0
    if not any(e.quoted or e.in_order or (e.held >= retrieval.evidence_floor and e.aspect >= least) for e in ranked):
        return [], FloorCounts(absolute=len(ranked))
    strongest = max((e for e in ranked if e.by_words), key=lambda e: e.words_share, default=None)
    passed, out = list[Scored](), Counter[str]()
    for entry in ranked:
        share = entry.words_share if entry is strongest else 0.0
        sure = retrieval.allow_keyword_top1_override and share >= SURE_OF_WORDS
        off_topic = entry.held < retrieval.evidence_floor / 2
        far = (entry.cosine or 0.0) < retrieval.min_cosine and entry.words < retrieval.min_bm25
        if entry.quoted or entry.in_order:
            passed.append(entry)
        elif off_topic or far:
            out["absolute"] += 1
        elif share >= retrieval.keyword_floor and share > 0:
            passed.append(entry)
        elif entry.combined < retrieval.score_floor:
            out["score"] += 1
        elif vectors and entry.cosine is not None and entry.vector_share < retrieval.vector_floor and not sure:
            out["vector"] += 1
        else:
            passed.append(entry)
    return passed, FloorCounts(**out)


def mark_holding(entries: Sequence[Scored]) -> tuple[list[Scored], bool]:
    """Let entries with all of a few words pass the floors, else any; True when none has all."""
    scattered = not any(entry.held > _ALL for entry in entries)
    least = 0.0 if scattered else _ALL
    return [replace(entry, quoted=entry.held > least) for entry in entries], scattered


def is_doubtful(ranked: Sequence[Scored], retrieval: RetrievalSettings) -> bool:
    """Whether the best score is good enough to show and too weak to trust its order."""
    top = ranked[0].combined if ranked else 0.0
    return retrieval.score_floor <= top < retrieval.rerank_trigger_max


def reranked(ranked: Sequence[Scored], scores: Sequence[float], window: int) -> list[Scored]:
    """The first `window` entries by other scores, one each; ties keep their order."""
    head = sorted(zip(scores, ranked[:window], strict=True), key=lambda pair: -pair[0])
    return [entry for _, entry in head] + list(ranked[window:])


def diverse(ranked: Sequence[Scored], ranking: RankingSettings) -> list[Scored]:
    """Few entries of one thread before others; an item's own entries are one thread."""
    return diversify(ranked, lambda entry: [entry.thread], lambda entry: entry.combined, ranking)
