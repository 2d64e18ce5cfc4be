"""A report that was kept, for whoever wants to go on with it."""

from __future__ import annotations

from api.errors import NotFound, UsageError
from api.services.keeping.storage import Analyses
from api.services.reporting.report import Report
from api.services.text import clean, one_line


async def stored_report(analyses: Analyses, tenant: str, report_id: str) -> Report:
    """A report that the tenant keeps.

    Raises:
        NotFound: there is none of that id.
        UsageError: the analysis is not done, or failed.
        StoreUnavailable: the database cannot be used.
    """
    possible = report_id.isascii() and report_id.isalnum()  # some databases refuse other signs
    kept = await analyses.get(tenant, report_id) if possible else None
    if kept is None:
        raise missing(report_id)
    if kept.report is None:
        raise UsageError(kept.why_none)
    return kept.report


def missing(report_id: str) -> NotFound:
    """That the tenant keeps no report of that id."""
    return NotFound(f"there is no report `{one_line(clean(report_id))[:60]}`")
