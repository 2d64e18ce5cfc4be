"""The sentences that count themes, and the functions that read such a sentence back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import regex

_SMALL = "no one two three four five six seven eight nine ten eleven twelve".split()
SHARED = 3  # posts from which a theme is shown and counted in figures: fewer may be chance

COUNTED = regex.compile(
    r"^(?P<name>.+?): (?:at least )?(?:\d+ of (?P<total>\d+) kept posts|one post|two posts)"
    r" (?:speaks?|is|are) (?:of|about) it\b"
)
"""A theme: `Battery: at least 5 of 12 kept posts speak of it; at least two lean positive.`

"At least", since a post that uses unknown words, or names a rival in the sentence, is not counted.
"""
# leans in that sentence: `two lean positive, one negative`
_LEANING = regex.compile(rf"\b(?P<count>{'|'.join(_SMALL)}|\d+) (?:leans? )?(?P<side>positive|negative)\b")
SUMMARY = regex.compile(
    r"^Themes of (?:one|\d+) kept posts?(?:, none surely (?:praise|a complaint))?"
    r", each count a minimum: (?P<names>.+)$"
)
"""The summary: `Themes of 12 kept posts, each count a minimum: battery (5), price (3).`"""


def count_phrase(
    number: int,
    total: int,
    singular: str = "speaks of it",
    plural: str = "speak of it",
    threads: int | None = None,
) -> str:
    """`at least 5 of 12 kept posts speak of it, in two threads`; `at least` unless all do."""
    least, within = "at least " if number < total else "", ""
    if threads is not None and threads < number:
        within = ", in one thread" if threads == 1 else f", in {_in_words(threads)} threads"
    if number < SHARED:
        return least + (f"one post {singular}" if number == 1 else f"two posts {plural}{within}")
    return f"{least}{number} of {total} kept posts {plural}{within}"


def lean_phrase(leans: Counter[int], posts: int) -> str:
    """`; at least two lean positive, one negative`: how many of `posts` surely lean which way."""
    sides = [(leans[1], "positive"), (leans[-1], "negative")]
    parts = [(_in_words(count), side) for count, side in sides if count]
    if not parts:
        return ""
    (count, side), *rest = parts
    verb = "leans" if count == "one" else "lean"
    least = "at least " if leans.total() < posts else ""  # the others' lean is not sure
    return f"; {least}{count} {verb} {side}" + "".join(f", {more} {other}" for more, other in rest)


def theme_summary(themes: Sequence[tuple[str, int]], total: int, unsure: str = "") -> str:
    """The summary: each theme with its posts; `unsure` is the side that nothing surely takes."""
    if not themes:
        also = f", and none that is surely {unsure}" if unsure else ""
        return f"The posts share no theme that could be counted{also}."
    named = ", ".join(f"{name.lower()} ({count})" for name, count in themes)
    posts = "one kept post" if total == 1 else f"{total} kept posts"
    also = f", none surely {unsure}" if unsure else ""
    return f"Themes of {posts}{also}, each count a minimum: {named}."


def tone_sentence(graded: int, sounding: int, lean: int) -> str:
    """`As whole posts, 5 of the 7 whose tone can be told sound negative.`; empty without grades."""
    verb, side = "sounds" if sounding == 1 else "sound", "positive" if lean > 0 else "negative"
    number = sounding or "none"
    whole = f"As whole posts, {number} of the {graded} whose tone can be told {verb} {side}."
    return whole if graded else ""


def read_leans(sentence: str) -> tuple[int, int]:
    """How many posts praise and complain for sure, by the sentence of a theme."""
    _, _, leaning = sentence.rstrip(".").partition("; ") if COUNTED.match(sentence) else ("",) * 3
    sides = {match["side"]: match["count"] for match in _LEANING.finditer(leaning)}
    positive, negative = (
        int(word) if word.isdecimal() else _SMALL.index(word)
        for word in (sides.get(side, "no") for side in ("positive", "negative"))
    )
    return positive, negative


def recount_theme(sentence: str, count: int) -> str | None:
    """The sentence of a theme with another count and without leans; None for any other one."""
    match = COUNTED.match(sentence)
    if match is None or not match["total"]:
        return None
    return f"{match['name']}: {count_phrase(count, int(match['total']))}."


def recount_summary(summary: str, findings: Sequence[tuple[str, int]]) -> str | None:
    """The summary of themes over other findings: sentence and posts of each; None for any other."""
    if not SUMMARY.match(summary):
        return None
    opening, _, _ = summary.partition(": ")
    counted = ((COUNTED.match(text), count) for text, count in findings)
    named = [f"{match['name'].lower()} ({count})" for match, count in counted if match]
    return f"{opening}: {', '.join(named)}." if named else ""


def _in_words(number: int) -> str:
    return _SMALL[number] if number < len(_SMALL) else str(number)
