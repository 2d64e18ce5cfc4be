"""Look-ups of one chat turn, answered from the session where possible, within limits.

What a look-up returns is text for the model; a failure is text too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from api.choices import DepthName
from api.core.display_names import title_in
from api.core.domain import Usage, Verdict
from api.core.items import Assessed, Gathered
from api.core.text import Fence
from api.core.words import index_tokens
from api.core.work import Failure, contained
from api.features.archive.search import ArchiveSearch
from api.features.archive.search_values import ArchiveAnswer, ArchiveFilters
from api.features.chat import chat_citations
from api.features.chat.chat_turn import ChatEvent, LookupEnded, LookupStarted
from api.features.chat.session import Lookup, Session
from api.pipeline.evidence.collection import collect
from api.pipeline.question import query_guard
from api.pipeline.question.product_name import question_parts, search_words, without_web_ending
from api.reports.exhibits import Exhibit, describe, gate_line
from api.reports.keyless.polarity import lean_wanted
from api.services.product import Ask, Product
from api.settings import ChatSettings

_OFF_TOPIC = "Name what the person asked about, in a few words of theirs."
_NO_MORE = "No more look-ups in this turn: answer with what you have."
SHOWN = 30  # exhibits that one look-up or one prompt shows
ARCHIVE_TOOL = "search_archive"
KEPT = ArchiveFilters(kept=True)
"""Items that a gate let pass, or a person imported: an answer may rest on these."""
ENOUGH = 3  # stored entries from which on no source is asked
# Latest queries of the tenant that are searched for the product of the question.
_QUERIES = 200


@dataclass(slots=True)
class ChatLookups:
    """Look-ups of one turn, and what they found."""

    product: Product
    session: Session
    question: str
    bounds: ChatSettings
    max_sources: int  # sources that the turn may ask
    emit: Callable[[ChatEvent], None]
    archive: ArchiveSearch | None = None  # searches the stored items; None: there are none
    fence: Fence = field(default_factory=Fence)
    recalled: bool = False
    calls: int = 0  # sources asked, or about to be
    refused: int = 0  # look-ups beyond the limits
    gathered: list[Gathered] = field(default_factory=list)
    exhibits: dict[str, Exhibit] = field(default_factory=dict)
    """Exhibits that look-ups of this turn found or recalled, by label."""
    usage: Usage = field(default_factory=Usage)  # of judging and grading
    replies: list[str] = field(default_factory=list)
    """Our own words to the model in this turn, whose numbers it may repeat."""
    queries: list[str] = field(default_factory=list)  # what was looked up, or would have been
    lines: dict[str, str] = field(default_factory=dict)
    """Outcome of the last look-up of each source, in words for a person."""
    labelled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the look-up that began last has its labels; the next one waits for it."""
    previous_subjects: tuple[str, ...] = field(init=False)
    """Subjects of the previous turn; empty when there was none."""
    implied_subjects: tuple[str, ...] = field(init=False)
    """The previous ones, where the question names nothing else, or words of their posts."""
    continues: bool = field(init=False)
    """The question names no product, so that it is about the previous subjects."""

    def __post_init__(self) -> None:
        """Store the subjects of the previous turn before a look-up changes them."""
        self.labelled.set()
        self.previous_subjects = tuple(self.session.last_subjects)
        words = set(map(query_guard.singular, query_guard.naming_words(self.question)))
        exhibits = self.session.exhibits_for(self.previous_subjects).values()
        going_on = not chat_citations.names_product(self.question) or any(
            words & query_guard.joined_spellings(" ".join(exhibit.item.texts)) for exhibit in exhibits
        )
        self.implied_subjects = self.previous_subjects if going_on else ()
        named = chat_citations.subjects_meant(self.question, self.session.subjects)
        self.continues = bool(self.implied_subjects) and not named and not query_guard.compared_names(self.question)

    @property
    def subjects(self) -> tuple[str, ...]:
        """What the turn is about: what it looked up and the question names, else as before.

        A comparison with something that the question only points at is about both, and so is a
        question after a comparison that looks up one of the two alone.
        """
        looked = [name for query in self.queries for name in self.session.subjects_of(query)]
        named = dict.fromkeys((*looked, *chat_citations.subjects_meant(self.question, self.session.subjects)))
        both = named and query_guard.compared_names(self.question) and query_guard.refers_back(self.question)
        names = (*named, *self.previous_subjects) if both else tuple(named) or self.implied_subjects
        earlier = set(self.session.current_names(self.previous_subjects))
        if self.continues and earlier.issuperset(looked):
            names = self.previous_subjects
        return self.session.current_names(names)  # a look-up of this turn may have renamed one

    @property
    def citable(self) -> Mapping[str, Exhibit]:
        """Exhibits that the answer may cite: those found for the turn's subjects."""
        return self.session.exhibits_for(self.subjects)

    def citable_in(self, sentence: str) -> Mapping[str, Exhibit]:
        """Exhibits that one sentence may cite.

        A sentence that names subjects of the turn may cite what was found for those, unless it
        compares them with others; naming another subject of the session adds that one's.
        """
        turn, named = self.subjects, chat_citations.subjects_named(sentence, self.session.subjects)
        alone = not set(turn).isdisjoint(named) and not chat_citations.is_comparing(sentence)
        return self.session.exhibits_for(named if alone else (*turn, *named))

    @property
    def found_nothing(self) -> bool:
        """Whether there is nothing to cite, or this turn's look-ups found nothing."""
        return not self.citable or bool(self.lines and not self.exhibits)

    def knows(self, name: str) -> bool:
        """Whether something was found for a product, in this turn or before."""
        own = self.session.exhibits_for(self.session.subjects_of(name)).keys()
        return bool(own - self.session.exhibits_for(()).keys())

    async def ask_source(self, source: str, query: str, depth: DepthName, tokens: int = 0) -> str:
        """Ask one source, unless the session has; `tokens` is what the turn's model has used."""

        async def fetch(sent: str, previous: asyncio.Event) -> str:
            run, product = self.session.run, self.product
            scope = product.scope(Ask(sent, depth, (source,)))
            gathered = await run.search(scope.question, source, search_words(sent), scope.limit)
            ranked = await product.steps.assessor.assess(run, scope, gathered.kept, graded=depth != "quick")
            self.usage += gathered.usage + ranked.usage
            await previous.wait()
            labels = self._numbered(sent, ranked.kept)
            return await self._shown(self._noted(gathered, sent, depth, labels), labels)

        return await self._ask((source,), source, query, depth, tokens, fetch)

    async def ask_all(self, query: str, depth: DepthName, tokens: int = 0) -> str:
        """Ask every source and weigh what they give, unless the session has."""

        async def fetch(sent: str, previous: asyncio.Event) -> str:
            scope = self.product.scope(Ask(sent, depth, self.product.askable))
            evidence = await collect(self.session.run, scope, self.product.steps)
            self.usage += evidence.usage
            await previous.wait()
            lines = []
            for gathered in evidence.crawl.sources:
                items = [entry for entry in evidence.kept if entry.item.source == gathered.source]
                lines.append(self._noted(gathered, sent, depth, self._numbered(sent, items)))
            decided = evidence.decided
            lines += [f"{decided.decision}: {decided.rationale}", decided.disclaimer or ""]
            sentiment = evidence.figures.sentiment
            if sentiment is not None and sentiment.n:
                counts = ", ".join(f"{felt.count} {felt.name}" for felt in sentiment.feelings)
                lines.append(f"Sentiment of {sentiment.n} graded items: {counts}")
            shown = "\n".join(line.rstrip(".") for line in lines if line)
            return await self._shown(shown, self._numbered(sent, evidence.shown))

        return await self._ask(self.product.askable, "The sources", query, depth, tokens, fetch)

    async def _ask(
        self,
        sources: Sequence[str],
        title: str,
        query: str,
        depth: DepthName,
        tokens: int,
        fetch: Callable[[str, asyncio.Event], Awaitable[str]],
    ) -> str:
        """Ask sources a query that may leave, unless the session knows; within the limits.

        Look-ups run concurrently; each waits with its labels until the one that began before has its own.
        """
        written = f"{self.session.questions_text}\n{self.question}"
        sent = query_guard.guarded_query(written, query, (self.question, *query_guard.compared_names(self.question)))
        if sent is None:
            return self._reply(_OFF_TOPIC)
        self.queries.append(sent)
        sample = self.product.sample
        known = [self.session.lookup(name, sent, depth, sample=sample) for name in sources]
        if None not in known:
            earlier = [lookup for lookup in known if lookup]
            self.lines |= {lookup.source: lookup.line for lookup in earlier}
            labels = dict.fromkeys(label for lookup in earlier for label in lookup.labels)
            return await self._shown("; ".join([*(lookup.line for lookup in earlier), "looked up before"]), labels)
        used = tokens + self.usage.input_tokens + self.usage.output_tokens
        if self.calls + len(sources) > self.max_sources or used >= self.bounds.tokens:
            self.refused += 1
            return self._reply(_NO_MORE)
        self.calls += len(sources)
        previous, labelled = self.labelled, asyncio.Event()
        self.labelled = labelled
        try:
            answer = await contained(fetch(sent, previous), f"a look-up on {title}")
        finally:
            labelled.set()
        if isinstance(answer, Failure):
            shown = title_in(self.product.places, title)
            self.lines[title] = f"{shown} could not be asked: {answer.message}"
            return self._reply(self.lines[title])
        return answer

    async def search_archive(self, archive: ArchiveSearch, query: str) -> str:
        """Search the stored items for the model's query; returns the text for the model."""
        answer = await contained(archive.search(self.session.tenant, query, KEPT), "the archive")
        return await self._recall(archive, query, [answer])

    async def _search_by_name(self, archive: ArchiveSearch, name: str, aspect: str, least: int = 1) -> str:
        """Search the stored items that hold a product's name, first for what is asked about it.

        Up to `SHOWN` of each search are read: what is absent from the few best is not absent from
        what is stored. Fewer than `least` entries count as nothing found.
        """
        texts = [f"{name} {aspect}", name] if aspect else [name]
        searches = (archive.search(self.session.tenant, text, KEPT, SHOWN, terse=True) for text in texts)
        answers = await asyncio.gather(*(contained(search, "the archive") for search in searches))
        return await self._recall(archive, texts[0], answers, name, least)

    async def _recall(
        self,
        archive: ArchiveSearch,
        query: str,
        answers: Sequence[ArchiveAnswer | Failure],
        name: str = "",
        least: int = 1,
    ) -> str:
        """Show the items that searches found; with `name` only those that have it."""
        self.queries.append(query)
        kept, first = list[Assessed](), answers[0]
        if isinstance(first, Failure):
            line = f"The archive could not be searched: {first.message}"
        else:
            line = f"The archive: {first.guidance or first.text}".rstrip(".")
            hits = [hit for answer in answers if not isinstance(answer, Failure) for hit in answer.hits]
            keys = list(dict.fromkeys(hit.key for hit in hits))
            stored = await contained(archive.archive.facts(self.session.tenant, keys), "the archive")
            facts = {} if isinstance(stored, Failure) else stored
            wanted = set(index_tokens(name))
            fit = [key for key in keys if key in facts and wanted.issubset(index_tokens(" ".join(facts[key].texts)))]
            # both searches may find the same entry, and a post has an entry for each comment
            if len({(hit.key, hit.comment_id) for hit in hits if hit.key in fit}) >= least:
                kept = [Assessed(facts[key], Verdict(True)) for key in fit]
        self.lines["archive"] = line
        labels = self._numbered(query, kept)
        self.recalled |= bool(labels)
        return await self._shown(line, labels)

    async def search_archive_first(self) -> None:
        """Search the stored items when the question names a product that was asked about before.

        In place of look-ups, so not when the session knows something to cite already, unless the
        question asks about something that none of that holds; the person sees it as one. Entries that
        hold the product's name are read, first those that hold what is asked about, `SHOWN` of each
        at most. With fewer than `ENOUGH` entries the sources are asked.
        """
        archive, parts = self.archive, question_parts(self.question)
        if archive is None:
            return
        if self.citable:
            await self._search_archive_for_more(archive)
            return
        queries = archive.archive.queries(self.session.tenant, _QUERIES)
        earlier = await contained(queries, "the archive")
        if isinstance(earlier, Failure):
            return
        products = [name for query in earlier for name in chat_citations.products_in(query)]
        if not chat_citations.subjects_named(self.question, products):
            return
        call = uuid4().hex
        self.emit(LookupStarted(call, ARCHIVE_TOOL, {"query": self.question}))
        whole = bool(parts.subject) and parts.kind == "product" and bool(parts.products)
        name = without_web_ending(parts.products[0]) if whole else self.question
        await self._search_by_name(archive, name, parts.aspect if whole else "", ENOUGH)
        self.emit(LookupEnded(call, ARCHIVE_TOOL, self.lines["archive"]))
        if not self.citable:
            del self.lines["archive"]  # else it would count as a look-up that brought nothing

    async def _search_archive_for_more(self, archive: ArchiveSearch) -> None:
        """Search for what is asked about a known product: what is known may be a part of what is stored."""
        known = {word for name in self.subjects for word in index_tokens(name)}
        # `annoys` asks for a side, which posts say in other words
        wanted = [
            word
            for word in query_guard.naming_words(self.question)
            if known.isdisjoint(index_tokens(word)) and lean_wanted(word) is None
        ]
        if not wanted or not self.subjects:
            return
        call, aspect = uuid4().hex, " ".join(wanted)
        for name in self.subjects:
            self.emit(LookupStarted(call, ARCHIVE_TOOL, {"query": f"{name} {aspect}"}))
            await self._search_by_name(archive, name, aspect)
            self.emit(LookupEnded(call, ARCHIVE_TOOL, self.lines.pop("archive")))  # what is known stays

    def _noted(self, gathered: Gathered, query: str, depth: DepthName, labels: list[str]) -> str:
        """Outcome of a look-up in words; an answered look-up is stored with all it found."""
        self.gathered.append(gathered)
        line = self.lines[gathered.source] = gate_line(gathered)
        if gathered.outcome.answered:
            sample = self.product.sample
            self.session.remember(Lookup(gathered.source, query, depth, line, labels, sample))
        return line

    def _numbered(self, query: str, kept: Iterable[Assessed]) -> list[str]:
        shown = self.session.show(list(kept)[:SHOWN], self.session.subjects_of(query), sample=self.product.sample)
        return [exhibit.label for exhibit in shown]

    async def _shown(self, line: str, labels: Iterable[str]) -> str:
        known = self.session.exhibits
        exhibits = [known[label] for label in labels]
        self.exhibits |= {exhibit.label: exhibit for exhibit in exhibits}
        parts = [self._reply(f"{line}.")]
        if self.product.sample:
            parts.append("This is made-up sample data from the offline sandbox.")
        if exhibits:
            described = await asyncio.to_thread(describe, exhibits, self.fence, self.question)
            parts += [self.fence.rule, described]
        return "\n".join(parts)

    def _reply(self, text: str) -> str:
        self.replies.append(text)
        return text
