"""Why the local judge kept or dropped a text, in a few true words."""

from __future__ import annotations

from api.judges.local_features import AGAINST, Row
from api.judges.local_marks import adverts
from api.judges.local_model import Profile
from api.judges.local_reading import Reading
from api.services.gate.names import BRAND, NEARLY
from api.services.gate.sightings import best
from api.services.schemas import Question
from api.services.text import cut, one_line

_NAME, _AROUND = 40, 24
"""Characters of a name, and on each side of a mention, that a reason shows."""


def reason(question: Question, reading: Reading, row: Row, profile: Profile, *, kept: bool) -> str:
    """What spoke for a kept text, or weighed most against a dropped one."""
    name = cut(one_line(question.text), _NAME)
    if kept:
        return _for(name, row)
    if row["job"]:
        return "a job post"
    if row["order"]:
        return "tells a model what to answer"
    heaviest = min(AGAINST, key=lambda feature: profile.weights.get(feature, 0.0) * row[feature])
    if heaviest == "version" and row["version"]:
        return f"another version than {name}"
    if heaviest == "made_for" and row["made_for"]:
        return f"made for {name}, not {name} itself"
    if heaviest == "advert" and row["advert"]:
        words = adverts(reading.shown.title, reading.text, reading.topic.known)
        return f"advert words: {one_line(words[0])}"
    if reading.overall < NEARLY:
        return _nameless(name, reading)
    if row["everyday"] or row["small"]:
        return f"another {name}: {_around(reading)}"
    if row["late"]:
        return f"names {name} in passing"
    return f"says little of {name}"


def _for(name: str, row: Row) -> str:
    if row["named"]:
        return f"names {name}"
    if row["pointer"]:
        return f"comment of a thread about {name}"
    return f"stands in a place of {name}" if row["place"] else f"sounds like {name}"


def _nameless(name: str, reading: Reading) -> str:
    if reading.thread:
        return f"comment of a thread about {name}, says nothing of it"
    part = reading.overall >= BRAND
    return f"names only a part of {name}" if part else f"names no {name}"


def _around(reading: Reading) -> str:
    """The words around the first mention."""
    for line, mentions in zip(reading.lines, reading.mentions, strict=True):
        if (sighting := best(mentions)).strength:
            start = max(0, sighting.start - _AROUND)
            return one_line(line[start : sighting.start + _AROUND])
    return ""
