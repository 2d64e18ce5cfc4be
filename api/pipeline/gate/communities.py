"""Which communities, channels and authors bear a product's name."""

from __future__ import annotations

from collections.abc import Set
from functools import lru_cache

from api.core.words import MINOR_WORDS, split_words, stem
from api.pipeline.gate.name_matches import PART, Name, best, everyday_parts, sightings
from api.pipeline.question.product_name import KINDS

# Words that stand beside a name in the names of its communities, without their plural.
_COMPANIONS = KINDS | frozenset(
    "channel circle club com community dev dotcom fan forum global group help hq inc io lounge llc"
    " official owner reddit sub subreddit support talk team tip uk us user".split()
)
# Letters from which a name that is no everyday word may be followed by anything: `ankimcat`.
_TELLING = 4


@lru_cache(maxsize=1024)
def is_community_of(name: Name, place: str, about: frozenset[str] = frozenset()) -> bool:
    """Whether a community, channel or author bears the whole name, alone or with such as `app`.

    `r/ArcBrowser` is Arc's when `about`, the stems of its description, holds `browser`, and
    `r/ArcRaiders`, `r/arcane` are not. A name that is no everyday word is its own wherever it
    stands as a word: `r/AnkiMCAT`.
    """
    place = place.removeprefix("r/")
    words = [word.text for word in split_words(place)]
    while len(words) > 1 and words[0] in MINOR_WORDS:
        words = words[1:]
    running, companions = "".join(words), _COMPANIONS | about
    for form in name.whole:
        if running.startswith(form) and _accompany(words, form, companions):
            return True
    if everyday_parts(name):
        return False
    return best(sightings(name, split_words(place), place)).strength >= PART or any(
        len(form) >= _TELLING and running.startswith(form) for form in name.whole
    )


def _accompany(words: list[str], form: str, companions: Set[str]) -> bool:
    """Whether all that follows `form` in the words run together is companions of a name."""
    rest, running = list(words), ""
    while rest and len(running) < len(form):
        running += rest.pop(0)
    rest += [running[len(form) :]] if len(running) > len(form) else []
    return all(stem(word) in companions for word in rest)
