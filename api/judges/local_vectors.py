"""Word vectors out of the WordLlama wheel: loaded on first use, from the disk alone."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

_TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")
_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")


@dataclass(frozen=True, slots=True)
class Vectors:
    """A matrix of word-piece vectors and the tokenizer that goes with it."""

    tokenizer: Any
    matrix: Any
    numpy: Any

    def unit(self, text: str) -> Any:
        """The mean vector of a text, of length 1; all zeros for an empty one."""
        pieces = self.tokenizer.encode(text, add_special_tokens=False).ids
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


@cache
def vectors() -> Vectors | None:
    """The vectors, once per process; None where the wheel is not installed.

    The two files are read without importing the package, which opens a socket on import (to see
    whether there is IPv6) and sets up logging. Cost: under half a second and about 60 MB.
    """
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    words, weights = folder / _TOKENIZER, folder / _WEIGHTS
    if not (words.is_file() and weights.is_file()):
        return None
    tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(str(words))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    read = importlib.import_module("safetensors.numpy").load_file(weights)
    numpy = importlib.import_module("numpy")
    return Vectors(tokenizer, read["embedding.weight"].astype(numpy.float32), numpy)
