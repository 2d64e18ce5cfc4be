"""The report writer: a pydantic-ai agent that may cite only what it was shown."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelRetry, RunContext, UsageLimits
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage

from api.errors import ModelError
from api.services.citing import Drafted, Flaws, check
from api.services.dossier import Exhibit, describe, gate_line
from api.services.fencing import Fence
from api.services.pipeline import Evidence, Scope
from api.services.run import Run
from api.services.schemas import Decision, FindingKind, Usage

REQUESTS = 8
"""Model requests of one report at most."""


class DraftFinding(BaseModel):
    """One thing people say."""

    text: str = Field(min_length=1, max_length=600)
    kind: FindingKind
    cites: list[str] = Field(description="Exhibit names such as E1")


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


@dataclass(frozen=True, slots=True)
class Desk:
    """What one report is written at: the run, its scope and the fence of its prompt."""

    run: Run
    scope: Scope
    fence: Fence
    asked: set[str]
    """Sources that the model asked once more."""
    flaws: list[Flaws]


@dataclass(frozen=True, slots=True)
class Written:
    """A checked draft and what it cost."""

    draft: Drafted
    usage: Usage


@dataclass(frozen=True, slots=True)
class AgentWriter:
    """Writes reports with one model; `model` is a pydantic-ai chat model."""

    model: Model
    model_name: str
    seconds: float
    words_per_item: int

    async def write(self, run: Run, evidence: Evidence) -> Written:
        """One report over the evidence's exhibits.

        A draft with unknown citations, foreign links or numbers nobody gave goes back once; what is
        still wrong then is removed and noted.

        Raises:
            ModelError: the model could not be reached or gave no usable draft.
        """
        fence = Fence()
        desk = Desk(run, evidence.scope, fence, set(), [])
        exhibits = run.dossier.show(evidence.shown)
        usage = RunUsage()
        try:
            async with asyncio.timeout(self.seconds):
                result = await self._agent(evidence, fence).run(
                    _prompt(evidence, exhibits, fence),
                    deps=desk,
                    usage=usage,
                    usage_limits=UsageLimits(request_limit=REQUESTS, tool_calls_limit=REQUESTS),
                )
        except TimeoutError as error:
            raise ModelError("timeout", "report") from error
        except (AgentRunError, UserError) as error:
            raise ModelError(_reason(error), "report") from error
        return Written(_drafted(result.output, desk), self._cost(usage))

    def _agent(self, evidence: Evidence, fence: Fence) -> Agent[Desk, Draft]:
        agent: Agent[Desk, Draft] = Agent(
            self.model,
            output_type=Draft,
            deps_type=Desk,
            name="report",
            instructions=_instructions(evidence, fence, self.words_per_item),
            toolsets=[_follow_ups(evidence.scope.sources)],
            retries=1,
            model_settings=ModelSettings(temperature=0),
        )
        agent.output_validator(_sound)
        return agent

    def _cost(self, usage: RunUsage) -> Usage:
        cost = usage.cost
        usd = None if cost is None else float(cost)
        return Usage(usage.input_tokens, usage.output_tokens, usd)


def _instructions(evidence: Evidence, fence: Fence, words_per_item: int) -> str:
    short = evidence.decided.decision is Decision.SHORT
    words = max(60, words_per_item * len(evidence.shown) // (2 if short else 1))
    tone = "Few items were relevant: say that this is a starting point." if short else ""
    prompt = resources.files("api.services").joinpath("prompts/report.md").read_text("utf-8")
    return prompt.format(rule=fence.rule, words=words, tone=tone)


def _prompt(evidence: Evidence, exhibits: Sequence[Exhibit], fence: Fence) -> str:
    question = evidence.scope.question
    about = [fence.quote(question.about, "about")] if question.about else []
    gates = [gate_line(gathered) for gathered in evidence.crawl.sources]
    return "\n".join(
        [fence.quote(question.text, "question"), *about, *gates, "", describe(exhibits, fence)]
    )


async def _sound(ctx: RunContext[Desk], draft: Draft) -> Draft:
    """Send a draft back once when it cites, links or counts what it was not shown."""
    drafted = _drafted(draft, ctx.deps)
    if drafted.flaws and ctx.retry == 0 and not ctx.deps.flaws:
        ctx.deps.flaws.append(drafted.flaws)
        raise ModelRetry(drafted.flaws.advice)
    return draft


def _drafted(draft: Draft, desk: Desk) -> Drafted:
    return check(
        draft.topic,
        draft.summary,
        [(finding.text, finding.kind, finding.cites) for finding in draft.findings],
        [(quote.text, quote.cite) for quote in draft.quotes],
        draft.suggestions,
        desk.run.dossier,
        desk.scope.question,
    )


def _follow_ups(sources: Sequence[str]) -> FunctionToolset[Desk]:
    """One more call per source, through the run's own memory, gate and numbering."""
    toolset: FunctionToolset[Desk] = FunctionToolset(id="follow-ups")

    def add(source: str) -> None:
        async def fetch(ctx: RunContext[Desk], query: str) -> str:
            return await _follow_up(ctx.deps, source, query)

        toolset.add_function(
            fetch,
            name=f"fetch_{source}",
            description=f"Look once more on {source} with another query; relevant items only.",
        )

    for source in sources:
        if source in {"reddit", "youtube", "amazon"}:
            add(source)
    return toolset


async def _follow_up(desk: Desk, source: str, query: str) -> str:
    if source in desk.asked:
        return f"{source} was already asked once more; write with what you have."
    desk.asked.add(source)
    scope = desk.scope
    gathered = await desk.run.gather(scope.question, source, query, scope.limit)
    kept = await desk.run.grade(scope.question, gathered.kept)
    cutoff = scope.depth.relevance_cutoff
    sound = [one for one in kept if one.grade is None or one.grade.score >= cutoff]
    exhibits = desk.run.dossier.show(sound)
    return f"{gate_line(gathered)}\n{describe(exhibits, desk.fence)}"


def _reason(error: Exception) -> str:
    """The reason code behind a pydantic-ai error."""
    status = getattr(error, "status_code", None)
    if status is None:
        return "malformed" if "UnexpectedModel" in type(error).__name__ else "unreachable"
    return {401: "unauthorized", 403: "unauthorized", 429: "rate_limited"}.get(status, "http_error")
