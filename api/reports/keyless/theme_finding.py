"""A finding of the report without a model, its passages, and which of several findings are kept and in what order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from api.reports.keyless.polarity import SIDES
from api.reports.keyless.theme_sentences import example_phrase
from api.reports.report import FindingKind

PASSAGES = 4  # most passages that are shown of one theme
# Findings at the head of a report that are by different people.
_FIRST = 5


@dataclass(frozen=True, slots=True)
class ThemePassage:
    """A whole sentence of an exhibit, word for word."""

    label: str
    comment_id: str | None  # the comment it stands in; None for title and body
    text: str
    lean: int | None = None  # its lean about the theme it is shown for, where that is sure
    person: str = ""  # who wrote it, where that is known here


@dataclass(frozen=True, slots=True)
class ThemeFinding:
    """One claim, or one subject of which many speak: its sentence, and a passage of each person."""

    name: str
    text: str
    kind: FindingKind
    passages: tuple[ThemePassage, ...]
    """One of each person who says so, the claim first."""
    claim: str = ""
    """The sentence that is quoted; empty where the finding is a subject."""
    alike: int = 0
    """People who say alike."""
    speaking: int = 0
    """People who speak of the subject."""
    side: str = ""
    """What its people do where they do not say alike: `complain`."""
    weak: bool = False
    """Whether the quoted sentence takes no sure side, and does not judge or measure the product or a part of it."""

    @property
    def bare(self) -> str:
        """The finding without its counts, as a model would write it."""
        if self.claim and not self.side:
            return f"{title_of(self.name)}: “{self.claim}”"
        return f"{title_of(self.name)}: people {self.side or 'speak of it'}{example_phrase(self.claim)}."

    @property
    def shown(self) -> tuple[ThemePassage, ...]:
        """The passages to show to a person."""
        return self.passages[:PASSAGES]

    def leans(self, lean: int | None) -> bool:
        """Whether its claim, or a passage where it has none, surely leans as was asked for; False where no side was."""
        decisive = self.passages[:1] if self.claim else self.passages
        return lean is not None and any(passage.lean == lean for passage in decisive)


def one_side(passages: Iterable[ThemePassage], lean: int | None) -> tuple[ThemePassage, ...]:
    """The passages that surely lean as was asked for first, those that lean otherwise left out."""
    if lean is None:
        return tuple(passages)
    kept = [passage for passage in passages if passage.lean != -lean]
    return tuple(sorted(kept, key=lambda passage: passage.lean != lean))


def unsure_side(findings: Iterable[ThemeFinding], lean: int | None) -> str:
    """The side that was asked for, `a complaint`, when no passage surely is; empty otherwise."""
    if lean is None or any(finding.leans(lean) for finding in findings):
        return ""
    return SIDES[lean]


def told_once(findings: Iterable[ThemeFinding]) -> Iterator[ThemeFinding]:
    """The findings without those whose claim, or half of whose sentences, stands in those before."""
    seen: set[str] = set()
    for finding in findings:
        texts = {passage.text for passage in finding.passages}
        if finding.claim not in seen and (2 * len(texts & seen) < len(texts) or not texts):
            seen |= texts
            yield finding


def spread(findings: Iterable[ThemeFinding]) -> list[ThemeFinding]:
    """The findings in their order, but of one person's words at most one among the first five where others spoke."""
    first: list[ThemeFinding] = []
    later: list[ThemeFinding] = []
    people: set[str] = set()
    for finding in findings:
        person = finding.passages[0].person if finding.alike == 1 else ""
        if person in people and len(first) < _FIRST:
            later.append(finding)
        else:
            first.append(finding)
            people.update({person} if person else ())
    return first[:_FIRST] + later + first[_FIRST:]


def title_of(name: str) -> str:
    """A subject as it heads a finding."""
    return name[0].upper() + name[1:]
