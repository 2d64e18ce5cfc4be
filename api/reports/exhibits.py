"""Exhibits: what a model saw and may cite, as compact fenced text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from itertools import accumulate

import regex

from api.core.display_names import OUTCOME_REASONS, SourceLabels, reason_in_words, title_in
from api.core.domain import Outcome
from api.core.items import Assessed, Gathered, Item
from api.core.text import Fence, cut, estimated_tokens, one_line, web_url
from api.pipeline.evidence.ranking import best_comments
from api.reports.report import GateState

BODY, COMMENT, COMMENTS = 600, 220, 4
"""Characters of body and of a comment, and comments, that an exhibit shows."""
TITLE, PLACE = 600, 80
"""Longest title and place, in characters, since a person's own item may have any text there."""

# What is said of several sources at once.
_TOGETHER = {
    Outcome.EMPTY: "were asked and found nothing",
    Outcome.NOT_CONFIGURED: f"could not be asked: {OUTCOME_REASONS[Outcome.NOT_CONFIGURED]}",
}
LINE_END = "⏎"
"""Stands in what a model is shown where a line ends, unless a sentence does."""
OF_THREAD = "a comment, the title is its thread's"
"""Note for a model on a comment that was found by itself, so that it does not quote the thread's title."""
# where a line that does not end a sentence is followed by one that begins it: `Still fine|\nIt is`
_LINE_END = regex.compile(r"(?<![.!?…:,;。！？\s])[^\S\n]*+\n\s*+(?!\p{Ll})")
# the sentences that are whole at the beginning of a text that was cut
_WHOLE_SENTENCES = regex.compile(r".*[.!?…。！？⏎](?=\s|$)", regex.S)
_NAME = regex.compile(r"[a-z]+(?:_[a-z]+)?")


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One item under the label by which the model cites it."""

    label: str
    assessed: Assessed
    title: str = ""
    """Title of its source for people; empty: use the name."""

    @property
    def where(self) -> str:
        """The source's title for people."""
        return self.title or self.item.source

    @property
    def item(self) -> Item:
        """The item of the exhibit."""
        return self.assessed.item


@dataclass(slots=True)
class Dossier:
    """Every exhibit shown in one run, numbered in order of first showing; numbers never change."""

    places: SourceLabels = field(default_factory=dict)
    given: int = 0
    """The highest number given so far, by others before it too."""
    most: int | None = None
    """Number of exhibits kept, the oldest removed first; None: all."""
    _labels: dict[str, Exhibit] = field(default_factory=dict)

    def show(self, items: Iterable[Assessed]) -> tuple[Exhibit, ...]:
        """The exhibits for these items; new ones get the next numbers."""
        shown = []
        for assessed in items:
            known = self._labels.get(assessed.item.key)
            if known is None:
                self.given += 1
            shown.append(self.keep(known.label if known else f"E{self.given}", assessed))
        return tuple(shown)

    def keep(self, label: str, assessed: Assessed) -> Exhibit:
        """The exhibit for an item under a name that it has already."""
        exhibit = Exhibit(label, assessed, title_in(self.places, assessed.item.source))
        self._labels[assessed.item.key] = exhibit
        if self.most is not None and len(self._labels) > self.most:
            del self._labels[next(iter(self._labels))]
        return exhibit

    @property
    def exhibits(self) -> tuple[Exhibit, ...]:
        """All exhibits, in order."""
        return tuple(self._labels.values())

    def by_label(self) -> dict[str, Exhibit]:
        """Exhibits by label: `E1`, `E2`."""
        return {exhibit.label: exhibit for exhibit in self._labels.values()}


def quoted_texts(
    exhibit: Exhibit, fence: Fence, question: str = "", *, before: str = "", body: int = BODY, comments: int = COMMENTS
) -> str:
    """Everything of an exhibit that a model is shown, on one line, each text in a fence of its own.

    So no copied passage runs from a title into the text below it. `before` stands before the first;
    comments that fit the question come first. A `body` that is shortened further ends with a sentence.
    """
    item, label = exhibit.item, exhibit.label
    best, text = best_comments(item, question)[:comments], cut(_joined(item.body), BODY)
    if len(text) > body:
        text = (_WHOLE_SENTENCES.match(cut(text, body)) or ("",))[0]
    texts = [
        (f"{label} title", cut(one_line(item.title), TITLE)),
        (label, text),
        *((f"{label} comment", cut(_joined(comment.body), COMMENT)) for comment in best),
    ]
    quoted = [(name, text) for name, text in texts if text] or [(label, "")]
    first, *rest = quoted
    return " ".join(fence.quote(text, name) for name, text in ((first[0], before + first[1]), *rest))


def _joined(text: str) -> str:
    """The lines of a text on one line, with a mark where one ends without the end of a sentence.

    Else a review's heading would run into its first sentence.
    """
    return one_line(_LINE_END.sub(f" {LINE_END} ", text.strip()))


def describe(
    exhibits: Sequence[Exhibit],
    fence: Fence,
    question: str = "",
    *,
    linked: bool = False,
    body: int = BODY,
    comments: int = COMMENTS,
) -> str:
    """The exhibits as the model reads them: our facts in the clear, their words fenced.

    Where nobody turns labels into links after the model, it is shown them: `linked`; and who has
    to be named beside a quote.
    """
    lines = []
    for exhibit in exhibits:
        place = f"({cut(exhibit.item.place, PLACE)}) " if exhibit.item.place else ""
        if linked and exhibit.item.credit:
            place += f"by {exhibit.item.credit}: "
        quoted = quoted_texts(exhibit, fence, question, before=place, body=body, comments=comments)
        link = web_url(exhibit.item.url) if linked else ""
        lines += [_facts(exhibit) + (f", {link}" if link else ""), quoted]
    return "\n".join(lines)


# Comments and characters of a body that are shown where the model's context is small, step by step.
_SHORTER = ((COMMENTS, BODY), (2, BODY), (0, BODY), (0, BODY // 2))


def describe_within(exhibits: Sequence[Exhibit], fence: Fence, question: str, tokens: int) -> tuple[str, int]:
    """The exhibits in about so many tokens, and how many of them that are: shortened by whole passages.

    First comments go, then the ends of texts, then the last exhibits; nothing fits: no text and 0.
    """
    for comments, body in _SHORTER:
        described = [describe([exhibit], fence, question, body=body, comments=comments) for exhibit in exhibits]
        sizes = list(accumulate(estimated_tokens(text) + 1 for text in described))
        if sizes and sizes[-1] <= tokens:
            break
    count = sum(size <= tokens for size in sizes)
    return "\n".join(described[:count]), count


def fitting(items: Sequence[Assessed], room: int, question: str) -> Sequence[Assessed]:
    """The first of them that `room` characters suffice to describe, each as a whole."""
    longest = (len(describe([Exhibit("E100", assessed)], Fence(), question, linked=True)) + 1 for assessed in items)
    return items[: sum(size <= room for size in accumulate(longest))]


def measure(value: float) -> str:
    """A number as the item has it, never in powers of ten."""
    return f"{value:.15g}"


def _facts(exhibit: Exhibit) -> str:
    """What is ours to say; names that a person's own items bring along stay out of the clear."""
    item = exhibit.item
    dated = f", {item.created_at:%Y-%m-%d}" if item.created_at else ""
    measures = [
        f", {measure(value)} {name}" for name, value in item.engagement.items() if value and _NAME.fullmatch(name)
    ]
    grade = exhibit.assessed.grade
    graded = f", score {grade.score}/5" if grade and not grade.defaulted else ""
    source = item.source if _NAME.fullmatch(item.source) else "items"
    titled = f", {OF_THREAD}" if item.thread else ""
    return f"{exhibit.label}: {source}{dated}{''.join(measures[:1])}{graded}{titled}"


def gate_lines(sources: Iterable[Gathered]) -> list[str]:
    """What happened at each source, one line each; sources without results or settings share a line."""
    sources = list(sources)
    plain = [entry for entry in sources if not (entry.outcome is Outcome.EMPTY and entry.notes)]
    alike = {
        outcome: [entry.title or entry.source for entry in plain if entry.outcome is outcome] for outcome in _TOGETHER
    }
    lines = [gate_line(entry) for entry in sources if entry not in plain or len(alike.get(entry.outcome, ())) < 2]
    lines += [
        f"{', '.join(names[:-1])} and {names[-1]} {_TOGETHER[outcome]}"
        for outcome, names in alike.items()
        if len(names) > 1
    ]
    return lines


def gate_line(gathered: Gathered) -> str:
    """What happened at one source, in one line for people and models."""
    name = gathered.title or gathered.source
    if gathered.outcome is Outcome.NOT_ASKED:
        return f"{name} was not asked: {gathered.reason}"
    if not gathered.outcome.answered:
        at = gathered.retry_at
        when = f", resets {at.astimezone(UTC):%H:%M} UTC" if at else ""
        return f"{name} could not be asked: {OUTCOME_REASONS[gathered.outcome]}{when}"
    if gathered.outcome is Outcome.EMPTY:
        return f"{name} was asked and found nothing" + "".join(f": {note}" for note in gathered.notes[:1])
    counted = f"{len(gathered.kept)} of {gathered.fetched} results"
    gate = GateState(status=gathered.status, reason=gathered.gate_reason, model=gathered.model)
    return f"{name}: {kept_line(counted, gate, refetched=gathered.refetched)}"


def kept_line(counted: str, gate: GateState, *, refetched: bool) -> str:
    """Result of a source in words: `3 of 9 results were about it`, or why they could not be judged."""
    again = ", searched twice" if refetched else ""
    if gate.status == "degraded":
        instead = f"{gate.model} judged instead" if gate.model else "none was sorted out"
        why = reason_in_words(gate.reason)
        return f"kept {counted}{again}; relevance could not be judged ({why}), so {instead}"
    return f"{counted} were about it{again}"
