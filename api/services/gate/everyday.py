"""Names that are everyday words, too: what is found for them may be about anything."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from api.services.gate.names import KINDS, Name, name_of
from api.services.question.naming import named
from api.services.text import one_line


@cache
def _everyday_words() -> frozenset[str]:
    """Words that brands like to take as their names, from general knowledge of English."""
    return frozenset(files("api.services.gate").joinpath("everyday.txt").read_text("utf-8").split())


def everyday_parts(name: Name) -> int:
    """How many words a name has that is made of everyday words alone; 0 for any other.

    The kind of thing (`Bolt app`) is no part of it.
    """
    core = [word for word in name.words if word not in KINDS] or name.words
    plain = not (name.codes or name.boundless) and _everyday_words().issuperset(core)
    return len(core) if plain else 0


def namesake(text: str, about: str = "") -> str:
    """The name in a question, where it is one everyday word and nobody said what it is; else "".

    `Bolt app` says what it is, and so does `does the Ember mug last?`.
    """
    name = one_line(named(text, KINDS))
    alone = len(name.split()) == 1
    return name if alone and not about and everyday_parts(name_of(name)) else ""
