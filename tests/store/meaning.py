"""Vectors for tests: a word is a direction, and some words share theirs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from random import Random

from api.core.words import index_tokens
from api.features.archive.search_values import DIMENSIONS

SAME = {"accumulator": "battery", "akku": "battery", "cover": "lid"}
"""Words of one meaning; any other has one of its own, unlike all others."""


def embed(texts: Sequence[str]) -> list[bytes]:
    """One vector a text; zeros for one without words."""
    return [_vector([_direction(SAME.get(word, word)) for word in index_tokens(text)]) for text in texts]


@cache
def _direction(word: str) -> list[float]:
    random = Random(word)
    return [random.gauss(0, 1) for _ in range(DIMENSIONS)]


def _vector(directions: Sequence[Sequence[float]]) -> bytes:
    whole = [sum(numbers) for numbers in zip(*directions, strict=True)] or [0.0] * DIMENSIONS
    length = math.sqrt(sum(number * number for number in whole)) or 1.0
    return bytes(round(127 * number / length) % 256 for number in whole)
