"""From the evidence to what is said about it: a written report, counted themes or an explanation.

Also the protocol of a report writer, and what stands in for every model where no key is set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Literal, NoReturn, Protocol

from api.core.display_names import SourceLabels, reason_in_words
from api.core.domain import Decision, Question, Usage
from api.core.items import Gathered
from api.core.model_batches import UnusableAnswer, usage_of_error
from api.core.ports import Rewrites, SupportChecker
from api.core.progress import Writing
from api.core.work import translated
from api.errors import ModelError
from api.pipeline.evidence.collection import Evidence, stages
from api.pipeline.evidence.crawl import Run, combine
from api.pipeline.evidence.figures import figures
from api.pipeline.evidence.ranking import Ranked
from api.pipeline.evidence.sufficiency import decide
from api.reports.composition import Conclusion
from api.reports.draft_rules import DraftFlaws, DraftText, quotes_of
from api.reports.exhibits import Dossier, gate_lines
from api.reports.insufficient_data import Explainer, Explanation, Shortfall, likely_name, plain_explanation
from api.reports.keyless.themes import find_themes
from api.reports.report import Finding, Passage, SupportCheck
from api.reports.support_check import supported

WRITER_REQUESTS = 8  # most model requests of one report
ReportForm = Literal["tool", "schema", "fenced"]
"""How a draft is asked for: as a tool call, by `response_format`, or as JSON in the model's text."""
_NO_KEY = "`OPENAI_API_KEY` is not set"


@dataclass(frozen=True, slots=True)
class FollowUp:
    """Another query to one source, sent while the report was written."""

    gathered: Gathered
    ranked: Ranked  # what the evidence did not have yet


@dataclass(frozen=True, slots=True)
class WrittenDraft:
    """A checked draft, its cost, and the follow-ups made for it."""

    draft: DraftText
    usage: Usage
    follow_ups: tuple[FollowUp, ...] = ()
    notes: tuple[str, ...] = ()


class WritingFailed(UnusableAnswer):
    """The writer gave no usable draft; its usage and follow-ups are still counted."""

    def __init__(
        self,
        reason: str,
        detail: str = "",
        usage: Usage = Usage(),
        follow_ups: tuple[FollowUp, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(reason, detail, usage)
        self.follow_ups, self.notes = follow_ups, notes


class Writer(Protocol):
    """Writes a report over a run's exhibits."""

    async def write(self, run: Run, evidence: Evidence, dossier: Dossier) -> WrittenDraft:
        """A checked draft; `dossier` gets the items of follow-ups. Raises `ModelError`."""


def shown_share(evidence: Evidence) -> str:
    """What part of the kept posts a writer is shown, such as `the 30 best of 33 kept posts`; empty when it is all."""
    shown, kept = len(evidence.shown), len(evidence.kept)
    return f"the {shown} best of {kept} kept posts" if shown < kept else ""


async def conclude(
    run: Run,
    evidence: Evidence,
    writer: Writer,
    checker: SupportChecker | None,
    explainer: Explainer,
    places: SourceLabels,
) -> Conclusion:
    """A written report; themes where no model wrote; an explanation where evidence is too thin."""
    if evidence.decided.decision is Decision.INSUFFICIENT:
        return await _explain(explainer, evidence)
    run.listener(Writing(exhibits=len(evidence.shown)))
    dossier = Dossier(places)
    dossier.show(evidence.shown)
    try:
        writing = writer.write(run, evidence, dossier)
        written = await translated(writing, "the report writer", partial(ModelError, "defect"))
    except ModelError as error:
        notes: tuple[str, ...] = ()
        if isinstance(error, WritingFailed):
            evidence, notes = _extended(evidence, error.follow_ups, error.usage), error.notes
        if not evidence.judged:
            return _unjudged(evidence, error)
        why = reason_in_words(error.reason) + (f": {error.detail}" if error.detail else "")
        trouble = f"the report model could not be used ({why})"
        if error.reason == "no_key":
            trouble = f"no model wrote this ({_NO_KEY})"
        note = f"{trouble}: themes of the items instead"
        return await _themes(evidence, (note, *notes), SupportCheck(), places)
    evidence = _extended(evidence, written.follow_ups, written.usage)
    checked = await supported(written.draft, dossier, evidence.scope.question, checker)
    evidence = replace(evidence, usage=evidence.usage + checked.usage)
    draft = checked.draft
    flaws = (f"report: {note}" for note in draft.flaws.notes)
    notes = (*flaws, *written.notes, *checked.notes)
    if not draft.findings:
        note = "the report model gave no finding that stands: themes of the items instead"
        return await _themes(evidence, (note, *notes), checked.check, places)
    if not draft.quotes:
        draft = replace(draft, quotes=quotes_of(draft.findings, dossier.exhibits))
    share = shown_share(evidence)
    read = (f"the report is written from {share}",) if share else ()
    return Conclusion(evidence, evidence.decided, draft, (*read, *notes), support=checked.check)


def _extended(evidence: Evidence, follow_ups: Sequence[FollowUp], writing: Usage) -> Evidence:
    """The evidence with the writer's follow-ups and usage; the decision stays as it was made."""
    evidence = replace(evidence, usage=evidence.usage + writing)
    if not follow_ups:
        return evidence
    later = {follow_up.gathered.source: follow_up.gathered for follow_up in follow_ups}
    sources = list(evidence.crawl.sources)
    for index, first in enumerate(sources):
        if (again := later.get(first.source)) is not None:
            both = combine((first, again))
            note = f"asked once more while the report was written, for “{again.query}”"
            sources[index] = replace(both, notes=(*both.notes, note))
    extra = [entry for follow_up in follow_ups for entry in follow_up.ranked.kept]
    next_rank = len(evidence.kept) + 1
    kept = (
        *evidence.kept,
        *(replace(entry, rank=rank) for rank, entry in enumerate(extra, next_rank)),
    )
    dropped = list(evidence.ranked.dropped)
    for follow_up in follow_ups:
        dropped += follow_up.ranked.dropped
    crawled = replace(evidence.crawl, sources=tuple(sources))
    counts = replace(evidence.counts, dropped=stages((*dropped, *crawled.dropped)))
    used = (follow_up.gathered.usage + follow_up.ranked.usage for follow_up in follow_ups)
    return replace(
        evidence,
        crawl=crawled,
        ranked=replace(evidence.ranked, kept=kept, dropped=tuple(dropped)),
        decided=replace(evidence.decided, notes=decide(counts).notes),
        figures=figures(sources, kept, now=datetime.now(UTC)),
        usage=sum(used, evidence.usage),
    )


async def _themes(
    evidence: Evidence, notes: tuple[str, ...], support: SupportCheck, places: SourceLabels
) -> Conclusion:
    """A report without a writer: what the kept items say, found in a thread, since it takes seconds of many."""
    exhibits = Dossier(places).show(evidence.kept)
    themed = await asyncio.to_thread(find_themes, evidence.scope.question, exhibits)
    items = {exhibit.item.key: exhibit.item for exhibit in exhibits}
    keys = {exhibit.label: exhibit.item.key for exhibit in exhibits}
    findings = []
    for finding in themed.findings:
        passages = [Passage(keys[p.label], p.text, p.comment_id) for p in finding.passages]
        findings.append(Finding.resting(finding.text, finding.kind, passages, "counted", items))
    quotes = quotes_of(findings, exhibits)
    draft = DraftText(themed.topic, themed.summary, tuple(findings), quotes, themed.suggestions, DraftFlaws())
    return Conclusion(evidence, evidence.decided, draft, notes, support=support)


async def _explain(explainer: Explainer, evidence: Evidence) -> Conclusion:
    crawl = evidence.crawl
    titles = [] if evidence.kept else [entry.item.title for entry in evidence.dropped]
    meant = await asyncio.to_thread(likely_name, evidence.scope.question.text, titles)
    shortfall = Shortfall(
        evidence.scope.question,
        crawl.queries,
        tuple(gate_lines(crawl.sources)),
        tuple(
            (entry.item.title, entry.grade.explanation if entry.grade else "")
            for entry in evidence.dropped
            if entry.dropped_by != "duplicate"
        ),
        bool(crawl.answered),
        len(evidence.kept),
        evidence.counts.unjudged > 0,
        meant,
        own={gathered.source for gathered in crawl.sources} == {"items"},
        by_name=crawl.by_name,
    )
    notes: tuple[str, ...] = ()
    explanation = plain_explanation(shortfall)
    if crawl.answered:
        try:
            explaining = explainer.explain(shortfall)
            defect = partial(ModelError, "defect")
            explanation = await translated(explaining, "the explainer", defect)
        except ModelError as error:
            evidence = replace(evidence, usage=evidence.usage + usage_of_error(error))
            if not evidence.judged:
                return _unjudged(evidence, error)
            why = _NO_KEY if error.reason == "no_key" else reason_in_words(error.reason)
            notes = (f"the explanation is made without a model ({why})",)
    evidence = replace(evidence, usage=evidence.usage + explanation.usage)
    if meant:
        text = f"Did you mean “{meant}”? Titles that came are spelled so.\n\n{explanation.text}"
        suggestions = tuple(dict.fromkeys((meant, *explanation.suggestions)))
        explanation = replace(explanation, text=text, suggestions=suggestions, meant=meant)
    return Conclusion(evidence, evidence.decided, None, notes, explanation)


def _unjudged(evidence: Evidence, error: ModelError) -> Conclusion:
    decided = decide(replace(evidence.counts, anything_judged=False))
    text = (
        f"No model answered ({reason_in_words(error.reason)}), neither to judge relevance nor to "
        "write. The items are listed as they were found; nothing is claimed about them."
    )
    return Conclusion(evidence, decided, explanation=Explanation(text, ()))


class NoModel:
    """Judge, rewriter, explainer and writer without a key: `ModelError("no_key")`, no rewrites."""

    name = "none"

    async def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise ModelError("no_key", "set `OPENAI_API_KEY`")

    judge = explain = write = _refuse

    async def rewrite(self, question: Question, variants: int, gaps: Sequence[str] = ()) -> Rewrites:
        """The question itself as its only query, since no model words others."""
        return Rewrites((question.text,))
