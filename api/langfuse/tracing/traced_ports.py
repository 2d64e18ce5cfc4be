"""Tracing around the ports, so that what they do carries none of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from api.core.domain import Batch, Commented, FetchPlan, Item, Question
from api.core.ports import (
    Claim,
    Grader,
    Grades,
    Judge,
    Judgement,
    Rewriter,
    Rewrites,
    Source,
    Support,
    SupportChecker,
    WrappedJudge,
    WrappedSource,
)
from api.langfuse.tracing.langfuse_client import spent
from api.langfuse.tracing.observer import LangfuseObserver
from api.reports.shortfall import Explainer, Explanation, Shortfall

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from api.langfuse.tracing.langfuse_client import Client


@dataclass(frozen=True, slots=True)
class Tracing:
    """The observer, the wrappers, and their end."""

    client: Client
    observer: LangfuseObserver

    @classmethod
    def over(cls, client: Client, *, old_scores: bool = False) -> Self:
        """Tracing through this client."""
        return cls(client, LangfuseObserver(client, old_scores))

    def source(self, inner: Source) -> Source:
        """Spans `fetch.<source>` and `comments.<source>`."""
        return TracedSource(inner, self.client)

    def judge(self, inner: Judge, *, scored: bool = True) -> Judge:
        """Generations `relevance_filter`, with their yield unless it says nothing of the world."""
        return TracedJudge(inner, self.client, scored)

    def grader(self, inner: Grader) -> Grader:
        """Generations `grade`."""
        return TracedGrader(inner, self.client)

    def rewriter(self, inner: Rewriter) -> Rewriter:
        """Generations `rewrite`."""
        return TracedRewriter(inner, self.client)

    def checker(self, inner: SupportChecker) -> SupportChecker:
        """Generations `support_check`."""
        return TracedChecker(inner, self.client)

    def explainer(self, inner: Explainer) -> Explainer:
        """Generations `explain`."""
        return TracedExplainer(inner, self.client)

    def model(self, inner: Model) -> Model:
        """The spans of the agent that runs with it, which pydantic-ai makes: calls, tools, itself.

        No other agent in the process is traced.
        """
        return self.client.watched(inner)

    async def probe(self) -> tuple[str, str]:
        """Outcome and detail of asking Langfuse whether the keys fit, with one request."""
        return await asyncio.to_thread(self.client.probe)

    def shutdown(self) -> None:
        """Hand over what is queued, once; blocks for `trace_flush_timeout` at most."""
        self.client.shutdown()


@dataclass(frozen=True, slots=True)
class TracedSource(WrappedSource):
    """Spans around what a source is asked for."""

    client: Client

    async def fetch(self, plan: FetchPlan) -> Batch:
        """See `Source.fetch`."""
        given = {"query": plan.query, "limit": plan.limit, "window": plan.window}
        with self.client.observation(f"fetch.{self.name}", "retriever", input=given) as span:
            batch = await self.inner.fetch(plan)
            output = {"items": len(batch.items), "full": batch.full, "notes": list(batch.notes)}
            span.update(output=output)
            return batch

    async def comments(self, items: Sequence[Item]) -> Commented:
        """See `Source.comments`."""
        given = {"items": [item.key for item in items]}
        with self.client.observation(f"comments.{self.name}", "retriever", input=given) as span:
            read = await self.inner.comments(items)
            count = sum(len(item.comments) for item in read.items)
            span.update(output={"comments": count, "notes": list(read.notes)})
            return read

    async def with_best_comments(self, item: Item) -> Item | None:
        """See `Source.with_best_comments`."""
        with self.client.observation(
            f"second_look.{self.name}", "retriever", input={"items": [item.key]}
        ) as span:
            read = await self.inner.with_best_comments(item)
            span.update(output={"comments": len(read.comments) if read else 0})
            return read


@dataclass(frozen=True, slots=True)
class TracedJudge(WrappedJudge):
    """A generation for each call of a judge."""

    client: Client
    scored: bool

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """See `Judge.judge`."""
        given = {**_given(question, items), "source": source}
        with self.client.observation(
            "relevance_filter", "generation", model=self.name, input=given
        ) as span:
            judged = await self.inner.judge(question, items, source)
            flags = [verdict.relevant for verdict in judged.verdicts]
            span.update(output=flags, model=judged.model, **spent(judged.usage))
            sound = len(flags) == len(items) and all(isinstance(flag, bool) for flag in flags)
            if self.scored and flags and sound:  # what is not sound the gate takes for no answer
                share, mark = sum(flags) / len(flags), {"scope": "gate", "source": source}
                self.client.score("gate_yield", share, span, mark)
            return judged


@dataclass(frozen=True, slots=True)
class TracedGrader:
    """Implements `Grader`."""

    inner: Grader
    client: Client

    async def grade(self, question: Question, items: Sequence[Item]) -> Grades:
        """See `Grader.grade`."""
        with self.client.observation(
            "grade", "generation", model=_model(self.inner), input=_given(question, items)
        ) as span:
            graded = await self.inner.grade(question, items)
            scores = [None if grade.defaulted else grade.score for grade in graded.grades]
            span.update(output=scores, model=graded.model or None, **spent(graded.usage))
            if missing := scores.count(None):
                span.update(level="WARNING", status_message=f"{missing} grades defaulted")
            return graded


@dataclass(frozen=True, slots=True)
class TracedRewriter:
    """Implements `Rewriter`."""

    inner: Rewriter
    client: Client

    async def rewrite(
        self, question: Question, variants: int, gaps: Sequence[str] = ()
    ) -> Rewrites:
        """See `Rewriter.rewrite`."""
        given = {"question": question.text, "variants": variants, "gaps": list(gaps)}
        with self.client.observation(
            "rewrite", "generation", model=_model(self.inner), input=given
        ) as span:
            rewrites = await self.inner.rewrite(question, variants, gaps)
            span.update(output=list(rewrites.queries), **spent(rewrites.usage))
            return rewrites


@dataclass(frozen=True, slots=True)
class TracedChecker:
    """Implements `SupportChecker`."""

    inner: SupportChecker
    client: Client

    @property
    def name(self) -> str:
        """See `SupportChecker.name`."""
        return self.inner.name

    async def check(self, question: Question, claims: Sequence[Claim]) -> Support:
        """See `SupportChecker.check`."""
        given = {
            "question": question.text,
            "pairs": [[claim.sentence, claim.passage] for claim in claims],
        }
        with self.client.observation(
            "support_check", "generation", model=self.name, input=given
        ) as span:
            support = await self.inner.check(question, claims)
            span.update(output=list(support.supported), model=support.model, **spent(support.usage))
            return support


@dataclass(frozen=True, slots=True)
class TracedExplainer:
    """Implements `Explainer`."""

    inner: Explainer
    client: Client

    async def explain(self, shortfall: Shortfall) -> Explanation:
        """See `Explainer.explain`."""
        given = {
            "question": shortfall.question.text,
            "queries": list(shortfall.queries),
            "coverage": list(shortfall.coverage),
            "dropped": len(shortfall.dropped),
        }
        with self.client.observation(
            "explain", "generation", model=_model(self.inner), input=given
        ) as span:
            explanation = await self.inner.explain(shortfall)
            output = {"text": explanation.text, "suggestions": list(explanation.suggestions)}
            span.update(output=output, **spent(explanation.usage))
            return explanation


def _given(question: Question, items: Sequence[Item]) -> dict[str, Any]:
    return {
        "question": question.text,
        "about": question.about or None,
        "count": len(items),
        "titles": [item.title for item in items],
    }


def _model(judge: object) -> str | None:
    """The model of a judge that names one."""
    name = getattr(judge, "model", None)
    return name if isinstance(name, str) else None
