"""Deciding, once per question, what kind of answer the evidence allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from api.services.schemas import Decision
from api.settings import Depth, DepthName


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What the decision rests on, after all passes, over their union."""

    total_scored: int
    """Items that were graded, or judged where grading is off."""
    total_survived: int
    """Items that are kept after ranking."""
    depth_name: DepthName
    depth: Depth
    asked: int
    """Sources that answered."""
    wanted: int
    """Sources that should have."""
    anything_judged: bool
    """Some gate, grader or report model answered."""
    grading_on: bool = True
    defaulted: int = 0
    """Grades that stand in for ones that could not be had."""
    gate_degraded: Sequence[tuple[str, str]] = ()
    """Source and reason wherever the gate did not work."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many items each stage dropped; told in the notes."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision and the sentences that go with it."""

    decision: Decision
    rationale: str
    """One sentence with the counts."""
    disclaimer: str | None = None
    """Opens a short report."""
    notes: tuple[str, ...] = ()
    """What a reader must know first, most important first."""


def decide(counts: Counts) -> Decided:
    """Full, short or no report; `unjudged` when no model answered; no source asked is no data."""
    notes = tuple(_notes(counts))
    if not counts.asked:
        return Decided(Decision.INSUFFICIENT, _nobody(counts), notes=notes)
    if counts.total_scored and not counts.anything_judged:
        rationale = (
            f"No model answered, so none of the {counts.total_scored} items could be judged; "
            "they are listed as found"
        )
        return Decided(Decision.UNJUDGED, rationale, notes=notes)
    decision = _kind(counts.total_survived, counts.depth)
    disclaimer = _disclaimer(counts) if decision is Decision.SHORT else None
    return Decided(decision, _rationale(decision, counts), disclaimer, notes)


def _kind(survived: int, depth: Depth) -> Decision:
    if survived >= depth.min_sources_full_report:
        return Decision.FULL
    if survived >= depth.min_sources_short_report:
        return Decision.SHORT
    return Decision.INSUFFICIENT


def _rationale(decision: Decision, counts: Counts) -> str:
    """In plain words what was decided, and why: the counts, and what the next kind would need."""
    depth = counts.depth
    verdicts = {
        Decision.FULL: ("Enough was found for a full report", ""),
        Decision.SHORT: (
            "Enough was found for a short report only",
            f"; a full one needs {depth.min_sources_full_report}",
        ),
        Decision.INSUFFICIENT: (
            "Too little was found for a report",
            f"; a short one needs {depth.min_sources_short_report}",
        ),
    }
    verdict, needed = verdicts[decision]
    how = (
        f"scored {depth.relevance_cutoff} or more" if counts.grading_on else "were judged relevant"
    )
    kept = f"{counts.total_survived} of {counts.total_scored} items {how}"
    rationale = f"{verdict}: {kept}{needed} at depth {counts.depth_name}"
    return f"{rationale}; {_defaults(counts)}" if _mostly_defaulted(counts) else rationale


def _nobody(counts: Counts) -> str:
    if not counts.wanted:
        return "No source was chosen, so nothing was searched"
    return f"None of the {counts.wanted} sources could be asked, so nothing was searched"


def _disclaimer(counts: Counts) -> str:
    """Of all that was found: what the gate stopped was found too, though never graded."""
    found = counts.total_scored + (counts.dropped.get("gate", 0) if counts.grading_on else 0)
    return (
        f"Only {counts.total_survived} of {found} items found were relevant to your "
        "question. Consider this a starting point, not a comprehensive answer."
    )


def _mostly_defaulted(counts: Counts) -> bool:
    return counts.grading_on and 2 * counts.defaulted > counts.total_scored


def _defaults(counts: Counts) -> str:
    return f"{counts.defaulted} of {counts.total_scored} grades are defaults, the grader gave none"


_STAGES = {
    "gate": "judged off topic by the gate",
    "cutoff": "graded below the cutoff",
    "floor": "below the relevance threshold",
    "duplicate": "copies of others",
}


def _notes(counts: Counts) -> list[str]:
    notes = [
        f"The relevance gate did not work for {source}: {reason}."
        for source, reason in counts.gate_degraded
    ]
    if counts.grading_on and counts.defaulted:
        notes.append(f"{_defaults(counts)}.")
    if 0 < counts.asked < counts.wanted:
        notes.append(f"{counts.asked} of {counts.wanted} sources could be asked.")
    told = [f"{many} {_STAGES[stage]}" for stage, many in counts.dropped.items() if many]
    if told:
        total = sum(counts.dropped.values())
        items = "item was" if total == 1 else "items were"
        notes.append(f"{total} {items} dropped: {', '.join(told)}.")
    return notes
