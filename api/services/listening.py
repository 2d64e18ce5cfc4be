"""What every door calls: `analyze` a question, or `fetch` from one source through the gate."""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from api.errors import ModelError, UsageError
from api.services.containment import translated
from api.services.evidence.pipeline import Evidence, Steps, collect
from api.services.evidence.ranking import Ranked
from api.services.evidence.run import Bounds, Run, Sources
from api.services.evidence.sufficiency import decide
from api.services.gate.judging import Gate, RunGate
from api.services.ports import (
    Event,
    Facts,
    Grader,
    Listener,
    Observer,
    Places,
    Probing,
    SupportChecker,
    silent,
)
from api.services.question import Scope
from api.services.question.query import screen
from api.services.reporting.citing import Drafted, quotes_of
from api.services.reporting.clearing import Flaws
from api.services.reporting.composing import Conclusion, Origin, clarified, fetched, report_of
from api.services.reporting.dossier import Dossier, Exhibit, describe, gate_line
from api.services.reporting.explaining import Explainer, Explanation, Shortfall, plain_explanation
from api.services.reporting.findings import Finding, Passage
from api.services.reporting.follow_ups import joined
from api.services.reporting.report import Fetched, Report, Timings
from api.services.reporting.support import supported
from api.services.reporting.themes import find_themes
from api.services.reporting.writing import FollowUp, NotWritten
from api.services.reporting.writing import Writer as Writer
from api.services.reporting.writing import Written as Written
from api.services.schemas import Decision, Gathered, Question, Usage
from api.services.text import Fence, clean
from api.settings import AdaptiveSettings, Depth, DepthName, Window

MAX_LIMIT = 500
"""Items per source a person may ask for."""
MOST_RUNS = 64
"""Tool-using agents whose runs a product remembers."""


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
class Product:
    """What one event loop works with; whoever built it closes it in that loop."""

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
    checker: SupportChecker | None = None
    """Checks sentences against their passages; None: nobody does, findings stay unverified."""
    places: Places = field(default_factory=dict)
    """How people call the sources, and what is found there."""
    agent_model: Callable[[], Any] | None = None
    """Builds the model of an agent, its library loaded with the first; None without a key."""
    probes: Mapping[str, Probing] = field(default_factory=dict)
    """What can be asked beside the sources: `model` and `langfuse`."""
    requests: Callable[[], Iterable[str]] = tuple
    """What the sandbox was asked until now, a line each."""
    closing: AsyncExitStack = field(default_factory=AsyncExitStack, repr=False)
    """What `aclose` does, the last first."""
    _runs: OrderedDict[str, tuple[Run, Dossier]] = field(
        default_factory=OrderedDict, init=False, repr=False
    )

    async def aclose(self) -> None:
        """Close sockets and threads, hand over the last traces, stop the sandbox; once."""
        await self.closing.aclose()

    def start(self, window: Window = "all", listener: Listener = silent) -> Run:
        """A run with an empty memory."""
        bounds = Bounds(self.adaptive, self.crawl_seconds, window)
        return Run(
            self.sources, RunGate(self.gate), self.grader, bounds, self.observer, listener,
            self.places,
        )  # fmt: skip

    async def listen(self, source: str, ask: Ask, run_id: str | None, given: int = 0) -> Heard:
        """Ask one source; calls with the same run id share one memory and one numbering.

        Args:
            source: its name.
            ask: the question.
            run_id: of the agent; None: the call stands alone.
            given: the highest number that exhibits before this run have.
        """
        dossier = Dossier(self.places, given)
        if run_id is None:
            return await fetch(self, source, ask, dossier=dossier)
        run, dossier = self._runs.setdefault(run_id, (self.start(), dossier))
        self._runs.move_to_end(run_id)
        while len(self._runs) > MOST_RUNS:
            self._runs.popitem(last=False)
        return await fetch(self, source, ask, run=run, dossier=dossier)

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
        question = Question(screen(ask.query).query, clean(ask.about))
        return Scope(question, ask.depth, depth, names, ask.limit or depth.limit)


@dataclass(frozen=True, slots=True)
class Heard:
    """One source's answer: for a model `text`, for a program `fetched`."""

    gathered: Gathered
    usage: Usage
    """Of judging and grading."""
    text: str
    fetched: Fetched = field(repr=False)


async def analyze(
    product: Product, ask: Ask, listener: Listener = silent, report_id: str | None = None
) -> Report:
    """The report on one question; every upstream failure is part of it.

    Raises:
        UsageError: an unknown source or a limit out of range.
    """
    began, report_id = time.monotonic(), report_id or uuid.uuid4().hex
    screened, scope = screen(ask.query), product.scope(ask)
    with product.observer.analysis("analyze", scope.question) as span:
        origin = Origin(report_id, product.sample, product.observer.trace_id)
        if screened.ok:
            run = product.start(ask.window, listener)
            conclusion = await _conclude(product, run, await collect(run, scope, product.steps))
            total = int((time.monotonic() - began) * 1000)
            spent = conclusion.evidence.timings_ms.get("evidence", 0)
            timings = Timings(evidence=spent, report=total - spent, total=total)
            report = report_of(conclusion, origin, timings)
            usd = conclusion.evidence.usage.usd
        else:
            report = clarified(ask.query, ask.about, ask.depth, screened.guidance, origin)
            usd = 0.0
        calls = report.cost.upstream_calls
        rate = report.support.rate
        span.record(Facts(str(report.decision), len(report.items), calls, usd, report, rate))
    listener(Event("report", None, {"decision": str(report.decision), "id": report_id}))
    return report


async def _conclude(product: Product, run: Run, evidence: Evidence) -> Conclusion:
    """Words for the evidence: written, themes, or an explanation why there are none."""
    if evidence.decided.decision is Decision.INSUFFICIENT:
        return await _explain(product, evidence)
    run.listener(Event("writing", None, {"exhibits": len(evidence.shown)}))
    dossier = Dossier(product.places)
    exhibits = dossier.show(evidence.shown)
    try:
        writing = product.writer.write(run, evidence, dossier)
        written = await translated(writing, "the report writer", partial(ModelError, "defect"))
    except NotWritten as error:
        evidence = _with(evidence, error.follow_ups, error.usage)
        return _unwritten(evidence, exhibits, error, error.notes)
    except ModelError as error:
        return _unwritten(evidence, exhibits, error, ())
    evidence = _with(evidence, written.follow_ups, written.usage)
    question = evidence.scope.question
    checked = await supported(written.draft, dossier, question, product.checker)
    evidence = replace(evidence, usage=evidence.usage + checked.usage)
    draft = checked.draft
    notes = (*(f"report: {note}" for note in draft.flaws.notes), *written.notes, *checked.notes)
    if not draft.findings:
        note = "the report model gave no finding that stands: themes of the items instead"
        return _themes(evidence, (note, *notes))
    if not draft.quotes:
        draft = replace(draft, quotes=quotes_of(draft.findings, exhibits))
    return Conclusion(evidence, evidence.decided, draft, notes, support=checked.check)


def _with(evidence: Evidence, follow_ups: Sequence[FollowUp], writing: Usage) -> Evidence:
    """The evidence with what the writer looked up, and what it used."""
    whole = joined(evidence, follow_ups, now=datetime.now(UTC))
    return replace(whole, usage=whole.usage + writing)


def _unwritten(
    evidence: Evidence, exhibits: Sequence[Exhibit], error: ModelError, notes: tuple[str, ...]
) -> Conclusion:
    if not evidence.judged:
        return _unjudged(evidence, error)
    why = str(error).removeprefix("model: ")
    note = f"the report model could not be used ({why}): themes of the items instead"
    return _themes(evidence, (note, *notes))


def _themes(evidence: Evidence, notes: tuple[str, ...]) -> Conclusion:
    """A report without a writer's words: the themes of all that was kept."""
    exhibits = Dossier().show(evidence.kept)
    themed = find_themes(evidence.scope.question, exhibits)
    keys = {exhibit.label: exhibit.item.key for exhibit in exhibits}
    findings = tuple(
        Finding.resting(
            finding.text,
            finding.kind,
            [
                Passage(keys[passage.label], passage.text, passage.comment_id)
                for passage in finding.passages
            ],
            "counted",
        )
        for finding in themed.findings
    )
    quotes = quotes_of(findings, exhibits)
    draft = Drafted(themed.topic, themed.summary, findings, quotes, themed.suggestions, Flaws())
    return Conclusion(evidence, evidence.decided, draft, notes)


async def _explain(product: Product, evidence: Evidence) -> Conclusion:
    crawl = evidence.crawl
    shortfall = Shortfall(
        evidence.scope.question,
        crawl.queries,
        tuple(gate_line(gathered) for gathered in crawl.sources),
        tuple(
            (entry.item.title, entry.grade.explanation if entry.grade else "")
            for entry in evidence.dropped
            if entry.dropped_by != "duplicate"
        ),
        bool(crawl.asked),
        len(evidence.kept),
    )
    notes: tuple[str, ...] = ()
    if crawl.asked:
        try:
            explaining = product.explainer.explain(shortfall)
            defect = partial(ModelError, "defect")
            explanation = await translated(explaining, "the explainer", defect)
        except ModelError as error:
            if not evidence.judged:
                return _unjudged(evidence, error)
            explanation = plain_explanation(shortfall)
            notes = (f"the explanation is made without a model ({error.reason})",)
    else:
        explanation = plain_explanation(shortfall)
    spent = replace(evidence, usage=evidence.usage + explanation.usage)
    return Conclusion(spent, evidence.decided, None, notes, explanation)


def _unjudged(evidence: Evidence, error: ModelError) -> Conclusion:
    decided = decide(replace(evidence.counts, anything_judged=False))
    text = (
        f"No model answered ({error.reason}), neither to judge relevance nor to write. "
        "The items are listed as they were found; nothing is claimed about them."
    )
    return Conclusion(evidence, decided, explanation=Explanation(text, ()))


async def fetch(
    product: Product,
    source: str,
    ask: Ask,
    *,
    listener: Listener = silent,
    run: Run | None = None,
    dossier: Dossier | None = None,
) -> Heard:
    """Ask one source through the gate; at standard and deep also grade and rank what is kept.

    Calls that share a `run` ask and judge nothing twice; those that share a `dossier` number their
    exhibits on.

    Raises:
        UsageError: an unknown source, a limit out of range, or a query that names nothing.
    """
    scope = product.scope(replace(ask, sources=(source,)))
    screened = screen(ask.query)
    if not screened.ok:
        raise UsageError(screened.guidance)
    run = run or product.start(ask.window, listener)
    with product.observer.analysis("fetch", scope.question) as span:
        gathered = await run.search(scope.question, source, scope.question.text, scope.limit)
        ranked = await product.steps.assessor.assess(
            run, scope, gathered.kept, graded=scope.depth_name != "quick"
        )
        usage = gathered.usage + ranked.usage
        origin = Origin("", product.sample, product.observer.trace_id)
        answer = fetched(gathered, ranked.kept, (*ranked.dropped, *gathered.dropped), origin)
        calls = gathered.upstream_calls
        span.record(Facts(str(gathered.outcome), len(ranked.kept), calls, usage.usd, None))
    exhibits = (dossier or Dossier(product.places)).show(ranked.exhibits)
    fence = Fence()
    lines = [gate_line(gathered) + "."]
    if product.sample:
        lines.append("This is made-up sample data from the offline sandbox.")
    lines += [f"Note: {note}." for note in (*gathered.notes, *_omitted(gathered, ranked))]
    if exhibits:
        lines += [fence.rule, describe(exhibits, fence, scope.question.text)]
    return Heard(gathered, usage, "\n".join(lines), answer)


def _omitted(gathered: Gathered, ranked: Ranked) -> list[str]:
    """What a reader of the text alone would not know."""
    weak = len(gathered.kept) - len(ranked.kept)
    more = len(ranked.kept) - len(ranked.exhibits)
    notes = [f"{weak} of the kept are left out as weak or as copies"] if weak else []
    return notes + ([f"{more} more are kept but not shown"] if more else [])
