"""Composes the `Report` of a question and the `Fetched` of a source; credits authors where a licence asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Protocol

import regex

from api.choices import DepthName
from api.core.domain import Decision, Grade, Question, Usage, Verdict
from api.core.items import Assessed, Gathered
from api.core.ports import NamedSenses
from api.core.text import clean, cut, one_line, quantity
from api.pipeline.evidence.collection import Evidence
from api.pipeline.evidence.figures import Figures
from api.pipeline.evidence.sufficiency import SufficiencyDecision
from api.pipeline.gate.name_matches import namesake
from api.pipeline.gate.refetch import NO_TIME, UNJUDGED_REFETCH
from api.pipeline.gate.verdicts import alike_in_each, fixed_pattern
from api.pipeline.question.product_name import new_queries, question_parts
from api.reports.draft_rules import DraftText
from api.reports.exhibits import gate_lines
from api.reports.insufficient_data import Explanation
from api.reports.keyless.polarity import lean_wanted
from api.reports.keyless.theme_sentences import tone_sentence
from api.reports.report import (
    VERSION,
    Cost,
    DroppedItem,
    Fetched,
    FirstSearch,
    GateState,
    KeptItem,
    Report,
    SourceReport,
    SupportCheck,
    Timings,
)

SNIPPET = 200
"""Characters of a dropped item's text that an answer keeps."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Result of one question before it is rendered."""

    evidence: Evidence
    decided: SufficiencyDecision
    drafted: DraftText | None = None
    notes: tuple[str, ...] = ()
    """Notes made while writing, after those of the decision."""
    explanation: Explanation | None = None
    """Why there is no report; None when there is one."""
    support: SupportCheck = field(default_factory=SupportCheck)


@dataclass(frozen=True, slots=True)
class Origin:
    """Identity and provenance of one answer."""

    id: str
    """Id of a report; empty for the answer of one source."""
    sample: bool
    """Everything comes from the sandbox."""
    trace_id: str | None
    observations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Keys of judged items by span id, as in `Observer.observations`."""


NO_SENSES = NamedSenses(())
"""No groups: the default of `report_of`, which says nothing about whether the name is ambiguous."""


def report_of(conclusion: Conclusion, origin: Origin, timings: Timings, named: NamedSenses = NO_SENSES) -> Report:
    """The report of a question that was asked; `named` are the groups that share its name."""
    evidence, drafted, explained = conclusion.evidence, conclusion.drafted, conclusion.explanation
    question, decided, usage = evidence.scope.question, conclusion.decided, evidence.usage + named.usage
    worded = explained or drafted
    parts = question_parts(question.text).products
    listed = " and about ".join(f"“{name}”" for name in parts)
    offered = (f"the question names several things: ask about {listed}, one at a time",)
    several = len(parts) > 1
    return Report(
        id=origin.id,
        version=VERSION,
        query=question.text,
        **_options_of(question),
        rewritten_queries=evidence.crawl.queries,
        depth=evidence.scope.depth_name,
        decision=decided.decision,
        decision_rationale=decided.rationale,
        disclaimer=decided.disclaimer,
        did_you_mean=explained.meant if explained else "",
        explanation_text=explained.text if explained else None,
        total_scored=evidence.counts.total_scored,
        total_survived=evidence.counts.total_survived,
        quality_notes=(
            *decided.notes,
            *_shortened(evidence.crawl.sources),
            *(_namesakes(question) if evidence.crawl.answered and not named.senses else ()),
            *_disagreement(evidence.crawl.sources),
            *conclusion.notes,
            *(offered if several else ()),
        ),
        grading="on" if evidence.grading else "off",
        senses=named.senses,
        topic=drafted.topic if drafted else question.text,
        summary=_summary(drafted, evidence) if drafted else "",
        findings=drafted.findings if drafted else (),
        support=conclusion.support,
        figures=evidence.figures,
        quotes=drafted.quotes if drafted else (),
        sources={each.source: source_report(each, origin) for each in evidence.crawl.sources},
        coverage=coverage(evidence.crawl.sources),
        suggestions=tuple(
            new_queries(
                (*(parts if several else ()), *(worded.suggestions if worded else ())),
                (question.text, *evidence.crawl.queries),
            )
        ),
        items=tuple(map(kept_item, evidence.kept)),
        dropped=tuple(map(dropped_item, evidence.dropped)),
        sample=origin.sample,
        cost=Cost(
            usd=_usd(usage, origin),
            tokens=usage.input_tokens + usage.output_tokens,
            upstream_calls=evidence.crawl.upstream_calls,
        ),
        timings_ms=timings,
        trace_id=origin.trace_id,
        observations=origin.observations,
        created_at=datetime.now(UTC),
    )


def _summary(drafted: DraftText, evidence: Evidence) -> str:
    """The writer's summary, and where the question asks for one side a sentence on how whole posts sound."""
    lean, felt = lean_wanted(evidence.scope.question.text), evidence.figures.sentiment
    if lean is None or felt is None:
        return drafted.summary
    sounding = felt.positive if lean > 0 else felt.negative
    return " ".join(filter(None, (drafted.summary, tone_sentence(felt.n, sounding, lean))))


def _options_of(question: Question) -> dict[str, Any]:
    """The options of a question that a report has under the same name."""
    return {name: value for name, value in asdict(question).items() if name in Report.model_fields}


def clarified(
    query: str,
    question: Question,
    depth: DepthName,
    guidance: str,
    origin: Origin,
    compared: tuple[str, ...] = (),
) -> Report:
    """The report of a query that names nothing, or compares: guidance, nothing asked or spent."""
    why = "The text names nothing to look for" if not compared else "The question compares products"
    return Report(
        id=origin.id,
        version=VERSION,
        query=clean(query),
        **_options_of(question),
        rewritten_queries=(),
        depth=depth,
        decision=Decision.CLARIFY,
        decision_rationale=f"{why}, so nothing was asked.",
        compared=compared,
        disclaimer=None,
        explanation_text=guidance,
        total_scored=0,
        total_survived=0,
        quality_notes=(),
        grading="off",
        topic="",
        summary="",
        findings=(),
        figures=Figures(),
        quotes=(),
        sources={},
        coverage=coverage(()),
        suggestions=(),
        items=(),
        dropped=(),
        sample=origin.sample,
        cost=Cost(usd=0.0, tokens=0, upstream_calls=0),
        timings_ms=Timings(),
        trace_id=origin.trace_id,
        created_at=datetime.now(UTC),
    )


def fetched(
    gathered: Gathered,
    kept: tuple[Assessed, ...],
    dropped: tuple[Assessed, ...],
    origin: Origin,
    usage: Usage = Usage(),
) -> Fetched:
    """One source's answer; `kept` and `dropped` are the items after grading and ranking."""
    report = source_report(gathered, origin)
    return Fetched(
        **dict(report) | {"dropped": tuple(map(dropped_item, dropped))},
        items=tuple(map(kept_item, kept)),
        usage=replace(usage, usd=_usd(usage, origin)),
    )


def _usd(usage: Usage, origin: Origin) -> float | None:
    """Actual cost in USD; the sandbox's models cost nothing."""
    return 0.0 if origin.sample else usage.usd and round(usage.usd, 6)


def _namesakes(question: Question) -> Iterator[str]:
    """A note that a name is also an everyday word, where the question does not say what it is."""
    if name := namesake(question.text, question.about):
        remedy = 'say what it is: `--about "KIND OF PRODUCT"`'
        yield f"`{name}` is also an everyday word: {remedy}"


def _shortened(sources: Iterable[Gathered]) -> Iterator[str]:
    """Notes on what a source was not asked for lack of time, or on items not used for lack of verdicts."""
    for gathered in sources:
        for note in gathered.notes:
            if NO_TIME in note or note.startswith(UNJUDGED_REFETCH):
                yield f"{gathered.title or gathered.source}: {note}"


def source_report(gathered: Gathered, origin: Origin) -> SourceReport:
    """How asking one source ended; its `dropped` are the items that the gate dropped."""
    return SourceReport(
        query=gathered.query,
        source=gathered.source,
        outcome=gathered.outcome,
        reason=gathered.reason,
        retry_at=gathered.retry_at,
        gate=GateState(status=gathered.status, reason=gathered.gate_reason, model=gathered.model),
        attempts=gathered.attempts,
        fetched=gathered.fetched,
        kept=len(gathered.kept),
        yield_ratio=gathered.yield_ratio,
        refetched=gathered.refetched,
        refetch_gain=gathered.refetch_gain,
        disputed=_disputed(gathered),
        agreement=gathered.agreement,
        first=_first(gathered),
        capped=gathered.capped,
        upstream_calls=gathered.upstream_calls,
        notes=gathered.notes,
        dropped=tuple(dropped_item(entry).model_copy(update={"snippet": ""}) for entry in gathered.dropped),
        sample=origin.sample,
        trace_id=origin.trace_id,
    )


def _disputed(gathered: Gathered) -> int:
    return sum(entry.verdict.disputed for entry in (*gathered.kept, *gathered.dropped))


# Shares of the judged items from which a report says that a second judge disagrees, and from which
# that its judge may not read them; the latter takes so many items of a source.
_SOME_DISPUTED, _MANY_DISPUTED, _LEAST_DISPUTED = 0.03, 0.3, 3
_TEST = "`listenpost doctor` tests that"


def _disagreement(sources: Sequence[Gathered]) -> Iterator[str]:
    """Notes on what the local judge decided in place of the model, and how far it contradicts the model's verdicts."""
    yield from _decided_here(sources)
    yield from _fixed(sources)
    pages = [
        (each, _disputed(each), sum(bool(entry.verdict.judge) for entry in (*each.kept, *each.dropped)))
        for each in sources
    ]
    disputed, judged = sum(count for _, count, _ in pages), sum(total for *_, total in pages)
    if not disputed or disputed < _SOME_DISPUTED * judged:
        return
    yield f"the local judge is sure of the opposite of {disputed} of {judged} verdicts"
    for gathered, count, total in pages:
        if count >= max(_LEAST_DISPUTED, _MANY_DISPUTED * total):
            where = f"{gathered.title or gathered.source}, {count} of {total}"
            yield f"the model may not read what it judges ({where}): {_TEST}"


def _decided_here(sources: Iterable[Gathered]) -> Iterator[str]:
    """What the local judge decided in place of the model, and why it may."""
    for gathered in sources:
        agreement = gathered.agreement
        if agreement is None or not agreement.local:
            continue
        where, saved = gathered.title or gathered.source, agreement.saved
        calls = f"{quantity(saved.requests, 'call')}, " if saved.requests else ""
        usd = f", {saved.usd:.5f} USD" if saved.usd else ""
        yield (
            f"{where}: the local judge decided {agreement.local} of {agreement.judged} posts in place of the model; at "
            f"least {agreement.target * 100:g} % of the verdicts there are the model's or the same, with "
            f"{agreement.confidence * 100:g} % confidence, by {quantity(agreement.sample, 'post')} that both judged; "
            f"saved about {calls}{quantity(saved.input_tokens + saved.output_tokens, 'token')}{usd}"
        )


def _fixed(sources: Iterable[Gathered]) -> Iterator[str]:
    """A note that the model answers by position, or all alike where the local judge does not."""
    verdicts = [entry.verdict for gathered in sources for entry in (*gathered.kept, *gathered.dropped)]
    placed = sorted((v.place, v.relevant, v.second) for v in verdicts if v.place is not None and v.second is not None)
    judged = [(relevant, second) for _, relevant, second in placed]
    rows = [list(call) for _, call in groupby(placed, lambda row: row[0][0])]
    calls = [([relevant for _, relevant, _ in row], [second for *_, second in row]) for row in rows]
    pattern = fixed_pattern(calls)
    kept, opposed = sum(relevant for relevant, _ in judged), sum(relevant is not second for relevant, second in judged)
    if len(set(pattern)) > 1:
        answers = f"it answers {pattern} (T: relevant) whatever stands there"
        yield f"the model does not read what it judges, {answers}: {_TEST}"
    elif (pattern or alike_in_each(calls)) and opposed >= _MANY_DISPUTED * len(judged):
        how = f"it kept {kept} of {len(judged)}" if pattern else "of a page it keeps all or nothing"
        other = f"the local judge says the opposite of {opposed}{'' if pattern else f' of {len(judged)}'}"
        yield f"the model may not read what it judges ({how}, and {other}): {_TEST}"


def _first(gathered: Gathered) -> FirstSearch:
    """Counts of a source's first searches, without what only a wider one brought."""
    kept = sum(not entry.wider for entry in gathered.kept)
    return FirstSearch(fetched=kept + sum(not entry.wider for entry in gathered.dropped), kept=kept)


def kept_item(entry: Assessed) -> KeptItem:
    """A kept item with everything decided about it."""
    return KeptItem(**dict(entry.item.published), **_assessment(entry))


def assessed_of(kept: KeptItem) -> Assessed:
    """The item as it was judged."""
    verdict = Verdict(bool(kept.verdict), kept.judge or "", kept.probability, kept.disputed)
    grade = None
    if kept.score is not None:
        grade = Grade(kept.score, kept.explanation, kept.defaulted, kept.sentiment, kept.aspects)
    return Assessed(kept, verdict, grade, kept.relevance, kept.low_relevance, kept.rank)


def dropped_item(entry: Assessed) -> DroppedItem:
    """A dropped item: what it was and why it went; below the cutoff in the grader's words too."""
    item = entry.item
    words = entry.grade.explanation if entry.grade and entry.dropped_by == "cutoff" else ""
    text = "" if entry.dropped_by == "unfit" else one_line(clean(item.body))
    return DroppedItem(
        key=item.key,
        title=item.title,
        url=item.url,
        reason=f"{entry.reason}: {words}" if words else entry.reason,
        thread=item.thread,
        created_at=item.created_at,
        place=item.place,
        snippet=text if len(text) <= SNIPPET else f"{cut(text, SNIPPET - 1).rstrip()}…",
        credit=item.credit,
        **_assessment(entry),
    )


def _assessment(entry: Assessed) -> dict[str, Any]:
    """Verdict, grade, rank and relevance of an item, as keyword arguments of a `KeptItem` or `DroppedItem`."""
    grade, verdict = entry.grade, entry.verdict
    return {
        "verdict": verdict.relevant if verdict.judge else None,
        "judge": verdict.judge or None,
        "probability": verdict.probability,
        "score": grade.score if grade else None,
        "explanation": grade.explanation if grade else "",
        "sentiment": grade.sentiment if grade else None,
        "aspects": grade.aspects if grade else (),
        "relevance": entry.relevance,
        "defaulted": bool(grade and grade.defaulted),
        "low_relevance": entry.low_relevance,
        "disputed": verdict.disputed,
        "rank": entry.rank,
        "dropped_by": entry.dropped_by,
    }


def coverage(sources: tuple[Gathered, ...]) -> str:
    """One sentence per source: whether it was asked, how many items were fetched and kept."""
    return " ".join(f"{line}." for line in gate_lines(sources)) or "No source was asked."


# `Ada (https://superuser.com/users/7/ada)`: a name, and the profile where there is one
_CREDIT = regex.compile(r"(?P<name>.*?)(?: \((?P<url>https?://\S+)\))?", regex.S)


class _Written(Protocol):
    """A comment, as it was read or as a report has it."""

    @property
    def body(self) -> str: ...
    @property
    def credit(self) -> str | None: ...


class _Item(_Written, Protocol):
    """An item with its comments, likewise."""

    @property
    def comments(self) -> Sequence[_Written]: ...


def credit_of(item: _Item, words: str = "") -> str | None:
    """Who must be named as author of these words: of the comment that holds them, else of the item.

    None where nobody has to be named.
    """
    line = one_line(words)
    if line and line not in one_line(item.body):
        for comment in item.comments:
            if line in one_line(comment.body):
                return comment.credit
    return item.credit


def parts_of(credit: str) -> tuple[str, str]:
    """Name and profile address of a credit; the address is empty when there is none."""
    match = _CREDIT.fullmatch(credit)
    return (match["name"], match["url"] or "") if match else (credit, "")
