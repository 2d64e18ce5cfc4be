"""The report writer: a pydantic-ai agent that may cite only the exhibits it was shown."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import lru_cache

from pydantic import ValidationError
from pydantic_ai import Agent, ModelRetry, RunContext, Tool, UsageLimits
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage

from api.core.display_names import reason_in_words, title_in
from api.core.domain import Decision, Usage
from api.core.progress import SourceGathered
from api.core.prompts import PackagedPrompts, Prompt, Prompts
from api.core.text import Fence
from api.core.work import Failure, contained
from api.errors import ModelError
from api.pipeline.evidence.collection import Assessor, Evidence
from api.pipeline.evidence.crawl import Run, combine
from api.pipeline.question.query_guard import guarded_query
from api.reports.conclusion import WRITER_REQUESTS, FollowUp, WritingFailed, WrittenDraft, shown_share
from api.reports.draft_rules import Draft, DraftText, check, shortened
from api.reports.exhibits import Dossier, Exhibit, describe, gate_line, gate_lines
from api.reports.report import LONGEST_PASSAGE

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
    "ModelConnectionError": "unreachable",
    "ModelHTTPError": "http_error",
    "ModelAPIError": "unreachable",
}


@dataclass(slots=True)
class WriterState:
    """One report while it is written."""

    run: Run
    evidence: Evidence
    dossier: Dossier
    assessor: Assessor
    fence: Fence = field(default_factory=Fence)
    calls: int = 0  # follow-up calls of the model, refused ones too
    follow_ups: list[FollowUp] = field(default_factory=list)
    followed_up: set[str] = field(default_factory=set)
    returned: Draft | None = None  # the draft that was sent back for correction, at most one
    checked: tuple[Draft, tuple[Exhibit, ...], DraftText] | None = None
    """The draft that was checked last, over which exhibits, and what may stand of it."""

    @property
    def notes(self) -> tuple[str, ...]:
        """A note on refused follow-ups, for the reader."""
        refused = self.calls - len(self.followed_up)
        if not refused:
            return ()
        rule = "one per source and on the question"
        return (f"{refused} of {self.calls} follow-up calls by the writer were refused: {rule}",)

    def check(self, draft: Draft) -> DraftText:
        """What may stand of a draft; over the same exhibits it is checked once."""
        exhibits = self.dossier.exhibits
        if self.checked is None or self.checked[0] is not draft or self.checked[1] != exhibits:
            question, kept = self.evidence.scope.question, len(self.evidence.kept)
            self.checked = draft, exhibits, check(draft, self.dossier, question, kept)
        return self.checked[2]


class AgentWriter:
    """Writes reports with one model, by an agent that is built once."""

    def __init__(self, model: Model, seconds: float, assessor: Assessor, prompts: Prompts | None = None) -> None:
        """`model` is a pydantic-ai chat model; `assessor` grades and ranks what follow-ups find."""
        self.seconds, self.assessor = seconds, assessor
        self.prompts = prompts or PackagedPrompts()
        self._agent: Agent[WriterState, Draft] = Agent(
            model,
            output_type=Draft,
            deps_type=WriterState,
            name="report",
            retries=1,
            model_settings=ModelSettings(temperature=0),
        )
        self._agent.output_validator(_return_once)

    async def write(self, run: Run, evidence: Evidence, dossier: Dossier) -> WrittenDraft:
        """One report over the evidence's exhibits; raises `WritingFailed` without a usable draft.

        A draft with unknown citations, passages that are not word for word, foreign links or
        numbers nobody gave goes back once; what is still wrong then is removed and noted.
        """
        state = WriterState(run, evidence, dossier, self.assessor)
        usage = RunUsage()
        notes: tuple[str, ...] = ()
        try:
            async with self.prompts.using("report") as prompt:
                draft = await self._run_agent(prompt, state, usage)
        except (TimeoutError, AgentRunError, UserError, ValidationError) as error:
            reason = reason_of(error)
            if state.returned is None:
                limited = type(error).__name__ == "UsageLimitExceeded"
                detail = f"report, more than {WRITER_REQUESTS} model requests"
                raise WritingFailed(
                    reason, detail if limited else "report", usage_of(usage),
                    tuple(state.follow_ups), state.notes,
                ) from error  # fmt: skip
            draft = state.returned
            why = reason_in_words(reason)
            notes = (f"no corrected draft came ({why}): the first one was cleared instead",)
        text = state.check(draft)
        if evidence.decided.decision is Decision.SHORT:
            before = len(text.findings)
            text = shortened(text, int(_TOLERANCE * self._words(evidence)))
            if left_out := before - len(text.findings):
                cut = f"{left_out} finding(s) left out: few items carry a short report only"
                notes = (*notes, cut)
        return WrittenDraft(text, usage_of(usage), tuple(state.follow_ups), (*state.notes, *notes))

    def _words(self, evidence: Evidence) -> int:
        """The words of a report: so many for each item, half of that for a short one."""
        words = max(_FEWEST_WORDS, self.assessor.ranking.words_per_item * len(evidence.shown))
        return words // (2 if evidence.decided.decision is Decision.SHORT else 1)

    async def _run_agent(self, prompt: Prompt, state: WriterState, usage: RunUsage) -> Draft:
        evidence, fence = state.evidence, state.fence
        question, sources = evidence.scope.question, evidence.crawl.sources
        share = shown_share(evidence)
        task = [
            fence.quote(question.text, "question"),
            *([fence.quote(question.about, "about")] if question.about else []),
            *gate_lines(sources),
            *([f"Below are {share}."] if share else []),
            "",
            describe(state.dossier.show(evidence.shown), fence, question.text),
        ]
        short = evidence.decided.decision is Decision.SHORT
        instructions = prompt.filled(
            rule=fence.rule,
            words=self._words(evidence),
            tone="Few items were relevant: say that this is a starting point." if short else "",
            passage=LONGEST_PASSAGE,
        )
        answered = (gathered.source for gathered in sources if gathered.outcome.answered)
        tools = [_follow_up_tool(name) for name in answered if name != "items"]
        async with asyncio.timeout(self.seconds):
            result = await self._agent.run(
                "\n".join(task),
                deps=state,
                instructions=instructions,
                toolsets=[FunctionToolset(tools, id="follow-ups")],
                usage=usage,
                usage_limits=UsageLimits(request_limit=WRITER_REQUESTS),
            )
        return result.output


def usage_of(usage: RunUsage) -> Usage:
    """What a run of an agent used."""
    usd = None if usage.cost is None else float(usage.cost)
    tokens = (usage.input_tokens, usage.output_tokens)
    return Usage(*tokens, usd if usage.requests else 0.0, usage.requests)


async def _return_once(ctx: RunContext[WriterState], draft: Draft) -> Draft:
    """Send a draft back for correction, once, when it cites, links or counts the unknown."""
    flaws = ctx.deps.check(draft).flaws
    if flaws and ctx.retry == 0 and ctx.deps.returned is None:
        ctx.deps.returned = draft
        raise ModelRetry(flaws.advice)
    return draft


@lru_cache(maxsize=64)
def _follow_up_tool(source: str) -> Tool[WriterState]:
    """One more call to a source; cached, since pydantic-ai reads a schema off the function."""

    async def fetch(ctx: RunContext[WriterState], query: str) -> str:
        return await _follow_up(ctx.deps, source, query)

    return Tool(
        fetch,
        name=f"fetch_{source}",
        description=f"Look once more on {source} with another query; relevant items only.",
    )


async def _follow_up(state: WriterState, source: str, query: str) -> str:
    state.calls += 1
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
