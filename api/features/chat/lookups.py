"""Looking up within one chat turn: through the session's memory, within the turn's budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from api.choices import DepthName
from api.core.display_names import title_in
from api.core.domain import Assessed, Gathered, Usage
from api.core.text import Fence
from api.core.work import Failure, contained
from api.features.archive.search import ArchiveSearch
from api.features.chat.chat_citations import named_in, names_another, weighs
from api.features.chat.chat_turn import ChatEvent
from api.features.chat.session import Lookup, Session
from api.pipeline.evidence.collection import collect
from api.pipeline.question.query_guard import (
    compared_names,
    guarded_query,
    joined_spellings,
    naming_words,
    refers_back,
    singular,
)
from api.reports.exhibits import Exhibit, describe, gate_line
from api.services.product import Ask, Product
from api.settings import ChatSettings

_OFF_TOPIC = "Name what the person asked about, in a few words of theirs."
SHOWN = 30
"""Exhibits that one look-up or one prompt shows."""


@dataclass(slots=True)
class ChatLookups:
    """What one turn works at."""

    product: Product
    session: Session
    question: str
    bounds: ChatSettings
    most: int
    """Sources that the turn may ask."""
    emit: Callable[[ChatEvent], None]
    archive: ArchiveSearch | None = None
    """Searches what is stored; None: nothing is."""
    fence: Fence = field(default_factory=Fence)
    recalled: bool = False
    """What is stored was found to hold something."""
    calls: int = 0
    """Sources asked, or about to be."""
    refused: int = 0
    """Look-ups that the budget did not allow."""
    gathered: list[Gathered] = field(default_factory=list)
    exhibits: dict[str, Exhibit] = field(default_factory=dict)
    """By label, those that look-ups of this turn brought or recalled."""
    usage: Usage = field(default_factory=Usage)
    """What judging and grading used."""
    replies: list[str] = field(default_factory=list)
    """Our own words to the model in this turn, numbers in them included."""
    queries: list[str] = field(default_factory=list)
    """What was looked up, or would have been."""
    lines: dict[str, str] = field(default_factory=dict)
    """By source, how the last look-up went, for a person."""
    before: tuple[str, ...] = field(init=False)
    """What the turn before this one was about; empty: there was none."""
    unnamed: tuple[str, ...] = field(init=False)
    """What a question that names nothing known is about: the same, if its posts speak of that."""
    goes_on: bool = field(init=False)
    """The question names no product, so that it is about what the turn before was about."""

    def __post_init__(self) -> None:
        """Remember where the conversation stands, since look-ups change that."""
        self.before = tuple(self.session.last_subjects)
        words = set(map(singular, naming_words(self.question)))
        exhibits = self.session.exhibits_for(self.before).values()
        going_on = not names_another(self.question) or any(
            words & joined_spellings(" ".join(exhibit.item.texts)) for exhibit in exhibits
        )
        self.unnamed = self.before if going_on else ()
        named = named_in(self.question, self.session.subjects)
        self.goes_on = bool(self.unnamed) and not named and not compared_names(self.question)

    @property
    def subjects(self) -> tuple[str, ...]:
        """What the turn is about: what it looked up and what the question names, else as before.

        A comparison with something that the question only points at is about both, and so is a
        question after a comparison that looks up one of the two alone.
        """
        looked = [name for query in self.queries for name in self.session.subjects_of(query)]
        named = dict.fromkeys((*looked, *named_in(self.question, self.session.subjects)))
        both = named and compared_names(self.question) and refers_back(self.question)
        names = (*named, *self.before) if both else (tuple(named) or self.unnamed)
        if self.goes_on and set(looked) <= set(self.session.known_as(self.before)):
            names = self.before
        return self.session.known_as(names)  # a look-up of this turn may have renamed one

    @property
    def citable(self) -> Mapping[str, Exhibit]:
        """What the answer may rest on: what was found for the turn's subjects."""
        return self.session.exhibits_for(self.subjects)

    def citable_in(self, sentence: str) -> Mapping[str, Exhibit]:
        """What one sentence may cite.

        A sentence that names subjects of the turn rests on what was found for those, unless it
        weighs them against others; naming another subject of the session adds what is its.
        """
        turn, named = self.subjects, named_in(sentence, self.session.subjects)
        alone = not set(turn).isdisjoint(named) and not weighs(sentence)
        return self.session.exhibits_for(named if alone else (*turn, *named))

    @property
    def empty_handed(self) -> bool:
        """Whether nothing an answer could cite came of this turn's look-ups, or of any."""
        return not self.citable or bool(self.lines and not self.exhibits)

    def knows(self, name: str) -> bool:
        """Whether something was found for a product, in this turn or before."""
        found_for_it = self.session.exhibits_for(self.session.subjects_of(name)).keys()
        return bool(found_for_it - self.session.exhibits_for(()).keys())

    def recall(self) -> None:
        """Take what is known of the turn's subjects to what it looked up."""
        self.exhibits |= self.citable

    async def look(self, source: str, query: str, depth: DepthName, tokens: int = 0) -> str:
        """Ask one source, unless the session has; what the model reads. Failures are words too.

        `tokens` is what the turn's model has used so far.
        """
        sent = self._sent(query)
        if sent is None:
            return self._reply(_OFF_TOPIC)
        if (known := self._known(source, sent, depth)) is not None:
            self.lines[source] = known.line
            return self._shown(f"{known.line}; looked up before", known.labels)
        if (refusal := self._spend(1, tokens)) is not None:
            return refusal
        answer = await contained(self._look(source, sent, depth), f"a look-up on {source}")
        return self._failed(source, answer) if isinstance(answer, Failure) else answer

    async def _look(self, source: str, query: str, depth: DepthName) -> str:
        run, product = self.session.run, self.product
        scope = product.scope(Ask(query, depth, (source,)))
        gathered = await run.search(scope.question, source, query, scope.limit)
        ranked = await product.steps.assessor.assess(
            run, scope, gathered.kept, graded=depth != "quick"
        )
        self.usage += gathered.usage + ranked.usage
        labels = self.numbered(query, ranked.kept)
        return self._shown(self._note(gathered, query, depth, labels), labels)

    async def analyze(self, query: str, depth: DepthName, tokens: int = 0) -> str:
        """Ask every source and weigh what they give; what the model reads."""
        sent, names = self._sent(query), self.product.askable
        if sent is None:
            return self._reply(_OFF_TOPIC)
        known = [self._known(name, sent, depth) for name in names]
        if None not in known:
            lookups = [lookup for lookup in known if lookup]
            labels = {label for lookup in lookups for label in lookup.labels}
            self.lines |= {lookup.source: lookup.line for lookup in lookups}
            outcome = "; ".join([*(lookup.line for lookup in lookups), "looked up before"])
            return self._shown(outcome, sorted(labels, key=lambda label: int(label[1:])))
        if (refusal := self._spend(len(names), tokens)) is not None:
            return refusal
        answer = await contained(self._analyze(sent, depth), "an overview")
        return self._failed("The sources", answer) if isinstance(answer, Failure) else answer

    async def _analyze(self, query: str, depth: DepthName) -> str:
        scope = self.product.scope(Ask(query, depth, self.product.askable))
        evidence = await collect(self.session.run, scope, self.product.steps)
        self.usage += evidence.usage
        lines = []
        for gathered in evidence.crawl.sources:
            items = [entry for entry in evidence.kept if entry.item.source == gathered.source]
            lines.append(self._note(gathered, query, depth, self.numbered(query, items)))
        decided = evidence.decided
        lines += [f"{decided.decision}: {decided.rationale}", decided.disclaimer or ""]
        sentiment = evidence.figures.sentiment
        if sentiment is not None and sentiment.n:
            named = ", ".join(f"{feeling.count} {feeling.name}" for feeling in sentiment.feelings)
            lines.append(f"Sentiment of {sentiment.n} graded items: {named}")
        shown = "\n".join(line.rstrip(".") for line in lines if line)
        return self._shown(shown, self.numbered(query, evidence.shown))

    def _known(self, source: str, query: str, depth: DepthName) -> Lookup | None:
        return self.session.lookup(source, query, depth, sample=self.product.sample)

    def _sent(self, query: str) -> str | None:
        """The query as it may leave: short, searchable, and on what the person asked about."""
        written = f"{self.session.questions_text}\n{self.question}"
        sent = guarded_query(written, query, (self.question, *compared_names(self.question)))
        if sent is not None:
            self.queries.append(sent)
        return sent

    def _spend(self, sources: int, tokens: int) -> str | None:
        used = tokens + self.usage.input_tokens + self.usage.output_tokens
        if self.calls + sources <= self.most and used < self.bounds.tokens:
            self.calls += sources
            return None
        self.refused += 1
        return self._reply("No more look-ups in this turn: answer with what you have.")

    def _note(self, gathered: Gathered, query: str, depth: DepthName, labels: Iterable[str]) -> str:
        """Remember a look-up that was answered, with all it brought."""
        self.gathered.append(gathered)
        line = self.lines[gathered.source] = gate_line(gathered)
        if gathered.outcome.answered:
            self.session.remember(
                gathered.source, query, depth, line, labels, sample=self.product.sample
            )
        return line

    def _failed(self, what: str, failure: Failure) -> str:
        title = title_in(self.product.places, what)
        self.lines[what] = f"{title} could not be asked: {failure.message}"
        return self._reply(self.lines[what])

    def numbered(self, query: str, kept: Iterable[Assessed]) -> list[str]:
        """The labels of what a query found, known from now on."""
        shown = self.session.show(
            list(kept)[:SHOWN], self.session.subjects_of(query), sample=self.product.sample
        )
        return [exhibit.label for exhibit in shown]

    def answered(self, name: str, line: str, labels: Sequence[str]) -> str:
        """Note how a look-up went that asked no place; what the model reads."""
        self.lines[name] = line
        self.recalled |= bool(labels)
        return self._shown(line, labels)

    def _shown(self, line: str, labels: Iterable[str]) -> str:
        known = self.session.exhibits
        exhibits = [known[label] for label in labels]
        self.exhibits |= {exhibit.label: exhibit for exhibit in exhibits}
        parts = [self._reply(f"{line}.")]
        if self.product.sample:
            parts.append("This is made-up sample data from the offline sandbox.")
        if exhibits:
            parts += [self.fence.rule, describe(exhibits, self.fence, self.question)]
        return "\n".join(parts)

    def _reply(self, text: str) -> str:
        self.replies.append(text)
        return text
