"""An answer of the archive as a model reads it: our facts in the clear, their words fenced."""

from __future__ import annotations

from collections.abc import Iterator

from api.services.archive.answers import ArchiveAnswer, ArchiveHit
from api.services.places import Places, title_of
from api.services.text import Fence, called, cut, one_line, web_url

_TITLE = 120
"""Characters of a title."""


def described(answer: ArchiveAnswer, places: Places) -> str:
    """How much is stored, and each hit with its label, place, day, words and link."""
    if answer.guidance:
        return answer.guidance
    lines = [answer.text]
    if answer.sample:
        lines.append("This is made-up sample data from the offline sandbox.")
    fence = Fence()
    if answer.hits:
        lines.append(fence.rule)
    for hit in answer.hits:
        lines += _lines(hit, places, fence, linked=not answer.sample)
    return "\n".join(lines)


def _lines(hit: ArchiveHit, places: Places, fence: Fence, *, linked: bool) -> Iterator[str]:
    link = web_url(hit.url) if linked else ""
    yield f"{hit.label}: {whence(hit, places)}" + (f", {link}" if link else "")
    place = f"({hit.place}) " if hit.place else ""
    by = f"by {hit.credit}: " if hit.credit else ""
    yield fence.quote(f"{place}{by}{heading(hit)} | {hit.passage}", hit.label)


def whence(hit: ArchiveHit, places: Places) -> str:
    """Place, day and relevance, in words of ours: `Reddit, 2026-03-01, 80%`."""
    day = f", {hit.created_at:%Y-%m-%d}" if hit.created_at else ""
    low = " (low relevance)" if hit.low_relevance else ""
    return f"{title_of(places, hit.source)}{day}, {hit.relevance:.0%}{low}"


def heading(hit: ArchiveHit) -> str:
    """Its title in strangers' words; of a comment that of what it stands under, and said so."""
    title = cut(one_line(hit.title), _TITLE) or "what has no title"
    return called(title, hit.comment_id or hit.thread)
