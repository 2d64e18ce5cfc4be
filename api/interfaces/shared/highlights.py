"""Where cited words stand in the text that they are from, and words of a question in a hit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import regex

from api.core.text import clean
from api.core.words import index_tokens

# `batteries`, `rtx4090`; of a script without blanks the whole run
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")


AROUND = 80
"""Letters before and behind cited words that an excerpt shows at most."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of a text, and whether it is cited or asked for."""

    text: str
    cited: bool = False


def highlighted(text: str, passages: Iterable[str]) -> list[Stretch]:
    """The text in pieces, whose cited ones hold a passage; where two overlap, one holds both.

    White space may differ: a passage is kept on one line, its text as it was written.
    """
    text = clean(text)
    spans: list[tuple[int, int]] = []
    for passage in passages:
        # `two  words` in whatever way they are spaced
        pattern = r"\s+".join(map(regex.escape, clean(passage).split()))
        if pattern and (match := regex.search(pattern, text)):
            spans.append(match.span())
    return _parted(text, _merged(spans))


def excerpted(text: str, passages: Iterable[str]) -> list[Stretch]:
    """The cited pieces with the words around them, `… before CITED after …`; empty without any."""
    stretches = highlighted(text, passages)
    if not any(stretch.cited for stretch in stretches):
        return []
    last = len(stretches) - 1
    return [
        stretch if stretch.cited else Stretch(_ends(stretch.text, head=at > 0, tail=at < last))
        for at, stretch in enumerate(stretches)
    ]


def _ends(text: str, *, head: bool, tail: bool) -> str:
    """What stands beside cited words: the beginning behind some, the end before some."""
    if len(text) <= AROUND * (head + tail):
        return text
    start = (text[:AROUND].rpartition(" ")[0] or text[:AROUND]) if head else ""
    end = (text[-AROUND:].partition(" ")[2] or text[-AROUND:]) if tail else ""
    return f"{start} … {end}"


def asked_for(text: str, question: str) -> list[Stretch]:
    """The text in pieces, whose cited ones are words of the question, as the archive's index is."""
    text, wanted = clean(text), set(index_tokens(clean(question)))
    words = (match for match in _WORD.finditer(text) if wanted & set(index_tokens(match[0])))
    return _parted(text, [match.span() for match in words])


def _parted(text: str, spans: list[tuple[int, int]]) -> list[Stretch]:
    stretches: list[Stretch] = []
    end = 0
    for start, stop in spans:
        stretches += [Stretch(text[end:start]), Stretch(text[start:stop], True)]
        end = stop
    stretches.append(Stretch(text[end:]))
    return [stretch for stretch in stretches if stretch.text]


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged
