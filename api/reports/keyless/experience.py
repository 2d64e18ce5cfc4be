"""Praise and complaint without a word of feeling: English sentences that say what the product did or failed to do.

The patterns stand in `experience.toml` (`it quit after a week`, `still runs`), apart from the words of `polarity.toml`,
since the weights of `quotable.py` were fitted on counts of those.
"""

from __future__ import annotations

from functools import cache

import regex

from api.reports.keyless.aspects import data

_PARTS = {
    "{n}": r"(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty"
    r"|forty|sixty|several|a few|a couple(?: of)?|many)",
    # who does the verb is a person: `I quit`, `we broke even`, `my car broke`
    "{self}": r"(?<!\b(?:i|we|you|he|she|people|i've|i'd|i just|finally|to|tried to) )",
}


# a denial up to two words before what it turns: `hardly ever works every time`, `it never jams`
_DENIED = regex.compile(
    r"(?i)(?:\b(?:not|never|hardly|barely|rarely|cannot|no|without|nothing|zero)|n't)(?: \w+){0,2} $"
)
_DENIAL_REACH = 60


@cache
def _patterns() -> dict[str, regex.Pattern[str]]:
    """By name: `good` successes, `bad` failures, `beside` another thing is meant, `plain` words that cast no doubt."""
    read, start, end = data("experience"), r"(?<![\w'-])(?:", r")(?![\w-])"
    sides = {name: _compiled(read[name], start, end) for name in ("good", "bad")}
    return sides | {name: _compiled(read[name], "(?:", ")") for name in ("plain", "beside")}


def _compiled(families: str, before: str, behind: str) -> regex.Pattern[str]:
    joined = "|".join(f"(?:{line})" for line in families.split("\n") if line)
    for sign, pattern in _PARTS.items():
        joined = joined.replace(sign, pattern)
    return regex.compile(f"(?i){before}{joined}{behind}")


def is_beside(text: str) -> bool:
    """Whether a sentence is about another person's thing, an earlier one, a plan or a purpose."""
    return _patterns()["beside"].search(text) is not None


def count_experiences(text: str) -> tuple[int, int, str]:
    """Numbers of successes and of failures in a text, and the text without their words.

    Success is looked for first: `never crashes` is one, so that `crashes` is no failure there.
    """
    patterns, sides, rest = _patterns(), [0, 0], text
    for side, name in enumerate(("good", "bad")):
        for match in patterns[name].finditer(rest):
            denied = _DENIED.search(rest[max(0, match.start() - _DENIAL_REACH) : match.start()])
            sides[1 - side if denied else side] += 1
        rest = patterns[name].sub(" ~ ", rest)
    return sides[0], sides[1], patterns["plain"].sub(" ~ ", rest)
