"""What a chat says without a model's words: the posts' own, or that there are none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from api.services.chatting.lookups import ChatDesk
from api.services.chatting.session import item_words, question_words
from api.services.reporting.dossier import Exhibit
from api.services.reporting.escaping import formatted, md
from api.services.reporting.extractive import extract
from api.services.reporting.grounds import ADDRESSES
from api.services.schemas import Question

EXTRACTS = 5
"""Exhibits that speak for themselves in one answer."""


async def look_around(desk: ChatDesk) -> None:
    """Ask every source the question itself, when nothing known holds its words."""
    if not fitting(desk, desk.session.exhibits.values()):
        lookups = (desk.look(name, desk.question, "quick") for name in desk.product.sources)
        await asyncio.gather(*lookups)


def fitting(desk: ChatDesk, exhibits: Iterable[Exhibit]) -> list[Exhibit]:
    """The exhibits that hold a word of the question, those with most of them first."""
    words = question_words(desk.question)
    scored = [(len(words & item_words(exhibit.item)), exhibit) for exhibit in exhibits]
    return [exhibit for score, exhibit in sorted(scored, key=lambda pair: -pair[0]) if score]


def extracts(desk: ChatDesk) -> tuple[str, list[Exhibit]]:
    """The best exhibits in their own words, as a list with citations, and which they are."""
    new = fitting(desk, desk.exhibits.values()) or list(desk.exhibits.values())
    best = (new or fitting(desk, desk.session.exhibits.values()))[:EXTRACTS]
    labels = {exhibit.item.key: exhibit.label for exhibit in best}
    findings = extract(Question(desk.question), best).findings
    lines = (
        f"- {md(ADDRESSES.sub('', finding.text))} [{labels[finding.cites[0]]}]"
        for finding in findings
    )
    return "\n".join(lines), best


def nothing_found(question: str, lines: Iterable[str]) -> str:
    """That there is no answer, and why, without a word about the product."""
    outcomes = " ".join(f"{formatted(line)}." for line in dict.fromkeys(lines))
    return (
        f"I couldn't find relevant posts about “{formatted(question)}”. "
        f"{outcomes or 'Nothing was looked up.'} "
        "Another spelling, or a few words on what it is, may help."
    )
