"""Word vectors from the WordLlama wheel, loaded on first use; and the signed bytes that the archive stores."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

from api.core.text import clean

_TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")
_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
# Where words by themselves would not be the same: a sign such as `<s>`, the tokenizer's own mark
# of a blank, and blanks that are one piece.
_UNDIVIDED = ("<", "▁", "  ")
# Words whose pieces are remembered, some 10 MB.
_REMEMBERED = 30_000
# Characters of a word that is remembered; a line of a script without blanks is one word.
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class Vectors:
    """A matrix of vectors of word pieces, and what takes a text apart into these."""

    encode: Callable[[str], Sequence[int]]
    """Ids of a text's pieces, rows of the matrix."""
    encode_again: Callable[[str], Sequence[int]]
    """The same with a cache, for words that occur again and again."""
    matrix: Any
    numpy: Any

    def unit(self, text: str) -> Any:
        """The mean vector of a text, of length 1; all zeros for an empty one."""
        return self.units([text])[0]

    def units(self, texts: Sequence[str]) -> Any:
        """Unit vectors of the texts, one row for each, in their order."""
        rows = self.numpy.zeros((len(texts), self.matrix.shape[1]))
        for row, text in zip(rows, texts, strict=True):
            if pieces := self.pieces(text):
                self.matrix.take(pieces, axis=0).mean(axis=0, dtype=row.dtype, out=row)
        lengths = self.numpy.linalg.norm(rows, axis=1, keepdims=True)
        return self.numpy.divide(rows, lengths, out=rows, where=lengths > 0)

    def pieces(self, text: str) -> list[int]:
        """Ids of a text's pieces, word by word: none goes beyond a blank, and words come again."""
        words = text.split(" ")
        if text != text.strip(" ") or any(sign in text for sign in _UNDIVIDED):
            return list(self.encode(text))
        encode = self.encode_again if max(map(len, words)) <= _LONGEST else self.encode
        return list(chain.from_iterable(map(encode, words)))

    def normal(self, vector: Any) -> Any:
        """The vector scaled to length 1; a zero vector unchanged."""
        length = float(self.numpy.linalg.norm(vector))
        return vector / length if length else vector


@cache
def installed() -> tuple[Path, Path] | None:
    """Files of the tokenizer and the vectors; None when the wheel is not installed."""
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    words, weights = folder / _TOKENIZER, folder / _WEIGHTS
    return (words, weights) if words.is_file() and weights.is_file() else None


@contextmanager
def _one_thread() -> Iterator[None]:
    """Whatever loads OpenBLAS within has it work in the thread that asks, unless the environment says otherwise.

    It reads the variable once, when it is loaded. The matrices here are small, and each of its own threads spins on
    a processor while it waits for work, which doubled the processor time of a search for a name's meanings.
    """
    name = "OPENBLAS_NUM_THREADS"
    if name in os.environ:
        yield
        return
    os.environ[name] = "1"
    try:
        yield
    finally:
        del os.environ[name]


@cache
def vectors() -> Vectors | None:
    """The word vectors, loaded once per process; None when the wheel is not installed.

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
    with _one_thread():
        numpy = importlib.import_module("numpy")
    with weights.open("rb") as file:  # a `.safetensors`: the length of a JSON header, it, the data
        length = int.from_bytes(file.read(8), "little")
        facts = json.loads(file.read(length))["embedding.weight"]
    offset, shape = 8 + length + facts["data_offsets"][0], tuple(facts["shape"])
    matrix = numpy.memmap(weights, numpy.float16, "r", offset, shape)

    def encode(text: str) -> tuple[int, ...]:
        return tuple(tokenizer.encode(text, add_special_tokens=False).ids)

    again = lru_cache(maxsize=_REMEMBERED)(encode)
    return Vectors(encode, again, numpy.asarray(matrix), numpy)


# Of a signed byte.
_LARGEST_BYTE = 127


def embed(texts: Sequence[str]) -> list[bytes] | None:
    """One vector of 256 bytes for each text; None when the word vectors are not installed.

    Of length 127 before rounding; zeros for a text without words. Some 0.1 ms a text, the first
    call half a second more.
    """
    known = vectors()
    if known is None:
        return None
    units = known.units(list(map(clean, texts)))
    return [row.tobytes() for row in known.numpy.rint(units * _LARGEST_BYTE).astype(known.numpy.int8)]
