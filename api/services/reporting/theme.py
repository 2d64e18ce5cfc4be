"""A theme as it is shown, and what of it answers a question about one side of a product."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from api.services.reporting.findings import FindingKind

PASSAGES = 4
"""Passages of one theme worth showing, at most."""
SIDES = {1: "praise", -1: "a complaint"}
"""What a sentence is that leans one way."""
VERBS = {None: "say", 1: "like", -1: "dislike"}
"""What people do, in the headline of a question about neither side or one."""


@dataclass(frozen=True, slots=True)
class ThemePassage:
    """A whole sentence of an exhibit, word for word."""

    label: str
    """The exhibit's name."""
    comment_id: str | None
    """The comment it stands in; None for title and body."""
    text: str
    lean: int | None = None
    """Which way it leans about the theme it is shown for, where that is sure."""


@dataclass(frozen=True, slots=True)
class ThemeFinding:
    """One theme: how many speak of it, and passages that show it."""

    name: str
    text: str
    kind: FindingKind
    passages: tuple[ThemePassage, ...]
    """One of each exhibit that was counted, the most telling first."""

    @property
    def shown(self) -> tuple[ThemePassage, ...]:
        """Those worth showing to a person."""
        return self.passages[:PASSAGES]

    def leans(self, lean: int | None) -> bool:
        """Whether something of it surely leans as was asked for; nothing does so for None."""
        return lean is not None and any(passage.lean == lean for passage in self.passages)


def one_side(passages: Iterable[ThemePassage], lean: int | None) -> tuple[ThemePassage, ...]:
    """What surely leans as was asked for first, and nothing that leans the other way."""
    if lean is None:
        return tuple(passages)
    kept = [passage for passage in passages if passage.lean != -lean]
    return tuple(sorted(kept, key=lambda passage: passage.lean != lean))


def shown_once(findings: Iterable[ThemeFinding]) -> list[ThemeFinding]:
    """The same findings; a sentence shown under one comes last under those after it."""
    shown: set[str] = set()
    ordered = []
    for finding in findings:
        passages = sorted(finding.passages, key=lambda passage: passage.text in shown)
        ordered.append(replace(finding, passages=tuple(passages)))
        shown |= {passage.text for passage in ordered[-1].shown}
    return ordered


def unsure_side(findings: Iterable[ThemeFinding], lean: int | None) -> str:
    """What is asked for that nothing surely is: `a complaint`; "" where something is."""
    if lean is None or any(finding.leans(lean) for finding in findings):
        return ""
    return SIDES[lean]
