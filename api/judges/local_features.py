"""What the local judge knows about a text: numbers from 0 to 1, each with a fixed direction."""

from __future__ import annotations

from collections.abc import Sequence

import regex

from api.judges import local_marks as marks
from api.judges.local_likeness import likeness
from api.judges.local_reading import Reading, Topic, figures_of
from api.judges.local_vectors import Vectors
from api.services.gate.excerpt import names_it
from api.services.gate.names import NEARLY, PART, WHOLE
from api.services.gate.sightings import other_version

FOR = ("named", "handle", "words", "figures", "like", "named_like", "place", "pointer", "sense")
"""Features that can only speak for a text."""
AGAINST = ("late", "everyday", "small", "version", "made_for", "advert")
"""Features that can only speak against one."""
FEATURES = FOR + AGAINST
AGAINST_ALL, FOR_ALL = ("job", "order"), ("clear",)
"""Rules: a job post or an order to a model is out; a text that itself names the thing, in its title
if it has one, and has nothing against it is in."""
Row = dict[str, float]
_CAPITAL = regex.compile(r"\b\p{Lu}\p{Ll}")
_CASED = 3
"""Capitals from which a text is one that uses them."""


def page(
    topic: Topic, readings: Sequence[Reading], source: str, vectors: Vectors | None
) -> list[Row]:
    """Measure the texts of one page; without `vectors` likeness is a share of words."""
    near = likeness(topic, readings, vectors)
    return [
        _row(reading, *pair, shop=source == "amazon")
        for reading, pair in zip(readings, near, strict=True)
    ]


def _row(reading: Reading, like: float, sense: float, *, shop: bool) -> Row:
    topic, title, text, strong = reading.topic, reading.lines[0], reading.text, reading.strong
    strength, comment = reading.overall, reading.shown.comment
    named = float(strength >= NEARLY)
    # an everyday name in a longer form (`monday.com`, `#notion`) is no everyday word any more
    bare = all(seen.size == 1 and not reading.words[at][seen.at].marked for at, seen in strong)
    plain = topic.everyday * named * (bare or topic.everyday < 1)
    small = bool(strong) and all(reading.lines[at][seen.start].islower() for at, seen in strong)
    marked = any(reading.words[at][seen.at].marked and seen.strength > PART for at, seen in strong)
    made_for = any(marks.made_for(reading.lines[at], seen) for at, seen in strong[:1])
    other_title, other_passage = (
        other_version(topic.name, reading.words[line], reading.mentions[line]) for line in (0, 1)
    )
    row = {
        "named": named,
        "handle": float(marked),
        "words": reading.share(0, 1) if len(topic.name.words) > 1 else 0.0,
        "figures": (
            len(topic.figures & figures_of(text)) / len(topic.figures) if topic.figures else 0.0
        ),
        "like": like,
        "named_like": strength * like,
        "place": float(names_it(topic.name, reading.shown.place) or bool(reading.shown.author)),
        "pointer": float(reading.thread and strength < PART and marks.points(text)),
        "sense": named * topic.everyday * sense,
        "late": float(bool(title) and reading.strength(1) >= NEARLY > reading.strength(0)),
        "everyday": plain * (bool(topic.about) and not title and not comment),
        "small": plain * (small and len(_CAPITAL.findall(text)) >= _CASED),
        "version": float(other_title or (strength < WHOLE and other_passage)),
        "made_for": float(shop and made_for),
        "advert": min(len(marks.adverts("" if shop else title, text, topic.known)), 2) / 2,
        "job": float(marks.job(text)),
        "order": float(marks.order(text, topic.known)),
    }
    marked_down = any(row[name] for name in (*AGAINST, *AGAINST_ALL))
    return row | {"clear": named * (not marked_down)}
