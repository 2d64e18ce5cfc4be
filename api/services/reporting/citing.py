"""What a written draft may say: cite only exhibits, link to nothing, count only what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from api.services.reporting.clearing import Clearing, Flaws
from api.services.reporting.dossier import Dossier
from api.services.reporting.explaining import words as counted_words
from api.services.reporting.grounds import LABEL, Ground, ground_of
from api.services.reporting.verbatim import verbatim
from api.services.schemas import Finding, FindingKind, Question, Quote
from api.services.text import clean, one_line


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
    by them. Nor by a next question: what does not stand of it goes quietly.
    """
    exhibits, asked = dossier.by_label(), (question.text, question.about)
    everything = ground_of(exhibits, asked)
    flaws, sound, quoted = Flaws(), [], []
    for text, kind, cites in findings:
        known, unknown = _sorted(cites, everything)
        known += _cleared(text, everything)[1]
        kept, _, faults = _cleared(text, ground_of(exhibits, asked, cited=known))
        flaws += Flaws(unknown) + faults + Flaws(uncited=not known)
        if kept and known:
            keys = dict.fromkeys(exhibits[label].item.key for label in known)
            sound.append(Finding(kept, kind, tuple(keys)))
    for words, cite in quotes:
        known, unknown = _sorted([cite], everything)
        flaws += Flaws(unknown)
        passages = (verbatim(words, exhibits[label].item) for label in known)
        quoted += [quote for quote in passages if quote is not None][:1]
    title, _, in_title = _cleared(topic, everything)
    abstract, _, in_abstract = _cleared(summary, everything)
    questions = (_cleared(text, everything)[0] for text in suggestions)
    return Drafted(
        title or one_line(clean(question.text)), abstract, tuple(sound),
        tuple(dict.fromkeys(quoted)), tuple(filter(None, questions)),
        flaws + in_title + in_abstract,
    )  # fmt: skip


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


def _cleared(text: str, ground: Ground) -> tuple[str, tuple[str, ...], Flaws]:
    """What stands of a text, on one line, the labels it cites, and what did not stand."""
    clearing = Clearing(lambda _: ground, markdown=False)
    kept = one_line(clearing.whole(text))
    return kept, clearing.cited, clearing.flaws


def _sorted(cites: Sequence[str], ground: Ground) -> tuple[list[str], tuple[str, ...]]:
    """Exhibit names in what a model wrote as cites, known and unknown ones.

    A cite may hold several (`E1, E2`) or brackets; what holds none is one unknown name.
    """
    plain = [one_line(clean(cite)) for cite in cites]
    named = [LABEL.findall(cite.upper()) or [cite[:40]] for cite in plain if cite]
    labels = dict.fromkeys(label for group in named for label in group)
    known = [label for label in labels if label in ground.exhibits]
    return known, tuple(label for label in labels if label not in ground.exhibits)
