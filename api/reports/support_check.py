"""Checking a report's sentences against the passages they cite; what nothing carries goes.

Fails open: without an answer the findings stay, marked `unverified`, and a note says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import regex

from api.core.display_names import reason_in_words
from api.core.domain import Item, Question, Usage
from api.core.model_cost import ask_in_batches, usage_of_error
from api.core.ports import Claim, Support, SupportChecker
from api.core.text import one_line
from api.core.words import content_words, words
from api.core.work import translated
from api.errors import ModelError
from api.reports.citable import says_count
from api.reports.draft_rules import DraftText, plain_topic
from api.reports.exhibits import Dossier
from api.reports.keyless.polarity import lean_wanted
from api.reports.keyless.theme_sentences import recounted, resummed
from api.reports.keyless.themes import VERBS
from api.reports.report import Finding, Passage, Quote, SupportCheck

# Characters of the item on either side of a passage.
_AROUND = 120
LONGEST_SENTENCE = 600
"""Characters of a sentence that a check is shown; nobody can say that what is longer is carried."""
_NOT_CHECKED = "the support check did not work"
# Passages that are shown for the headline or one sentence of the summary.
_FOR_SUMMARY = 4
# of a headline that claims nothing: `What people say about the Ember mug`
_CLAIMLESS = frozenset("a an the what people owners users say think about of on".split())
# Where one sentence of a summary ends: `Warm.| It`, `很好。|但是`.
_SENTENCE = regex.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class CheckedDraft:
    """A draft of which only what its passages carry is left."""

    draft: DraftText
    check: SupportCheck
    usage: Usage = Usage()
    notes: tuple[str, ...] = ()


async def supported(
    draft: DraftText, dossier: Dossier, question: Question, checker: SupportChecker | None
) -> CheckedDraft:
    """The draft with its unsupported pairs, findings, headline and sentences of the summary gone.

    No call without findings or a checker. Headline and summary are checked by findings that
    share their words; one that counts themes is counted anew. Never raises.
    """
    if checker is None or not draft.findings:
        return CheckedDraft(draft, SupportCheck())
    items = {exhibit.item.key: exhibit.item for exhibit in dossier.exhibits}
    free = "" if resummed(draft.summary, ()) == "" else draft.summary
    sentences = list(filter(str.strip, _SENTENCE.split(free)))
    known = {*_claimless(question), *words(f"{question.text} {question.about}")}
    headlines = [] if known.issuperset(words(draft.topic)) else [draft.topic]
    worded = headlines + sentences
    near = [_near(text, draft.findings, question) for text in worded]
    pairs = [(f, passage) for f in draft.findings for passage in f.evidence]
    claims = [Claim(f.text, p.passage, _context(p, items[p.key])) for f, p in pairs]
    claims += map(_leaning, worded, near)
    try:
        checking = _checked(checker, question, claims)
        answer = await translated(checking, "the support check", partial(ModelError, "defect"))
    except ModelError as error:
        check = SupportCheck(status="degraded", reason=error.reason, model=checker.name)
        note = f"{_NOT_CHECKED} ({reason_in_words(error.reason)}): the findings are unverified"
        return CheckedDraft(draft, check, usage_of_error(error), (note,))
    flags = answer.supported
    carried: dict[int, list[Passage]] = {}
    for (finding, passage), holds in zip(pairs, flags, strict=False):
        if holds:
            carried.setdefault(id(finding), []).append(passage)
    stays = {passage for passages in carried.values() for passage in passages}
    left = {id(f): _left_of(f, carried.get(id(f), ())) for f in draft.findings}
    findings = tuple(filter(None, left.values()))
    stands = [
        holds and _stands(text, [(finding, left[id(finding)]) for finding in grounds])
        for text, grounds, holds in zip(worded, near, flags[len(pairs) :], strict=True)
    ]
    kept = [text for text, holds in zip(sentences, stands[len(headlines) :], strict=True) if holds]
    holding = sum(flags[: len(pairs)])
    counted = resummed(draft.summary, [(f.text, len(f.cites)) for f in findings])
    removed = (
        (len(pairs) - holding, f"of {len(pairs)} passages do not say what their sentence says"),
        (len(draft.findings) - len(findings), "finding(s) that no passage carries"),
        (int(not all(stands[: len(headlines)])), "headline that no passage carries"),
        (len(sentences) - len(kept), "sentence(s) of the summary that no passage carries"),
    )
    return CheckedDraft(
        replace(
            draft,
            topic=draft.topic if all(stands[: len(headlines)]) else plain_topic(question),
            summary=(" ".join(kept) if counted is None else counted) if findings else "",
            findings=findings,
            quotes=_unrefused(draft.quotes, [p for _, p in pairs if p not in stays]),
        ),
        SupportCheck(status="ok", model=answer.model, pairs=len(pairs), supported=holding),
        answer.usage,
        tuple(f"support check: {count} {what}, removed" for count, what in removed if count),
    )


def _claimless(question: Question) -> set[str]:
    """Words of a headline that claims nothing: `dislike`, too, where that is asked for."""
    return {VERBS[lean_wanted(question.text)], *_CLAIMLESS}


async def _checked(checker: SupportChecker, question: Question, claims: Sequence[Claim]) -> Support:
    """All claims; any call that fails fails the whole."""
    answers = await ask_in_batches(claims, partial(checker.check, question), lambda a: a.supported)
    flags = tuple(flag for answer in answers for flag in answer.supported)
    return Support(flags, answers[0].model, sum((answer.usage for answer in answers), Usage()))


def _unrefused(quotes: Sequence[Quote], gone: Sequence[Passage]) -> tuple[Quote, ...]:
    """The quotes without those of passages that went: what carries nothing is not quoted either."""
    return tuple(
        quote
        for quote in quotes
        if not any(
            quote.key == passage.key
            and (quote.text in passage.passage or passage.passage in quote.text)
            for passage in gone
        )
    )


def _left_of(finding: Finding, carried: Sequence[Passage]) -> Finding | None:
    """The finding on the passages that carry it; None without any, or when it counts more.

    The sentence of a theme is counted anew.
    """
    if not carried:
        return None
    left = Finding.resting(finding.text, finding.kind, carried, "checked")
    if len(left.cites) == len(finding.cites) or not says_count(finding.text, len(finding.cites)):
        return left
    text = recounted(finding.text, len(left.cites))
    return None if text is None else Finding.resting(text, finding.kind, carried, "checked")


def _stands(text: str, near: Sequence[tuple[Finding, Finding | None]]) -> bool:
    """Whether headline or summary still has the findings it rests on, each with what is left of it.

    It has not when all of them went, when it says again what one that went said and none that is
    left says, when it counts the items of one that has fewer now, or when it is endless.
    """
    content = set(content_words(text))
    staying = [set(content_words(left.text)) for _, left in near if left is not None]
    for finding, left in near:
        if left is not None and len(left.cites) == len(finding.cites):
            continue
        gone = set(content_words(finding.text)) if left is None else set[str]()
        if gone and gone <= content and not any(gone <= other for other in staying):
            return False
        if says_count(text, len(finding.cites)):
            return False
    return bool(staying) and len(text) <= LONGEST_SENTENCE


def _context(passage: Passage, item: Item) -> str:
    """The item's title, and the words on either side of the passage."""
    texts = item.texts
    if passage.comment_id is not None:
        texts = tuple(c.body for c in item.comments if c.id == passage.comment_id)
    for text in texts:
        at = text.find(passage.passage) if isinstance(text, str) else -1
        if at >= 0:
            around = text[max(0, at - _AROUND) : at + len(passage.passage) + _AROUND]
            return one_line(item.title if around in item.title else f"{item.title} | {around}")
    return one_line(item.title)


def _leaning(text: str, near: Sequence[Finding]) -> Claim:
    """Headline or summary with the first passages of the findings that it leans on."""
    passages = (finding.evidence[0].passage for finding in near[:_FOR_SUMMARY])
    return Claim(text, " … ".join(passages), "")


def _near(text: str, findings: Sequence[Finding], question: Question) -> Sequence[Finding]:
    """The findings that share words with a text, beside those of the question; else all."""
    idle = {*content_words(question.text), *content_words(question.about)}
    content = set(content_words(text)) - idle
    return [
        finding for finding in findings if content & set(content_words(finding.text))
    ] or findings
