"""From evidence to words: what the writer wrote and the check left, themes, or why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from api.errors import ModelError
from api.services.bills import bill_of
from api.services.containment import translated
from api.services.evidence.crawler import combine
from api.services.evidence.figures import figures
from api.services.evidence.pipeline import Evidence, stages
from api.services.evidence.run import Run
from api.services.evidence.sufficiency import decide
from api.services.places import Places
from api.services.ports import SupportChecker
from api.services.progress import Writing
from api.services.reasons import reason_in_words
from api.services.reporting.citing import Drafted, quotes_of
from api.services.reporting.clearing import Flaws
from api.services.reporting.composing import Conclusion
from api.services.reporting.dossier import Dossier, Exhibit, gate_lines
from api.services.reporting.explaining import Explainer, Explanation, Shortfall, plain_explanation
from api.services.reporting.findings import Finding, Passage
from api.services.reporting.report import SupportCheck
from api.services.reporting.support import supported
from api.services.reporting.themes import find_themes
from api.services.reporting.writing import FollowUp, NotWritten, Writer, share_read
from api.services.schemas import Decision, Usage


async def conclude(
    run: Run,
    evidence: Evidence,
    writer: Writer,
    checker: SupportChecker | None,
    explainer: Explainer,
    places: Places,
) -> Conclusion:
    """Words for the evidence: written, themes, or an explanation why there are none."""
    if evidence.decided.decision is Decision.INSUFFICIENT:
        return await _explain(explainer, evidence)
    run.listener(Writing(exhibits=len(evidence.shown)))
    dossier = Dossier(places)
    exhibits = dossier.show(evidence.shown)
    share = share_read(evidence)
    try:
        writing = writer.write(run, evidence, dossier)
        written = await translated(writing, "the report writer", partial(ModelError, "defect"))
    except NotWritten as error:
        evidence = _with(evidence, error.follow_ups, error.usage)
        return _unwritten(evidence, exhibits, error, error.notes)
    except ModelError as error:
        return _unwritten(evidence, exhibits, error, ())
    evidence = _with(evidence, written.follow_ups, written.usage)
    question = evidence.scope.question
    checked = await supported(written.draft, dossier, question, checker)
    evidence = replace(evidence, usage=evidence.usage + checked.usage)
    draft = checked.draft
    flaws = (f"report: {note}" for note in draft.flaws.notes)
    notes = (*flaws, *written.notes, *checked.notes)
    if not draft.findings:
        note = "the report model gave no finding that stands: themes of the items instead"
        return _themes(evidence, (note, *notes), checked.check)
    if not draft.quotes:
        draft = replace(draft, quotes=quotes_of(draft.findings, exhibits))
    read = (f"the report is written from {share}",) if share else ()
    return Conclusion(evidence, evidence.decided, draft, (*read, *notes), support=checked.check)


def _with(evidence: Evidence, follow_ups: Sequence[FollowUp], writing: Usage) -> Evidence:
    """The evidence with what the writer looked up, and what it used.

    Ranks go on, figures and sources are counted anew; the decision stays as it was made.
    """
    evidence = replace(evidence, usage=evidence.usage + writing)
    if not follow_ups:
        return evidence
    later = {follow_up.gathered.source: follow_up.gathered for follow_up in follow_ups}
    sources = list(evidence.crawl.sources)
    for place, first in enumerate(sources):
        if (again := later.get(first.source)) is not None:
            both = combine((first, again))
            note = f"asked once more while the report was written, for “{again.query}”"
            sources[place] = replace(both, notes=(*both.notes, note))
    extra = [entry for follow_up in follow_ups for entry in follow_up.ranked.kept]
    kept = (
        *evidence.kept,
        *(replace(entry, rank=rank) for rank, entry in enumerate(extra, len(evidence.kept) + 1)),
    )
    dropped = (
        *evidence.ranked.dropped,
        *(entry for follow_up in follow_ups for entry in follow_up.ranked.dropped),
    )
    crawled = replace(evidence.crawl, sources=tuple(sources))
    counts = replace(evidence.counts, dropped=stages((*dropped, *crawled.dropped)))
    used = (follow_up.gathered.usage + follow_up.ranked.usage for follow_up in follow_ups)
    return replace(
        evidence,
        crawl=crawled,
        ranked=replace(evidence.ranked, kept=kept, dropped=dropped),
        decided=replace(evidence.decided, notes=decide(counts).notes),
        figures=figures(sources, kept, now=datetime.now(UTC)),
        usage=sum(used, evidence.usage),
    )


_NO_KEY = "`OPENAI_API_KEY` is not set"


def _unwritten(
    evidence: Evidence, exhibits: Sequence[Exhibit], error: ModelError, notes: tuple[str, ...]
) -> Conclusion:
    if not evidence.judged:
        return _unjudged(evidence, error)
    why = reason_in_words(error.reason) + (f": {error.detail}" if error.detail else "")
    trouble = f"the report model could not be used ({why})"
    if error.reason == "no_key":
        trouble = f"no model wrote this ({_NO_KEY})"
    note = f"{trouble}: themes of the items instead"
    return _themes(evidence, (note, *notes), SupportCheck())


def _themes(evidence: Evidence, notes: tuple[str, ...], support: SupportCheck) -> Conclusion:
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
    return Conclusion(evidence, evidence.decided, draft, notes, support=support)


async def _explain(explainer: Explainer, evidence: Evidence) -> Conclusion:
    crawl = evidence.crawl
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
        own={gathered.source for gathered in crawl.sources} == {"items"},
    )
    notes: tuple[str, ...] = ()
    if crawl.answered:
        try:
            explaining = explainer.explain(shortfall)
            defect = partial(ModelError, "defect")
            explanation = await translated(explaining, "the explainer", defect)
        except ModelError as error:
            evidence = replace(evidence, usage=evidence.usage + bill_of(error))
            if not evidence.judged:
                return _unjudged(evidence, error)
            explanation = plain_explanation(shortfall)
            why = _NO_KEY if error.reason == "no_key" else reason_in_words(error.reason)
            notes = (f"the explanation is made without a model ({why})",)
    else:
        explanation = plain_explanation(shortfall)
    spent = replace(evidence, usage=evidence.usage + explanation.usage)
    return Conclusion(spent, evidence.decided, None, notes, explanation)


def _unjudged(evidence: Evidence, error: ModelError) -> Conclusion:
    decided = decide(replace(evidence.counts, anything_judged=False))
    text = (
        f"No model answered ({reason_in_words(error.reason)}), neither to judge relevance nor to "
        "write. The items are listed as they were found; nothing is claimed about them."
    )
    return Conclusion(evidence, decided, explanation=Explanation(text, ()))
