"""Checks each sentence of a draft against its cited passages, and removes a sentence that none supports.

Fails open: without an answer of the checker the findings stay, marked `unverified`, with a note.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import regex

from api.core.display_names import reason_in_words
from api.core.domain import Question, Usage
from api.core.items import Item
from api.core.model_batches import ask_in_batches, usage_of_error
from api.core.ports import Claim, SupportChecker
from api.core.text import one_line, quantity
from api.core.words import content_words, words
from api.core.work import translated
from api.errors import ModelError
from api.reports.draft_rules import LONGEST_SENTENCE, DraftText, held_by, plain_topic
from api.reports.exhibits import Dossier
from api.reports.keyless.polarity import ASKING, count_feelings, lean_wanted
from api.reports.keyless.theme_sentences import SHARED, names_only, recount_summary, recount_theme
from api.reports.keyless.themes import MANY, VERBS
from api.reports.quotes import says_count, without_stop
from api.reports.quotes import sentences as sentences_of
from api.reports.report import Finding, Passage, Quote, SupportCheck, people_by_source

_NOT_CHECKED = "the support check did not work"
# Characters of the item shown on either side of a passage, so that `it` has something to refer to.
_CONTEXT = 120
# Findings whose first passage is shown for the headline or a sentence of the summary.
_FOR_SUMMARY = 4
# words of a headline that claims nothing: `What people say about the Ember mug`
_CLAIMLESS = frozenset("a an the what people owners users say think about of on".split())
# between two sentences of a summary: `Warm.| It`, `很好。|但是`
_SENTENCE = regex.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class CheckedDraft:
    """A draft of which only what its passages support is left."""

    draft: DraftText
    check: SupportCheck
    usage: Usage = Usage()
    notes: tuple[str, ...] = ()


async def supported(
    draft: DraftText, dossier: Dossier, question: Question, checker: SupportChecker | None
) -> CheckedDraft:
    """The draft without unsupported passages, findings, headline and sentences of the summary.

    Costs no call without findings or a checker, and never raises. Headline and summary are checked
    by the findings that share words with them; a summary that counts themes is counted again.
    """
    draft, asking = _without_questions(draft)
    if checker is None or not draft.findings:
        return CheckedDraft(draft, SupportCheck(), notes=asking)
    items = {exhibit.item.key: exhibit.item for exhibit in dossier.exhibits}
    headlines, sentences = _to_check(draft, question)
    texts = headlines + sentences
    related = [_related(text, draft.findings, question) for text in texts]
    pairs = [(f, passage) for f in draft.findings for passage in f.evidence]
    claims = [Claim(f.text, p.passage, _context(p, items[p.key])) for f, p in pairs]
    claims += map(_summary_claim, texts, related)
    try:
        checking = ask_in_batches(claims, partial(checker.check, question), lambda a: a.supported)
        answers = await translated(checking, "the support check", partial(ModelError, "defect"))
    except ModelError as error:
        check = SupportCheck(status="degraded", reason=error.reason, model=checker.name)
        note = f"{_NOT_CHECKED} ({reason_in_words(error.reason)}): the findings are unverified"
        return CheckedDraft(draft, check, usage_of_error(error), (*asking, note))
    flags = [flag for answer in answers for flag in answer.supported]
    doubts = [doubt for answer in answers for doubt in answer.doubted or [False] * len(answer.supported)]
    doubted = {(id(f), passage) for (f, passage), doubt in zip(pairs, doubts, strict=False) if doubt}
    carried = {(id(f), passage) for (f, passage), holds in zip(pairs, flags, strict=False) if holds}
    left = {id(f): _left_of(f, carried, doubted, items) for f in draft.findings}
    unread = [f for f in left.values() if f is not None and f.support != "checked"]
    # what is not checked is in no headline
    sure = {key: None if finding in unread else finding for key, finding in left.items()}
    holds = flags[len(pairs) :]
    stands = [h and _stands(t, f, sure) for t, f, h in zip(texts, related, holds, strict=True)]
    headline_stands = all(stands[: len(headlines)])
    kept = [text for text, holds in zip(sentences, stands[len(headlines) :], strict=True) if holds]
    findings = _without_thin_subjects(list(_distinct(filter(None, left.values()))), question)
    counted = recount_summary(draft.summary, [finding.text for finding in findings])
    summary = " ".join(kept) if counted is None else counted
    refused = {passage for _, passage in pairs} - {passage for _, passage in carried}
    lost, gone, untrue = len(pairs) - len(carried), len(draft.findings) - len(findings), len(sentences) - len(kept)
    removed = (
        (lost, f"removed {lost} of {len(pairs)} passages, which say something else than their sentence"),
        (gone, f"{quantity(gone, 'finding')} that no passage carries, removed"),
        (not headline_stands, "the headline, which no passage carries, removed"),
        (untrue, f"{quantity(untrue, 'sentence')} of the summary that no passage carries, removed"),
        (len(unread), f"{quantity(len(unread), 'finding')} of whose words the passages hold none, marked unverified"),
    )
    counts = {"pairs": len(pairs), "supported": len(carried), "disputed": len(doubted)}
    topic = draft.topic if headline_stands else plain_topic(question)
    summary, quotes = summary if findings else "", _without(draft.quotes, refused)
    return CheckedDraft(
        replace(draft, topic=topic, summary=summary, findings=findings, quotes=quotes),
        SupportCheck(status="ok", model=answers[0].model, **counts),
        sum((answer.usage for answer in answers), Usage()),
        (*asking, *(f"support check: {words}" for count, words in removed if count)),
    )


def _distinct(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings without those that only quote what one before them quotes."""
    texts: list[str] = []
    for finding in findings:
        quotes_alone = finding.text.startswith("“") and finding.text.endswith("”")
        if not quotes_alone or not any(without_stop(finding.text[1:-1]) in text for text in texts):
            texts.append(finding.text)
            yield finding


def _without_thin_subjects(findings: Sequence[Finding], question: Question) -> tuple[Finding, ...]:
    """The findings without subjects of `MANY` people or fewer that quote nobody, if `SHARED` findings are left then.

    A subject that the question names stays.
    """
    named = set(words(question.text))
    kept = tuple(
        finding
        for finding in findings
        if not names_only(finding.text)
        or sum(finding.people.values()) > MANY
        or not named.isdisjoint(words(finding.text.partition(":")[0]))
    )
    return kept if len(kept) >= SHARED else tuple(findings)


def _summary_claim(text: str, findings: Sequence[Finding]) -> Claim:
    """The headline or a sentence of the summary, on the first passages of its findings."""
    return Claim(text, " … ".join(finding.evidence[0].passage for finding in findings[:_FOR_SUMMARY]), "")


def _to_check(draft: DraftText, question: Question) -> tuple[list[str], list[str]]:
    """The headline unless it claims nothing, and the summary's sentences unless they count themes."""
    question_words = words(f"{question.text} {question.about}")
    claimless = {VERBS[lean_wanted(question.text)], *_CLAIMLESS, *question_words}
    headlines = [] if claimless.issuperset(words(draft.topic)) else [draft.topic]
    free = draft.summary if recount_summary(draft.summary, ()) is None else ""
    return headlines, list(filter(str.strip, _SENTENCE.split(free)))


def _without(quotes: Sequence[Quote], refused: Iterable[Passage]) -> tuple[Quote, ...]:
    return tuple(
        quote
        for quote in quotes
        if not any(
            quote.key == passage.key and (quote.text in passage.passage or passage.passage in quote.text)
            for passage in refused
        )
    )


def _without_questions(draft: DraftText) -> tuple[DraftText, tuple[str, ...]]:
    """The draft, of which no praise or complaint rests on questions alone, and a note if any did.

    Who asks whether something is so has not said that it is.
    """

    def only_asks(text: str) -> bool:
        return not any(count_feelings(text)) and all(map(ASKING.search, sentences_of(text) or [text]))

    findings = tuple(
        replace(finding, kind="other")
        if finding.kind in {"praise", "complaint"} and all(only_asks(p.passage) for p in finding.evidence)
        else finding
        for finding in draft.findings
    )
    changed = sum(before is not after for before, after in zip(draft.findings, findings, strict=True))
    note = f"{quantity(changed, 'finding')} called praise or complaint, resting on questions alone, marked as neither"
    return replace(draft, findings=findings), (note,) if changed else ()


def _left_of(
    finding: Finding,
    carried: Container[tuple[int, Passage]],
    doubted: Container[tuple[int, Passage]],
    items: Mapping[str, Item],
) -> Finding | None:
    """The finding with its supported passages only, a theme counted again; None when no supported statement is left.

    It is checked unless all of these are doubted.
    """
    passages = [passage for passage in finding.evidence if (id(finding), passage) in carried]
    people = people_by_source(passages, items)
    text: str | None = held_by(finding.text, passages, people) if passages else finding.text
    sure = any((id(finding), passage) not in doubted for passage in passages)
    left = Finding.resting(finding.text, finding.kind, passages, "checked" if sure else "unverified", items)
    if len(left.cites) < len(finding.cites) and says_count(finding.text, len(finding.cites)):
        text = recount_theme(finding.text)
    return replace(left, text=text) if passages and text is not None else None


def _stands(text: str, related: Sequence[Finding], left: Mapping[int, Finding | None]) -> bool:
    """Whether headline or summary may stay, given what is left of its findings.

    Not when all went, when it repeats one that went and no other says, when it counts the items of
    one that has fewer now, or when it is too long to be checked.
    """
    content = set(content_words(text))
    kept = [after for finding in related if (after := left[id(finding)]) is not None]
    staying = [set(content_words(finding.text)) for finding in kept]
    for finding in related:
        after = left[id(finding)]
        if after is not None and len(after.cites) == len(finding.cites):
            continue
        gone = set(content_words(finding.text)) if after is None else set[str]()
        if gone and gone <= content and not any(gone <= other for other in staying):
            return False
        if says_count(text, len(finding.cites)):
            return False
    return bool(staying) and len(text) <= LONGEST_SENTENCE


def _context(passage: Passage, item: Item) -> str:
    texts = item.texts
    if passage.comment_id is not None:
        texts = tuple(c.body for c in item.comments if c.id == passage.comment_id)
    for text in texts:
        at = text.find(passage.passage) if isinstance(text, str) else -1
        if at >= 0:
            around = text[max(0, at - _CONTEXT) : at + len(passage.passage) + _CONTEXT]
            return one_line(item.title if around in item.title else f"{item.title} | {around}")
    return one_line(item.title)


def _related(text: str, findings: Sequence[Finding], question: Question) -> Sequence[Finding]:
    """The findings that share words with a text, beside those of the question; without any, all."""
    question_words = {*content_words(question.text), *content_words(question.about)}
    content = set(content_words(text)) - question_words
    sharing = [f for f in findings if content & set(content_words(f.text))]
    return sharing or findings
