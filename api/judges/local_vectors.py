"""Word vectors out of the WordLlama wheel: opened on first use, from the disk alone."""

from __future__ import annotations

import importlib.util
import json
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
        rows = self.matrix.take(pieces, axis=0)
        return self.normal(rows.mean(axis=0, dtype=self.numpy.float64))

    def units(self, texts: Sequence[str]) -> Any:
        """One row a text."""
        return self.numpy.stack([self.unit(text) for text in texts])

    def normal(self, vector: Any) -> Any:
        """The vector at length 1, or as it is when it has none."""
        length = float(self.numpy.linalg.norm(vector))
        return vector / length if length else vector


@cache
def installed() -> tuple[Path, Path] | None:
    """The files of the tokenizer and the vectors; None where the wheel is not installed."""
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    words, weights = folder / _TOKENIZER, folder / _WEIGHTS
    return (words, weights) if words.is_file() and weights.is_file() else None


@cache
def vectors() -> Vectors | None:
    """The vectors, once per process; None where the wheel is not installed.

    The two files are read without importing the package, which opens a socket on import (to see
    whether there is IPv6) and sets up logging. The vectors stay on the disk, whose pages processes
    share. Cost: some 0.2 s, most of it imports.
    """
    files = installed()
    if files is None:
        return None
    words, weights = files
    tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(str(words))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    numpy = importlib.import_module("numpy")
    with weights.open("rb") as file:  # a `.safetensors`: the length of a JSON header, it, the data
        length = int.from_bytes(file.read(8), "little")
        facts = json.loads(file.read(length))["embedding.weight"]
    offset, shape = 8 + length + facts["data_offsets"][0], tuple(facts["shape"])
    matrix = numpy.memmap(weights, numpy.float16, "r", offset, shape)
    return Vectors(tokenizer, numpy.asarray(matrix), numpy)
