"""The chat: an agent that answers from a session's exhibits and looks up what is missing.

What is stored, as a chat turn uses it: asked before any place where the product was heard of.

A stored report as what a chat session knows when it begins.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Container, Iterable
from dataclasses import dataclass, replace
from functools import partial
from uuid import uuid4

from pydantic_ai import Agent, RunContext, UsageLimits
from pydantic_ai.exceptions import AgentRunError, UsageLimitExceeded, UserError
from pydantic_ai.messages import (
    AgentStreamEvent,
    FunctionToolCallEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage

from api.choices import DepthName
from api.core.context import current_caller, set_caller
from api.core.display_names import title_in
from api.core.domain import Assessed, Question, Verdict
from api.core.ports import Facts
from api.core.prompts import Prompt
from api.core.work import Failure, contained, translated
from api.errors import ModelError
from api.features.archive.entries import ArchiveFilters
from api.features.archive.search import ArchiveSearch
from api.features.chat.chat_citations import named_in, names_in
from api.features.chat.chat_turn import (
    AnswerPiece,
    ChatEvent,
    LookupEnded,
    LookupStarted,
    Turn,
    streamed,
)
from api.features.chat.keyless_chat import SAMPLE, AnswerDraft, look_around
from api.features.chat.lookups import SHOWN, ChatLookups
from api.features.chat.session import EXHIBITS, Exchange, Session, restored
from api.pipeline.question.query_guard import refers_back
from api.pipeline.question.query_screen import MAX_QUESTION_LENGTH, STOP_WORDS_ALONE, screen_query
from api.reports.agent_writer import reason_of, usage_of
from api.reports.composition import assessed_of, item_of
from api.reports.exhibits import Dossier, describe, kept_line
from api.reports.report import Report
from api.services.product import Product
from api.settings import ChatSettings

TOOL, _NAME = "search_archive", "archive"
KEPT = ArchiveFilters(kept=True)
"""What a gate let pass, or a person brought in: an answer may rest on it."""
# Latest queries that tell what was heard of.
_QUERIES = 200
ENOUGH = 3
"""Stored entries from which on no place need be asked."""


async def recall_first(desk: ChatLookups) -> None:
    """Search what is stored when the question names a product that was asked about before.

    Only in the place of look-ups: not when the session knows something to cite already. A person is
    told. Fewer than `ENOUGH` entries are no answer, and the places are asked.
    """
    archive = desk.archive
    if archive is None or desk.citable:
        return
    tenant = desk.session.tenant
    queries = await contained(archive.archive.queries(tenant, _QUERIES), "the archive")
    if isinstance(queries, Failure):
        return
    heard_of = [name for query in queries for name in names_in(query)]
    if not named_in(desk.question, heard_of):
        return
    call = uuid4().hex
    desk.emit(LookupStarted(call, TOOL, {"query": desk.question}))
    await search_stored(desk, archive, desk.question, ENOUGH)
    desk.emit(LookupEnded(call, TOOL, desk.lines[_NAME]))
    if not desk.citable:
        del desk.lines[_NAME]  # an answer rests on nothing yet


async def search_stored(
    desk: ChatLookups, archive: ArchiveSearch, query: str, least: int = 1
) -> str:
    """Search what is stored; what the model reads. With fewer than `least` hits nothing is known.

    Failures are words too.
    """
    session = desk.session
    desk.queries.append(query)
    answer = await contained(archive.search(session.tenant, query, KEPT), "the archive")
    if isinstance(answer, Failure):
        return desk.answered(_NAME, f"The archive could not be searched: {answer.message}", ())
    line = f"The archive: {answer.guidance or answer.text}".rstrip(".")
    keys = list(dict.fromkeys(hit.key for hit in answer.hits))
    stored = await contained(archive.archive.facts(session.tenant, keys), "the archive")
    if isinstance(stored, Failure) or len(answer.hits) < least:
        return desk.answered(_NAME, line, ())
    kept = [Assessed(item_of(stored[key]), Verdict(True)) for key in keys if key in stored]
    return desk.answered(_NAME, line, desk.numbered(query, kept))


def read_report(session: Session, report: Report) -> None:
    """Let a session know a report's items, look-ups and words, as if it had been asked there.

    What the report asked is then not asked again, and its items are exhibits on its question:
    what it cites before all else, with the words that it shows, since a saved session holds less.
    """
    subjects = session.subjects_of(report.query)
    cited: dict[str, set[str | None]] = defaultdict(set)
    for finding in report.findings:
        for passage in finding.evidence:
            cited[passage.key].add(passage.comment_id)
    keys = [item.key for item in report.items]
    chosen = set(sorted(keys, key=lambda key: key not in cited)[:EXHIBITS])
    shown = session.show(
        (_led(assessed_of(item), cited[item.key]) for item in report.items if item.key in chosen),
        subjects,
        sample=report.sample,
    )
    for name, source in report.sources.items():
        if source.outcome.answered:
            labels = [exhibit.label for exhibit in shown if exhibit.item.source == name]
            title = title_in(session.run.places, name)
            counted = f"{source.kept} of {source.fetched} results"
            line = f"{title}: {kept_line(counted, source.gate, refetched=source.refetched)}"
            session.remember(name, report.query, report.depth, line, labels, sample=report.sample)
    by_key = {exhibit.item.key: exhibit.label for exhibit in shown}
    lines = [report.summary or report.explanation_text or ""]
    for finding in report.findings:
        labels = [by_key[key] for key in finding.cites if key in by_key]
        lines.append(f"- {finding.text} [{', '.join(labels)}]" if labels else f"- {finding.text}")
    answer = "\n".join(lines).strip()
    exchange = Exchange(report.query, answer, sample=report.sample)
    session.close(exchange, by_key.values(), subjects)


def _led(assessed: Assessed, cited: Container[str | None]) -> Assessed:
    """The item with the comments that a report cites before the others."""
    comments = sorted(assessed.item.comments, key=lambda comment: comment.id not in cited)
    return replace(assessed, item=replace(assessed.item, comments=tuple(comments)))


# Sources that one turn may ask, however few there are.
_FEWEST = 6
# Model requests of one turn beside those that make a call.
_SPARE = 3
STOPPED = "(The person stopped the answer here and has seen nothing more of it.)"
"""What a model reads below an answer that is not whole."""


@dataclass(frozen=True, slots=True)
class Chat:
    """Answers in sessions; without a model it lets the posts speak."""

    product: Product
    model: Model | None
    bounds: ChatSettings
    archive: ArchiveSearch | None = None
    """Searches what is stored; None: the places alone are asked."""

    @property
    def most(self) -> int:
        """Sources that one turn may ask."""
        return self.bounds.tool_calls or max(_FEWEST, 2 * len(self.product.askable))

    def begin(
        self, tenant: str = "", session_id: str | None = None, report: Report | None = None
    ) -> Session:
        """A session that remembers nothing, or what a report rests on."""
        run = self.product.start()
        session = Session(session_id or uuid4().hex, tenant, run, Dossier(run.places))
        if report is not None:
            read_report(session, report)
        return session

    def resume(self, tenant: str, session_id: str, text: str) -> Session | None:
        """A session as it was saved; None when the text cannot be read."""
        return restored(session_id, tenant, self.product.start(), text)

    def stream(
        self, session: Session, message: str, depth: DepthName = "quick"
    ) -> AsyncGenerator[ChatEvent]:
        """One turn as it happens, the `Turn` last. Closing the iterator ends all its work."""
        return streamed(partial(self._turn, session, message, depth))

    async def answer(self, session: Session, message: str, depth: DepthName = "quick") -> Turn:
        """One turn, when it is over."""
        *_, last = [moment async for moment in self.stream(session, message, depth)]
        assert isinstance(last, Turn)
        return last

    async def _turn(
        self, session: Session, message: str, depth: DepthName, emit: Callable[[ChatEvent], None]
    ) -> Turn:
        goes_on = session.exhibits and refers_back(message)  # `what do they like about it?`
        screened = screen_query(
            message, stop_words_alone=MAX_QUESTION_LENGTH if goes_on else STOP_WORDS_ALONE
        )
        set_caller(
            replace(current_caller(), session=session.id)
        )  # until the end: a turn has its own task
        with self.product.observer.analysis("chat", Question(screened.query), depth) as span:
            trace_id = self.product.observer.trace_id
            if not screened.ok:
                notes = (SAMPLE,) if self.product.sample else ()
                turn = Turn(
                    session.id,
                    screened.guidance,
                    notes=notes,
                    outcome="clarify",
                    trace_id=trace_id,
                    sample=self.product.sample,
                )
                emit(AnswerPiece(turn.text))
                span.record(Facts(turn.outcome, 0, 0, 0.0, turn.text))
                return turn
            desk = ChatLookups(
                self.product, session, screened.query, self.bounds, self.most, emit, self.archive
            )
            answer = AnswerDraft(desk)
            try:
                turn = await self._answered(desk, answer, depth)
            except asyncio.CancelledError:
                sample = self.product.sample or session.is_sample(answer.cited)
                shown = Exchange(desk.question, answer.text, True, sample, trace_id)
                session.close(shown, answer.cited, desk.subjects)
                raise
            calls = sum(gathered.upstream_calls for gathered in desk.gathered)
            cited = [citation.label for citation in turn.citations]
            span.record(
                Facts(
                    turn.outcome, len(desk.exhibits), calls, turn.usage.usd, turn.text,
                    items_cited=len(set(cited)),
                )
            )  # fmt: skip
        closed = Exchange(desk.question, turn.text, False, turn.sample, trace_id)
        session.close(closed, cited, desk.subjects)
        return replace(turn, trace_id=trace_id, number=session.number)

    async def _answered(self, desk: ChatLookups, answer: AnswerDraft, depth: DepthName) -> Turn:
        usage = RunUsage()
        stopped = failed = None
        try:
            async with asyncio.timeout(self.bounds.seconds):
                failed = await self._written(desk, depth, answer, usage)
        except TimeoutError:
            stopped = f"one turn may take {self.bounds.seconds:g} s"
        except UsageLimitExceeded:
            stopped = f"one turn may use {self.bounds.tokens} tokens and a few model requests"
        turn = answer.finish(stopped, failed)
        return replace(turn, usage=usage_of(usage) + desk.usage)

    async def _written(
        self, desk: ChatLookups, depth: DepthName, answer: AnswerDraft, usage: RunUsage
    ) -> str | None:
        """Let the model answer; without one look around for it. Says why there was none."""
        failed: str | None = "no_key"
        await recall_first(desk)
        if self.model is not None:
            asking = self._run_agent(self.model, desk, depth, answer, usage)
            defect, known = partial(ModelError, "defect"), (AgentRunError, UserError)
            try:
                await translated(asking, "the model of a chat", defect, known)
                failed = None
            except UsageLimitExceeded:
                raise
            except (AgentRunError, UserError) as error:
                failed = reason_of(error)
            except ModelError as error:
                failed = error.reason
        unfounded = not (failed or desk.lines or desk.citable)
        if unfounded:
            answer.withdraw()
        if failed or unfounded:
            await look_around(desk)
        return failed

    async def _run_agent(
        self,
        model: Model,
        desk: ChatLookups,
        depth: DepthName,
        answer: AnswerDraft,
        usage: RunUsage,
    ) -> None:
        async def read(
            ctx: RunContext[ChatLookups], events: AsyncIterable[AgentStreamEvent]
        ) -> None:
            async for event in events:
                match event:
                    case PartStartEvent(part=TextPart(content=text)):
                        answer.feed(text)
                    case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                        answer.feed(text)
                    case FunctionToolCallEvent():
                        answer.pause()
                    case _:
                        pass

        async with self.product.prompts.using("chat") as prompt:
            agent: Agent[ChatLookups, str] = Agent(
                model,
                deps_type=ChatLookups,
                name="chat",
                instructions=self._instructions(prompt, desk),
                toolsets=[_tools(self.product, depth, self.archive)],
                model_settings=ModelSettings(temperature=0),
            )
            await agent.run(
                desk.question,
                deps=desk,
                message_history=_history(desk.session.exchanges),
                usage=usage,
                usage_limits=UsageLimits(
                    request_limit=self.most + _SPARE,
                    total_tokens_limit=self.bounds.tokens,
                ),
                event_stream_handler=read,
            )

    def _instructions(self, prompt: Prompt, desk: ChatLookups) -> str:
        groups = desk.session.best(desk.question, SHOWN, desk.subjects)
        shown = [
            f"Found for {desk.fence.quote(subject or 'an earlier question')}:\n"
            + describe(exhibits, desk.fence, desk.question)
            for subject, exhibits in groups.items()
        ]
        return prompt.filled(
            rule=desk.fence.rule,
            calls=self.most,
            exhibits="\n".join(shown) or "none yet",
        )


def _history(exchanges: Iterable[Exchange]) -> list[ModelMessage]:
    """Earlier turns as a model's messages: the words alone, since exhibits stand in each prompt."""
    messages: list[ModelMessage] = []
    for exchange in exchanges:
        messages.append(ModelRequest([UserPromptPart(exchange.question)]))
        answer = exchange.answer
        if exchange.stopped or not answer:
            answer = f"{answer}\n\n{STOPPED}".strip()
        messages.append(ModelResponse([TextPart(answer)]))
    return messages


def _tools(
    product: Product, usual: DepthName, archive: ArchiveSearch | None
) -> FunctionToolset[ChatLookups]:
    """One look-up per source, one over all, one in what is stored; no way out but a query."""
    toolset: FunctionToolset[ChatLookups] = FunctionToolset(id="chat")

    def add(source: str) -> None:
        async def fetch(ctx: RunContext[ChatLookups], query: str, depth: DepthName = usual) -> str:
            lookup = ctx.deps.look(source, query, depth, ctx.usage.total_tokens)
            return await _reported(ctx, {"query": query, "depth": depth}, lookup)

        place = product.places.get(source)
        about = place.description if place else f"Items of {source}."
        toolset.add_function(fetch, takes_ctx=True, name=f"fetch_{source}", description=about)

    for source in product.usual:
        add(source)

    async def analyze(
        ctx: RunContext[ChatLookups], query: str, depth: DepthName = "standard"
    ) -> str:
        lookup = ctx.deps.analyze(query, depth, ctx.usage.total_tokens)
        return await _reported(ctx, {"query": query, "depth": depth}, lookup)

    about = "An overview of one product: every source asked, graded and counted."
    toolset.add_function(analyze, takes_ctx=True, name="analyze_product", description=about)

    if archive is not None:

        async def search(ctx: RunContext[ChatLookups], query: str) -> str:
            searching = search_stored(ctx.deps, archive, query)
            return await _reported(ctx, {"query": query}, searching)

        about = "What earlier reports found and kept: asks no place and is no look-up."
        toolset.add_function(search, takes_ctx=True, name=TOOL, description=about)
    return toolset


async def _reported(
    ctx: RunContext[ChatLookups], arguments: dict[str, str], lookup: Awaitable[str]
) -> str:
    """What a look-up says to the model; a person is told that it began and how it ended."""
    call, tool = ctx.tool_call_id or "", ctx.tool_name or ""
    ctx.deps.emit(LookupStarted(call, tool, arguments))
    text = await lookup
    ctx.deps.emit(LookupEnded(call, tool, text.partition("\n")[0]))
    return text
