"""What a written draft may say: cite only exhibits, link to nothing, count only what they say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import regex

from api.services.reporting.clearing import Clearing, Flaws
from api.services.reporting.dossier import Dossier, Exhibit
from api.services.reporting.explaining import words as counted_words
from api.services.reporting.findings import LONGEST_PASSAGE, Finding, FindingKind, Passage, Quote
from api.services.reporting.grounds import LABEL, Ground, ground_of
from api.services.reporting.verbatim import verbatim
from api.services.schemas import Item, Question
from api.services.text import clean, cut, one_line

# Two words (`on time`), or one run of six letters, which an unspaced script has (`音质很好而且`).
_TELLING = regex.compile(r"\S\s+\S|\p{L}{6}")


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
    findings: Sequence[tuple[str, FindingKind, Sequence[tuple[str, str]]]],
    quotes: Sequence[tuple[str, str]],
    suggestions: Sequence[str],
    dossier: Dossier,
    question: Question,
    kept: int = 0,
) -> Drafted:
    """Keep what stands; findings are (text, kind, evidence), evidence and quotes (words, label).

    A finding stands on passages that its exhibits hold word for word; one without any goes. A
    sentence with a number stands when an exhibit (for a finding: one it rests on) or the question
    says that number, or when so many exhibits carry the finding, were shown, or are the best of so
    many `kept` items. Quotes that are not verbatim are left out without a note: nothing is claimed
    by them. Nor by a next question: what does not stand of it goes quietly.
    """
    exhibits, wording = dossier.by_label(), (question.text, question.about)
    everything = ground_of(exhibits, wording)
    flaws, sound, quoted = Flaws(), [], []
    totals = (str(len(exhibits)), str(max(kept, len(exhibits))))
    for text, kind, evidence in findings:
        carried: dict[str, list[Passage]] = {}
        for words, cite in evidence:
            known, unknown = _sorted([cite], everything)
            flaws += Flaws(unknown)
            for label in known:
                passage = _passage(words, exhibits[label].item)
                if passage is None:
                    flaws += Flaws(passages=(f"{label} “{cut(one_line(clean(words)), 60)}”",))
                else:
                    carried.setdefault(label, []).append(passage)
        counts = (str(len(carried)), *totals)
        left, _, faults = _cleared(text, ground_of(exhibits, wording, counts, cited=list(carried)))
        flaws += faults + Flaws(uncited=not carried)
        passages = dict.fromkeys(chain.from_iterable(carried.values()))
        if left and passages:
            sound.append(Finding.resting(left, kind, tuple(passages), "unverified"))
    for words, cite in quotes:
        known, unknown = _sorted([cite], everything)
        flaws += Flaws(unknown)
        verified = (verbatim(words, exhibits[label].item) for label in known)
        quoted += [quote for quote in verified if quote is not None][:1]
    title, _, in_title = _cleared(topic, everything)
    given = [*(str(len(finding.cites)) for finding in sound), *totals]
    abstract, _, in_abstract = _cleared(summary, ground_of(exhibits, wording, given))
    questions = (_cleared(text, everything)[0] for text in suggestions)
    return Drafted(
        title or plain_topic(question), abstract, tuple(sound),
        tuple(dict.fromkeys(quoted)), tuple(filter(None, questions)),
        flaws + in_title + in_abstract,
    )  # fmt: skip


def plain_topic(question: Question) -> str:
    """The headline that claims nothing."""
    return one_line(clean(question.text))


def _passage(words: str, item: Item) -> Passage | None:
    """The words as the item holds them, at most `LONGEST_PASSAGE`; a single short word is none."""
    quote = verbatim(words, item)
    if quote is None or not _TELLING.search(quote.text):
        return None
    text = quote.text
    if len(text) > LONGEST_PASSAGE:
        text = cut(text, LONGEST_PASSAGE).rpartition(" ")[0] or cut(text, LONGEST_PASSAGE)
    return Passage(quote.key, text, quote.comment_id)


def quotes_of(findings: Iterable[Finding], exhibits: Iterable[Exhibit]) -> tuple[Quote, ...]:
    """The first passage of each finding, with the address it stands at."""
    items = {exhibit.item.key: exhibit.item for exhibit in exhibits}
    quotes: dict[Quote, None] = {}
    for finding in findings:
        for passage in finding.evidence[:1]:
            item = items[passage.key]
            urls = {comment.id: comment.url for comment in item.comments}
            url = urls.get(passage.comment_id or "") or item.url
            quotes[Quote(passage.passage, item.key, url, passage.comment_id)] = None
    return tuple(quotes)


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
