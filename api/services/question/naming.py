"""The product that a question names, without the words of asking."""

from __future__ import annotations

from collections.abc import Container

import regex

ASKING_WORDS = frozenset(
    "a about and annoys any are be best but buy buying can compare complain complaints could"
    " dislike do "
    "does for from good happens has hate have how i in is it its like love me mention my of on"
    " opinion "
    "opinions or owners people really recommend regret reddit review reviews say saying says"
    " should tell "
    "that the their them there they thing things think thinks this to use users versus vs want"
    " was what "
    "when where which who why will with worth would you your youtube amazon actually".split()
)
"""Words of asking and of places, which are no part of a product's name."""
_LONGEST = 4
"""Words of a name at most; what is longer names nothing."""
_ENDING = regex.compile(r"\.(?:ai|com|io|app|co|new|net|org)$", regex.I)
_EDGE = "?!,;:.\"“”'()"


def name_of(question: str, topics: Container[str] = frozenset()) -> str:
    """The product's name as written; "" when the question names none.

    `topics` are words that are asked about and no part of a name when others are left (`battery`).
    """
    words = [word.strip(_EDGE).removesuffix("'s").removesuffix("’s") for word in question.split()]
    names = [word for word in words if word and word.casefold() not in ASKING_WORDS]
    names = [word for word in names if word.casefold() not in topics] or names
    return " ".join(names) if 0 < len(names) <= _LONGEST else ""


def core_of(name: str) -> str:
    """The name without its web ending: `plaud` of `plaud.ai`."""
    return _ENDING.sub("", name).strip()
