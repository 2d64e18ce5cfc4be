"""A session as it is saved, and read again whoever wrote it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic import TypeAdapter, ValidationError

from api.services.keeping.storage import Rating
from api.services.schemas import Assessed
from api.settings import DepthName

VERSION = 1


@dataclass(frozen=True, slots=True)
class Thumb:
    """What somebody thinks of an answer."""

    author: str
    """A pseudonym."""
    rating: Rating
    comment: str
    created_at: datetime
    """When it was first given."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question and its answer."""

    question: str
    answer: str
    """Empty when the turn was stopped before anything was said."""
    stopped: bool = False
    """The person left before the answer was complete."""
    sample: bool = False
    """It rests on what is made up, in part at least."""
    trace_id: str | None = field(default=None, compare=False)
    number: int = field(default=0, compare=False)
    """Of its turn in the session, from 1; 0 of one that an older release saved."""
    opinions: tuple[Thumb, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Lookup:
    """One source that was asked one query, and answered."""

    source: str
    query: str
    """In its canonical form."""
    depth: DepthName
    line: str
    """How it went, for a person."""
    labels: list[str]
    """Exhibits it brought."""
    sample: bool = False
    """It was the sandbox that was asked."""


@dataclass(frozen=True, slots=True)
class SavedExhibit:
    """An exhibit as it is saved."""

    key: str
    label: str
    turn: int
    assessed: Assessed
    subjects: list[str] = field(default_factory=list)
    sample: bool | None = None
    """Whether it is made up; None: as all of the session, by an older release."""


@dataclass(frozen=True, slots=True)
class SavedSession:
    """A session as it is saved; see `Session`."""

    version: int
    number: int
    given: int
    exhibits: list[SavedExhibit]
    looks: list[Lookup]
    exchanges: list[Exchange]
    subjects: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    sample: bool = False


SAVED = TypeAdapter(SavedSession)


def written(saved: SavedSession) -> str:
    """As `saved_in` reads it."""
    return SAVED.dump_json(saved).decode()


def saved_in(text: str) -> SavedSession | None:
    """What `Session.save` wrote; None when the text is none of ours."""
    try:
        saved = SAVED.validate_json(text)
    except ValidationError:
        return None
    if saved.version != VERSION:
        return None
    exhibits = [
        replace(entry, sample=saved.sample) if entry.sample is None else entry
        for entry in saved.exhibits
    ]
    return replace(saved, exhibits=exhibits)
