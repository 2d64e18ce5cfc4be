"""Looking up within one chat turn: through the session's memory, within the turn's budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from api.errors import ListenpostError
from api.services.chatting.session import Session
from api.services.chatting.turns import Moment
from api.services.evidence.pipeline import Evidence, collect
from api.services.listening import Ask, Product
from api.services.question.query import screen
from api.services.question.small_talk import content_words
from api.services.reporting.defects import DEFECTS, told
from api.services.reporting.dossier import Exhibit, describe, gate_line, text_of
from api.services.schemas import Assessed, Gathered, Usage
from api.services.text import Fence, cut, fold, one_line
from api.settings import ChatSettings, DepthName

QUERY = 100
"""Characters of a look-up's query; nothing longer leaves."""
SHOWN = 30
"""Exhibits that one look-up or one prompt shows."""


@dataclass(slots=True)
class Desk:
    """What one turn works at."""

    product: Product
    session: Session
    question: str
    bounds: ChatSettings
    tell: Callable[[Moment], None]
    fence: Fence = field(default_factory=Fence)
    calls: int = 0
    """Sources asked, or about to be."""
    refused: int = 0
    """Look-ups that the budget did not allow."""
    gathered: list[Gathered] = field(default_factory=list)
    found: dict[str, Exhibit] = field(default_factory=dict)
    """Exhibits that look-ups of this turn brought or recalled."""
    usage: Usage = field(default_factory=Usage)
    """What judging and grading used."""
    told: list[str] = field(default_factory=list)
    """Our own words to the model in this turn, numbers in them included."""
    queries: list[str] = field(default_factory=list)
    """What was looked up, or would have been."""
    lines: dict[str, str] = field(default_factory=dict)
    """By source, how the last look-up went, for a person."""

    @property
    def empty_handed(self) -> bool:
        """Whether nothing an answer could cite came of this turn's look-ups, or of any."""
        return not self.session.exhibits or bool(self.lines and not self.found)

    @property
    def citable(self) -> Mapping[str, Exhibit]:
        """What an answer may cite: when look-ups found nothing, only what names their subject."""
        known = self.session.exhibits
        if not self.lines or self.found:
            return known
        names = [name for query in self.queries for name in _names(query)]
        texts = {at: fold(text_of(one.item, self.question)) for at, one in known.items()}
        return {at: known[at] for at, text in texts.items() if any(name in text for name in names)}

    async def look(self, source: str, query: str, depth: DepthName, tokens: int = 0) -> str:
        """Ask one source, unless the session has; what the model reads. Failures are words too.

        `tokens` is what the turn's model has used so far.
        """
        asked = self._query(query)
        if asked is None:
            return self._say("Name what the person asked about, in a few words of theirs.")
        if (known := self.session.looked(source, asked, depth)) is not None:
            recalled = [self.session.exhibits[label] for label in known.labels]
            self.lines[source] = known.line
            return self._shown(f"{known.line}; looked up before", recalled)
        if (refusal := self._spend(1, tokens)) is not None:
            return refusal
        try:
            return await self._look(source, asked, depth)
        except (ListenpostError, *DEFECTS) as error:
            return self._failed(source, error)

    async def _look(self, source: str, query: str, depth: DepthName) -> str:
        run, product = self.session.run, self.product
        scope = product.scope(Ask(query, depth, (source,)))
        gathered = await run.search(scope.question, source, query, scope.limit)
        ranked = await product.steps.assessor.assess(
            run, scope, gathered.kept, graded=depth != "quick"
        )
        self.usage += gathered.usage + ranked.usage
        line = self._note(gathered, query, depth, ranked.kept)
        return self._shown(line, self._new(ranked.kept))

    async def analyze(self, query: str, depth: DepthName, tokens: int = 0) -> str:
        """Ask every source and weigh what they give; what the model reads."""
        asked, names = self._query(query), tuple(self.product.sources)
        if asked is None:
            return self._say("Name what the person asked about, in a few words of theirs.")
        known = [self.session.looked(name, asked, depth) for name in names]
        if None not in known:
            labels = {label for look in known if look for label in look.labels}
            lines = [look.line for look in known if look]
            self.lines |= {look.source: look.line for look in known if look}
            recalled = [one for at, one in self.session.exhibits.items() if at in labels]
            return self._shown("; ".join([*lines, "looked up before"]), recalled)
        if (refusal := self._spend(len(names), tokens)) is not None:
            return refusal
        failures: list[Exception] = []
        try:
            return await self._analyze(asked, depth)
        except* (ListenpostError, *DEFECTS) as group:
            failures = list(_leaves(group))
        return self._failed("the sources", failures[0])

    async def _analyze(self, query: str, depth: DepthName) -> str:
        scope = self.product.scope(Ask(query, depth))
        evidence = await collect(self.session.run, scope, self.product.steps)
        self.usage += evidence.usage
        kept = evidence.kept
        lines = [
            self._note(one, query, depth, [a for a in kept if a.item.source == one.source])
            for one in evidence.crawl.sources
        ]
        return self._shown("\n".join([*lines, *_weighed(evidence)]), self._new(evidence.shown))

    def _query(self, query: str) -> str | None:
        """The query as it may leave: short, searchable, and on what the person asked about."""
        screened = screen(cut(one_line(query), QUERY))
        about = on_topic(f"{self.session.said}\n{self.question}", screened.query)
        if not (screened.ok and about):
            return None
        self.queries.append(screened.query)
        return screened.query

    def _spend(self, sources: int, tokens: int) -> str | None:
        used = tokens + self.usage.input_tokens + self.usage.output_tokens
        if self.calls + sources <= self.bounds.tool_calls and used < self.bounds.tokens:
            self.calls += sources
            return None
        self.refused += 1
        return self._say("No more look-ups in this turn: answer with what you have.")

    def _note(
        self, gathered: Gathered, query: str, depth: DepthName, kept: Iterable[Assessed]
    ) -> str:
        """Remember a look-up that was answered, with all it brought."""
        self.gathered.append(gathered)
        line = self.lines[gathered.source] = gate_line(gathered)
        if gathered.outcome.asked:
            look = self.session.remember(gathered.source, query, depth, line)
            look.labels.extend(one.label for one in self._new(kept))
        return line

    def _failed(self, what: str, error: Exception) -> str:
        self.lines[what] = f"{what} could not be asked: {told(error)[1]}"
        return self._say(self.lines[what])

    def _new(self, kept: Iterable[Assessed]) -> tuple[Exhibit, ...]:
        return self.session.show(list(kept)[:SHOWN])

    def _shown(self, line: str, exhibits: Sequence[Exhibit]) -> str:
        self.found |= {exhibit.label: exhibit for exhibit in exhibits}
        said = [self._say(f"{line}.")]
        if self.product.sample:
            said.append("This is made-up sample data from the offline sandbox.")
        if exhibits:
            said += [self.fence.rule, describe(exhibits, self.fence, self.question)]
        return "\n".join(said)

    def _say(self, text: str) -> str:
        self.told.append(text)
        return text


def _leaves(error: Exception) -> Iterator[Exception]:
    """What several tasks at once failed with."""
    if isinstance(error, ExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _weighed(evidence: Evidence) -> list[str]:
    decided = evidence.decided
    lines = [f"{decided.decision}: {decided.rationale}", decided.disclaimer or ""]
    sentiment = evidence.figures.sentiment
    if sentiment is not None and sentiment.n:
        parts = ", ".join(f"{feeling.count} {feeling.name}" for feeling in sentiment.feelings)
        lines.append(f"Sentiment of {sentiment.n} graded items: {parts}")
    return [line.rstrip(".") for line in lines if line]


def on_topic(said: str, query: str) -> bool:
    """Whether a query shares a word with what the person wrote: what strangers dictate stays."""
    known, asked = fold(said), fold(query)
    return any(name in asked for name in _names(said)) or any(w in known for w in _names(query))


def _names(text: str) -> set[str]:
    """The parts of its content words; short ones only where there is nothing else."""
    plain = fold(text)
    parts = {part for word in content_words(plain) for part in word.split(".")} - {""}
    return {part for part in parts if len(part) > 2} or parts or {plain}
