"""The sentences in which themes are counted, and what they say read back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import regex

SMALL = "no one two three four five six seven eight nine ten eleven twelve".split()
"""Small numbers in words, from none."""
SHARED = 3
"""Posts that make a theme, and that are told in figures."""

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
SUMMARY = regex.compile(
    r"^Themes of (?:one|\d+) kept posts?(?:, none surely (?:praise|a complaint))?"
    r", each count a minimum: (?P<names>.+)$"
)
"""The summary: `Themes of 12 kept posts, each count a minimum: battery (5), price (3).`"""


def count_of(
    number: int,
    total: int,
    singular: str = "speaks of it",
    plural: str = "speak of it",
    threads: int | None = None,
) -> str:
    """How many posts speak of a theme; at least, unless all do.

    In how many `threads`, where that is known and some are comments of the same one.
    """
    least, within = "at least " if number < total else "", ""
    if threads is not None and threads < number:
        within = ", in one thread" if threads == 1 else f", in {_in_words(threads)} threads"
    if number < SHARED:
        return least + (f"one post {singular}" if number == 1 else f"two posts {plural}{within}")
    return f"{least}{number} of {total} kept posts {plural}{within}"


def leaning_of(leans: Counter[int], speaking: int) -> str:
    """How many of those that speak surely lean which way, as the end of that sentence."""
    sides = [(leans[1], "positive"), (leans[-1], "negative")]
    parts = [(_in_words(count), side) for count, side in sides if count]
    if not parts:
        return ""
    (count, side), *rest = parts
    verb = "leans" if count == "one" else "lean"
    least = "at least " if leans.total() < speaking else ""  # the others' lean is not sure
    return f"; {least}{count} {verb} {side}" + "".join(f", {more} {other}" for more, other in rest)


def recounted(sentence: str, count: int) -> str | None:
    """The sentence of a theme with another count of posts; None for any other sentence.

    Leans and threads go: nobody knows whose are left.
    """
    match = COUNTED.match(sentence)
    if match is None or not match["total"]:
        return None
    return f"{match['name']}: {count_of(count, int(match['total']))}."


def summary_of(themes: Sequence[tuple[str, int]], total: int, unsure: str = "") -> str:
    """The summary: each theme with its posts; `unsure` is the side that nothing surely takes."""
    if not themes:
        also = f", and none that is surely {unsure}" if unsure else ""
        return f"The posts share no theme that could be counted{also}."
    named = ", ".join(f"{name.lower()} ({count})" for name, count in themes)
    posts = "one kept post" if total == 1 else f"{total} kept posts"
    also = f", none surely {unsure}" if unsure else ""
    return f"Themes of {posts}{also}, each count a minimum: {named}."


def tone_of(graded: int, sounding: int, lean: int) -> str:
    """How whole posts sound, whose sentences may lean nowhere for sure; "" where none can be told.

    `As whole posts, 5 of the 7 whose tone can be told sound negative.`
    """
    verb, side = "sounds" if sounding == 1 else "sound", "positive" if lean > 0 else "negative"
    number = "none" if not sounding else str(sounding)
    whole = f"As whole posts, {number} of the {graded} whose tone can be told {verb} {side}."
    return whole if graded else ""


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


def _in_words(number: int) -> str:
    return SMALL[number] if number < len(SMALL) else str(number)


def _number(word: str) -> int:
    return int(word) if word.isdecimal() else SMALL.index(word)
