"""What a chat remembers: its run, its exhibits under lasting numbers, its look-ups and its words.

Saved as one bounded JSON text. The text names an item's key in that item's own entry only, so that
an item which its upstream deleted can be taken out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from api.services.evidence.run import Run
from api.services.question.query import canonical, content_words, words
from api.services.reporting.dossier import Dossier, Exhibit
from api.services.schemas import Assessed, Item, Verdict
from api.services.text import cut
from api.settings import DepthName

VERSION = 1
TURNS, EXHIBITS, LOOKS, BYTES = 12, 60, 60, 400_000
"""What a saved session keeps at most: turns, exhibits, look-ups, and bytes of JSON."""
_BODY, _COMMENT, _COMMENTS = 2000, 500, 8
_DEPTHS: Mapping[DepthName, int] = {"quick": 0, "standard": 1, "deep": 2}


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question and its answer."""

    question: str
    answer: str
    messages: list[Any] = field(default_factory=list)
    """The same as the model's messages, in JSON."""


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


@dataclass(frozen=True, slots=True)
class _SavedExhibit:
    key: str
    label: str
    turn: int
    assessed: Assessed


@dataclass(frozen=True, slots=True)
class _SavedSession:
    version: int
    number: int
    given: int
    exhibits: list[_SavedExhibit]
    looks: list[Lookup]
    exchanges: list[Exchange]


_SAVED = TypeAdapter(_SavedSession)


@dataclass(slots=True)
class Session:
    """One conversation of one tenant."""

    id: str
    tenant: str
    run: Run
    dossier: Dossier = field(default_factory=Dossier)
    number: int = 0
    """Turns so far."""
    exchanges: list[Exchange] = field(default_factory=list)
    looks: list[Lookup] = field(default_factory=list)
    _known: dict[str, Exhibit] = field(default_factory=dict)
    _turns: dict[str, int] = field(default_factory=dict)

    @property
    def exhibits(self) -> Mapping[str, Exhibit]:
        """What may be cited, by label."""
        return self._known

    @property
    def questions_text(self) -> str:
        """Everything the person wrote that is remembered."""
        return "\n".join(exchange.question for exchange in self.exchanges)

    @property
    def messages(self) -> list[Any]:
        """The model's messages of the remembered turns."""
        return [message for exchange in self.exchanges for message in exchange.messages]

    def show(self, items: Iterable[Assessed]) -> tuple[Exhibit, ...]:
        """The exhibits for these items, known from now on."""
        shown = self.dossier.show(items)
        for exhibit in shown:
            self._known[exhibit.label] = exhibit
            self._turns[exhibit.label] = self.number
        return shown

    def lookup(self, source: str, query: str, depth: DepthName) -> Lookup | None:
        """The look-up that makes this one needless: same source and name, no less deep."""
        name = canonical(query)
        for lookup in reversed(self.looks):
            same = lookup.source == source and lookup.query == name
            if same and _DEPTHS[lookup.depth] >= _DEPTHS[depth]:
                return lookup
        return None

    def remember(self, source: str, query: str, depth: DepthName, line: str) -> Lookup:
        """Note a look-up; the exhibits it brings are added to its labels."""
        lookup = Lookup(source, canonical(query), depth, line, [])
        self.looks = [*self.looks, lookup][-LOOKS:]
        return lookup

    def best(self, question: str, limit: int) -> tuple[Exhibit, ...]:
        """The exhibits a prompt shows, in the order of their numbers.

        Those with the question's words and the most recently used go first.
        """
        words = question_words(question)

        def order(exhibit: Exhibit) -> tuple[int, int]:
            return (-len(words & item_words(exhibit.item)), -self._turns[exhibit.label])

        chosen = sorted(self._known.values(), key=order)[:limit]
        return tuple(sorted(chosen, key=lambda exhibit: int(exhibit.label[1:])))

    def close(self, exchange: Exchange, cited: Sequence[str]) -> None:
        """End a turn: keep its words, and let go of exhibits that have not been used lately."""
        self._turns |= dict.fromkeys(cited, self.number)
        self.number += 1
        self.exchanges = [*self.exchanges, exchange][-TURNS:]
        recent = sorted(self._known, key=lambda label: (-self._turns[label], int(label[1:])))
        kept = [at for at in recent[:EXHIBITS] if self.number - self._turns[at] <= TURNS]
        self._forget(set(kept))

    def _forget(self, kept: set[str]) -> None:
        self._known = {at: exhibit for at, exhibit in self._known.items() if at in kept}
        self._turns = {at: turn for at, turn in self._turns.items() if at in kept}
        self.looks = [lookup for lookup in self.looks if kept.issuperset(lookup.labels)]

    def save(self) -> str:
        """The session as JSON; when that is too long, what was used longest ago goes first."""
        while len((text := self._json()).encode()) > BYTES and (self._known or self.exchanges):
            if self._known:
                oldest = sorted(self._known, key=lambda label: -self._turns[label])
                self._forget(set(oldest[: len(oldest) // 2]))
            else:
                self.exchanges = self.exchanges[len(self.exchanges) // 2 + 1 :]
        return text

    def _json(self) -> str:
        entries = [
            _SavedExhibit(exhibit.item.key, label, self._turns[label], _trimmed(exhibit.assessed))
            for label, exhibit in self._known.items()
        ]
        given = len(self.dossier.exhibits)
        saved = _SavedSession(VERSION, self.number, given, entries, self.looks, self.exchanges)
        return _SAVED.dump_json(saved).decode()


def restored(session_id: str, tenant: str, run: Run, text: str) -> Session | None:
    """The session that was saved, on a new run; None when the text is none of ours."""
    try:
        saved = _SAVED.validate_json(text)
    except ValidationError:
        return None
    if saved.version != VERSION:
        return None
    dossier = Dossier(run.places)
    known = {entry.label: dossier.exhibit(entry.label, entry.assessed) for entry in saved.exhibits}
    dossier = Dossier(run.places, dict(_numbered(saved.given, known)))
    looks = [lookup for lookup in saved.looks if known.keys() >= set(lookup.labels)]
    turns = {entry.label: entry.turn for entry in saved.exhibits}
    return Session(
        session_id, tenant, run, dossier, saved.number, saved.exchanges, looks, known, turns
    )  # fmt: skip


def _numbered(given: int, known: Mapping[str, Exhibit]) -> Iterator[tuple[str, Exhibit]]:
    """Every number ever given, so that none is given twice; a forgotten one stands for nothing."""
    for number in range(1, given + 1):
        label = f"E{number}"
        gone = Item(key=f"forgotten:{number}", id=str(number), source="forgotten", title="")
        exhibit = known.get(label) or Exhibit(label, Assessed(gone, Verdict(False)))
        yield exhibit.item.key, exhibit


def _trimmed(assessed: Assessed) -> Assessed:
    item = assessed.item
    comments = tuple(
        replace(comment, body=cut(comment.body, _COMMENT)) for comment in item.comments[:_COMMENTS]
    )
    return replace(assessed, item=replace(item, body=cut(item.body, _BODY), comments=comments))


def question_words(question: str) -> frozenset[str]:
    """The words of a question that carry meaning."""
    return frozenset(content_words(question))


def item_words(item: Item) -> frozenset[str]:
    """The words of an item and its comments."""
    comments = " ".join(comment.body for comment in item.comments)
    return frozenset(words(f"{item.title} {item.body} {comments}"))
