"""What a chat remembers: its run, its exhibits under lasting numbers, its look-ups and its words.

Saved as one bounded JSON text. The text names an item's key in that item's own entry only, so that
an item which its upstream deleted can be taken out of it.

A session as it is saved, and read again whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic import TypeAdapter, ValidationError

from api.choices import DepthName
from api.core.domain import Assessed, Item
from api.core.text import cut
from api.core.words import canonical, content_words, words
from api.features.analyses.store_ports import Rating
from api.features.chat.chat_citations import is_variant, names_in
from api.pipeline.evidence.crawl import Run
from api.reports.citable import LABEL
from api.reports.exhibits import Dossier, Exhibit

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


TURNS, EXHIBITS, LOOKS, BYTES = 12, 60, 60, 400_000
"""What a saved session keeps at most: turns, exhibits, look-ups, and bytes of JSON."""
_BODY, _COMMENT, _COMMENTS = 2000, 500, 8
_DEPTHS: Mapping[DepthName, int] = {"quick": 0, "standard": 1, "deep": 2}


@dataclass(frozen=True, slots=True)
class KnownExhibit:
    """An exhibit of a session."""

    exhibit: Exhibit
    turn: int
    """When it was last shown or cited."""
    subjects: frozenset[str] = frozenset()
    """What it was found for; empty: nobody knows, so that it may stand for anything."""
    sample: bool = False
    """It is made up."""


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
    subjects: list[str] = field(default_factory=list)
    """What was asked about so far."""
    last_subjects: list[str] = field(default_factory=list)
    """What the last turn was about; stored as `asked`."""
    anew: bool = False
    """What was saved of it could not be read; told in its first turn, never saved."""
    dropped: bool = False
    """It was deleted while a turn ran in it, which then is not kept."""
    _known: dict[str, KnownExhibit] = field(default_factory=dict)

    @property
    def exhibits(self) -> Mapping[str, Exhibit]:
        """All of them, by label."""
        return {label: known.exhibit for label, known in self._known.items()}

    @property
    def sample(self) -> bool:
        """What it knows is made up, in part at least."""
        return self.is_sample(self._known) or any(turn.sample for turn in self.exchanges)

    def is_sample(self, labels: Iterable[str]) -> bool:
        """Whether one of these exhibits is made up."""
        return any(self._known[label].sample for label in labels)

    @property
    def questions_text(self) -> str:
        """Everything the person wrote that is remembered."""
        return "\n".join(exchange.question for exchange in self.exchanges)

    def exhibits_for(self, subjects: Iterable[str]) -> Mapping[str, Exhibit]:
        """Those that were found for one of these subjects, or for nobody knows what."""
        wanted = set(subjects)
        return {
            label: known.exhibit
            for label, known in self._known.items()
            if not known.subjects or known.subjects & wanted
        }

    def subjects_of(self, query: str) -> tuple[str, ...]:
        """The subjects of a query, known from now on.

        `ember mug lid` is about the `ember mug` that is known; once `ember mug` is asked for, what
        was known as `ember mug lid` goes by that name.
        """
        names = names_in(query)
        for name in names:
            if not any(is_variant(name, known) for known in self.subjects):
                self.subjects.append(name)
                self._rename({known: name for known in self.subjects if is_variant(known, name)})
        return self.known_as(names)  # after all: of `ember mug lid vs ember` the second names both

    def known_as(self, names: Iterable[str]) -> tuple[str, ...]:
        """What these subjects go by now, each once."""
        now: dict[str, None] = {}
        for name in names:
            wider = (known for known in self.subjects if is_variant(name, known))
            now[max(wider, key=len, default=name)] = None
        return tuple(now)

    def _rename(self, names: Mapping[str, str]) -> None:
        def renamed(subjects: Iterable[str]) -> Iterable[str]:
            return dict.fromkeys(names.get(subject, subject) for subject in subjects)

        self.subjects, self.last_subjects = (
            list(renamed(self.subjects)),
            list(renamed(self.last_subjects)),
        )
        for label, known in self._known.items():
            self._known[label] = replace(known, subjects=frozenset(renamed(known.subjects)))

    def show(
        self, items: Iterable[Assessed], subjects: Iterable[str] = (), *, sample: bool = False
    ) -> tuple[Exhibit, ...]:
        """The exhibits for these items, known from now on as found for these subjects too."""
        shown = self.dossier.show(items)
        for exhibit in shown:
            known = self._known.get(exhibit.label)
            earlier = known.subjects if known else frozenset()
            self._known[exhibit.label] = KnownExhibit(
                exhibit, self.number, earlier.union(subjects), sample
            )
        return shown

    def lookup(
        self, source: str, query: str, depth: DepthName, *, sample: bool = False
    ) -> Lookup | None:
        """The look-up that makes this one needless: same world, source and name, no less deep."""
        name = canonical(query)
        for lookup in reversed(self.looks):
            same = (lookup.source, lookup.query, lookup.sample) == (source, name, sample)
            if same and _DEPTHS[lookup.depth] >= _DEPTHS[depth]:
                return lookup
        return None

    def remember(
        self,
        source: str,
        query: str,
        depth: DepthName,
        line: str,
        labels: Iterable[str] = (),
        *,
        sample: bool = False,
    ) -> None:
        """Note a look-up and the exhibits it brought."""
        lookup = Lookup(source, canonical(query), depth, line, list(labels), sample)
        self.looks = [*self.looks, lookup][-LOOKS:]

    def best(
        self, question: str, limit: int, subjects: Sequence[str] = ()
    ) -> dict[str, list[Exhibit]]:
        """The exhibits a prompt shows, by what they were found for, in the order of their numbers.

        What is asked about goes first, then what holds the question's words, then what was used
        last, and of that what an answer cites. An exhibit found for several subjects stands under
        the first of them, one of nobody knows what under an empty name.
        """
        words = question_words(question)
        ranked = list(dict.fromkeys((*subjects, *reversed(self.subjects), "")))
        cited = {label for turn in self.exchanges for label in LABEL.findall(turn.answer)}

        def order(known: KnownExhibit) -> tuple[bool, int, int, bool]:
            holding = len(words & item_words(known.exhibit.item))
            uncited = known.exhibit.label not in cited
            return (known.subjects.isdisjoint(subjects), -holding, -known.turn, uncited)

        chosen = sorted(self._known.values(), key=order)[:limit]
        groups: dict[str, list[Exhibit]] = {}
        for known in sorted(chosen, key=lambda known: int(known.exhibit.label[1:])):
            first = min(known.subjects, key=ranked.index, default="")
            groups.setdefault(first, []).append(known.exhibit)
        return dict(sorted(groups.items(), key=lambda group: ranked.index(group[0])))

    def close(
        self, exchange: Exchange, cited: Iterable[str] = (), subjects: Iterable[str] = ()
    ) -> None:
        """End a turn: keep its words, and let go of exhibits that have not been used lately."""
        for label in cited:
            self._known[label] = replace(self._known[label], turn=self.number)
        self.number += 1
        self.exchanges = [*self.exchanges, replace(exchange, number=self.number)][-TURNS:]
        self.last_subjects = list(subjects)
        recent = [at for at in self._by_use() if self.number - self._known[at].turn <= TURNS]
        self._forget(recent[:EXHIBITS])

    def heed(self, text: str) -> None:
        """Take over what was thought of its turns since it was read, from what is stored now."""
        saved = saved_in(text)
        given = {e.number: e.opinions for e in saved.exchanges if e.number} if saved else {}
        self.exchanges = [
            replace(exchange, opinions=given.get(exchange.number, exchange.opinions))
            for exchange in self.exchanges
        ]

    def _by_use(self) -> list[str]:
        """Labels, the last used first."""
        return sorted(self._known, key=lambda label: (-self._known[label].turn, int(label[1:])))

    def _forget(self, kept: Sequence[str]) -> None:
        self._known = {label: known for label, known in self._known.items() if label in kept}
        self.looks = [lookup for lookup in self.looks if set(kept).issuperset(lookup.labels)]
        used = {subject for known in self._known.values() for subject in known.subjects}
        self.subjects = [
            name for name in self.subjects if name in used or name in self.last_subjects
        ]

    def save(self) -> str:
        """The session as JSON; when that is too long, what was used longest ago goes first."""
        while len((text := self._json()).encode()) > BYTES and (self._known or self.exchanges):
            if self._known:
                self._forget(self._by_use()[: len(self._known) // 2])
            else:
                self.exchanges = self.exchanges[len(self.exchanges) // 2 + 1 :]
        return text

    def _json(self) -> str:
        entries = [
            SavedExhibit(
                known.exhibit.item.key,
                label,
                known.turn,
                _trimmed(known.exhibit.assessed),
                sorted(known.subjects),
                known.sample,
            )
            for label, known in self._known.items()
        ]
        saved = SavedSession(
            VERSION,
            self.number,
            self.dossier.given,
            entries,
            self.looks,
            self.exchanges,
            self.subjects,
            self.last_subjects,
            self.sample,
        )
        return written(saved)


def restored(session_id: str, tenant: str, run: Run, text: str) -> Session | None:
    """The session that was saved, on a new run; None when the text is none of ours."""
    saved = saved_in(text)
    if saved is None:
        return None
    dossier = Dossier(run.places, saved.given)
    known = {
        entry.label: KnownExhibit(
            dossier.keep(entry.label, entry.assessed),
            entry.turn,
            frozenset(entry.subjects),
            bool(entry.sample),
        )
        for entry in saved.exhibits
    }
    return Session(
        session_id,
        tenant,
        run,
        dossier,
        saved.number,
        saved.exchanges,
        [lookup for lookup in saved.looks if known.keys() >= set(lookup.labels)],
        saved.subjects,
        saved.asked,
        _known=known,
    )


def _trimmed(assessed: Assessed) -> Assessed:
    """An item as it is saved: its first comments, and not more of the words than a prompt shows."""
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
    return frozenset(words(" ".join(item.texts)))
