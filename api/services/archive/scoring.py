"""Raw scores of what both searches found: BM25 and the cosine of vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul

from api.services.archive.ranking import Scored
from api.services.archive.shelf import DIMENSIONS, Matches
from api.services.archive.words import bm25, held, quotes


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
