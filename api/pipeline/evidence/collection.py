"""Collects the evidence of a question: crawl, grade, rank, count, decide.

Too little evidence is followed by a second crawl with other queries. Kept items are graded, dropped and ordered here
alone, for every interface.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from api.core.domain import BEFORE_JUDGING, Decision, Outcome, Question, Usage
from api.core.items import Assessed, Gathered
from api.core.ports import Rewriter, Rewrites
from api.core.progress import ItemsGraded
from api.core.work import Failure, contained
from api.pipeline.evidence.crawl import Crawl, Run, crawl
from api.pipeline.evidence.figures import Figures, figures
from api.pipeline.evidence.ranking import Ranked, by_words, rank
from api.pipeline.evidence.sufficiency import Counts, SufficiencyDecision, decide
from api.pipeline.question import Scope
from api.pipeline.question.product_name import new_queries, search_words
from api.settings import RankingSettings, RetrievalSettings


@dataclass(frozen=True, slots=True)
class Assessor:
    """Grade, floor and rank: for evidence, follow-ups, fetch and chat alike."""

    ranking: RankingSettings
    retrieval: RetrievalSettings
    source_weights: Mapping[str, float] = field(default_factory=dict)

    async def assess(
        self,
        run: Run,
        scope: Scope,
        kept: Sequence[Assessed],
        *,
        graded: bool = True,
        known: Sequence[Assessed] = (),
    ) -> Ranked:
        """What the gate kept, best first, and what the cutoff, a floor or a twin dropped.

        Costs one grade call per ten items that this run has not graded yet; none when `graded` is
        off. Items that `known` holds, or copies of such, do not come back.
        """
        usage = Usage()
        if graded:
            kept, usage = await run.grade(scope.question, kept, scope.depth.relevance_cutoff)
        ranked = await asyncio.to_thread(
            rank,
            kept,
            depth=scope.depth,
            ranking=self.ranking,
            retrieval=self.retrieval,
            now=datetime.now(UTC),
            source_weights=self.source_weights,
            rerank=by_words(scope.question.text),
            known=known,
        )
        return replace(ranked, usage=usage)


GAPS = 10
"""Kept titles and reasons of the dropped that a second rewriting sees."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Who takes the steps between crawl and report."""

    rewriter: Rewriter
    assessor: Assessor


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything a report may rest on, decided and counted."""

    scope: Scope
    crawl: Crawl
    ranked: Ranked
    decided: SufficiencyDecision
    counts: Counts
    judged: bool
    """A gate or grader answered for at least one item, or there was none to judge."""
    figures: Figures
    grading: bool
    usage: Usage
    """Of judging, grading and rewriting."""
    timings_ms: Mapping[str, int]

    @property
    def kept(self) -> tuple[Assessed, ...]:
        """Items that passed every cutoff, best first."""
        return self.ranked.kept

    @property
    def dropped(self) -> tuple[Assessed, ...]:
        """What the gate, the cutoff, a floor or a twin removed."""
        return (*self.ranked.dropped, *self.crawl.dropped)

    @property
    def shown(self) -> tuple[Assessed, ...]:
        """What the writer may see: the best `max_evidence`, or `rerank_top_k`."""
        return self.ranked.exhibits


async def collect(run: Run, scope: Scope, steps: Steps) -> Evidence:
    """Answer one question with evidence; never raises for a source, judge or grader that fails."""
    began = time.monotonic()
    question, depth = scope.question, scope.depth
    crawled, rewriting = await _first_crawl(run, scope, steps.rewriter)
    evidence = await _weigh(run, scope, steps.assessor, crawled, rewriting)
    thin = evidence.decided.decision is Decision.INSUFFICIENT and crawled.answered > 0
    if thin and not crawled.by_name and depth.retry_variants > len(crawled.queries):
        gaps = [entry.item.title for entry in evidence.kept]
        gaps += [
            f"{entry.item.title}: {entry.grade.explanation}" if entry.grade else entry.item.title
            for entry in evidence.dropped
            if entry.dropped_by not in BEFORE_JUDGING
        ]
        rewrites = await _rewritten(run, steps.rewriter, question, depth.retry_variants, gaps[:GAPS])
        fresh = new_queries(rewrites.queries, [question.text, *crawled.queries])
        if fresh:
            more = await _search(run, scope, fresh, earlier=crawled.sources)
            crawled = replace(more, queries=(*crawled.queries, *fresh))
        spent = evidence.ranked.usage + rewriting + rewrites.usage
        evidence = await _weigh(run, scope, steps.assessor, crawled, spent)
    took = int((time.monotonic() - began) * 1000)
    return replace(evidence, timings_ms={"evidence": took})


async def _first_crawl(run: Run, scope: Scope, rewriter: Rewriter) -> tuple[Crawl, Usage]:
    """What the question names at once; rewritten queries beside it as soon as they are known."""
    original, variants = search_words(scope.question.text), scope.depth.query_variants
    if variants == 1 or set(scope.sources) <= run.by_name:
        return await _search(run, scope, [original]), Usage()
    async with asyncio.TaskGroup() as group:
        rewriting = group.create_task(_rewritten(run, rewriter, scope.question, variants))

        async def fresh() -> list[str]:
            return new_queries((await rewriting).queries, [scope.question.text, original])

        more = group.create_task(fresh())
        crawling = group.create_task(_search(run, scope, [original], more))
    return crawling.result(), rewriting.result().usage


async def _rewritten(
    run: Run, rewriter: Rewriter, question: Question, variants: int, gaps: Sequence[str] = ()
) -> Rewrites:
    """Queries to ask; the original alone when the rewriter stumbles."""

    async def rewriting() -> Rewrites:
        rewrites = await contained(rewriter.rewrite(question, variants, gaps), "the rewriter")
        return Rewrites((question.text,)) if isinstance(rewrites, Failure) else rewrites

    return await run.run_step(f"rewrite to {variants}", Rewrites, rewriting)


async def _search(
    run: Run,
    scope: Scope,
    queries: Sequence[str],
    more: Awaitable[Sequence[str]] | None = None,
    earlier: Sequence[Gathered] = (),
) -> Crawl:
    """Every source of the scope asked every query."""
    return await crawl(
        lambda source, query: run.search(scope.question, source, query, scope.limit),
        scope.sources,
        queries,
        more,
        earlier=earlier,
        by_name=run.by_name,
        listener=run.listener,
    )


async def _weigh(run: Run, scope: Scope, assessor: Assessor, crawled: Crawl, spent: Usage) -> Evidence:
    """What was crawled, assessed, counted and decided; `spent` is what was used before."""
    ranked = await assessor.assess(run, scope, crawled.kept)
    grading = run.grader is not None
    unfit = sum(entry.dropped_by in BEFORE_JUDGING for entry in crawled.dropped)
    twins = sum(entry.dropped_by == "duplicate" for entry in ranked.dropped)
    graded = len(ranked.kept) + len(ranked.dropped)
    opened = {gathered.source for gathered in crawled.sources if gathered.unjudged}
    if grading:
        run.listener(ItemsGraded(scored=graded, survived=len(ranked.kept)))
    counts = Counts(
        total_scored=(graded if grading else len(crawled.kept) + len(crawled.dropped) - unfit) - twins,
        total_survived=len(ranked.kept),
        defaulted=ranked.defaulted,
        depth_name=scope.depth_name,
        depth=scope.depth,
        grading_on=grading,
        gate_degraded=tuple(
            (gathered.title or gathered.source, gathered.gate_reason or "")
            for gathered in crawled.sources
            if gathered.status == "degraded"
        ),
        unjudged=sum(
            entry.item.source in opened and entry.dropped_by != "duplicate" for entry in (*ranked.kept, *ranked.dropped)
        ),
        anything_judged=True,
        answered=crawled.answered,
        wanted=sum(
            not crawled.answered or gathered.outcome is not Outcome.NOT_CONFIGURED for gathered in crawled.sources
        ),
        dropped=stages((*ranked.dropped, *crawled.dropped)),
    )
    counted = await asyncio.to_thread(figures, crawled.sources, ranked.kept, now=datetime.now(UTC))
    answered = any(gathered.status == "ok" or gathered.model for gathered in crawled.sources)
    judged = answered or (grading and ranked.defaulted < graded) or not crawled.kept
    return Evidence(
        scope, crawled, ranked, decide(counts), counts, judged,
        counted, grading, crawled.usage + spent + ranked.usage, {},
    )  # fmt: skip


def stages(dropped: Sequence[Assessed]) -> Counter[str]:
    """How many items each stage dropped."""
    return Counter(entry.dropped_by for entry in dropped if entry.dropped_by)
