"""A stored report as what a chat session knows when it begins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container
from dataclasses import replace

from api.services.chatting.saved import Exchange
from api.services.chatting.session import EXHIBITS, Session
from api.services.places import title_of
from api.services.reporting.composing import assessed_of
from api.services.reporting.dossier import kept_line
from api.services.reporting.report import Report
from api.services.schemas import Assessed


def read_report(session: Session, report: Report) -> None:
    """Let a session know a report's items, look-ups and words, as if it had been asked there.

    What the report asked is then not asked again, and its items are exhibits on its question:
    what it cites before all else, with the words that it shows, since a saved session holds less.
    """
    subjects = session.subjects_of(report.query)
    cited: dict[str, set[str | None]] = defaultdict(set)
    for finding in report.findings:
        for passage in finding.evidence:
            cited[passage.key].add(passage.comment_id)
    keys = [item.key for item in report.items]
    chosen = set(sorted(keys, key=lambda key: key not in cited)[:EXHIBITS])
    shown = session.show(
        (_led(assessed_of(item), cited[item.key]) for item in report.items if item.key in chosen),
        subjects,
        sample=report.sample,
    )
    for name, source in report.sources.items():
        if source.outcome.answered:
            labels = [exhibit.label for exhibit in shown if exhibit.item.source == name]
            title = title_of(session.run.places, name)
            counted = f"{source.kept} of {source.fetched} results"
            line = f"{title}: {kept_line(counted, source.gate, refetched=source.refetched)}"
            session.remember(name, report.query, report.depth, line, labels, sample=report.sample)
    by_key = {exhibit.item.key: exhibit.label for exhibit in shown}
    lines = [report.summary or report.explanation_text or ""]
    for finding in report.findings:
        labels = [by_key[key] for key in finding.cites if key in by_key]
        lines.append(f"- {finding.text} [{', '.join(labels)}]" if labels else f"- {finding.text}")
    answer = "\n".join(lines).strip()
    exchange = Exchange(report.query, answer, sample=report.sample)
    session.close(exchange, by_key.values(), subjects)


def _led(assessed: Assessed, cited: Container[str | None]) -> Assessed:
    """The item with the comments that a report cites before the others."""
    comments = sorted(assessed.item.comments, key=lambda comment: comment.id not in cited)
    return replace(assessed, item=replace(assessed.item, comments=tuple(comments)))
