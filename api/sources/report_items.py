"""What a stored report holds, as sources: its items are judged anew and no source is asked.

A kept item comes back whole. Of a dropped one a report keeps title and beginning, so it is judged
by these. Copies are left out, since they cannot be recognised by their beginnings.
"""

from __future__ import annotations

from collections.abc import Mapping

from api.core.display_names import source_of_key
from api.core.domain import FetchPlan, Outcome
from api.core.items import Batch, Item
from api.core.ports import Probe, Source
from api.errors import SourceError
from api.reports.report import DroppedItem, KeptItem, Report, SourceReport
from api.sources.own_items import LocalSource


def sources_of_report(report: Report) -> Mapping[str, Source | SourceError]:
    """One source for each that the report asked; one that gave no answer then gives none now."""
    items: dict[str, list[Item]] = {name: [] for name in report.sources}
    # what the archive found bears the source that it once came from
    other = next((name for name, answer in report.sources.items() if answer.outcome.answered), "")
    judged = (_beginning(item) for item in report.dropped if item.dropped_by != "duplicate")
    for item in (*map(_whole, report.items), *judged):
        items.get(item.source, items.get(other, [])).append(item)
    return {
        name: ReportItems(name, tuple(items[name])) if answer.outcome.answered else _failure(answer)
        for name, answer in report.sources.items()
    }


def held_items(sources: Mapping[str, Source | SourceError]) -> int | None:
    """How many items of reports these sources hold; None where none of them is a report's."""
    counts = [source.count for source in sources.values() if isinstance(source, ReportItems)]
    return sum(counts) if counts else None


class ReportItems(LocalSource):
    """The items of one source, in the order of the report; never full."""

    def __init__(self, name: str, items: tuple[Item, ...]) -> None:
        """Keep the items."""
        self.name, self._items = name, items

    @property
    def count(self) -> int:
        """How many items it holds."""
        return len(self._items)

    async def fetch(self, plan: FetchPlan) -> Batch:
        """All items, whatever the query and the limit."""
        return Batch(plan, self._items, full=False)

    async def probe(self) -> Probe:
        """Always ready."""
        return Probe("ok", f"{len(self._items)} items")


class NotAnswered(SourceError):
    """A source that gave no answer when the report was made; `code` is its outcome then."""

    def __init__(self, source: str, outcome: Outcome, reason: str) -> None:
        """Keep outcome and reason."""
        super().__init__(source, reason)
        self.code = str(outcome)  # type: ignore[misc]

    @property
    def reason(self) -> str:
        """As the report has it, with its remedy."""
        return self.detail


def _failure(answer: SourceReport) -> NotAnswered:
    error = NotAnswered(answer.source, answer.outcome, answer.reason or "no answer")
    error.retry_at = answer.retry_at
    return error


def _whole(kept: KeptItem) -> Item:
    return Item(**{name: getattr(kept, name) for name in Item.model_fields})


def _beginning(dropped: DroppedItem) -> Item:
    return Item(
        key=dropped.key,
        id=dropped.key.partition(":")[2],
        source=source_of_key(dropped.key),
        title=dropped.title,
        body=dropped.snippet,
        url=dropped.url,
        created_at=dropped.created_at,
        place=dropped.place,
        thread=dropped.thread,
        credit=dropped.credit,
        unfit=dropped.reason if dropped.dropped_by == "unfit" else "",
    )
