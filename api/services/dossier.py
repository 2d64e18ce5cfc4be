"""Exhibits: what a model saw and may cite, as compact fenced text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from api.services.fencing import Fence
from api.services.schemas import Assessed, Gathered, Item, Outcome
from api.services.text import cut, one_line

BODY, COMMENT, COMMENTS = 600, 220, 4
"""Characters of body and of a comment, and comments, that an exhibit shows."""

_WHY = {
    Outcome.NOT_CONFIGURED: "not configured",
    Outcome.REFUSED: "access refused",
    Outcome.RATE_LIMITED: "rate limited",
    Outcome.QUOTA_EXHAUSTED: "daily quota exhausted",
    Outcome.BLOCKED: "blocked by a captcha, login wall or 403 page",
    Outcome.TIMED_OUT: "no answer in time",
    Outcome.UNREACHABLE: "unreachable",
    Outcome.BROKEN: "its answer was malformed",
    Outcome.CANCELLED: "cancelled",
}
TITLES = {"reddit": "Reddit", "youtube": "YouTube", "amazon": "Amazon", "items": "Your items"}


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One item under the name the model cites it by."""

    label: str
    assessed: Assessed

    @property
    def item(self) -> Item:
        """The item shown."""
        return self.assessed.item


@dataclass(slots=True)
class Dossier:
    """Every exhibit shown in one run, numbered in order of first showing; the numbers never change."""

    _labels: dict[str, Exhibit] = field(default_factory=dict)

    def show(self, found: Iterable[Assessed]) -> tuple[Exhibit, ...]:
        """The exhibits for these items; new ones get the next numbers."""
        shown = []
        for assessed in found:
            known = self._labels.get(assessed.item.key)
            label = known.label if known else f"E{len(self._labels) + 1}"
            shown.append(Exhibit(label, assessed))
            self._labels[assessed.item.key] = shown[-1]
        return tuple(shown)

    @property
    def exhibits(self) -> tuple[Exhibit, ...]:
        """All of them, in order."""
        return tuple(self._labels.values())

    def by_label(self) -> dict[str, Exhibit]:
        """Exhibits under their names."""
        return {exhibit.label: exhibit for exhibit in self._labels.values()}


def text_of(item: Item) -> str:
    """Everything of an item that a model was shown, on one line."""
    said = [cut(one_line(comment.body), COMMENT) for comment in item.comments[:COMMENTS]]
    parts = [
        one_line(item.title),
        cut(one_line(item.body), BODY),
        *(f'"{words}"' for words in said),
    ]
    return " | ".join(part for part in parts if part)


def describe(exhibits: Sequence[Exhibit], fence: Fence) -> str:
    """The exhibits as the model reads them: our facts in the clear, their words fenced."""
    return "\n".join(f"{_facts(exhibit)}\n{_quoted(exhibit, fence)}" for exhibit in exhibits)


def _quoted(exhibit: Exhibit, fence: Fence) -> str:
    place = f"({exhibit.item.place}) " if exhibit.item.place else ""
    return fence.quote(place + text_of(exhibit.item), exhibit.label)


def _facts(exhibit: Exhibit) -> str:
    item = exhibit.item
    dated = f", {item.created_at:%Y-%m-%d}" if item.created_at else ""
    measures = [f", {value:g} {name}" for name, value in item.engagement.items() if value]
    grade = exhibit.assessed.grade
    graded = f", score {grade.score}/5" if grade and not grade.defaulted else ""
    return f"{exhibit.label}: {item.source}{dated}{''.join(measures[:1])}{graded}"


def gate_line(gathered: Gathered) -> str:
    """What happened at one source, for people and models alike."""
    name = TITLES.get(gathered.source, gathered.source)
    if not gathered.outcome.asked:
        when = f", resets {gathered.retry_at:%H:%M} UTC" if gathered.retry_at else ""
        return f"{name} could not be asked: {_WHY[gathered.outcome]}{when}"
    if gathered.outcome is Outcome.EMPTY:
        return f"{name} was asked and found nothing"
    refetched = ", refetched once" if gathered.refetched else ""
    share = f"yield {gathered.yield_ratio * 100:.0f} %"
    line = f"{name}: kept {len(gathered.kept)} of {gathered.fetched}, {share}{refetched}"
    if gathered.status == "degraded":
        line += f"; the relevance gate did not work ({gathered.gate_reason}), nothing was filtered"
    return line
