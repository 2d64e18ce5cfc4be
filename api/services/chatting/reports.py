"""A stored report as what a chat session knows when it begins."""

from __future__ import annotations

from api.errors import NotFound, UsageError
from api.services.chatting.session import EXHIBITS, Exchange, Session
from api.services.keeping.storage import Analyses
from api.services.ports import title_of
from api.services.reporting.composing import assessed_of
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
        raise NotFound(f"there is no report `{one_line(clean(report_id))[:60]}`")
    if kept.report is None:
        raise UsageError(kept.why_none)
    return kept.report


def read_report(session: Session, report: Report) -> None:
    """Let a session know a report's items, look-ups and words, as if it had been asked there.

    What the report asked is then not asked again, and its items are exhibits on its question.
    """
    session.sample = session.sample or report.sample
    subjects = session.subjects_of(report.query)
    shown = session.show(map(assessed_of, report.items[:EXHIBITS]), subjects)
    for name, source in report.sources.items():
        if source.outcome.answered:
            labels = [exhibit.label for exhibit in shown if exhibit.item.source == name]
            title = title_of(session.run.places, name)
            line = f"{title}: {source.kept} of {source.fetched} results were about it"
            session.remember(name, report.query, report.depth, line, labels)
    by_key = {exhibit.item.key: exhibit.label for exhibit in shown}
    lines = [report.summary or report.explanation_text or ""]
    for finding in report.findings:
        cited = [by_key[key] for key in finding.cites if key in by_key]
        lines.append(f"- {finding.text} [{', '.join(cited)}]" if cited else f"- {finding.text}")
    answer = "\n".join(lines).strip()
    session.close(Exchange(report.query, answer), by_key.values(), subjects)
