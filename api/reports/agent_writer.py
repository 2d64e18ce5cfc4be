"""The report writer: a pydantic-ai agent that may cite only the exhibits it was shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_ai import Agent, ModelRetry, NativeOutput, PromptedOutput, RunContext, Tool, UsageLimits
from pydantic_ai.exceptions import AgentRunError, UnexpectedModelBehavior, UserError
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage

from api.core.display_names import reason_in_words, title_in
from api.core.domain import Decision, Question, Usage, Verdict
from api.core.items import Assessed, Item
from api.core.model_batches import UnusableAnswer
from api.core.progress import SourceGathered
from api.core.prompts import PackagedPrompts, Prompt, Prompts, packaged
from api.core.text import Fence, estimated_tokens, quantity
from api.core.work import Failure, contained
from api.errors import ModelError
from api.pipeline.evidence.collection import Assessor, Evidence
from api.pipeline.evidence.crawl import Run, combine
from api.pipeline.question.query_guard import guarded_query
from api.reports.draft_rules import Draft, DraftFinding, DraftQuote, DraftText, check
from api.reports.draft_rules import shortened as shorter_draft
from api.reports.exhibits import Dossier, Exhibit, describe, describe_within, gate_line, gate_lines
from api.reports.report import LONGEST_PASSAGE
from api.reports.report_writing import WRITER_REQUESTS, FollowUp, ReportForm, WritingFailed, WrittenDraft, shown_share

# Words that a full report may always have, however few its items.
_FEWEST_WORDS = 60
# How far a short report may exceed its words before findings are left out: models count badly.
_TOLERANCE = 1.25
# Class name of a pydantic-ai error -> reason code, the first that fits; any other is `malformed`.
# By name, since most of these classes are its own and this is the one place that maps them.
_REASONS = {
    "ModelRequestTimeout": "timeout",
    "ModelTimeoutError": "timeout",
    "RunTimedOut": "timeout",
    "ModelQuotaExceededError": "quota",
    "ModelRateLimitError": "rate_limited",
    "ModelAuthenticationError": "unauthorized",
    "ContentFilterError": "filtered",
    "OutputTokenLimitExceeded": "truncated",
    "CutAnswer": "truncated",
    "ModelConnectionError": "unreachable",
    "ModelHTTPError": "http_error",
    "ModelAPIError": "unreachable",
}


FOLLOW_UP_TOOL = "search_again"
FORMS: tuple[ReportForm, ...] = get_args(ReportForm)
# Reasons after which the next form may help.
_OF_THE_FORM = frozenset({"malformed", "truncated", "http_error", "refused"})
# Tokens of a context below which a report is asked for in few words and without tools, tokens of a
# prompt beside instructions, question and exhibits, by form, and times that exhibits are shortened.
_SMALL_CONTEXT, _SHORTENINGS = 4096, 4
_OTHER_TOKENS: Mapping[ReportForm, int] = {"tool": 650, "schema": 60, "fenced": 500}
# Tokens of a draft: for its frame, for each of its words with their passages, and at most.
_DRAFT_TOKENS, _WORD_TOKENS, _MOST_TOKENS = 1000, 6, 8192


@dataclass(frozen=True, slots=True)
class WriterModel:
    """Facts about the model that writes, as its server gives them."""

    forms: Sequence[ReportForm] = ("tool",)
    """The forms that may be tried, in this order."""
    context: Callable[[], int | None] = lambda: None
    """Returns the context size in tokens, prompt and answer together; None when unknown."""
    last: Callable[[], ReportForm | None] = lambda: None
    """The form in which it gave a report last."""
    remember: Callable[[ReportForm], object] = lambda form: None
    usd: Callable[[RunUsage], float | None] | None = None
    """Returns the price of a run in US dollars; None: the library's price is used."""


class CutAnswer(UnexpectedModelBehavior):
    """The model's answer ended at its token limit, so it is not requested again with the same limit."""

    def __init__(self, response: ModelResponse) -> None:
        super().__init__("the answer was cut at its token limit")
        self.response = response

    @property
    def draft(self) -> Draft | None:
        """The complete findings of a truncated draft; None when no finding is complete."""
        texts = [
            part.args if isinstance(part, ToolCallPart) else part.content
            for part in self.response.parts
            if isinstance(part, ToolCallPart | TextPart)
        ]
        written = next((text for text in texts if isinstance(text, str) and "{" in text), "")
        try:
            cut = written[written.find("{") :]
            value = TypeAdapter(dict[str, Any]).validate_json(cut, experimental_allow_partial=True)
        except ValidationError:
            return None
        findings = _whole(value.get("findings"), DraftFinding)
        topic, summary = (text if isinstance(text := value.get(name), str) else "" for name in ("topic", "summary"))
        quotes = _whole(value.get("quotes"), DraftQuote)
        return Draft(topic=topic, summary=summary, findings=findings, quotes=quotes) if findings else None


D = TypeVar("D", bound=BaseModel)


def _whole(entries: object, kind: type[D]) -> list[D]:
    """The entries of a cut list that are whole."""
    kept: list[D] = []
    for entry in entries if isinstance(entries, list) else []:
        with suppress(ValidationError):
            kept.append(kind.model_validate(entry))
    return kept


_OUTPUTS: Mapping[ReportForm, Any] = {"tool": Draft, "schema": NativeOutput(Draft), "fenced": PromptedOutput(Draft)}
FORM_WORDS: Mapping[ReportForm, str] = {
    "tool": "by tool call",
    "schema": "by `response_format`",
    "fenced": "for JSON in a code fence",
}
"""Name of each form in messages to people."""


@dataclass(init=False)
class EndedByCut(WrapperModel):
    """A model with which a run ends at the first answer that was cut, by `CutAnswer`."""

    async def request(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """See `Model.request`."""
        response = await super().request(*args, **kwargs)
        if response.finish_reason == "length":
            raise CutAnswer(response)
        return response


@dataclass(slots=True)
class WriterState:
    """State of one report while it is written."""

    run: Run
    evidence: Evidence
    dossier: Dossier
    assessor: Assessor
    fence: Fence = field(default_factory=Fence)
    askable: tuple[str, ...] = ()  # sources that answered, each of which may be asked once more
    calls: int = 0  # follow-up calls of the model, refused ones too
    follow_ups: list[FollowUp] = field(default_factory=list)
    followed_up: set[str] = field(default_factory=set)
    returned: Draft | None = None  # the draft that was sent back for correction, at most one
    checked: tuple[Draft, tuple[Exhibit, ...], DraftText] | None = None
    """The draft that was checked last, over which exhibits, and what may stand of it."""
    cut: bool = False  # the draft is what was whole of an answer that was cut
    shown: int | None = None  # exhibits that fitted the model's context; None: all

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the reader on refused follow-ups and on what did not fit."""
        notes: list[str] = []
        if refused := self.calls - len(self.followed_up):
            rule = "one per source and on the question"
            notes.append(f"{refused} of {self.calls} follow-up calls by the writer were refused: {rule}")
        if self.cut:
            notes.append("the report model's answer was cut at its length limit: what was whole of it is used")
        if self.shown is not None and self.shown < (all_shown := len(self.evidence.shown)):
            notes.append(f"the report model's context holds {self.shown} of {all_shown} exhibits")
        return tuple(notes)

    def check(self, draft: Draft) -> DraftText:
        """What may stand of a draft; over the same exhibits it is checked once."""
        exhibits = self.dossier.exhibits
        if self.checked is None or self.checked[0] is not draft or self.checked[1] != exhibits:
            question, kept = self.evidence.scope.question, len(self.evidence.kept)
            self.checked = draft, exhibits, check(draft, self.dossier, question, kept)
        return self.checked[2]


class AgentWriter:
    """Writes reports with one model, by an agent that is built once."""

    def __init__(
        self,
        model: Model,
        seconds: float,
        assessor: Assessor,
        prompts: Prompts | None = None,
        known: WriterModel | None = None,
    ) -> None:
        """`model` is a pydantic-ai chat model, best an `EndedByCut`.

        `assessor` grades and ranks what follow-ups find.
        """
        self.seconds, self.assessor = seconds, assessor
        self.prompts = prompts or PackagedPrompts()
        self.known = known or WriterModel()
        self._agents: dict[ReportForm, Agent[WriterState, Draft]] = {
            form: Agent(
                model,
                output_type=output,
                deps_type=WriterState,
                name="report",
                retries=1,
                model_settings=ModelSettings(temperature=0),
            )
            for form, output in _OUTPUTS.items()
        }
        for agent in self._agents.values():
            agent.output_validator(_return_once)

    async def write(self, run: Run, evidence: Evidence, dossier: Dossier) -> WrittenDraft:
        """One report over the evidence's exhibits; raises `WritingFailed` without a usable draft.

        A draft with unknown citations, passages that are not word for word, foreign links or
        numbers nobody gave goes back once; what is still wrong then is removed and noted.
        """
        state = WriterState(run, evidence, dossier, self.assessor)
        usage = RunUsage()
        notes: tuple[str, ...] = ()
        try:
            async with asyncio.timeout(self.seconds):
                draft = await self._draft(state, usage)
        except (TimeoutError, AgentRunError, UserError, ValidationError) as error:
            reason = reason_of(error)
            if state.returned is None:
                detail = "report"
                if type(error).__name__ == "UsageLimitExceeded":
                    detail = f"report, more than {WRITER_REQUESTS} model requests"
                elif reason == "timeout":
                    detail = f"report, {self.seconds:g} s by `LISTENPOST_REPORT_TIMEOUT`"
                raise WritingFailed(
                    reason, detail, usage_of(usage, self.known.usd),
                    tuple(state.follow_ups), state.notes,
                ) from error  # fmt: skip
            draft = state.returned
            why = reason_in_words(reason)
            notes = (f"no corrected draft came ({why}): the first one was cleared instead",)
        text = state.check(draft)
        if evidence.decided.decision is Decision.SHORT:
            before = len(text.findings)
            text = shorter_draft(text, int(_TOLERANCE * self._words(evidence)))
            if left_out := before - len(text.findings):
                cut = f"{quantity(left_out, 'finding')} left out: few items carry a short report only"
                notes = (*notes, cut)
        return WrittenDraft(text, usage_of(usage, self.known.usd), tuple(state.follow_ups), (*state.notes, *notes))

    def _words(self, evidence: Evidence) -> int:
        """The words of a report: so many for each item, half of that for a short one."""
        words = max(_FEWEST_WORDS, self.assessor.ranking.words_per_item * len(evidence.shown))
        return words // (2 if evidence.decided.decision is Decision.SHORT else 1)

    async def _draft(self, state: WriterState, usage: RunUsage) -> Draft:
        """A draft in the first form that the server's model takes, over what fits its context."""
        forms, last = list(self.known.forms), self.known.last()
        if last in forms:
            forms = forms[forms.index(last) :]
        exhibits, shortened = state.dossier.show(state.evidence.shown), 0
        while True:
            form = forms[0]
            context = self.known.context()
            if context is not None and context < _SMALL_CONTEXT and form == "tool" and len(forms) > 1:
                forms = forms[1:]
                continue
            small = shortened > 1 or (context is not None and context < _SMALL_CONTEXT)
            try:
                async with self.prompts.using("report_small" if small else "report") as prompt:
                    draft = await self._run_agent(form, prompt, state, usage, exhibits, context, shortened)
            except (AgentRunError, UserError, ValidationError) as error:
                reason = reason_of(error)
                if isinstance(error, CutAnswer):
                    usage.incr(error.response.usage)
                    if (rest := error.draft) is not None:
                        state.cut = True
                        return rest
                if reason == "too_long" and shortened < _SHORTENINGS:
                    # what the refusal stated is enough to know what fits
                    shortened += self.known.context() == context
                elif reason in _OF_THE_FORM and len(forms) > 1 and state.returned is None:
                    forms = forms[1:]
                else:
                    raise
            else:
                self.known.remember(form)
                return draft

    async def _run_agent(
        self,
        form: ReportForm,
        prompt: Prompt,
        state: WriterState,
        usage: RunUsage,
        exhibits: Sequence[Exhibit],
        context: int | None,
        shortened: int,
    ) -> Draft:
        evidence, fence = state.evidence, state.fence
        question, sources = evidence.scope.question, evidence.crawl.sources
        share = shown_share(evidence)
        short = evidence.decided.decision is Decision.SHORT
        words = self._words(evidence)
        instructions = prompt.filled(
            rule=fence.rule,
            words=min(words, _FEWEST_WORDS) if prompt.name == "report_small" else words,
            tone="Few items were relevant: say that this is a starting point." if short else "",
            passage=LONGEST_PASSAGE,
        )
        head = [
            fence.quote(question.text, "question"),
            *([fence.quote(question.about, "about")] if question.about else []),
            *gate_lines(sources),
            *([f"Below are {share}."] if share else []),
            "",
        ]
        described, answer = describe(exhibits, fence, question.text), _DRAFT_TOKENS + _WORD_TOKENS * words
        answer = min(answer, _MOST_TOKENS)
        if context is not None or shortened:
            room = estimated_tokens(described)
            if context is not None:
                answer = min(answer, context // 3)
                taken = estimated_tokens(instructions) + estimated_tokens("\n".join(head)) + _OTHER_TOKENS[form]
                room = min(room, context - answer - taken)
            # a refusal after that says that the estimate was too low
            room = room * 2 // (2 + shortened)
            described, state.shown = describe_within(exhibits, fence, question.text, room)
            if not state.shown:
                raise TooLong
        answered = dict.fromkeys(gathered.source for gathered in sources if gathered.outcome.answered)
        state.askable = tuple(name for name in answered if name != "items")
        tools = [_follow_up_tool(state.askable)] if state.askable else []
        result = await self._agents[form].run(
            "\n".join([*head, described]),
            deps=state,
            instructions=instructions,
            toolsets=[FunctionToolset(tools, id="follow-ups")] if form == "tool" else [],
            usage=usage,
            usage_limits=UsageLimits(request_limit=WRITER_REQUESTS),
            model_settings=ModelSettings(temperature=0, max_tokens=answer),
        )
        return result.output


class TooLong(AgentRunError):
    """Not even one exhibit fits the model's context."""

    meaning = ModelError("too_long")

    def __init__(self) -> None:
        super().__init__("not even one exhibit fits the model's context")


def usage_of(usage: RunUsage, price: Callable[[RunUsage], float | None] | None = None) -> Usage:
    """What a run of an agent used; `price` replaces what the library knows of prices."""
    known = None if usage.cost is None else float(usage.cost)
    usd = known if price is None else price(usage)
    tokens = (usage.input_tokens, usage.output_tokens)
    return Usage(*tokens, usd if usage.requests else 0.0, usage.requests)


async def probed_draft(
    model: Model, seconds: float, known: WriterModel, question: Question, items: Sequence[Item]
) -> tuple[str, Usage]:
    """How a model gives a draft over these items, in the first form that it accepts, and what that cost.

    Raises `ModelError` when it takes none.
    """
    fence, usage = Fence(), RunUsage()
    exhibits = Dossier().show(Assessed(item, Verdict(True)) for item in items)
    instructions = packaged("report").filled(rule=fence.rule, words=_FEWEST_WORDS, tone="", passage=LONGEST_PASSAGE)
    task = f"{fence.quote(question.text, 'question')}\n{describe(exhibits, fence, question.text)}"
    settings = ModelSettings(temperature=0, max_tokens=_DRAFT_TOKENS + _WORD_TOKENS * _FEWEST_WORDS)
    reason = "malformed"
    for form in known.forms:
        agent: Agent[None, Draft] = Agent(model, output_type=_OUTPUTS[form], name="probe", retries=0)
        try:
            async with asyncio.timeout(seconds):
                await agent.run(task, instructions=instructions, usage=usage, model_settings=settings)
        except (TimeoutError, AgentRunError, UserError, ValidationError) as error:
            reason = reason_of(error)
            if isinstance(error, CutAnswer):
                usage.incr(error.response.usage)
            if reason not in _OF_THE_FORM:
                break
        else:
            known.remember(form)
            return FORM_WORDS[form], usage_of(usage, known.usd)
    raise UnusableAnswer(reason, "", usage_of(usage, known.usd))


async def _return_once(ctx: RunContext[WriterState], draft: Draft) -> Draft:
    """Send a draft back for correction, once, when it cites, links or counts the unknown."""
    flaws = ctx.deps.check(draft).flaws
    if flaws and ctx.retry == 0 and ctx.deps.returned is None:
        ctx.deps.returned = draft
        raise ModelRetry(flaws.advice)
    return draft


@lru_cache(maxsize=64)
def _follow_up_tool(sources: tuple[str, ...]) -> Tool[WriterState]:
    """One more call to one of these sources; cached, since pydantic-ai reads a schema off the function.

    One tool that takes a name costs 75 tokens of each prompt; a tool for each of eight sources took 565.
    """

    async def search(ctx: RunContext[WriterState], source: str, query: str) -> str:
        return await _follow_up(ctx.deps, source, query)

    names = ", ".join(sources)
    about = f"Look once more on a source ({names}) with another query; relevant items only."
    return Tool(search, name=FOLLOW_UP_TOOL, description=about)


async def _follow_up(state: WriterState, source: str, query: str) -> str:
    state.calls += 1
    if source not in state.askable:
        return f"There is no such source; there are: {', '.join(state.askable)}."
    evidence, run, question = state.evidence, state.run, state.evidence.scope.question
    title = title_in(run.places, source)
    if source in state.followed_up:
        return f"{title} was already asked once more; write with what you have."
    sent = guarded_query(f"{question.text}\n{question.about}", query)
    if sent is None:
        return "Name what the question is about in the query, in a few words."
    state.followed_up.add(source)
    before = list(run.searches)

    async def search() -> str:
        gathered = await run.search(question, source, sent, evidence.scope.limit)
        if any(gathered.attempts and gathered.attempts is old.attempts for old in before):
            return f"{title} was asked exactly this before; write with what you have."
        known = [*evidence.kept, *evidence.dropped]
        for follow_up in state.follow_ups:
            known += (*follow_up.ranked.kept, *follow_up.ranked.dropped)
        ranked = await state.assessor.assess(run, evidence.scope, gathered.kept, known=known)
        state.follow_ups.append(FollowUp(gathered, ranked))
        earlier = [entry for entry in evidence.crawl.sources if entry.source == source]
        run.listener(SourceGathered.of(combine([*earlier, gathered])))
        shown = state.dossier.show(ranked.kept)
        return f"{gate_line(gathered)}\n{describe(shown, state.fence, question.text)}"

    answer = await contained(search(), f"a follow-up on {source}")
    if isinstance(answer, Failure):
        return f"{title} could not be asked: {answer.message}"
    return answer


def reason_of(error: Exception) -> str:
    """The reason code behind a failed run."""
    if isinstance(error, TimeoutError):
        return "timeout"
    cause: BaseException | None = error
    while cause is not None:  # the model client's own error lies below what libraries made of it
        meaning = getattr(cause, "meaning", None)
        if isinstance(meaning, ModelError):
            return meaning.reason
        cause = cause.__cause__
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return next((reason for kind, reason in _REASONS.items() if kind in kinds), "malformed")
