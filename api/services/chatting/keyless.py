"""What a chat says without a model's words: the posts' own, or that there are none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from api.services.chatting.lookups import ChatDesk
from api.services.chatting.session import item_words, question_words
from api.services.reporting.dossier import Exhibit
from api.services.reporting.escaping import formatted, md
from api.services.reporting.grounds import ADDRESSES
from api.services.reporting.themes import find_themes, shown_lines
from api.services.schemas import Question

THEMES = 5
"""Themes of one answer at most."""


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


def themes_of(desk: ChatDesk) -> tuple[str, list[Exhibit]]:
    """What the fitting exhibits speak of, as a list with citations, and which are cited."""
    new = fitting(desk, desk.exhibits.values()) or list(desk.exhibits.values())
    exhibits = new or fitting(desk, desk.session.exhibits.values())
    findings = find_themes(Question(desk.question), exhibits).findings[:THEMES]
    cited = dict.fromkeys(passage.label for finding in findings for passage in finding.shown)
    by_label = {exhibit.label: exhibit for exhibit in exhibits}
    text = shown_lines(findings, lambda words: md(ADDRESSES.sub("", words)))
    return text, [by_label[label] for label in cited]


def nothing_found(question: str, lines: Iterable[str]) -> str:
    """That there is no answer, and why, without a word about the product."""
    outcomes = " ".join(f"{formatted(line)}." for line in dict.fromkeys(lines))
    return (
        f"I couldn't find relevant posts about “{formatted(question)}”. "
        f"{outcomes or 'Nothing was looked up.'} "
        "Another spelling, or a few words on what it is, may help."
    )
