"""The products that a question sets against each other, and whether it points at an earlier one."""

from __future__ import annotations

import regex

from api.services.question.guard import telling_words

_EDGE = " ?!,;:.\"“”'‘’()"
# `compare A with B`, `how does it compare to B`, `the difference between A and B`
_LISTING = regex.compile(
    r"(?i)\b(?:compare|comparison\s+of|differences?\s+between)(?=\s)(?P<names>.+)"
)
_BETWEEN_LISTED = regex.compile(
    r"(?i)(?<!\s)\s*+,\s*+(?:and\s++)?|(?:^|(?<!\s)\s++)(?:with|to|and|against|vs\.?|versus)\s+"
)
# `A vs B`, `is it better than B`, `how is it compared to B`
_BETWEEN = regex.compile(
    r"(?i)(?<!\s)\s++(?:vs\.?|versus|(?:better|worse)\s+than|compared\s+(?:to|with))\s+"
)
# `it`, `its price`, `those`: what was asked about before
_POINTING = regex.compile(
    r"(?i)(?<!\w)(?:it|its|it['’]s|they|their|them|this|that|these|those)(?!\w)"
)
# `X`, `Best Buy`: names that are made of words of asking, or of a letter alone
_BARE_NAME = regex.compile(r"\p{Lu}|^\S$")


def compared(question: str) -> tuple[str, ...]:
    """The names as they are written, without the words of asking; none when nothing is compared.

    What the question only points at is left out: `compare it with Otter` gives `Otter`.
    """
    listing = _LISTING.search(question)
    sides = _BETWEEN_LISTED.split(listing["names"]) if listing else _BETWEEN.split(question)
    names = [_name(side.strip(_EDGE)) for side in sides]
    return tuple(dict.fromkeys(filter(None, names))) if len(names) > 1 and names[-1] else ()


def points_back(question: str) -> bool:
    """Whether a question points at what was spoken of before: `it`, `their`, `those`."""
    return _POINTING.search(question) is not None


def _name(side: str) -> str:
    """The telling words of one side of a comparison; nothing when it only points back."""
    words = [word.strip(_EDGE) for word in side.split()]
    name = " ".join(word for word in words if telling_words(word))
    bare = side if _BARE_NAME.search(side) and not points_back(side) else ""
    return name or bare
