"""A report without a writer: the kept items speak for themselves, in their own words."""

from __future__ import annotations

from collections.abc import Sequence

from api.services.citing import Drafted, Flaws, verbatim
from api.services.dossier import TITLES, Exhibit
from api.services.schemas import Finding, FindingKind, Question, Quote
from api.services.text import cut, one_line

FINDINGS, WORDS = 8, 160
"""Findings at most, and characters of an item's words in one."""


def extract(question: Question, exhibits: Sequence[Exhibit]) -> Drafted:
    """One finding per best item: where it was said, and its own words; nothing is inferred."""
    best = exhibits[:FINDINGS]
    findings = tuple(
        Finding(_sentence(exhibit), _kind(exhibit), (exhibit.item.key,)) for exhibit in best
    )
    return Drafted(
        one_line(question.text),
        "No report model could be reached, so this report only lists what the items themselves say.",
        findings,
        quotes(exhibits),
        (),
        Flaws(),
    )


def quotes(exhibits: Sequence[Exhibit], limit: int = FINDINGS) -> tuple[Quote, ...]:
    """The passages the grader picked, verified word for word, best items first."""
    found = []
    for exhibit in exhibits:
        grade = exhibit.assessed.grade
        quote = verbatim(grade.quote, exhibit) if grade and grade.quote else None
        if quote is not None:
            found.append(quote)
    return tuple(found[:limit])


def _sentence(exhibit: Exhibit) -> str:
    item, grade = exhibit.item, exhibit.assessed.grade
    words = (grade.quote if grade else "") or one_line(item.body) or one_line(item.title)
    where = TITLES.get(item.source, item.source) + (f" ({item.place})" if item.place else "")
    short = cut(one_line(words), WORDS)
    return f"{where}, “{cut(one_line(item.title), 90)}”: {short}"


def _kind(exhibit: Exhibit) -> FindingKind:
    grade = exhibit.assessed.grade
    if grade is None or not grade.sentiment:
        return "other"
    return "praise" if grade.sentiment > 0 else "complaint"
