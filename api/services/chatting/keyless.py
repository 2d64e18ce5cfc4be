"""What a chat says without a model's words: the posts' own, or that there are none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import zip_longest

from api.services.chatting.lookups import ChatDesk
from api.services.chatting.session import item_words, question_words
from api.services.question.comparing import compared, points_back
from api.services.question.guard import telling_words
from api.services.reporting.dossier import Exhibit
from api.services.reporting.escaping import formatted, md
from api.services.reporting.extractive import extract
from api.services.reporting.grounds import ADDRESSES
from api.services.schemas import Question

EXTRACTS = 5
"""Exhibits that speak for themselves in one answer."""


async def look_around(desk: ChatDesk) -> None:
    """Ask every source the question itself, when nothing known holds its words.

    Of a comparison each product that nothing is known of is looked up by name; a question that
    points back is asked with the name of what it points at.
    """
    names = compared(desk.question)
    if names:
        desk.recall()
        queries = [name for name in names if not desk.knows(name)]
    elif fitting(desk, desk.citable.values()):
        queries = []
    elif desk.before and points_back(desk.question):
        queries = [" ".join((*desk.before, *telling_words(desk.question)))]
    else:
        queries = [desk.question]
    await asyncio.gather(
        *(desk.look(name, query, "quick") for query in queries for name in desk.product.sources)
    )


def fitting(desk: ChatDesk, exhibits: Iterable[Exhibit]) -> list[Exhibit]:
    """The exhibits on the turn's subjects that hold a word of the question, by how many.

    For a comparison all of them, each product's in turn.
    """
    words, citable = question_words(desk.question), desk.citable
    known = [exhibit for exhibit in exhibits if exhibit.label in citable]
    if compared(desk.question):
        rows = zip_longest(
            *(
                [exhibit for exhibit in known if exhibit.label in desk.session.exhibits_for([name])]
                for name in desk.subjects
            )
        )
        return list({exhibit.label: exhibit for row in rows for exhibit in row if exhibit}.values())
    scored = [(len(words & item_words(exhibit.item)), exhibit) for exhibit in known]
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
