"""Word vectors out of the WordLlama wheel: loaded on first use, from the disk alone."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Vectors:
    """A matrix of word-piece vectors and the tokenizer that goes with it."""

    tokenizer: Any
    matrix: Any
    numpy: Any

    def pieces(self, text: str) -> list[int]:
        """Ids of the word pieces of a text."""
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def unit(self, text: str) -> Any:
        """The mean vector of a text, of length 1; all zeros for an empty one."""
        return self.mean(self.pieces(text))

    def mean(self, pieces: Sequence[int]) -> Any:
        """The mean vector of word pieces, of length 1; all zeros for none."""
        if not pieces:
            return self.numpy.zeros(self.matrix.shape[1], dtype=self.numpy.float64)
        return self.normal(self.matrix[pieces].mean(axis=0, dtype=self.numpy.float64))

    def units(self, texts: Sequence[str]) -> Any:
        """One row a text."""
        return self.numpy.stack([self.unit(text) for text in texts])

    def normal(self, vector: Any) -> Any:
        """The vector at length 1, or as it is when it has none."""
        length = float(self.numpy.linalg.norm(vector))
        return vector / length if length else vector

    def directions(self, text: str) -> Any:
        """One row of length 1 per word piece of a text."""
        rows = self.matrix[self.pieces(text)]
        return rows / (self.numpy.linalg.norm(rows, axis=1, keepdims=True) + 1e-9)


@cache
def vectors() -> Vectors | None:
    """The vectors, once per process; None where the wheel is not installed.

    Cost: under half a second and about 90 MB on the first call.
    """
    try:
        with _quiet():
            wordllama = importlib.import_module("wordllama")
    except ModuleNotFoundError:
        return None
    # without these two arguments it looks in the wrong folder and then asks the network
    folder = Path(str(wordllama.__file__)).parent
    loaded = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    loaded.tokenizer.no_padding()
    return Vectors(loaded.tokenizer, loaded.embedding, importlib.import_module("numpy"))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the package's import from configuring the root logger."""
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
