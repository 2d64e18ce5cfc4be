"""The chat: a pydantic-ai agent that answers from a session and looks up what is missing.

Its words are cleared sentence by sentence before a person sees them; see `DraftCleaner`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from uuid import uuid4

from pydantic_ai import Agent, RunContext, UsageLimits, messages
from pydantic_ai.exceptions import AgentRunError, UsageLimitExceeded, UserError
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage

from api.choices import MAX_QUESTION_LENGTH, DepthName
from api.core.context import current_caller, set_caller
from api.core.display_names import reason_in_words
from api.core.domain import Question
from api.core.ports import Facts
from api.core.text import quantity
from api.core.words import is_not_english
from api.core.work import translated
from api.errors import ModelError
from api.features.archive.search import ArchiveSearch
from api.features.chat import keyless_chat
from api.features.chat.chat_citations import citations_of
from api.features.chat.chat_turn import SAMPLE, AnswerPiece, ChatEvent, LookupEnded, LookupStarted, Turn, streamed
from api.features.chat.keyless_chat import FOREIGN
from api.features.chat.lookups import ARCHIVE_TOOL, SHOWN, ChatLookups
from api.features.chat.session import Exchange, Session, load_report, restored
from api.pipeline.question.query_guard import refers_back
from api.pipeline.question.query_screen import STOP_WORDS_ALONE, screen_query
from api.reports.agent_writer import reason_of, usage_of
from api.reports.draft_rules import DraftCleaner
from api.reports.exhibits import Dossier, Exhibit, describe, gate_lines
from api.reports.quotes import CitableText, citable_text
from api.reports.report import Report
from api.services.product import Product
from api.settings import ChatSettings

# Sources that one turn may ask, however few there are.
_FEWEST_CALLS = 6
# Model requests of one turn beside those that make a call.
_SPARE_REQUESTS = 3
# Tokens of one answer of the model: a few short sentences, with room for reasoning before them.
_ANSWER_TOKENS = 4096
STOPPED = "(The person stopped the answer here and has seen nothing more of it.)"
"""Note for a model below an earlier answer that was stopped."""
UNREADABLE = "the stored conversation cannot be read: it starts again without its earlier turns"
RECALLED = "this rests on items of earlier reports; no source was asked"


class AnswerDraft:
    """Filters the model's words as they come, and makes the turn."""

    def __init__(self, lookups: ChatLookups) -> None:
        self._lookups = lookups
        self._cleaner = DraftCleaner(self._citable, markdown=True)
        self._known: dict[tuple[int, frozenset[str]], CitableText] = {}
        self._held, self._text, self._withdrawn = "", "", False

    @property
    def text(self) -> str:
        """The text that was passed on so far."""
        return self._text.strip()

    @property
    def cited(self) -> tuple[str, ...]:
        """Labels in it, in the order of first mention."""
        return self._cleaner.cited

    def feed(self, piece: str) -> None:
        """Take a piece of the model's text."""
        self._held += self._cleaner.feed(piece)
        self._pass_on()

    def pause(self) -> None:
        """Complete the last sentence, since the model calls a tool."""
        self._held += self._cleaner.close()
        if (self._text + self._held).strip():
            self._held = self._held.rstrip() + "\n\n"

    def withdraw(self) -> None:
        """Forget words that were held back, since they rest on nothing."""
        self._held, self._withdrawn = "", True
        self._cleaner = DraftCleaner(self._citable, markdown=True)

    async def finish(self, stopped: str | None, failed: str | None) -> Turn:
        """The turn; `stopped` names the limit that ended it, `failed` why there was no model."""
        lookups = self._lookups
        if not (stopped or failed):
            self._held += self._cleaner.close()
        self._pass_on()
        notes = [*self._notes(stopped, failed)]
        partial = bool(stopped or failed or lookups.refused)
        if self.text:
            exhibits = [lookups.session.exhibits[label] for label in self.cited]
            if not exhibits:
                notes.append("this answer cites no post")
            return await asyncio.to_thread(self._turn, self.text, exhibits, notes, partial)
        text, exhibits = await asyncio.to_thread(keyless_chat.keyless_answer, lookups)
        if exhibits and not lookups.found_nothing:
            text = f"No model wrote this answer; these are the posts' own words.\n\n{text}"
            lookups.emit(AnswerPiece(text))
            return await asyncio.to_thread(self._turn, text, exhibits, notes, partial)
        query = next(reversed(lookups.queries), lookups.question)
        answers = [gathered.outcome.answered for gathered in lookups.gathered]
        outcome = "insufficient_data" if any(answers) or not answers else "not_asked"
        why = keyless_chat.not_searched if outcome == "not_asked" else keyless_chat.nothing_found
        text = why(query, lookups.lines.values())
        lookups.emit(AnswerPiece(text))
        return replace(self._turn(text, (), notes, partial), outcome=outcome)

    def _pass_on(self) -> None:
        """Pass on what is held back, unless nothing was found that it could rest on."""
        if self._held and (self.cited or not self._lookups.found_nothing):
            self._lookups.emit(AnswerPiece(self._held))
            self._text += self._held
            self._held = ""

    def _turn(self, text: str, exhibits: Iterable[Exhibit], notes: Iterable[str], partial: bool) -> Turn:
        session = self._lookups.session
        citations = citations_of(text, exhibits, session.subjects)
        labels = [citation.label for citation in citations]
        sample = self._lookups.product.sample or session.is_sample(labels)
        notes = tuple(dict.fromkeys((*((SAMPLE,) if sample else ()), *notes)))
        return Turn(session.id, text, citations, notes, partial, sample=sample)

    def _notes(self, stopped: str | None, failed: str | None) -> Iterator[str]:
        lookups = self._lookups
        if lookups.session.unreadable:
            lookups.session.unreadable = False
            yield UNREADABLE
        if failed and is_not_english(lookups.question):
            yield FOREIGN
        if failed:
            yield f"the chat model could not be used ({reason_in_words(failed)})"
        if self._withdrawn:
            yield "the chat model looked nothing up, so its words rest on nothing and are left out"
        if stopped:
            yield f"cut short: {stopped}; this rests on what was found by then"
        if lookups.recalled and not lookups.gathered:
            yield RECALLED
        if lookups.refused:
            most = lookups.max_sources
            yield f"{quantity(lookups.refused, 'look-up')} refused: one turn may ask {quantity(most, 'source')}"
        yield from gate_lines(gathered for gathered in lookups.gathered if not gathered.outcome.answered)
        if len(lookups.subjects) > 1:
            unknown = (subject for subject in lookups.subjects if not lookups.knows(subject))
            yield from (f"no relevant post was found on “{subject}”" for subject in unknown)
        yield from self._cleaner.flaws.notes

    def _citable(self, sentence: str) -> CitableText:
        """What a sentence may cite now; computed again after each look-up that adds exhibits."""
        lookups, session = self._lookups, self._lookups.session
        exhibits = lookups.citable_in(sentence)
        state = (len(lookups.replies), frozenset(exhibits))
        if state not in self._known:
            given = [*lookups.replies, *(exchange.answer for exchange in session.exchanges)]
            questions = (session.questions_text, lookups.question)
            elsewhere = session.exhibits.keys() - exhibits.keys()
            self._known[state] = citable_text(exhibits, questions, given, elsewhere=elsewhere)
        return self._known[state]


@dataclass(frozen=True, slots=True)
class Chat:
    """Answers in sessions; without a model the answer is sentences of the posts."""

    product: Product
    model: Model | None
    bounds: ChatSettings
    archive: ArchiveSearch | None = None  # searches the stored items; None: only sources are asked
    usd: Callable[[RunUsage], float | None] | None = None
    """Price of a run of the model in USD; None: the library's price is used."""

    @property
    def max_sources(self) -> int:
        """Sources that one turn may ask."""
        return self.bounds.tool_calls or max(_FEWEST_CALLS, 2 * len(self.product.askable))

    def begin(self, tenant: str = "", session_id: str | None = None, report: Report | None = None) -> Session:
        """A new session, which knows a report's findings and items if one is given."""
        run = self.product.start()
        session = Session(session_id or uuid4().hex, tenant, run, Dossier(run.places))
        if report is not None:
            load_report(session, report)
        return session

    def resume(self, tenant: str, session_id: str, text: str) -> Session | None:
        """A session restored from its text; None when the text cannot be read."""
        return restored(session_id, tenant, self.product.start(), text)

    def stream(self, session: Session, message: str, depth: DepthName = "quick") -> AsyncGenerator[ChatEvent]:
        """The events of one turn, the `Turn` last; closing the iterator cancels its work."""
        return streamed(partial(self._turn, session, message, depth))

    async def answer(self, session: Session, message: str, depth: DepthName = "quick") -> Turn:
        """Run one turn to its end and return it."""
        *_, last = [event async for event in self.stream(session, message, depth)]
        assert isinstance(last, Turn)
        return last

    async def _turn(self, session: Session, message: str, depth: DepthName, emit: Callable[[ChatEvent], None]) -> Turn:
        # `what do they like about it?` has stop words alone, and still refers to something
        follows = session.exhibits and refers_back(message)
        stop_words = MAX_QUESTION_LENGTH if follows else STOP_WORDS_ALONE
        screened = screen_query(message, stop_words_alone=stop_words)
        set_caller(replace(current_caller(), session=session.id))  # only for this turn's own task
        sample = self.product.sample
        with self.product.observer.analysis("chat", Question(screened.query), depth) as span:
            trace_id = self.product.observer.trace_id
            if not screened.ok:
                notes, text = (SAMPLE,) if sample else (), screened.guidance
                emit(AnswerPiece(text))
                span.record(Facts("clarify", 0, 0, 0.0, text))
                return Turn(
                    session.id, text, notes=notes, outcome="clarify", trace_id=trace_id,
                    sample=sample,
                )  # fmt: skip
            lookups = ChatLookups(
                self.product, session, screened.query, self.bounds, self.max_sources, emit,
                self.archive,
            )  # fmt: skip
            answer = AnswerDraft(lookups)
            try:
                turn = await self._answered(lookups, answer, depth)
            except asyncio.CancelledError:
                made_up = sample or session.is_sample(answer.cited)
                shown = Exchange(lookups.question, answer.text, True, made_up, trace_id)
                session.close(shown, answer.cited, lookups.subjects)
                raise
            calls = sum(gathered.upstream_calls for gathered in lookups.gathered)
            cited = [citation.label for citation in turn.citations]
            span.record(
                Facts(
                    turn.outcome, len(lookups.exhibits), calls, turn.usage.usd, turn.text,
                    items_cited=len(set(cited)),
                )
            )  # fmt: skip
        exchange = Exchange(lookups.question, turn.text, False, turn.sample, trace_id)
        session.close(exchange, cited, lookups.subjects)
        return replace(turn, trace_id=trace_id, number=session.number)

    async def _answered(self, lookups: ChatLookups, answer: AnswerDraft, depth: DepthName) -> Turn:
        usage = RunUsage()
        stopped = failed = None
        try:
            async with asyncio.timeout(self.bounds.seconds):
                await lookups.search_archive_first()
                failed = await self._failure(lookups, depth, answer, usage)
                # without a source and an exhibit the model's words can rest on nothing
                unfounded = not (failed or lookups.lines or lookups.citable)
                if unfounded:
                    answer.withdraw()
                if failed or unfounded:
                    await keyless_chat.look_up_question(lookups)
                    # what is absent from what is stored may be said elsewhere
                    unasked = lookups.archive is not None and not lookups.gathered
                    if unasked and await asyncio.to_thread(keyless_chat.says_nothing, lookups):
                        await keyless_chat.ask_by_name(lookups)
        except TimeoutError:
            stopped = f"one turn may take {self.bounds.seconds:g} s"
        except UsageLimitExceeded:
            stopped = f"one turn may use {self.bounds.tokens} tokens and a few model requests"
        turn = await answer.finish(stopped, failed)
        return replace(turn, usage=usage_of(usage, self.usd) + lookups.usage)

    async def _failure(
        self, lookups: ChatLookups, depth: DepthName, answer: AnswerDraft, usage: RunUsage
    ) -> str | None:
        """Let the model answer; returns the reason code of a failure, None on success."""
        if self.model is None:
            return "no_key"
        running = self._run_agent(self.model, lookups, depth, answer, usage)
        defect, known = partial(ModelError, "defect"), (AgentRunError, UserError)
        try:
            await translated(running, "the model of a chat", defect, known)
        except UsageLimitExceeded:
            raise
        except (AgentRunError, UserError) as error:
            return reason_of(error)
        except ModelError as error:
            return error.reason
        return None

    async def _run_agent(
        self,
        model: Model,
        lookups: ChatLookups,
        depth: DepthName,
        answer: AnswerDraft,
        usage: RunUsage,
    ) -> None:
        async def read(ctx: RunContext[ChatLookups], events: AsyncIterable[messages.AgentStreamEvent]) -> None:
            async for event in events:
                match event:
                    case messages.PartStartEvent(part=messages.TextPart(content=text)):
                        answer.feed(text)
                    case messages.PartDeltaEvent(delta=messages.TextPartDelta(content_delta=text)):
                        answer.feed(text)
                    case messages.FunctionToolCallEvent():
                        answer.pause()
                    case _:
                        pass

        groups = lookups.session.best(lookups.question, SHOWN, lookups.subjects)
        shown = [
            f"Found for {lookups.fence.quote(subject or 'an earlier question')}:\n"
            + describe(exhibits, lookups.fence, lookups.question)
            for subject, exhibits in groups.items()
        ]
        async with self.product.prompts.using("chat") as prompt:
            agent: Agent[ChatLookups, str] = Agent(
                model,
                deps_type=ChatLookups,
                name="chat",
                instructions=prompt.filled(
                    rule=lookups.fence.rule,
                    calls=self.max_sources,
                    exhibits="\n".join(shown) or "none yet",
                ),
                toolsets=[_tools(self.product, depth, self.archive)],
                model_settings=ModelSettings(temperature=0, max_tokens=_ANSWER_TOKENS),
            )
            await agent.run(
                lookups.question,
                deps=lookups,
                message_history=_history(lookups.session.exchanges),
                usage=usage,
                usage_limits=UsageLimits(
                    request_limit=self.max_sources + _SPARE_REQUESTS,
                    total_tokens_limit=self.bounds.tokens,
                ),
                event_stream_handler=read,
            )


def _history(exchanges: Iterable[Exchange]) -> list[messages.ModelMessage]:
    """Earlier turns as messages without exhibits, which are in each prompt."""
    history: list[messages.ModelMessage] = []
    for exchange in exchanges:
        history.append(messages.ModelRequest([messages.UserPromptPart(exchange.question)]))
        answer = exchange.answer
        if exchange.stopped or not answer:
            answer = f"{answer}\n\n{STOPPED}".strip()
        history.append(messages.ModelResponse([messages.TextPart(answer)]))
    return history


def _tools(product: Product, usual: DepthName, archive: ArchiveSearch | None) -> FunctionToolset[ChatLookups]:
    """Tools that look up each source, all sources, and the stored items."""
    toolset: FunctionToolset[ChatLookups] = FunctionToolset(id="chat")

    def add(source: str) -> None:
        async def fetch(ctx: RunContext[ChatLookups], query: str, depth: DepthName = usual) -> str:
            lookup = ctx.deps.ask_source(source, query, depth, ctx.usage.total_tokens)
            return await _reported(ctx, {"query": query, "depth": depth}, lookup)

        place = product.places.get(source)
        about = place.description if place else f"Items of {source}."
        toolset.add_function(fetch, takes_ctx=True, name=f"fetch_{source}", description=about)

    for source in product.usual:
        add(source)

    async def analyze(ctx: RunContext[ChatLookups], query: str, depth: DepthName = "standard") -> str:
        lookup = ctx.deps.ask_all(query, depth, ctx.usage.total_tokens)
        return await _reported(ctx, {"query": query, "depth": depth}, lookup)

    about = "An overview of one product: every source asked, graded and counted."
    toolset.add_function(analyze, takes_ctx=True, name="analyze_product", description=about)

    if archive is not None:

        async def search(ctx: RunContext[ChatLookups], query: str) -> str:
            return await _reported(ctx, {"query": query}, ctx.deps.search_archive(archive, query))

        about = "What earlier reports found and kept: asks no place and is no look-up."
        toolset.add_function(search, takes_ctx=True, name=ARCHIVE_TOOL, description=about)
    return toolset


async def _reported(ctx: RunContext[ChatLookups], arguments: dict[str, str], lookup: Awaitable[str]) -> str:
    """The text of a look-up for the model; its start and end are emitted as events."""
    call, tool = ctx.tool_call_id or "", ctx.tool_name or ""
    ctx.deps.emit(LookupStarted(call, tool, arguments))
    text = await lookup
    ctx.deps.emit(LookupEnded(call, tool, text.partition("\n")[0]))
    return text
