"""Where cited words stand in the text that they are from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import regex

from api.services.text import clean


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of a text, and whether it is cited."""

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
    stretches: list[Stretch] = []
    end = 0
    for start, stop in _merged(spans):
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
