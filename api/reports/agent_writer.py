"""The report writer: a pydantic-ai agent that may cite only what it was shown."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pydantic import BaseModel, Field, ValidationError
from pydantic_ai import Agent, ModelRetry, RunContext, Tool, UsageLimits
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage

from api.core.display_names import reason_in_words, title_of
from api.core.domain import Decision, Gathered, Usage
from api.core.progress import SourceGathered
from api.core.prompts import PackagedPrompts, Prompt, Prompts
from api.core.text import Fence
from api.core.work import Failure, contained
from api.errors import ModelError
from api.pipeline.evidence.collection import Assessor, Evidence
from api.pipeline.evidence.crawl import Run, combine
from api.pipeline.question.query_guard import guarded
from api.reports.conclusion import WRITER_REQUESTS, FollowUp, NotWritten, Written, share_read
from api.reports.draft_rules import DraftText, check, shortened
from api.reports.exhibits import Dossier, Exhibit, describe, gate_line, gate_lines
from api.reports.report import LONGEST_PASSAGE, FindingKind
from api.reports.support_check import LONGEST_SENTENCE

FEWEST_WORDS = 60
"""Words a full report may always have."""
SLACK = 1.25
"""How far a short report may go beyond its words."""

# Kind of pydantic-ai error -> reason code, the first that fits; any other is `malformed`.
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


class DraftPassage(BaseModel):
    """Words of one exhibit that say what the finding says."""

    cite: str = Field(description="Exhibit name such as E1")
    passage: str = Field(description=f"Copied word for word, at most {LONGEST_PASSAGE} characters")


class DraftFinding(BaseModel):
    """One thing people say."""

    text: str = Field(min_length=1, max_length=LONGEST_SENTENCE)
    kind: FindingKind
    evidence: list[DraftPassage]


class DraftQuote(BaseModel):
    """Verbatim words of one exhibit."""

    text: str
    cite: str


class Draft(BaseModel):
    """What the model hands in."""

    topic: str
    summary: str
    findings: list[DraftFinding]
    quotes: list[DraftQuote] = Field(default_factory=list)
    suggestions: list[str] = Field(default_factory=list, description="Next questions")


@dataclass(slots=True)
class ReportTools:
    """What one report is written at."""

    run: Run
    evidence: Evidence
    dossier: Dossier
    assessor: Assessor
    fence: Fence = field(default_factory=Fence)
    calls: int = 0
    """Follow-up calls the model made, the refused ones too."""
    followed_up: set[str] = field(default_factory=set)
    """Sources that a follow-up was sent to."""
    follow_ups: list[FollowUp] = field(default_factory=list)
    returned: list[Draft] = field(default_factory=list)
    """Drafts that went back."""
    checked: tuple[Draft, tuple[Exhibit, ...], DraftText] | None = None
    """The draft that was checked last, over which exhibits, and what stood of it."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know."""
        refused = self.calls - len(self.followed_up)
        if not refused:
            return ()
        rule = "one per source and on the question"
        return (f"{refused} of {self.calls} follow-up calls by the writer were refused: {rule}",)


class AgentWriter:
    """Writes reports with one model, by an agent that is built once."""

    def __init__(
        self, model: Model, seconds: float, assessor: Assessor, prompts: Prompts | None = None
    ) -> None:
        """`model` is a pydantic-ai chat model.

        Newly found items are graded, dropped and ordered by the assessor.
        """
        self.seconds, self.assessor = seconds, assessor
        self.prompts = prompts or PackagedPrompts()
        self._agent: Agent[ReportTools, Draft] = Agent(
            model,
            output_type=Draft,
            deps_type=ReportTools,
            name="report",
            retries=1,
            model_settings=ModelSettings(temperature=0),
        )
        self._agent.output_validator(_sound)

    async def write(self, run: Run, evidence: Evidence, dossier: Dossier) -> Written:
        """One report over the evidence's exhibits.

        A draft with unknown citations, passages that are not word for word, foreign links or
        numbers nobody gave goes back once; what is still wrong then is removed and noted.

        Raises:
            NotWritten: the model could not be reached or gave no usable draft.
        """
        desk = ReportTools(run, evidence, dossier, self.assessor)
        usage = RunUsage()
        notes: tuple[str, ...] = ()
        try:
            async with self.prompts.using("report") as prompt:
                draft = await self._draft(prompt, desk, usage)
        except (TimeoutError, AgentRunError, UserError, ValidationError) as error:
            reason = reason_of(error)
            if not desk.returned:
                bill = (spent(usage), tuple(desk.follow_ups), desk.notes)
                limited = type(error).__name__ == "UsageLimitExceeded"
                most = f", more than {WRITER_REQUESTS} model requests" if limited else ""
                raise NotWritten(reason, f"report{most}", *bill) from error
            draft = desk.returned[-1]
            why = reason_in_words(reason)
            notes = (f"no corrected draft came ({why}): the first one was cleared instead",)
        checked, cut = self._fitted(_checked(draft, desk), evidence)
        return Written(checked, spent(usage), tuple(desk.follow_ups), (*desk.notes, *notes, *cut))

    def _fitted(self, draft: DraftText, evidence: Evidence) -> tuple[DraftText, tuple[str, ...]]:
        """A short report within its words, and a note when that took findings away."""
        if evidence.decided.decision is not Decision.SHORT:
            return draft, ()
        words = _words(evidence, self.assessor.ranking.words_per_item)
        fitted = shortened(draft, int(SLACK * words))
        left_out = len(draft.findings) - len(fitted.findings)
        note = f"{left_out} finding(s) left out: few items carry a short report only"
        return fitted, (note,) if left_out else ()

    async def _draft(self, prompt: Prompt, desk: ReportTools, usage: RunUsage) -> Draft:
        question, fence = desk.evidence.scope.question, desk.fence
        about = [fence.quote(question.about, "about")] if question.about else []
        gates = gate_lines(desk.evidence.crawl.sources)
        shown = describe(desk.dossier.show(desk.evidence.shown), fence, question.text)
        share = share_read(desk.evidence)
        shares = [f"Below are {share}."] if share else []
        task = [fence.quote(question.text, "question"), *about, *gates, *shares, "", shown]
        async with asyncio.timeout(self.seconds):
            result = await self._agent.run(
                "\n".join(task),
                deps=desk,
                instructions=_instructions(prompt, desk, self.assessor.ranking.words_per_item),
                toolsets=[_tools(desk.evidence.crawl.sources)],
                usage=usage,
                usage_limits=UsageLimits(request_limit=WRITER_REQUESTS),
            )
        return result.output


def spent(usage: RunUsage) -> Usage:
    """What a run of an agent used."""
    usd = None if usage.cost is None else float(usage.cost)
    tokens = (usage.input_tokens, usage.output_tokens)
    return Usage(*tokens, usd if usage.requests else 0.0, usage.requests)


def _words(evidence: Evidence, words_per_item: int) -> int:
    """How many words the report gets: by item, half of that when it is short."""
    short = evidence.decided.decision is Decision.SHORT
    return max(FEWEST_WORDS, words_per_item * len(evidence.shown)) // (2 if short else 1)


def _instructions(prompt: Prompt, desk: ReportTools, words_per_item: int) -> str:
    short = desk.evidence.decided.decision is Decision.SHORT
    words = _words(desk.evidence, words_per_item)
    tone = "Few items were relevant: say that this is a starting point." if short else ""
    return prompt.filled(rule=desk.fence.rule, words=words, tone=tone, passage=LONGEST_PASSAGE)


async def _sound(ctx: RunContext[ReportTools], draft: Draft) -> Draft:
    """Send a draft back once when it cites, links or counts what it was not shown."""
    flaws = _checked(draft, ctx.deps).flaws
    if flaws and ctx.retry == 0 and not ctx.deps.returned:
        ctx.deps.returned.append(draft)
        raise ModelRetry(flaws.advice)
    return draft


def _checked(draft: Draft, desk: ReportTools) -> DraftText:
    """What stands of a draft; over the same exhibits it is checked once."""
    exhibits = desk.dossier.exhibits
    if desk.checked is not None and desk.checked[0] is draft and desk.checked[1] == exhibits:
        return desk.checked[2]
    drafted = check(
        draft.topic,
        draft.summary,
        [
            (
                finding.text,
                finding.kind,
                [(entry.passage, entry.cite) for entry in finding.evidence],
            )
            for finding in draft.findings
        ],
        [(quote.text, quote.cite) for quote in draft.quotes],
        draft.suggestions,
        desk.dossier,
        desk.evidence.scope.question,
        len(desk.evidence.kept),
    )
    desk.checked = draft, exhibits, drafted
    return drafted


def _tools(sources: Sequence[Gathered]) -> FunctionToolset[ReportTools]:
    """One more call per source that answers, through the run's own memory, gate and numbering."""
    answered = (gathered.source for gathered in sources if gathered.outcome.answered)
    return FunctionToolset([_tool(name) for name in answered if name != "items"], id="follow-ups")


@lru_cache(maxsize=64)
def _tool(source: str) -> Tool[ReportTools]:
    """The call for one source; its schema is read off the function once."""

    async def fetch(ctx: RunContext[ReportTools], query: str) -> str:
        return await _follow_up(ctx.deps, source, query)

    return Tool(
        fetch,
        name=f"fetch_{source}",
        description=f"Look once more on {source} with another query; relevant items only.",
    )


async def _follow_up(desk: ReportTools, source: str, query: str) -> str:
    desk.calls += 1
    title = title_of(desk.run.places, source)
    if source in desk.followed_up:
        return f"{title} was already asked once more; write with what you have."
    evidence, run, question = desk.evidence, desk.run, desk.evidence.scope.question
    sent = guarded(f"{question.text}\n{question.about}", query)
    if sent is None:
        return "Name what the question is about in the query, in a few words."
    desk.followed_up.add(source)
    before = list(run.searches)

    async def looked_up() -> str:
        gathered = await run.search(question, source, sent, evidence.scope.limit)
        if any(gathered.attempts and gathered.attempts is old.attempts for old in before):
            return f"{title} was asked exactly this before; write with what you have."
        later = [
            entry
            for follow_up in desk.follow_ups
            for entry in (*follow_up.ranked.kept, *follow_up.ranked.dropped)
        ]
        known = [*evidence.kept, *evidence.dropped, *later]
        ranked = await desk.assessor.assess(run, evidence.scope, gathered.kept, known=known)
        desk.follow_ups.append(FollowUp(gathered, ranked))
        earlier = [entry for entry in evidence.crawl.sources if entry.source == source]
        run.listener(SourceGathered.of(combine([*earlier, gathered])))
        shown = desk.dossier.show(ranked.kept)
        return f"{gate_line(gathered)}\n{describe(shown, desk.fence, question.text)}"

    answer = await contained(looked_up(), f"a follow-up on {source}")
    if isinstance(answer, Failure):
        return f"{title} could not be asked: {answer.message}"
    return answer


def reason_of(error: Exception) -> str:
    """The reason code behind a failed run."""
    if isinstance(error, TimeoutError):
        return "timeout"
    cause: BaseException | None = error
    while cause is not None:  # the model's client knows best, below what libraries made of it
        meaning = getattr(cause, "meaning", None)
        if isinstance(meaning, ModelError):
            return meaning.reason
        cause = cause.__cause__
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return next((reason for kind, reason in _REASONS.items() if kind in kinds), "malformed")
