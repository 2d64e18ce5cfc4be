"""A second look at a thin page: what is said under the likeliest of the items that were dropped.

One item, one request. It is kept when a comment names what was asked and the judge, shown that
comment, says yes; else, and when anything fails, everything stays as it was.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

from api.errors import Broken, SourceError
from api.services.containment import translated
from api.services.gate.basket import Basket
from api.services.gate.excerpt import COMMENT
from api.services.gate.judging import Verdicts
from api.services.gate.names import NEARLY, Name, name_of
from api.services.gate.sightings import best, sightings
from api.services.gate.words import split
from api.services.ports import Source
from api.services.progress import Listener, SourceLookedAgain
from api.services.schemas import Question

_NEEDED = 5.0
"""Seconds that must be left: a request and a judge's answer take a few."""


async def look_again(
    basket: Basket,
    source: Source,
    question: Question,
    verdicts: Verdicts,
    until: float | None,
    listener: Listener,
) -> None:
    """Keep the likeliest dropped item if its comments speak for it; `until` is the loop's clock."""
    item = basket.likeliest
    if item is None:
        return
    if until is not None and until - asyncio.get_running_loop().time() < _NEEDED:
        basket.note("no second look: too little time was left")
        return
    try:
        async with asyncio.timeout_at(until):
            reading, defect = source.remarked(item), partial(Broken, source.name)
            remarked = await translated(reading, f"comments of {source.name}", defect)
            if remarked is None:
                return
            name = name_of(question.text, question.about)
            comment = next((c for c in remarked.comments if _is_named(name, c.body)), None)
            if comment is None:
                basket.note("second look: no comment names it")
                return
            # an item of its own: the item itself was judged before, and is remembered
            exhibit = replace(
                item, key=f"{item.key}#{comment.id}", id=comment.id, crosspost_parent=None,
                body=comment.body, place=COMMENT, author=comment.author,
            )  # fmt: skip
            gated = await verdicts((exhibit,), source.name)
    except (SourceError, TimeoutError) as error:
        basket.second_look_failed(error)
        return
    others = tuple(other for other in remarked.comments if other is not comment)
    basket.reconsider(replace(remarked, comments=(comment, *others)), gated)
    listener(
        SourceLookedAgain(
            source=source.name, query=basket.query, relevant=gated.relevant, status=gated.status
        )
    )


def _is_named(name: Name, text: str) -> bool:
    return best(sightings(name, split(text), text)).strength >= NEARLY
