"""Raw scores of what both searches found: BM25 and the cosine of vectors."""

from __future__ import annotations

from collections.abc import Sequence

from api.services.archive.ranking import Scored
from api.services.archive.shelf import Matches
from api.services.archive.words import bm25


def scored(matches: Matches, words: Sequence[str], vector: bytes | None) -> list[Scored]:
    """Every entry with both scores, in the order of their ids.

    Args:
        matches: what was found.
        words: tokens of the question.
        vector: of the question; None: nothing is near.
    """
    there = [match for match in matches.matches if match.vector is not None and vector is not None]
    near: dict[object, float] = {}
    if vector is not None and there:
        vectors = [match.vector or b"" for match in there]
        near = dict(zip([m.id for m in there], cosines(vector, vectors), strict=True))
    return [
        Scored(
            id=match.id,
            thread=match.thread,
            words=bm25(words, match.tokens, matches.frequencies, matches.entries),
            cosine=near.get(match.id),
            by_words=match.by_words,
            by_vector=match.by_vector,
        )
        for match in matches.matches
    ]


def cosines(vector: bytes, others: Sequence[bytes]) -> list[float]:
    """How alike vectors of signed bytes are to one, -1 to 1; 0 beside one of zeros."""
    import numpy  # some 0.1 s, which is spent where vectors are

    one = numpy.frombuffer(vector, dtype=numpy.int8).astype(numpy.float32)
    rows = numpy.frombuffer(b"".join(others), dtype=numpy.int8).astype(numpy.float32)
    rows = rows.reshape(len(others), -1)
    lengths = numpy.linalg.norm(rows, axis=1) * numpy.linalg.norm(one)
    dots = rows @ one
    return [
        float(dot / length) if length else 0.0 for dot, length in zip(dots, lengths, strict=True)
    ]
