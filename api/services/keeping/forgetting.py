"""A report is stored, and what its places say is gone goes from what was stored before."""

from __future__ import annotations

from collections.abc import Iterator

from api.services.gate.unfit import REMOVED
from api.services.keeping.storage import Store
from api.services.reporting.report import Report


async def keep_report(store: Store, tenant: str, report: Report) -> None:
    """Store a report, after forgetting the words of items that it met as removed.

    Raises:
        StoreUnavailable: the database cannot be used.
    """
    if gone := set(_gone(report)):
        stored = await store.facts(tenant, gone)
        # the rest holds nothing that could be forgotten; looking for it costs cached pages
        worded = [key for key, item in stored.items() if item.title or item.body or item.comments]
        if worded:
            await store.forget(worded)
    await store.finish(tenant, report)


def _gone(report: Report) -> Iterator[str]:
    """Keys of what a place said is removed; the sample world says so of nothing real."""
    if report.sample:
        return
    parts = [report.dropped, *(source.dropped for source in report.sources.values())]
    for entry in (entry for part in parts for entry in part):
        if entry.dropped_by == "unfit" and entry.reason == REMOVED:
            yield entry.key
