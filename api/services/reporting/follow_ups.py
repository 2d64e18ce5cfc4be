"""What the writer looked up beside the evidence, and how it joins what was decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from api.services.evidence.crawler import combine
from api.services.evidence.duplicates import distinct
from api.services.evidence.figures import figures
from api.services.evidence.pipeline import Evidence
from api.services.evidence.sufficiency import decide
from api.services.reporting.writing import FollowUp
from api.services.schemas import Assessed, Gathered, Usage


@dataclass(frozen=True, slots=True)
class Bar:
    """What a newly found item must reach, the same as the evidence did."""

    cutoff: int
    threshold: float | None = None
    similarity: float = 92.0

    def admit(
        self, gathered: Gathered, graded: Sequence[Assessed], known: Sequence[Assessed]
    ) -> FollowUp:
        """The items that are good enough, and no copies of each other or of what is known."""
        seen = {one.item.original for one in known}
        judged = [self._judged(one) for one in graded if one.item.original not in seen]
        passed = [one for one in judged if one.dropped_by is None]
        there = [one for one in known if one.dropped_by is None]
        merged = distinct([*there, *passed], similarity=self.similarity)
        twins = {copy.item.key: copy.reason for copy in merged.copies}
        older = {one.item.key for one in known}
        stood_for = {reason: key for key, reason in twins.items() if key in older}
        found = [_copied(one, twins, stood_for) for one in passed]
        kept = sorted(
            (one for one in found if one.dropped_by is None), key=lambda one: -(one.relevance or 0)
        )
        dropped = [one for one in (*judged, *found) if one.dropped_by is not None]
        return FollowUp(gathered, tuple(kept), tuple(dropped))

    def _judged(self, one: Assessed) -> Assessed:
        grade = one.grade
        if grade is None or grade.defaulted:
            return one
        if grade.score < self.cutoff:
            reason = f"score {grade.score} of 5, below the cutoff {self.cutoff}"
            return replace(one, dropped_by="cutoff", reason=reason)
        if self.threshold is not None and grade.relevance < self.threshold:
            reason = f"relevance {grade.relevance:.2f}, below the threshold {self.threshold:.2f}"
            return replace(one, dropped_by="floor", reason=reason)
        return one


def _copied(one: Assessed, twins: dict[str, str], stood_for: dict[str, str]) -> Assessed:
    """Marked as dropped when it is a copy, also of a known item that it would outdo."""
    key = one.item.key
    older = stood_for.get(f"copy of {key}")
    reason = f"copy of {older}" if older else twins.get(key)
    return one if reason is None else replace(one, dropped_by="duplicate", reason=reason)


def joined(
    evidence: Evidence,
    follow_ups: Sequence[FollowUp],
    *,
    grading: Usage,
    low_relevance_below: float,
    now: datetime,
) -> Evidence:
    """The evidence with what was found later: ranks go on, figures and sources are counted anew.

    The decision stays as it was made. `grading` is what grading the newly found used.
    """
    if not follow_ups:
        return evidence
    crawled, ranked = evidence.crawl, evidence.ranked
    later = {one.gathered.source: one.gathered for one in follow_ups}
    sources = tuple(_again(one, later.get(one.source)) for one in crawled.sources)
    again = replace(crawled, sources=sources)
    extra = [one for found in follow_ups for one in found.kept]
    placed = tuple(
        replace(one, rank=at, low_relevance=_low(one, low_relevance_below))
        for at, one in enumerate(extra, len(ranked.kept) + 1)
    )
    kept = (*ranked.kept, *placed)
    dropped = (*ranked.dropped, *(one for found in follow_ups for one in found.dropped))
    stages: Counter[str] = Counter(
        one.dropped_by for one in (*dropped, *again.dropped) if one.dropped_by
    )
    notes = decide(replace(evidence.counts, dropped=stages)).notes
    judging = sum((one.gathered.usage for one in follow_ups), Usage())
    return replace(
        evidence,
        crawl=again,
        ranked=replace(ranked, kept=kept, dropped=dropped),
        decided=replace(evidence.decided, notes=notes),
        figures=figures(sources, kept, now=now),
        usage=evidence.usage + judging + grading,
    )


def _low(one: Assessed, below: float) -> bool:
    return one.relevance is not None and one.relevance < below


def _again(first: Gathered, later: Gathered | None) -> Gathered:
    if later is None:
        return first
    both = combine((first, later))
    note = f"asked once more while the report was written, for “{later.query}”"
    return replace(both, notes=(*both.notes, note))
