"""Vectors for tests: a word is a direction, and some words share theirs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from zlib import crc32

from api.services.archive.shelf import DIMENSIONS
from api.services.archive.words import tokens

SAME = {"battery": 0, "accumulator": 0, "akku": 0, "lid": 1, "cover": 1}
"""Words of one meaning; any other has one of its own, as far as there is room."""


def embed(texts: Sequence[str]) -> list[bytes]:
    """One vector a text."""
    return [_vector(Counter(map(_direction, tokens(text)))) for text in texts]


def _direction(word: str) -> int:
    return SAME.get(word, 2 + crc32(word.encode()) % (DIMENSIONS - 2))


def _vector(counts: Counter[int]) -> bytes:
    length = math.sqrt(sum(count * count for count in counts.values())) or 1.0
    return bytes(round(127 * counts[place] / length) for place in range(DIMENSIONS))
