"""The chat: an agent that answers from a session's exhibits and looks up what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable
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

from api.errors import ModelError
from api.services.archive.searching import ArchiveSearch
from api.services.callers import admit, caller
from api.services.chatting.answering import SAMPLE, AnswerDraft
from api.services.chatting.keyless import look_around
from api.services.chatting.lookups import SHOWN, ChatDesk
from api.services.chatting.recalling import TOOL, recall_first, search_stored
from api.services.chatting.reports import read_report
from api.services.chatting.saved import Exchange
from api.services.chatting.session import Session, restored
from api.services.chatting.streaming import streamed
from api.services.chatting.turns import AnswerPiece, LookupEnded, LookupStarted, Moment, Turn
from api.services.containment import translated
from api.services.listening import Product
from api.services.ports import Facts
from api.services.prompts import Prompt
from api.services.question.comparing import points_back
from api.services.question.query import LONGEST, STOP_WORDS_ALONE, screen
from api.services.reporting.agent import reason_of, spent
from api.services.reporting.dossier import Dossier, describe
from api.services.reporting.report import Report
from api.services.schemas import Question
from api.settings import ChatSettings, DepthName

_FEWEST = 6
"""Sources that one turn may ask, however few there are."""
_SPARE = 3
"""Model requests of one turn beside those that make a call."""
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
    ) -> AsyncGenerator[Moment]:
        """One turn as it happens, the `Turn` last. Closing the iterator ends all its work."""
        return streamed(partial(self._turn, session, message, depth))

    async def answer(self, session: Session, message: str, depth: DepthName = "quick") -> Turn:
        """One turn, when it is over."""
        *_, last = [moment async for moment in self.stream(session, message, depth)]
        assert isinstance(last, Turn)
        return last

    async def _turn(
        self, session: Session, message: str, depth: DepthName, emit: Callable[[Moment], None]
    ) -> Turn:
        goes_on = session.exhibits and points_back(message)  # `what do they like about it?`
        screened = screen(message, stop_words_alone=LONGEST if goes_on else STOP_WORDS_ALONE)
        admit(replace(caller(), session=session.id))  # until the end: a turn has its own task
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
            desk = ChatDesk(
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

    async def _answered(self, desk: ChatDesk, answer: AnswerDraft, depth: DepthName) -> Turn:
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
        return replace(turn, usage=spent(usage) + desk.usage)

    async def _written(
        self, desk: ChatDesk, depth: DepthName, answer: AnswerDraft, usage: RunUsage
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
        self, model: Model, desk: ChatDesk, depth: DepthName, answer: AnswerDraft, usage: RunUsage
    ) -> None:
        async def read(ctx: RunContext[ChatDesk], events: AsyncIterable[AgentStreamEvent]) -> None:
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
            agent: Agent[ChatDesk, str] = Agent(
                model,
                deps_type=ChatDesk,
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

    def _instructions(self, prompt: Prompt, desk: ChatDesk) -> str:
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
) -> FunctionToolset[ChatDesk]:
    """One look-up per source, one over all, one in what is stored; no way out but a query."""
    toolset: FunctionToolset[ChatDesk] = FunctionToolset(id="chat")

    def add(source: str) -> None:
        async def fetch(ctx: RunContext[ChatDesk], query: str, depth: DepthName = usual) -> str:
            lookup = ctx.deps.look(source, query, depth, ctx.usage.total_tokens)
            return await _reported(ctx, {"query": query, "depth": depth}, lookup)

        place = product.places.get(source)
        about = place.says if place else f"Items of {source}."
        toolset.add_function(fetch, takes_ctx=True, name=f"fetch_{source}", description=about)

    for source in product.usual:
        add(source)

    async def analyze(ctx: RunContext[ChatDesk], query: str, depth: DepthName = "standard") -> str:
        lookup = ctx.deps.analyze(query, depth, ctx.usage.total_tokens)
        return await _reported(ctx, {"query": query, "depth": depth}, lookup)

    about = "An overview of one product: every source asked, graded and counted."
    toolset.add_function(analyze, takes_ctx=True, name="analyze_product", description=about)

    if archive is not None:

        async def search(ctx: RunContext[ChatDesk], query: str) -> str:
            searching = search_stored(ctx.deps, archive, query)
            return await _reported(ctx, {"query": query}, searching)

        about = "What earlier reports found and kept: asks no place and is no look-up."
        toolset.add_function(search, takes_ctx=True, name=TOOL, description=about)
    return toolset


async def _reported(
    ctx: RunContext[ChatDesk], arguments: dict[str, str], lookup: Awaitable[str]
) -> str:
    """What a look-up says to the model; a person is told that it began and how it ended."""
    call, tool = ctx.tool_call_id or "", ctx.tool_name or ""
    ctx.deps.emit(LookupStarted(call, tool, arguments))
    text = await lookup
    ctx.deps.emit(LookupEnded(call, tool, text.partition("\n")[0]))
    return text
