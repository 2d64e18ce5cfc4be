"""Answers whose addresses can be opened: nothing made up leads out into the world."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from api.services.comparing.comparison import Comparison
from api.services.reporting.credits import parts_of
from api.services.reporting.report import DroppedItem, Fetched, KeptComment, KeptItem, Report

SAMPLE = "sample"
"""Stands where the address of something made up would be: no page in the world shows it."""
Answer = TypeVar("Answer", Report, Fetched, Comparison)


def openable(answer: Answer) -> Answer:
    """The answer with addresses that can be opened alone; what is made up has none."""
    if not answer.sample:
        return answer
    unlinked = {"url": SAMPLE}
    dropped = () if isinstance(answer, Comparison) else answer.dropped
    changed: dict[str, object] = {
        part: tuple(item.model_copy(update=unlinked | _unsigned(item)) for item in items)
        for part, items in (("items", answer.items), ("dropped", dropped))
        if items
    }
    if isinstance(answer, Report):
        changed["quotes"] = tuple(replace(quote, url=SAMPLE) for quote in answer.quotes)
    return answer.model_copy(update=changed)


def _unsigned(signed: KeptItem | DroppedItem | KeptComment) -> dict[str, object]:
    """Who wrote it, without profiles that nobody has."""
    own: dict[str, object] = {"credit": parts_of(signed.credit)[0]} if signed.credit else {}
    if isinstance(signed, KeptItem):
        own["comments"] = tuple(c.model_copy(update=_unsigned(c)) for c in signed.comments)
    return own
