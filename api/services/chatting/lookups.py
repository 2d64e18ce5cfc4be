"""Looking up within one chat turn: through the session's memory, within the turn's budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from api.services.chatting.session import Session
from api.services.chatting.turns import Moment
from api.services.containment import Failure, contained
from api.services.evidence.pipeline import collect
from api.services.listening import Ask, Product
from api.services.question.guard import guarded, mentions
from api.services.reporting.dossier import Exhibit, describe, gate_line, text_of
from api.services.schemas import Assessed, Gathered, Usage
from api.services.text import Fence
from api.settings import ChatSettings, DepthName

_OFF_TOPIC = "Name what the person asked about, in a few words of theirs."
SHOWN = 30
"""Exhibits that one look-up or one prompt shows."""


@dataclass(slots=True)
class ChatDesk:
    """What one turn works at."""

    product: Product
    session: Session
    question: str
    bounds: ChatSettings
    emit: Callable[[Moment], None]
    fence: Fence = field(default_factory=Fence)
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

    @property
    def empty_handed(self) -> bool:
        """Whether nothing an answer could cite came of this turn's look-ups, or of any."""
        return not self.session.exhibits or bool(self.lines and not self.exhibits)

    @property
    def citable(self) -> Mapping[str, Exhibit]:
        """What an answer may cite: when look-ups found nothing, only what names their subject."""
        known = self.session.exhibits
        if not self.lines or self.exhibits:
            return known
        subject = " ".join(self.queries)
        return {
            label: exhibit
            for label, exhibit in known.items()
            if mentions(subject, text_of(exhibit.item, self.question))
        }

    async def look(self, source: str, query: str, depth: DepthName, tokens: int = 0) -> str:
        """Ask one source, unless the session has; what the model reads. Failures are words too.

        `tokens` is what the turn's model has used so far.
        """
        sent = self._sent(query)
        if sent is None:
            return self._reply(_OFF_TOPIC)
        if (known := self.session.lookup(source, sent, depth)) is not None:
            recalled = [self.session.exhibits[label] for label in known.labels]
            self.lines[source] = known.line
            return self._shown(f"{known.line}; looked up before", recalled)
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
        line = self._note(gathered, query, depth, ranked.kept)
        return self._shown(line, self._numbered(ranked.kept))

    async def analyze(self, query: str, depth: DepthName, tokens: int = 0) -> str:
        """Ask every source and weigh what they give; what the model reads."""
        sent, names = self._sent(query), tuple(self.product.sources)
        if sent is None:
            return self._reply(_OFF_TOPIC)
        known = [self.session.lookup(name, sent, depth) for name in names]
        if None not in known:
            labels = {label for lookup in known if lookup for label in lookup.labels}
            lines = [lookup.line for lookup in known if lookup]
            self.lines |= {lookup.source: lookup.line for lookup in known if lookup}
            recalled = [
                exhibit for label, exhibit in self.session.exhibits.items() if label in labels
            ]
            return self._shown("; ".join([*lines, "looked up before"]), recalled)
        if (refusal := self._spend(len(names), tokens)) is not None:
            return refusal
        answer = await contained(self._analyze(sent, depth), "an overview")
        return self._failed("the sources", answer) if isinstance(answer, Failure) else answer

    async def _analyze(self, query: str, depth: DepthName) -> str:
        scope = self.product.scope(Ask(query, depth))
        evidence = await collect(self.session.run, scope, self.product.steps)
        self.usage += evidence.usage
        kept = evidence.kept
        lines = []
        for gathered in evidence.crawl.sources:
            items = [entry for entry in kept if entry.item.source == gathered.source]
            lines.append(self._note(gathered, query, depth, items))
        decided = evidence.decided
        lines += [f"{decided.decision}: {decided.rationale}", decided.disclaimer or ""]
        sentiment = evidence.figures.sentiment
        if sentiment is not None and sentiment.n:
            named = ", ".join(f"{feeling.count} {feeling.name}" for feeling in sentiment.feelings)
            lines.append(f"Sentiment of {sentiment.n} graded items: {named}")
        shown = "\n".join(line.rstrip(".") for line in lines if line)
        return self._shown(shown, self._numbered(evidence.shown))

    def _sent(self, query: str) -> str | None:
        """The query as it may leave: short, searchable, and on what the person asked about."""
        sent = guarded(f"{self.session.questions_text}\n{self.question}", query)
        if sent is not None:
            self.queries.append(sent)
        return sent

    def _spend(self, sources: int, tokens: int) -> str | None:
        used = tokens + self.usage.input_tokens + self.usage.output_tokens
        if self.calls + sources <= self.bounds.tool_calls and used < self.bounds.tokens:
            self.calls += sources
            return None
        self.refused += 1
        return self._reply("No more look-ups in this turn: answer with what you have.")

    def _note(
        self, gathered: Gathered, query: str, depth: DepthName, kept: Iterable[Assessed]
    ) -> str:
        """Remember a look-up that was answered, with all it brought."""
        self.gathered.append(gathered)
        line = self.lines[gathered.source] = gate_line(gathered)
        if gathered.outcome.asked:
            lookup = self.session.remember(gathered.source, query, depth, line)
            lookup.labels.extend(exhibit.label for exhibit in self._numbered(kept))
        return line

    def _failed(self, what: str, failure: Failure) -> str:
        self.lines[what] = f"{what} could not be asked: {failure.message}"
        return self._reply(self.lines[what])

    def _numbered(self, kept: Iterable[Assessed]) -> tuple[Exhibit, ...]:
        return self.session.show(list(kept)[:SHOWN])

    def _shown(self, line: str, exhibits: Sequence[Exhibit]) -> str:
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
