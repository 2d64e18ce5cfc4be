"""Deciding, once per question, what kind of answer the evidence allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from api.choices import DepthName
from api.core.display_names import reason_in_words
from api.core.domain import Decision
from api.settings import Depth

_CAUTION = "Consider this a starting point, not a comprehensive answer."


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What the decision rests on, after all passes, over their union."""

    total_scored: int
    """Items that were graded, or judged where grading is off."""
    total_survived: int
    """Items that are kept after ranking."""
    depth_name: DepthName
    depth: Depth
    answered: int
    """How many sources answered."""
    wanted: int
    """How many sources are configured; all that were named when none answered."""
    anything_judged: bool
    """Some gate, grader or report model answered."""
    grading_on: bool = True
    defaulted: int = 0
    """Grades that stand in for ones that could not be had."""
    gate_degraded: Sequence[tuple[str, str]] = ()
    """Source and reason wherever the gate did not work."""
    unjudged: int = 0
    """Of `total_scored`, those that passed because nobody judged whether they are about it."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Number of items that each stage dropped, as the notes say."""


@dataclass(frozen=True, slots=True)
class SufficiencyDecision:
    """The decision and the sentences that go with it."""

    decision: Decision
    rationale: str
    """One sentence with the counts."""
    disclaimer: str | None = None
    """First sentence of a short report; None for other decisions."""
    notes: tuple[str, ...] = ()
    """What a reader must know first, most important first."""


def decide(counts: Counts) -> SufficiencyDecision:
    """Full, short or no report; `unjudged` when no model answered; no source asked is no data."""
    notes, depth = tuple(_notes(counts)), counts.depth
    survived, scored = counts.total_survived, counts.total_scored
    if not counts.answered:
        several = f"None of the {counts.wanted} sources could be asked"
        few = {0: "No source was chosen", 1: "The only source could not be asked"}
        nobody = f"{few.get(counts.wanted, several)}, so nothing was searched"
        return SufficiencyDecision(Decision.INSUFFICIENT, nobody, notes=notes)
    if scored and not counts.anything_judged:
        rationale = f"No model answered, so none of the {scored} items could be judged; they are listed as found"
        return SufficiencyDecision(Decision.UNJUDGED, rationale, notes=notes)
    disclaimer, needed = None, ""
    if survived >= depth.min_sources_full_report:
        decision, verdict = Decision.FULL, "Enough was found for a full report"
    elif survived >= depth.min_sources_short_report:
        decision, verdict = Decision.SHORT, "Enough was found for a short report only"
        needed = f"; a full one needs {depth.min_sources_full_report}"
        # what the gate stopped was found too, though never graded
        stopped = counts.dropped.get("gate", 0) if counts.grading_on else 0
        many = f"Only {survived} of {scored + stopped} posts found were"
        if counts.unjudged:
            they = "it was" if counts.unjudged == 1 else "they were"
            many += f" kept, and of {counts.unjudged} nobody judged whether {they} about"
        else:
            many += " relevant to"
        disclaimer = f"{many} your question. {_CAUTION}"
    else:
        decision, verdict = Decision.INSUFFICIENT, "Too little was found for a report"
        needed = f"; a short one needs {depth.min_sources_short_report}"
    how, by_grade = " were judged to be about it", counts.grading_on and counts.defaulted < scored
    if by_grade:
        how = f" about it say enough, graded {depth.relevance_cutoff} of 5 or better"
    if counts.unjudged:
        which = "which" if counts.unjudged == scored else f"{counts.unjudged} of which"
        graded = f"say enough, graded {depth.relevance_cutoff} of 5 or better"
        how = f", {which} nobody judged, {graded if by_grade else 'were kept'}"
    many = f"{survived} of {scored} posts{how}" if scored else "nothing that is about it"
    rationale = f"{verdict}: {many}{needed}"
    if counts.grading_on and 2 * counts.defaulted > scored:
        rationale = f"{rationale}; {_defaults(counts)}"
    return SufficiencyDecision(decision, rationale, disclaimer, notes)


def _defaults(counts: Counts) -> str:
    missing = f"{counts.defaulted} of {counts.total_scored} grades are missing"
    return f"{missing}: the grader gave none, so a 3 stands in"


_STAGES = {
    "unfit": "deleted, without a text, or written by a bot",
    "excluded": "left out as asked",
    "gate": "judged not to be about it",
    "cutoff": "graded too low to answer the question",
    "floor": "too little about it",
    "duplicate": "copies of others",
}


def _notes(counts: Counts) -> list[str]:
    notes = [
        f"Relevance could not be judged for {source}: {reason_in_words(reason)}; `listenpost doctor` says why."
        for source, reason in counts.gate_degraded
    ]
    if counts.grading_on and counts.defaulted:
        notes.append(f"{_defaults(counts)}.")
    if 0 < counts.answered < counts.wanted:
        notes.append(f"{counts.answered} of {counts.wanted} sources could be asked.")
    stages = [f"{many} {_STAGES[stage]}" for stage, many in counts.dropped.items() if many]
    if stages:
        total = sum(counts.dropped.values())
        posts = "post was" if total == 1 else "posts were"
        why = ", ".join(stages) if len(stages) > 1 else stages[0].partition(" ")[2]
        notes.append(f"{total} {posts} dropped: {why}.")
    return notes
