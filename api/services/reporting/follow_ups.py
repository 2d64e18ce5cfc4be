"""What the writer looked up beside the evidence, and how it joins what was decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from api.services.evidence.crawler import combine
from api.services.evidence.figures import figures
from api.services.evidence.pipeline import Evidence, stages
from api.services.evidence.sufficiency import decide
from api.services.reporting.writing import FollowUp


def joined(evidence: Evidence, follow_ups: Sequence[FollowUp], *, now: datetime) -> Evidence:
    """The evidence with what was found later: ranks go on, figures and sources are counted anew.

    The decision stays as it was made.
    """
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
        figures=figures(sources, kept, now=now),
        usage=sum(used, evidence.usage),
    )
