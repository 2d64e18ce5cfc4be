"""Question in, evidence out: crawl, grade, rank, decide; a second pass when the first is thin."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from api.services.evidence.crawler import Crawl, crawl, merged
from api.services.evidence.figures import figures
from api.services.evidence.ranking import Ranked, rank
from api.services.evidence.reranking import by_words
from api.services.evidence.run import Run
from api.services.evidence.sufficiency import Counts, Decided, decide
from api.services.ports import Event, Rewriter
from api.services.question.query import canonical
from api.services.schemas import Assessed, Decision, Gathered, Question, Usage
from api.settings import Depth, DepthName, RankingSettings, RetrievalSettings

GAPS = 10
"""Kept titles and reasons of the dropped that a second rewriting sees."""


@dataclass(frozen=True, slots=True)
class Steps:
    """What the steps between crawl and report work with."""

    rewriter: Rewriter
    ranking: RankingSettings
    retrieval: RetrievalSettings
    source_weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """Where and how far to look for one question."""

    question: Question
    depth_name: DepthName
    depth: Depth
    sources: tuple[str, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything a report may rest on, decided and counted."""

    scope: Scope
    crawl: Crawl
    ranked: Ranked
    decided: Decided
    counts: Counts
    judged: bool
    """A gate or grader answered for at least one item, or there was none to judge."""
    figures: dict[str, Any]
    grading: bool
    usage: Usage
    timings_ms: Mapping[str, int]

    @property
    def kept(self) -> tuple[Assessed, ...]:
        """Survivors, best first."""
        return self.ranked.kept

    @property
    def dropped(self) -> tuple[Assessed, ...]:
        """What the gate, the cutoff, a floor or a twin removed."""
        return (*self.ranked.dropped, *self.crawl.dropped)

    @property
    def shown(self) -> tuple[Assessed, ...]:
        """What the writer may see: the best `max_evidence`, or `rerank_top_k`."""
        return self.kept[: self.ranked.top_k]


async def collect(run: Run, scope: Scope, steps: Steps) -> Evidence:
    """Answer one question with evidence; never raises for a source, judge or grader that fails."""
    began = time.monotonic()
    found = await _first_pass(run, scope, steps)
    evidence = _weigh(run, scope, steps, found)
    if _worth_retrying(evidence):
        found = await _second_pass(run, scope, steps, evidence, found)
        evidence = _weigh(run, scope, steps, found)
    took = int((time.monotonic() - began) * 1000)
    return replace(evidence, timings_ms={"evidence": took})


@dataclass(frozen=True, slots=True)
class _Found:
    """A crawl with its kept items graded, and what rewriting used."""

    crawl: Crawl
    graded: tuple[Assessed, ...]
    usage: Usage


async def _first_pass(run: Run, scope: Scope, steps: Steps) -> _Found:
    """The original query at once; rewritten ones beside it as soon as they are known."""
    original, variants = scope.question.text, scope.depth.query_variants
    if variants == 1:
        return await _graded(run, scope, await _search(run, scope, [original]), Usage())
    async with asyncio.TaskGroup() as group:
        first = group.create_task(_search(run, scope, [original]))
        rewrites = await steps.rewriter.rewrite(scope.question, variants)
        second = group.create_task(_search(run, scope, _new(rewrites.queries, [original])))
    return await _graded(run, scope, merged(first.result(), second.result()), rewrites.usage)


async def _second_pass(
    run: Run, scope: Scope, steps: Steps, evidence: Evidence, found: _Found
) -> _Found:
    gaps = [*(one.item.title for one in evidence.kept), *_reasons(evidence.dropped)][:GAPS]
    rewrites = await steps.rewriter.rewrite(scope.question, scope.depth.retry_variants, gaps)
    more = await _search(run, scope, _new(rewrites.queries, found.crawl.queries))
    return await _graded(run, scope, merged(found.crawl, more), found.usage + rewrites.usage)


def _new(queries: Sequence[str], asked: Sequence[str]) -> list[str]:
    """Queries that are more than another spelling of one that was asked, in order."""
    known, found = {canonical(query) for query in asked}, dict[str, str]()
    for query in queries:
        form = canonical(query)
        if form and form not in known:
            found.setdefault(form, query)
    return list(found.values())


async def _search(run: Run, scope: Scope, queries: Sequence[str]) -> Crawl:
    async def gather(source: str, query: str) -> Gathered:
        return await run.gather(scope.question, source, query, scope.limit)

    return await crawl(gather, scope.sources if queries else (), queries)


async def _graded(run: Run, scope: Scope, crawled: Crawl, usage: Usage) -> _Found:
    """All survivors of a pass in one go: full chunks, and what is graded already costs nothing."""
    graded = await run.grade(scope.question, crawled.kept, scope.depth.relevance_cutoff)
    return _Found(crawled, graded, usage)


def _weigh(run: Run, scope: Scope, steps: Steps, found: _Found) -> Evidence:
    now = datetime.now(UTC)
    grading = run.grader is not None
    ranked = rank(
        found.graded, depth=scope.depth, ranking=steps.ranking, retrieval=steps.retrieval,
        now=now, source_weights=steps.source_weights, rerank=by_words(scope.question.text),
    )  # fmt: skip
    counts = _counts(scope, found, ranked, grading)
    if grading:
        facts = {"scored": len(found.graded), "survived": len(ranked.kept)}
        run.listener(Event("graded", None, facts))
    return Evidence(
        scope, found.crawl, ranked, decide(counts), counts, _judged(found, counts),
        figures(found.crawl.sources, ranked.kept, now=now), grading,
        found.crawl.usage + found.usage + run.usage, {},
    )  # fmt: skip


def _counts(scope: Scope, found: _Found, ranked: Ranked, grading: bool) -> Counts:
    crawled = found.crawl
    defaulted = sum(one.grade is not None and one.grade.defaulted for one in found.graded)
    twins = sum(one.dropped_by == "duplicate" for one in ranked.dropped)
    stages: Counter[str] = Counter(
        one.dropped_by for one in (*ranked.dropped, *crawled.dropped) if one.dropped_by
    )
    return Counts(
        total_scored=len(found.graded) - twins if grading else _distinct(crawled) - twins,
        total_survived=len(ranked.kept),
        defaulted=defaulted,
        depth_name=scope.depth_name,
        depth=scope.depth,
        grading_on=grading,
        gate_degraded=tuple(
            (g.source, g.gate_reason or "") for g in crawled.sources if g.status == "degraded"
        ),
        anything_judged=True,
        asked=crawled.asked,
        wanted=len(crawled.sources),
        dropped=stages,
    )


def _judged(found: _Found, counts: Counts) -> bool:
    answered = any(one.status == "ok" or one.model for one in found.crawl.sources)
    graded = counts.grading_on and counts.defaulted < len(found.graded)
    return answered or graded or not found.crawl.kept


def _distinct(crawled: Crawl) -> int:
    return len(crawled.kept) + len(crawled.dropped)


def _worth_retrying(evidence: Evidence) -> bool:
    depth, crawled = evidence.scope.depth, evidence.crawl
    return (
        evidence.decided.decision is Decision.INSUFFICIENT
        and depth.retry_variants > len(crawled.queries)
        and crawled.asked > 0
    )


def _reasons(dropped: Sequence[Assessed]) -> list[str]:
    return [
        f"{one.item.title}: {one.grade.explanation}" if one.grade else one.item.title
        for one in dropped
    ]
