"""What every door calls: `analyze` a question, or `fetch` from one source through the gate."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from api.errors import ModelError, UsageError
from api.services.citing import Drafted
from api.services.dossier import describe, gate_line
from api.services.explaining import Explainer, Explanation, Shortfall, plain_explanation
from api.services.extractive import extract, quotes
from api.services.fencing import Fence
from api.services.gate import Gate, RunGate
from api.services.pipeline import Evidence, Scope, Steps, collect
from api.services.ports import Event, Facts, Grader, Listener, Observer, silent
from api.services.query import screen
from api.services.ranking import rank
from api.services.report import Report, clarify_json, fetch_json, report_json
from api.services.run import Bounds, Run, Sources
from api.services.schemas import Assessed, Decision, Gathered, Question, Usage
from api.services.sufficiency import Decided, decide
from api.settings import AdaptiveSettings, Depth, DepthName, Window

MAX_LIMIT = 500
"""Items per source a person may ask for."""


class Writer(Protocol):
    """Writes a report over a run's exhibits."""

    async def write(self, run: Run, evidence: Evidence) -> Written:
        """A checked draft.

        Raises:
            ModelError: the model could not be reached or gave no usable draft.
        """
        ...


class Written(Protocol):
    """A checked draft and what it cost."""

    @property
    def draft(self) -> Drafted:
        """What stands."""
        ...

    @property
    def usage(self) -> Usage:
        """Tokens and USD."""
        ...


@dataclass(frozen=True, slots=True)
class Ask:
    """One question as a door hands it in."""

    query: str
    depth: DepthName = "standard"
    sources: tuple[str, ...] = ()
    """Empty: all there are."""
    window: Window = "all"
    limit: int | None = None
    """Items per source at first; None: the depth's."""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Kit:
    """Everything a run is built from; one per process and event loop."""

    sources: Sources
    gate: Gate
    grader: Grader | None
    steps: Steps
    writer: Writer
    explainer: Explainer
    observer: Observer
    depths: Mapping[DepthName, Depth]
    adaptive: AdaptiveSettings
    crawl_seconds: float
    sample: bool = False
    """Everything comes from the sandbox."""

    def start(self, window: Window = "all", listener: Listener = silent) -> Run:
        """A run with an empty memory."""
        bounds = Bounds(self.adaptive, self.crawl_seconds, window)
        return Run(self.sources, RunGate(self.gate), self.grader, bounds, self.observer, listener)

    def scope(self, ask: Ask) -> Scope:
        """What the question covers.

        Raises:
            UsageError: an unknown source or a limit out of range.
        """
        for name in ask.sources:
            if name not in self.sources:
                known = ", ".join(f"`{source}`" for source in self.sources)
                raise UsageError(f"there is no source `{name[:40]}`; there are {known}")
        if ask.limit is not None and not 1 <= ask.limit <= MAX_LIMIT:
            raise UsageError(f"`limit` must lie between 1 and {MAX_LIMIT}, not {ask.limit}")
        depth = self.depths[ask.depth]
        names = tuple(dict.fromkeys(ask.sources)) or tuple(self.sources)
        question = Question(screen(ask.query).query or ask.query, ask.about)
        return Scope(question, ask.depth, depth, names, ask.limit or depth.limit)


@dataclass(frozen=True, slots=True)
class Heard:
    """One source's answer: for a model `text`, for a program `data`."""

    gathered: Gathered
    text: str
    data: dict[str, Any] = field(repr=False)


async def analyze(kit: Kit, ask: Ask, listener: Listener = silent) -> dict[str, Any]:
    """The `analyze` object for one question; every upstream failure is part of the answer.

    Raises:
        UsageError: an unknown source or a limit out of range.
    """
    began, report_id = time.monotonic(), uuid.uuid4().hex
    screened, scope = screen(ask.query), kit.scope(ask)
    with kit.observer.analysis("analyze", scope.question) as span:
        trace_id = kit.observer.trace_id
        if not screened.ok:
            span.record(Facts(str(Decision.CLARIFY), 0, 0, 0.0, screened.guidance))
            return clarify_json(
                report_id, ask.query, ask.about, ask.depth, screened.guidance, kit.sample, trace_id
            )
        run = kit.start(ask.window, listener)
        evidence = await collect(run, scope, kit.steps)
        told = await _tell(kit, run, evidence)
        took = int((time.monotonic() - began) * 1000)
        timings = {**evidence.timings_ms, "total": took, "report": took - _spent(evidence)}
        report = replace(
            told, id=report_id, trace_id=trace_id, sample=kit.sample, timings_ms=timings
        )
        answer = report_json(report)
        calls = evidence.crawl.upstream_calls
        span.record(
            Facts(str(report.decision), len(evidence.kept), calls, report.usage.usd, answer)
        )
    listener(Event("report", None, {"decision": str(report.decision), "id": report_id}))
    return answer


def _spent(evidence: Evidence) -> int:
    return evidence.timings_ms.get("evidence", 0)


async def _tell(kit: Kit, run: Run, evidence: Evidence) -> Report:
    """Words for the evidence: written, extracted, or an explanation why there are none."""
    if evidence.decided.decision is Decision.INSUFFICIENT:
        return await _explain(kit, evidence)
    run.listener(Event("writing", None, {"exhibits": len(evidence.shown)}))
    exhibits = run.dossier.show(evidence.shown)
    try:
        written = await kit.writer.write(run, evidence)
    except ModelError as error:
        if not evidence.judged:
            return _unjudged(evidence, error)
        note = f"the report model could not be used ({error.reason}): extracted from the items"
        draft = extract(evidence.scope.question, exhibits)
        return _report(evidence, evidence.decided, draft, evidence.usage, (note,))
    draft = written.draft
    if not draft.quotes:
        draft = replace(draft, quotes=quotes(exhibits))
    notes = tuple(f"report: {note}" for note in draft.flaws.notes)
    return _report(evidence, evidence.decided, draft, evidence.usage + written.usage, notes)


async def _explain(kit: Kit, evidence: Evidence) -> Report:
    crawled = evidence.crawl
    shortfall = Shortfall(
        evidence.scope.question,
        crawled.queries,
        tuple(gate_line(gathered) for gathered in crawled.sources),
        tuple((one.item.title, _why(one)) for one in evidence.dropped),
    )
    notes: tuple[str, ...] = ()
    if crawled.asked:
        try:
            explanation = await kit.explainer.explain(shortfall)
        except ModelError as error:
            explanation = plain_explanation(shortfall)
            notes = (f"the explanation is made without a model ({error.reason})",)
    else:
        explanation = plain_explanation(shortfall)
    return _report(
        evidence, evidence.decided, None, evidence.usage + explanation.usage, notes, explanation
    )


def _why(one: Assessed) -> str:
    return one.grade.explanation if one.grade else ""


def _unjudged(evidence: Evidence, error: ModelError) -> Report:
    decided = decide(replace(evidence.counts, anything_judged=False))
    text = (
        f"No model answered ({error.reason}), neither to judge relevance nor to write. "
        "The items are listed as they were found; nothing is claimed about them."
    )
    return _report(evidence, decided, None, evidence.usage, (), Explanation(text, ()))


def _report(
    evidence: Evidence,
    decided: Decided,
    draft: Drafted | None,
    usage: Usage,
    notes: tuple[str, ...],
    explanation: Explanation | None = None,
) -> Report:
    suggestions = explanation.suggestions if explanation else draft.suggestions if draft else ()
    return Report(
        id="",
        evidence=evidence,
        decision=decided.decision,
        rationale=decided.rationale,
        disclaimer=decided.disclaimer,
        explanation=explanation.text if explanation else None,
        drafted=draft,
        suggestions=suggestions,
        notes=(*decided.notes, *evidence.ranked.notes, *notes),
        usage=usage,
        timings_ms={},
        sample=False,
        trace_id=None,
    )


async def fetch(
    kit: Kit, source: str, ask: Ask, *, listener: Listener = silent, run: Run | None = None
) -> Heard:
    """Ask one source through the gate; at standard and deep also grade and rank what is kept.

    Raises:
        UsageError: an unknown source, a limit out of range, or a query that names nothing.
    """
    scope = kit.scope(replace(ask, sources=(source,)))
    screened = screen(ask.query)
    if not screened.ok:
        raise UsageError(screened.guidance)
    run = run or kit.start(ask.window, listener)
    with kit.observer.analysis("fetch", scope.question) as span:
        gathered = await run.gather(scope.question, source, scope.question.text, scope.limit)
        kept, dropped = await _assess(kit, run, scope, gathered)
        data = fetch_json(
            gathered, kept, dropped, sample=kit.sample, trace_id=kit.observer.trace_id
        )
        calls, usd = gathered.upstream_calls, (gathered.usage + run.usage).usd
        span.record(Facts(str(gathered.outcome), len(kept), calls, usd, None))
    return Heard(gathered, _text(kit, run, gathered, kept), data)


async def _assess(
    kit: Kit, run: Run, scope: Scope, gathered: Gathered
) -> tuple[tuple[Assessed, ...], tuple[Assessed, ...]]:
    quick = scope.depth_name == "quick"
    found = gathered.kept if quick else await run.grade(scope.question, gathered.kept)
    ranked = rank(
        found, depth=scope.depth, ranking=kit.steps.ranking, retrieval=kit.steps.retrieval,
        now=datetime.now(UTC), source_weights=kit.steps.source_weights,
    )  # fmt: skip
    return ranked.kept, (*ranked.dropped, *gathered.dropped)


def _text(kit: Kit, run: Run, gathered: Gathered, kept: Sequence[Assessed]) -> str:
    fence = Fence()
    lines = [gate_line(gathered) + "."]
    if kit.sample:
        lines.append("This is made-up sample data from the offline sandbox.")
    lines += [f"Note: {note}." for note in gathered.notes]
    if kept:
        lines += [fence.rule, describe(run.dossier.show(kept), fence)]
    return "\n".join(lines)
