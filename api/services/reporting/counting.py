"""The sentences in which themes are counted, and what they say read back."""

from __future__ import annotations

from collections.abc import Sequence

import regex

SMALL = "no one two three four five six seven eight nine ten eleven twelve".split()
"""Small numbers in words, from none."""

COUNTED = regex.compile(
    r"^(?P<name>.+?): (?:at least )?(?:\d+ of (?P<total>\d+) kept posts|one post|two posts)"
    r" (?:speaks?|is|are) (?:of|about) it\b"
)
"""A theme: `Battery: at least 5 of 12 kept posts speak of it; at least two lean positive.`

At least: a post that speaks of it in words nobody knows, or of a rival in the same breath, is not
counted.
"""
# the leans of that sentence: `two lean positive, one negative`
_LEANING = regex.compile(
    rf"\b(?P<count>{'|'.join(SMALL)}|\d+) (?:leans? )?(?P<side>positive|negative)\b"
)
SUMMARY = regex.compile(r"^Themes of (?:one|\d+) kept posts?, each count a minimum: (?P<names>.+)$")
"""The summary: `Themes of 12 kept posts, each count a minimum: battery (5), price (3).`"""


def leans_in(sentence: str) -> tuple[int, int]:
    """How many posts praise and complain for sure, as the sentence of a theme says it."""
    _, _, leaning = sentence.rstrip(".").partition("; ") if COUNTED.match(sentence) else ("",) * 3
    sides = {match["side"]: match["count"] for match in _LEANING.finditer(leaning)}
    positive, negative = (sides.get(side, "no") for side in ("positive", "negative"))
    return _number(positive), _number(negative)


def resummed(summary: str, findings: Sequence[tuple[str, int]]) -> str | None:
    """The summary of themes over what is left: sentence and posts of each; None for any other."""
    if not SUMMARY.match(summary):
        return None
    opening, _, _ = summary.partition(": ")
    counted = ((COUNTED.match(text), count) for text, count in findings)
    named = [f"{match['name'].lower()} ({count})" for match, count in counted if match]
    return f"{opening}: {', '.join(named)}." if named else ""


def _number(word: str) -> int:
    return int(word) if word.isdecimal() else SMALL.index(word)
