"""What of a report is new to a watch: each post once, whatever its edit, crosspost or copy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from api.services.evidence.duplicates import COMPARED, copies_among
from api.services.reporting.composing import item_of
from api.services.reporting.report import KeptItem, Report
from api.services.schemas import Item
from api.services.watching.shelf import Known
from api.services.watching.watch import Watch

_VERDICTS = frozenset({"gate", "cutoff", "floor"})
"""What drops a post for not being about it, or not enough."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """A report as a watch sees it."""

    counted: tuple[KeptItem, ...]
    """Judged to be about it, without copies of what earlier runs had and what they dropped."""
    new: tuple[KeptItem, ...]
    """Of these, what no run has seen, written since the watch began or at an unknown time."""
    learnt: tuple[Known, ...]
    """What is known from now on."""


def sifted(report: Report, watch: Watch, known: Iterable[Known], similarity: float) -> Sifted:
    """Compare with what is known; what passed unjudged is neither new nor known."""
    memory = {entry.key: entry for entry in known}
    kept = {key for key, entry in memory.items() if not entry.dropped_by}
    dropped = {key for key, entry in memory.items() if entry.dropped_by == watch.rule}
    judged = [item for item in report.items if item.verdict and item.key not in dropped]
    unknown = [item for item in judged if item.key not in kept]
    copies = copies_among(
        [item_of(item) for item in unknown],
        [entry.item for entry in memory.values() if entry.item is not None],
        similarity,
    )
    began = watch.began_at
    new = tuple(
        item
        for item in unknown
        if item.key not in copies
        and (began is None or item.created_at is None or item.created_at > began)
    )
    learnt = [Known(item.key, item=_recognisable(item_of(item))) for item in unknown]
    for out in report.dropped:
        if out.key not in kept:
            if out.dropped_by == "duplicate":
                learnt.append(Known(out.key))
            elif out.dropped_by in _VERDICTS:
                learnt.append(Known(out.key, watch.rule))
    return Sifted(tuple(item for item in judged if item.key not in copies), new, tuple(learnt))


def _recognisable(item: Item) -> Item:
    """As much of it as is compared."""
    return replace(item, body=item.body[:COMPARED], comments=(), notes=(), engagement={}, places=())


def sources_heard(report: Report) -> Sequence[str]:
    """The sources that answered, and whose answers a judge has seen."""
    return [
        name
        for name, source in report.sources.items()
        if source.outcome.answered and not source.gate.unjudged
    ]
