"""What a written draft may say: cite only exhibits, link only to them, count only what they say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import regex

from api.services.dossier import Dossier, Exhibit
from api.services.schemas import Finding, FindingKind, Question, Quote
from api.services.text import clean, one_line

_LABEL = regex.compile(r"\bE\d+\b")
_LABEL_GROUP = regex.compile(r"\s*[\[(]\s*E\d+(?:\s*[,;]\s*E\d+)*\s*[\])]")
_LINK = regex.compile(r"(?:https?://|www\.)\S+|\]\([^)]*\)", regex.I)
_NUMBER = regex.compile(r"\d+(?:[.,:]\d+)*")
_SENTENCE = regex.compile(r"(?<=[.!?。！？])\s+")


@dataclass(frozen=True, slots=True)
class Flaws:
    """What is wrong with a draft; falsy when nothing is."""

    citations: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    uncited: int = 0

    def __bool__(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.citations or self.links or self.numbers or self.uncited)

    @property
    def advice(self) -> str:
        """What the model is told when its draft comes back."""
        said = []
        if self.citations:
            said.append(f"these are no exhibits: {', '.join(self.citations)}")
        if self.links:
            said.append("links are not allowed")
        if self.numbers:
            said.append(f"no exhibit says these numbers: {', '.join(self.numbers)}")
        if self.uncited:
            said.append("every finding must cite at least one exhibit that exists")
        return f"Correct the report: {'; '.join(said)}."

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader is told was removed."""
        counted = (
            (len(self.citations), "unknown citation(s) removed"),
            (len(self.links), "link(s) that no exhibit holds removed"),
            (len(self.numbers), "number(s) that no exhibit holds, with their sentences, removed"),
            (self.uncited, "finding(s) without a valid citation removed"),
        )
        return tuple(f"{count} {what}" for count, what in counted if count)


@dataclass(frozen=True, slots=True)
class Drafted:
    """A draft with everything unsound taken out, and what that was."""

    topic: str
    summary: str
    findings: tuple[Finding, ...]
    quotes: tuple[Quote, ...]
    suggestions: tuple[str, ...]
    flaws: Flaws


def check(
    topic: str,
    summary: str,
    findings: Sequence[tuple[str, FindingKind, Sequence[str]]],
    quotes: Sequence[tuple[str, str]],
    suggestions: Sequence[str],
    dossier: Dossier,
    question: Question,
) -> Drafted:
    """Keep what stands; findings are (text, kind, labels), quotes (text, label).

    A sentence with a number stands when an exhibit (for a finding: one it cites) or the question says
    that number. Quotes that are not verbatim are left out without a note: nothing is claimed by them.
    """
    exhibits = dossier.by_label()
    flaws = _Found()
    everything = _said(exhibits.values(), question)
    sound: list[Finding] = []
    for text, kind, cites in findings:
        known = _known(cites, exhibits, flaws)
        cited = _said((exhibits[label] for label in known), question)
        kept = flaws.clear(text, cited)
        keys = tuple(dict.fromkeys(exhibits[label].item.key for label in known))
        if not keys:
            flaws.uncited += 1
        elif kept:
            sound.append(Finding(kept, kind, keys))
    return Drafted(
        flaws.clear(topic, everything),
        flaws.clear(summary, everything),
        tuple(sound),
        tuple(quote for words, label in quotes if (quote := verbatim(words, exhibits.get(label)))),
        tuple(said for text in suggestions if (said := _LINK.sub("", one_line(clean(text))))),
        flaws.frozen(),
    )


def verbatim(words: str, exhibit: Exhibit | None) -> Quote | None:
    """The quote with its link, if the exhibit's item or one of its comments holds it word for word."""
    wanted = one_line(clean(words)).strip("\"'“”„«» ")
    if exhibit is None or not wanted:
        return None
    item = exhibit.item
    if wanted in one_line(item.title) or wanted in one_line(item.body):
        return Quote(wanted, item.key, item.url)
    for comment in item.comments:
        if wanted in one_line(comment.body):
            return Quote(wanted, item.key, comment.url or item.url, comment.id)
    return None


class _Found:
    """Collects flaws while a draft is cleared."""

    def __init__(self) -> None:
        self.citations: list[str] = []
        self.links: list[str] = []
        self.numbers: list[str] = []
        self.uncited = 0

    def clear(self, text: str, said: str) -> str:
        """The sentences that stand, without exhibit names and foreign links."""
        plain = _LABEL_GROUP.sub("", one_line(clean(text)))
        foreign = [link for link in _LINK.findall(plain) if link.strip("](). ") not in said]
        self.links += foreign
        for link in foreign:
            plain = plain.replace(link, "")
        sentences = []
        for sentence in _SENTENCE.split(plain):
            unknown = [n for n in _NUMBER.findall(_LABEL.sub("", sentence)) if not _holds(said, n)]
            self.numbers += unknown
            if not unknown and sentence.strip():
                sentences.append(sentence.strip())
        return " ".join(sentences)

    def frozen(self) -> Flaws:
        """What was found, each once."""
        citations, links, numbers = (
            tuple(dict.fromkeys(found)) for found in (self.citations, self.links, self.numbers)
        )
        return Flaws(citations, links, numbers, self.uncited)


def _known(cites: Sequence[str], exhibits: dict[str, Exhibit], flaws: _Found) -> list[str]:
    """Labels that exist; a cite may hold several (`E1, E2`) or brackets."""
    labels = [label for cite in cites for label in (_LABEL.findall(cite) or [cite.strip()])]
    flaws.citations += [one_line(clean(label))[:40] for label in labels if label not in exhibits]
    return [label for label in labels if label in exhibits]


def _said(exhibits: Iterable[Exhibit], question: Question) -> str:
    parts = [question.text, question.about]
    for exhibit in exhibits:
        item = exhibit.item
        parts += [item.title, item.body, item.url, item.place or ""]
        parts += [comment.body for comment in item.comments]
        parts += [f"{value:g}" for value in item.engagement.values() if value is not None]
        parts += [f"{item.created_at:%Y-%m-%d}"] if item.created_at else []
    return one_line(" ".join(parts))


def _holds(said: str, number: str) -> bool:
    return regex.search(rf"(?<!\d){regex.escape(number)}(?!\d)", said) is not None
