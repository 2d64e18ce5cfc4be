"""State of a chat session: exhibits under lasting labels, look-ups, words and subjects.

Saved as one bounded JSON text, in which an item's key stands in that item's own entry only, so that
an item which its source deleted can be removed from the text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic import TypeAdapter, ValidationError

from api.choices import DepthName, Rating
from api.core.display_names import title_in
from api.core.items import Assessed
from api.core.text import cut
from api.core.words import canonical, content_words, words
from api.features.chat.chat_citations import is_variant, products_in
from api.pipeline.evidence.crawl import Run
from api.reports.composition import assessed_of
from api.reports.exhibits import Dossier, Exhibit, kept_line
from api.reports.quotes import LABEL
from api.reports.report import Report

VERSION = 1
TURNS, EXHIBITS, LOOKS, BYTES = 12, 60, 60, 400_000
"""Most turns, exhibits, look-ups, and bytes of JSON in a saved session."""
# Of a saved item: characters of its text and of a comment, and comments; a prompt shows less.
_BODY, _COMMENT, _COMMENTS = 2000, 500, 8
_DEPTHS: Mapping[DepthName, int] = {"quick": 0, "standard": 1, "deep": 2}


@dataclass(frozen=True, slots=True)
class Thumb:
    """A rating, up or down, of one answer, with its comment."""

    author: str  # a pseudonym
    rating: Rating
    comment: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question of a chat, its answer, and people's ratings of it."""

    question: str
    answer: str  # empty when the turn was stopped before anything was written
    stopped: bool = False  # the person left before the answer was complete
    sample: bool = False  # it rests on made-up posts, in part at least
    trace_id: str | None = field(default=None, compare=False)
    number: int = field(default=0, compare=False)
    """Number of its turn in the session, from 1; 0 in sessions saved by an older release."""
    opinions: tuple[Thumb, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Lookup:
    """One query that a source has answered."""

    source: str
    query: str  # in its canonical form
    depth: DepthName
    line: str  # how it went, for a person
    labels: list[str]
    sample: bool = False  # the sandbox was asked


@dataclass(frozen=True, slots=True)
class KnownExhibit:
    """An exhibit that a session remembers."""

    key: str
    label: str
    turn: int  # when it was last shown or cited
    assessed: Assessed
    subjects: list[str] = field(default_factory=list)
    """Products it was found for, sorted; empty when unknown, so that it may be about any."""
    sample: bool | None = None
    """Whether it is sample data; None in sessions saved by an older release, where the session says it."""


@dataclass(frozen=True, slots=True)
class SavedSession:
    """A session as it is saved; see `Session`."""

    version: int
    number: int
    given: int
    exhibits: list[KnownExhibit]
    looks: list[Lookup]
    exchanges: list[Exchange]
    subjects: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    sample: bool = False
    report_id: str = ""


_SAVED = TypeAdapter(SavedSession)


def session_json(saved: SavedSession) -> str:
    """The session as JSON, which `read_session` reads."""
    return _SAVED.dump_json(saved).decode()


def read_session(text: str) -> SavedSession | None:
    """A saved session; None when the text cannot be read."""
    try:
        saved = _SAVED.validate_json(text)
    except ValidationError:
        return None
    if saved.version != VERSION:
        return None
    exhibits = [replace(entry, sample=saved.sample) if entry.sample is None else entry for entry in saved.exhibits]
    return replace(saved, exhibits=exhibits)


@dataclass(slots=True)
class Session:
    """Exchanges, exhibits and look-ups of one conversation."""

    id: str
    tenant: str
    run: Run
    dossier: Dossier = field(default_factory=Dossier)
    number: int = 0  # turns so far
    exchanges: list[Exchange] = field(default_factory=list)
    looks: list[Lookup] = field(default_factory=list)
    subjects: list[str] = field(default_factory=list)  # the products asked about so far
    last_subjects: list[str] = field(default_factory=list)
    """Subjects of the last turn; saved as `asked`."""
    unreadable: bool = False
    """Whether the saved text could not be read; noted in the first turn, never saved."""
    deleted: bool = False  # it was deleted while a turn ran in it; that turn is not kept
    report_id: str = ""  # the report that it began over
    _known: dict[str, KnownExhibit] = field(default_factory=dict)

    @property
    def exhibits(self) -> Mapping[str, Exhibit]:
        """All remembered ones, by label."""
        shown = self.dossier.by_label()
        return {label: shown[label] for label in self._known}

    @property
    def sample(self) -> bool:
        """Whether anything it remembers is made up."""
        return self.is_sample(self._known) or any(turn.sample for turn in self.exchanges)

    def is_sample(self, labels: Iterable[str]) -> bool:
        """Whether one of these exhibits is sample data."""
        return any(self._known[label].sample for label in labels)

    @property
    def questions_text(self) -> str:
        """All remembered questions, one a line."""
        return "\n".join(exchange.question for exchange in self.exchanges)

    def exhibits_for(self, subjects: Iterable[str]) -> Mapping[str, Exhibit]:
        """Exhibits found for one of these subjects, or for unknown subjects."""
        wanted = set(subjects)
        return {
            label: exhibit
            for label, exhibit in self.exhibits.items()
            if not (known := self._known[label].subjects) or wanted.intersection(known)
        }

    def subjects_of(self, query: str) -> tuple[str, ...]:
        """The subjects of a query, remembered from now on.

        `ember mug lid` is about the `ember mug` that is known; once `ember mug` is asked for, what
        was known as `ember mug lid` goes by that name.
        """
        names = products_in(query)
        for name in names:
            if not any(is_variant(name, known) for known in self.subjects):
                self.subjects.append(name)
                self._rename({known: name for known in self.subjects if is_variant(known, name)})
        return self.current_names(names)  # after all: in `ember mug lid vs ember` the second counts

    def current_names(self, names: Iterable[str]) -> tuple[str, ...]:
        """Current names of these subjects, each once."""
        now: dict[str, None] = {}
        for name in names:
            wider = (known for known in self.subjects if is_variant(name, known))
            now[max(wider, key=len, default=name)] = None
        return tuple(now)

    def _rename(self, names: Mapping[str, str]) -> None:
        def renamed(subjects: Iterable[str]) -> list[str]:
            return list(dict.fromkeys(names.get(subject, subject) for subject in subjects))

        self.subjects, self.last_subjects = renamed(self.subjects), renamed(self.last_subjects)
        for label, known in self._known.items():
            self._known[label] = replace(known, subjects=sorted(renamed(known.subjects)))

    def show(
        self, items: Iterable[Assessed], subjects: Iterable[str] = (), *, sample: bool = False
    ) -> tuple[Exhibit, ...]:
        """The exhibits for these items, remembered as found for these subjects too."""
        shown, subjects = self.dossier.show(items), set(subjects)
        for exhibit in shown:
            known = self._known.get(exhibit.label)
            every = sorted(subjects.union(known.subjects if known else ()))
            self._known[exhibit.label] = KnownExhibit(
                exhibit.item.key, exhibit.label, self.number, exhibit.assessed, every, sample
            )
        return shown

    def lookup(self, source: str, query: str, depth: DepthName, *, sample: bool = False) -> Lookup | None:
        """An earlier look-up of the same source and name, at the same depth or deeper; None without one."""
        name = canonical(query)
        for lookup in reversed(self.looks):
            same = (lookup.source, lookup.query, lookup.sample) == (source, name, sample)
            if same and _DEPTHS[lookup.depth] >= _DEPTHS[depth]:
                return lookup
        return None

    def remember(self, lookup: Lookup) -> None:
        """Store a look-up that was answered, under its canonical query."""
        self.looks = [*self.looks, replace(lookup, query=canonical(lookup.query))][-LOOKS:]

    def best(self, question: str, limit: int, subjects: Sequence[str] = ()) -> dict[str, list[Exhibit]]:
        """The exhibits for a prompt by subject, each group in the order of labels.

        Chosen in this order: on these subjects, sharing words with the question, used last, cited.
        An exhibit of several subjects stands under the first, one of unknown ones under "".
        """
        keywords = set(content_words(question))
        ranked = list(dict.fromkeys((*subjects, *reversed(self.subjects), "")))
        cited = {label for turn in self.exchanges for label in LABEL.findall(turn.answer)}

        def order(known: KnownExhibit) -> tuple[bool, int, int, bool]:
            shared = keywords.intersection(words(" ".join(known.assessed.item.texts)))
            other = set(subjects).isdisjoint(known.subjects)
            return (other, -len(shared), -known.turn, known.label not in cited)

        exhibits, chosen = self.exhibits, sorted(self._known.values(), key=order)[:limit]
        groups: dict[str, list[Exhibit]] = {}
        for known in sorted(chosen, key=lambda known: int(known.label[1:])):
            first = min(known.subjects, key=ranked.index, default="")
            groups.setdefault(first, []).append(exhibits[known.label])
        return dict(sorted(groups.items(), key=lambda group: ranked.index(group[0])))

    def close(self, exchange: Exchange, cited: Iterable[str] = (), subjects: Iterable[str] = ()) -> None:
        """End a turn: keep its words, and forget exhibits that were not used lately."""
        for label in cited:
            self._known[label] = replace(self._known[label], turn=self.number)
        self.number += 1
        self.exchanges = [*self.exchanges, replace(exchange, number=self.number)][-TURNS:]
        self.last_subjects = list(subjects)
        recent = [at for at in self._by_use() if self.number - self._known[at].turn <= TURNS]
        self._keep_only(recent[:EXHIBITS])

    def take_ratings(self, text: str) -> None:
        """Take over the ratings that its saved text has got since it was read."""
        saved = read_session(text)
        given = {e.number: e.opinions for e in saved.exchanges if e.number} if saved else {}
        self.exchanges = [
            replace(exchange, opinions=given.get(exchange.number, exchange.opinions)) for exchange in self.exchanges
        ]

    def _by_use(self) -> list[str]:
        return sorted(self._known, key=lambda label: (-self._known[label].turn, int(label[1:])))

    def _keep_only(self, labels: Sequence[str]) -> None:
        self._known = {label: known for label, known in self._known.items() if label in labels}
        self.looks = [lookup for lookup in self.looks if set(labels).issuperset(lookup.labels)]
        used = {subject for known in self._known.values() for subject in known.subjects}
        used.update(self.last_subjects)
        self.subjects = [name for name in self.subjects if name in used]

    def save(self) -> str:
        """The session as JSON; when that is too long, what was used longest ago goes first."""
        while True:
            known = []
            for entry in self._known.values():
                item = entry.assessed.item
                comments = tuple(
                    comment.edited(body=cut(comment.body, _COMMENT)) for comment in item.comments[:_COMMENTS]
                )
                item = item.edited(body=cut(item.body, _BODY), comments=comments)
                known.append(replace(entry, assessed=replace(entry.assessed, item=item)))
            saved = SavedSession(
                VERSION, self.number, self.dossier.given, known, self.looks, self.exchanges,
                self.subjects, self.last_subjects, self.sample, self.report_id,
            )  # fmt: skip
            text = session_json(saved)
            if len(text.encode()) <= BYTES or not (self._known or self.exchanges):
                return text
            if self._known:
                self._keep_only(self._by_use()[: len(self._known) // 2])
            else:
                self.exchanges = self.exchanges[len(self.exchanges) // 2 + 1 :]


def restored(session_id: str, tenant: str, run: Run, text: str) -> Session | None:
    """The saved session on a new run; None when the text cannot be read."""
    saved = read_session(text)
    if saved is None:
        return None
    dossier = Dossier(run.places, saved.given)
    for entry in saved.exhibits:
        dossier.keep(entry.label, entry.assessed)
    known = {entry.label: entry for entry in saved.exhibits}
    looks = [lookup for lookup in saved.looks if known.keys() >= set(lookup.labels)]
    return Session(
        session_id, tenant, run, dossier, saved.number, saved.exchanges, looks, saved.subjects,
        saved.asked, report_id=saved.report_id, _known=known,
    )  # fmt: skip


def load_report(session: Session, report: Report) -> None:
    """Add a report's items, look-ups and answer to a session, as if it had been asked there.

    What the report asked is then not asked again. Cited items and comments go first, since a saved
    session holds less than a report.
    """
    session.report_id = report.id
    subjects = session.subjects_of(report.query)
    cited: dict[str, set[str | None]] = defaultdict(set)
    for finding in report.findings:
        for passage in finding.evidence:
            cited[passage.key].add(passage.comment_id)
    keys = [item.key for item in report.items]
    chosen = set(sorted(keys, key=lambda key: key not in cited)[:EXHIBITS])
    items = []
    for kept in report.items:
        if kept.key in chosen:
            entry = assessed_of(kept)
            comments = sorted(kept.comments, key=lambda c: c.id not in cited[kept.key])
            items.append(replace(entry, item=kept.edited(comments=tuple(comments))))
    shown = session.show(items, subjects, sample=report.sample)
    for name, source in report.sources.items():
        if source.outcome.answered:
            labels = [exhibit.label for exhibit in shown if exhibit.item.source == name]
            title = title_in(session.run.places, name)
            counted = f"{source.kept} of {source.fetched} results"
            line = f"{title}: {kept_line(counted, source.gate, refetched=source.refetched)}"
            lookup = Lookup(name, report.query, report.depth, line, labels, report.sample)
            session.remember(lookup)
    by_key = {exhibit.item.key: exhibit.label for exhibit in shown}
    lines = [report.summary or report.explanation_text or ""]
    for finding in report.findings:
        labels = [by_key[key] for key in finding.cites if key in by_key]
        lines.append(f"- {finding.text} [{', '.join(labels)}]" if labels else f"- {finding.text}")
    exchange = Exchange(report.query, "\n".join(lines).strip(), sample=report.sample)
    session.close(exchange, by_key.values(), subjects)
