"""Wrappers that trace the ports, so that their implementations contain no tracing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

from api.core import ports
from api.core.domain import FetchPlan, Question, Sense
from api.core.items import Batch, Commented, Item
from api.langfuse.tracing.observer import LangfuseObserver, question_input
from api.reports.insufficient_data import Explainer, Explanation, Shortfall

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from api.langfuse.tracing.langfuse_client import Client, Observation

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Tracing:
    """The observer, and wrappers of the ports, over one client."""

    client: Client
    observer: LangfuseObserver

    @classmethod
    def over(cls, client: Client, *, old_scores: bool = False) -> Self:
        """The ports that trace by this client."""
        return cls(client, LangfuseObserver(client, old_scores))

    def source(self, inner: ports.Source) -> ports.Source:
        """Spans `fetch.<source>`, `comments.<source>` and `second_look.<source>`."""
        return TracedSource(inner, self.client)

    def judge(self, inner: ports.Judge, *, scored: bool = True) -> ports.Judge:
        """Generations `relevance_filter`, with a score of their yield if `scored`."""
        return TracedModelStep(inner, self.client, scored)

    def grader(self, inner: ports.Grader) -> ports.Grader:
        return TracedModelStep(inner, self.client)

    def rewriter(self, inner: ports.Rewriter) -> ports.Rewriter:
        return TracedModelStep(inner, self.client)

    def checker(self, inner: ports.SupportChecker) -> ports.SupportChecker:
        return TracedModelStep(inner, self.client)

    def answerer(self, inner: ports.AnswerChecker) -> ports.AnswerChecker:
        return TracedModelStep(inner, self.client)

    def explainer(self, inner: Explainer) -> Explainer:
        return TracedModelStep(inner, self.client)

    def namer(self, inner: ports.SenseNamer) -> ports.SenseNamer:
        return TracedModelStep(inner, self.client)

    def model(self, inner: Model) -> Model:
        """Spans, by pydantic-ai, of the agents that run with this model, and of no other agent."""
        return self.client.watched(inner)

    async def probe(self) -> tuple[str, str]:
        """Outcome and detail of one request that asks Langfuse whether the keys are valid."""
        return await asyncio.to_thread(self.client.probe)

    def shutdown(self) -> None:
        """Send what is queued; blocks for at most `trace_flush_timeout`."""
        self.client.shutdown()


@dataclass(frozen=True, slots=True)
class TracedSource(ports.WrappedSource):
    """Spans around what a source is asked for."""

    client: Client

    async def fetch(self, plan: FetchPlan) -> Batch:
        given = {"query": plan.query, "limit": plan.limit, "window": plan.window}
        with self.client.observation(f"fetch.{self.name}", "retriever", input=given) as span:
            batch = await self.inner.fetch(plan)
            output = {"items": len(batch.items), "full": batch.full, "notes": list(batch.notes)}
            span.update(output=output)
            return batch

    async def comments(self, items: Sequence[Item]) -> Commented:
        given = {"items": [item.key for item in items]}
        with self.client.observation(f"comments.{self.name}", "retriever", input=given) as span:
            commented = await self.inner.comments(items)
            count = sum(len(item.comments) for item in commented.items)
            span.update(output={"comments": count, "notes": list(commented.notes)})
            return commented

    async def with_best_comments(self, item: Item) -> Item | None:
        given = {"items": [item.key]}
        with self.client.observation(f"second_look.{self.name}", "retriever", input=given) as span:
            commented = await self.inner.with_best_comments(item)
            span.update(output={"comments": len(commented.comments) if commented else 0})
            return commented


@dataclass(frozen=True, slots=True)
class TracedModelStep:
    """A generation around each call of a judge, grader, rewriter, support check, explainer or namer of senses."""

    inner: Any
    client: Client
    scored: bool = False  # whether each call of a judge has a score of its yield

    @property
    def name(self) -> str:
        """Name of the step or its model; empty when it has none."""
        return str(getattr(self.inner, "name", None) or getattr(self.inner, "model", ""))

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> ports.Judgement:
        def record(judged: ports.Judgement, span: Observation) -> None:
            flags = [verdict.relevant for verdict in judged.verdicts]
            span.update(output=flags)
            # the gate discards any other answer
            usable = len(flags) == len(items) and all(isinstance(flag, bool) for flag in flags)
            if self.scored and flags and usable:
                metadata = {"scope": "gate", "source": source}
                self.client.score("gate_yield", sum(flags) / len(flags), span, metadata)
                if judged.order_stability is not None:
                    self.client.score("order_stability", judged.order_stability, span, metadata)

        given = {**_given(question, items), "source": source}
        call = self.inner.judge(question, items, source)
        return await self._traced("relevance_filter", given, call, record)

    async def grade(self, question: Question, items: Sequence[Item]) -> ports.Grades:
        def record(graded: ports.Grades, span: Observation) -> None:
            scores = [None if grade.defaulted else grade.score for grade in graded.grades]
            span.update(output=scores)
            if missing := scores.count(None):
                span.update(level="WARNING", status_message=f"{missing} grades defaulted")

        call = self.inner.grade(question, items)
        return await self._traced("grade", _given(question, items), call, record)

    async def rewrite(self, question: Question, variants: int, gaps: Sequence[str] = ()) -> ports.Rewrites:
        def record(rewrites: ports.Rewrites, span: Observation) -> None:
            span.update(output=list(rewrites.queries))

        given = {"question": question.text, "variants": variants, "gaps": list(gaps)}
        call = self.inner.rewrite(question, variants, gaps)
        return await self._traced("rewrite", given, call, record)

    async def check(self, question: Question, claims: Sequence[ports.Claim]) -> ports.Support:
        def record(support: ports.Support, span: Observation) -> None:
            span.update(output=list(support.supported))

        pairs = [[claim.sentence, claim.passage] for claim in claims]
        given = {"question": question.text, "pairs": pairs}
        call = self.inner.check(question, claims)
        return await self._traced("support_check", given, call, record)

    async def answering(self, question: Question, passages: Sequence[tuple[str, str]]) -> ports.Support:
        def record(support: ports.Support, span: Observation) -> None:
            span.update(output=list(support.supported))

        given = {"question": question.text, "passages": [list(passage) for passage in passages]}
        return await self._traced("answer_check", given, self.inner.answering(question, passages), record)

    async def explain(self, shortfall: Shortfall) -> Explanation:
        def record(explanation: Explanation, span: Observation) -> None:
            suggestions = list(explanation.suggestions)
            span.update(output={"text": explanation.text, "suggestions": suggestions})

        given = {
            "question": shortfall.question.text, "queries": list(shortfall.queries),
            "coverage": list(shortfall.coverage), "dropped": len(shortfall.dropped),
        }  # fmt: skip
        return await self._traced("explain", given, self.inner.explain(shortfall), record)

    async def name_senses(self, question: Question, senses: Sequence[Sense]) -> ports.NamedSenses:
        def record(named: ports.NamedSenses, span: Observation) -> None:
            span.update(output=[sense.name for sense in named.senses])

        given = {"question": question.text, "senses": [list(sense.words) for sense in senses]}
        return await self._traced("name_senses", given, self.inner.name_senses(question, senses), record)

    async def _traced(self, name: str, given: Any, call: Awaitable[A], record: Callable[[A, Observation], None]) -> A:
        model = self.name or None
        with self.client.observation(name, "generation", model=model, input=given) as span:
            answer = await call
            record(answer, span)
            used: Any = answer
            fields = self.client.usage_fields(used.usage)
            span.update(model=getattr(used, "model", None) or None, **fields)
            return answer


def _given(question: Question, items: Sequence[Item]) -> dict[str, Any]:
    titles = [item.title for item in items]
    return {**question_input(question), "count": len(items), "titles": titles}
