"""A report without a writer: the kept items speak for themselves, in their own words."""

from __future__ import annotations

from collections.abc import Sequence

from api.services.reporting.citing import Drafted
from api.services.reporting.clearing import Flaws
from api.services.reporting.dossier import Exhibit
from api.services.reporting.verbatim import verbatim
from api.services.schemas import Finding, FindingKind, Question, Quote
from api.services.text import cut, one_line

FINDINGS, TITLE, WORDS = 8, 90, 160
"""Findings at most, and characters of an item's title and words in one."""


def extract(question: Question, exhibits: Sequence[Exhibit]) -> Drafted:
    """One finding per best item: where it was said, and its own words; nothing is inferred."""
    best = exhibits[:FINDINGS]
    findings = tuple(
        Finding(_sentence(exhibit), _kind(exhibit), (exhibit.item.key,)) for exhibit in best
    )
    return Drafted(
        one_line(question.text),
        "No report model wrote this: it only lists what the items themselves say.",
        findings,
        quotes(exhibits),
        (),
        Flaws(),
    )


def quotes(exhibits: Sequence[Exhibit], limit: int = FINDINGS) -> tuple[Quote, ...]:
    """The passages the grader picked, verified word for word, best items first."""
    graded = ((exhibit.item, exhibit.assessed.grade) for exhibit in exhibits)
    passages = (verbatim(grade.quote, item) for item, grade in graded if grade)
    return tuple(dict.fromkeys(quote for quote in passages if quote is not None))[:limit]


def _sentence(exhibit: Exhibit) -> str:
    item, grade = exhibit.item, exhibit.assessed.grade
    title = cut(one_line(item.title), TITLE)
    words = cut(one_line((grade.quote if grade else "") or item.body), WORDS)
    where = exhibit.where + (f" ({item.place})" if item.place else "")
    parts = [f"“{title}”" if title else "", words if words != title else ""]
    return f"{where}: {', '.join(part for part in parts if part) or 'untitled'}"


def _kind(exhibit: Exhibit) -> FindingKind:
    grade = exhibit.assessed.grade
    if grade is None or not grade.sentiment:
        return "other"
    return "praise" if grade.sentiment > 0 else "complaint"
