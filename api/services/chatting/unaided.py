"""What a chat says without a model's words: the posts' own, or that there are none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import regex

from api.services.chatting.looking import Desk
from api.services.chatting.session import held, wanted
from api.services.reporting.dossier import Exhibit
from api.services.reporting.extractive import extract
from api.services.reporting.said import LINK
from api.services.schemas import Question
from api.services.text import one_line

EXTRACTS = 5
"""Exhibits that speak for themselves in one answer."""


async def look_around(desk: Desk) -> None:
    """Ask every source the question itself, when nothing known holds its words."""
    if not fitting(desk, desk.session.exhibits.values()):
        asking = (desk.look(name, desk.question, "quick") for name in desk.product.sources)
        await asyncio.gather(*asking)


def fitting(desk: Desk, exhibits: Iterable[Exhibit]) -> list[Exhibit]:
    """The exhibits that hold a word of the question, those with most of them first."""
    asked = wanted(desk.question)
    scored = [(len(asked & held(exhibit.item)), exhibit) for exhibit in exhibits]
    return [one for score, one in sorted(scored, key=lambda pair: -pair[0]) if score]


def extracts(desk: Desk) -> tuple[str, list[Exhibit]]:
    """The best exhibits in their own words, as a list with citations, and which they are."""
    found = fitting(desk, desk.found.values()) or list(desk.found.values())
    best = (found or fitting(desk, desk.session.exhibits.values()))[:EXTRACTS]
    labels = {exhibit.item.key: exhibit.label for exhibit in best}
    said = extract(Question(desk.question), best).findings
    return "\n".join(f"- {_plain(one.text)} [{labels[one.cites[0]]}]" for one in said), best


def _plain(words: str) -> str:
    """Strangers' words as text in markdown: without addresses, and nothing in them is markup."""
    return regex.sub(r"([\\`*_\[\]<>#|!~])", r"\\\1", one_line(LINK.sub("", words)))


def nothing_found(question: str, lines: Iterable[str]) -> str:
    """That there is no answer, and why, without a word about the product."""
    asked = " ".join(f"{line}." for line in dict.fromkeys(lines)) or "Nothing was looked up."
    return (
        f"I couldn't find relevant posts about “{question}”. {asked} "
        "Another spelling, or a few words on what it is, may help."
    )
