"""What a written draft may say: cite only exhibits, link only to them, count only what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import regex

from api.services.reporting.dossier import Dossier, Exhibit
from api.services.reporting.explaining import words as counted_words
from api.services.reporting.said import LABEL, LINK, Said, numbers, said_by
from api.services.reporting.verbatim import verbatim
from api.services.schemas import Finding, FindingKind, Question, Quote
from api.services.text import clean, one_line

_GROUP = regex.compile(r"\s*[\[(]\s*E\d+(?:\s*(?:[,;&]|and)\s*E\d+)*\s*[\])]")
_LINKED = regex.compile(r"!?\[([^\[\]]*)\]\(\s*<?([^()\s<>]*)[^()]*\)")
_EMPTY = regex.compile(r"\]?[(\[]\s*[)\]]|\s+(?=[.,;:!?](?:\s|$))")
_SENTENCE = regex.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*")


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

    A sentence with a number stands when an exhibit (for a finding: one it cites) or the question
    says that number. Quotes that are not verbatim are left out without a note: nothing is claimed
    by them.
    """
    exhibits = dossier.by_label()
    draft = _Clearing(exhibits, question)
    everything = said_by(exhibits.values(), question)
    sound = [draft.finding(text, kind, cites) for text, kind, cites in findings]
    quoted = [draft.quote(words, label) for words, label in quotes]
    asides = _Clearing(exhibits, question)
    return Drafted(
        draft.clear(topic, everything) or one_line(clean(question.text)),
        draft.clear(summary, everything),
        tuple(finding for finding in sound if finding is not None),
        tuple(dict.fromkeys(quote for quote in quoted if quote is not None)),
        tuple(kept for text in suggestions if (kept := asides.clear(text, everything))),
        draft.flaws(),
    )


def shortened(drafted: Drafted, words: int) -> Drafted:
    """The leading findings that fit, the summary counted; the first one always stays."""
    left = words - counted_words(drafted.summary)
    kept = list(drafted.findings[:1])
    left -= sum(counted_words(finding.text) for finding in kept)
    for finding in drafted.findings[1:]:
        left -= counted_words(finding.text)
        if left < 0:
            break
        kept.append(finding)
    return replace(drafted, findings=tuple(kept))


class _Clearing:
    """Takes out of one draft what does not stand, and remembers it."""

    def __init__(self, exhibits: dict[str, Exhibit], question: Question) -> None:
        self._exhibits, self._question = exhibits, question
        self._urls = {url for one in exhibits.values() for url in _urls(one)}
        self._urls |= {_bare(match[0]) for match in LINK.finditer(question.text)}
        self._citations: list[str] = []
        self._links: list[str] = []
        self._numbers: list[str] = []
        self._uncited = 0

    def finding(self, text: str, kind: FindingKind, cites: Sequence[str]) -> Finding | None:
        """The finding with item keys for labels; None when nothing of it stands."""
        grouped = [match[0] for match in _GROUP.finditer(text)]
        known = [*self._known(cites), *(label for label in _labels(grouped) if self._has(label))]
        cited = said_by((self._exhibits[label] for label in known), self._question)
        kept = self.clear(text, cited)
        if not known:
            self._uncited += 1
            return None
        keys = dict.fromkeys(self._exhibits[label].item.key for label in known)
        return Finding(kept, kind, tuple(keys)) if kept else None

    def quote(self, words: str, cite: str) -> Quote | None:
        """The quote when one of the exhibits named holds it."""
        found = (verbatim(words, self._exhibits[label]) for label in self._known([cite]))
        return next((quote for quote in found if quote is not None), None)

    def clear(self, text: str, said: Said) -> str:
        """The sentences that stand, without exhibit names and foreign links."""
        plain = _LINKED.sub(self._unlinked, one_line(clean(text)))
        plain = _GROUP.sub(lambda match: self._ungrouped(match[0], said), plain)
        plain = _EMPTY.sub("", LINK.sub(lambda match: self._allowed(match[0]), plain))
        sentences = (self._sentence(part.strip(), said) for part in _SENTENCE.split(plain))
        return one_line(" ".join(sentences))

    def flaws(self) -> Flaws:
        """What was found, each once."""
        citations, links, counted = (
            tuple(dict.fromkeys(found)) for found in (self._citations, self._links, self._numbers)
        )
        return Flaws(citations, links, counted, self._uncited)

    def _has(self, label: str) -> bool:
        return label in self._exhibits

    def _known(self, cites: Sequence[str]) -> list[str]:
        """Labels that exist; a cite may hold several (`E1, E2`) or brackets."""
        labels = _labels(cites)
        self._citations += [label for label in labels if not self._has(label)]
        return [label for label in labels if self._has(label)]

    def _unlinked(self, match: regex.Match[str]) -> str:
        """The words of a markdown link."""
        if match[2] not in self._urls:
            self._links.append(match[2])
        return str(match[1])

    def _allowed(self, link: str) -> str:
        """An exhibit's own address as it is, any other without its address."""
        bare = _bare(link)
        if bare in self._urls:
            return link
        self._links.append(bare)
        return link[len(bare) :]

    def _ungrouped(self, group: str, said: Said) -> str:
        labels = LABEL.findall(group)
        if said.labels.issuperset(labels):
            return group
        self._citations += [label for label in labels if not self._has(label)]
        return ""

    def _sentence(self, sentence: str, said: Said) -> str:
        """The sentence, unless it rests on a number or an exhibit that is not there."""
        bare = {label for label in LABEL.findall(sentence) if label not in said.labels}
        unknown = [label for label in sorted(bare) if not self._has(label)]
        unsaid = [number for number in numbers(sentence) if number not in said.numbers]
        self._citations += unknown
        self._numbers += unsaid
        if unknown or unsaid:
            return ""
        return str(LABEL.sub(lambda match: self._named(match[0], bare), sentence))

    def _named(self, label: str, bare: set[str]) -> str:
        """A reader knows no exhibit numbers, but the place."""
        if label not in bare:
            return label
        return self._exhibits[label].where


def _labels(cites: Sequence[str]) -> list[str]:
    """Exhibit names in what a model wrote as cites; what holds none is one unknown name."""
    plain = [one_line(clean(cite)) for cite in cites]
    found = [LABEL.findall(cite.upper()) or [cite[:40]] for cite in plain if cite]
    return list(dict.fromkeys(label for labels in found for label in labels))


def _bare(link: str) -> str:
    return link.rstrip(".,;:!?")


def _urls(exhibit: Exhibit) -> list[str]:
    item = exhibit.item
    return [url for url in (item.url, *(comment.url for comment in item.comments)) if url]
