"""Checking a report's sentences against the passages they cite; what nothing carries goes.

Fails open: without an answer the findings stay, marked `unverified`, and a note says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import regex

from api.errors import ModelError
from api.services.containment import translated
from api.services.ports import Claim, Support, SupportChecker
from api.services.question.query import content_words
from api.services.reporting.citing import Drafted
from api.services.reporting.dossier import Dossier
from api.services.reporting.findings import Finding, Passage
from api.services.reporting.grounds import numbers
from api.services.reporting.report import SupportCheck
from api.services.schemas import Item, Question, Usage
from api.services.text import one_line

MOST_PAIRS = 50
"""Pairs in one call; more pairs are more calls at once."""
_AROUND = 120
"""Characters of the item on either side of a passage."""
LONGEST_SENTENCE = 600
"""Characters of a sentence that a check is shown; nobody can say that what is longer is carried."""
_FOR_SUMMARY = 4
"""Passages that are shown for one sentence of the summary."""
# Where one sentence of a summary ends: `Warm.| It`, `很好。|但是`.
_SENTENCE = regex.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")


@dataclass(frozen=True, slots=True)
class CheckedDraft:
    """A draft of which only what its passages carry is left."""

    draft: Drafted
    check: SupportCheck
    usage: Usage = Usage()
    notes: tuple[str, ...] = ()


async def supported(
    draft: Drafted, dossier: Dossier, question: Question, checker: SupportChecker | None
) -> CheckedDraft:
    """The draft with its unsupported pairs, findings and sentences of the summary taken out.

    One call per 50 pairs; none without findings or without a checker. A sentence of the summary is
    checked against passages of the findings that share its words. A sentence that says of how many
    it is true goes with any of them. Never raises `ModelError`.
    """
    if checker is None or not draft.findings:
        return CheckedDraft(draft, SupportCheck())
    items = {exhibit.item.key: exhibit.item for exhibit in dossier.exhibits}
    sentences = [part for part in _SENTENCE.split(draft.summary) if part.strip()]
    pairs = [(finding, passage) for finding in draft.findings for passage in finding.evidence]
    claims = [
        Claim(finding.text, passage.passage, _context(passage, items[passage.key]))
        for finding, passage in pairs
    ]
    claims += [_claim_of_summary(sentence, draft.findings) for sentence in sentences]
    try:
        checking = _checked(checker, question, claims)
        answer = await translated(checking, "the support check", partial(ModelError, "defect"))
    except ModelError as error:
        check = SupportCheck(status="degraded", reason=error.reason, model=checker.name)
        note = f"the support check did not work ({error.reason}): the findings are unverified"
        return CheckedDraft(draft, check, notes=(note,))
    flags = answer.supported
    carried: dict[int, list[Passage]] = {}
    for (finding, passage), holds in zip(pairs, flags, strict=False):
        if holds:
            carried.setdefault(id(finding), []).append(passage)
    findings = tuple(
        Finding.resting(finding.text, finding.kind, carried[id(finding)], "checked")
        for finding in draft.findings
        if id(finding) in carried and _counts_still(finding, carried[id(finding)])
    )
    kept = [
        text
        for text, holds in zip(sentences, flags[len(pairs) :], strict=True)
        if holds and len(text) <= LONGEST_SENTENCE
    ]
    holding = sum(flags[: len(pairs)])
    removed = (
        (len(pairs) - holding, f"of {len(pairs)} passages do not say what their sentence says"),
        (len(draft.findings) - len(findings), "finding(s) that no passage carries"),
        (len(sentences) - len(kept), "sentence(s) of the summary that no passage carries"),
    )
    return CheckedDraft(
        replace(draft, summary=" ".join(kept) if findings else "", findings=findings),
        SupportCheck(status="ok", model=answer.model, pairs=len(pairs), supported=holding),
        answer.usage,
        tuple(f"support check: {count} {what}, removed" for count, what in removed if count),
    )


async def _checked(checker: SupportChecker, question: Question, claims: Sequence[Claim]) -> Support:
    """All claims, fifty a call, at once; any call that fails fails the whole.

    So does one without a boolean for each claim: "false" carries nothing, and would pass for true.
    """
    chunks = [claims[at : at + MOST_PAIRS] for at in range(0, len(claims), MOST_PAIRS)]
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(checker.check(question, chunk)) for chunk in chunks]
    answers = [call.result() for call in calls]
    for answer, chunk in zip(answers, chunks, strict=True):
        if len(answer.supported) != len(chunk):
            detail = f"{len(answer.supported)} for {len(chunk)} pairs"
            raise ModelError("count_mismatch", detail)
        if not all(isinstance(flag, bool) for flag in answer.supported):
            raise ModelError("malformed", "an answer that is no boolean")
    return Support(
        tuple(flag for answer in answers for flag in answer.supported),
        answers[0].model,
        sum((answer.usage for answer in answers), Usage()),
    )


def _counts_still(finding: Finding, carried: Sequence[Passage]) -> bool:
    """Whether a sentence that says how many speak of it is true of those that are left."""
    left = len({passage.key for passage in carried})
    return left == len(finding.cites) or str(len(finding.cites)) not in numbers(finding.text)


def _context(passage: Passage, item: Item) -> str:
    """The item's title, and the words on either side of the passage."""
    texts = [item.title, item.body, *(comment.body for comment in item.comments)]
    if passage.comment_id is not None:
        texts = [c.body for c in item.comments if c.id == passage.comment_id]
    for text in texts:
        at = text.find(passage.passage) if isinstance(text, str) else -1
        if at >= 0:
            around = text[max(0, at - _AROUND) : at + len(passage.passage) + _AROUND]
            return one_line(item.title if around in item.title else f"{item.title} | {around}")
    return one_line(item.title)


def _claim_of_summary(sentence: str, findings: Sequence[Finding]) -> Claim:
    """A sentence of the summary with the passages of the findings that share its words."""
    words = set(content_words(sentence))
    near = [finding for finding in findings if words & set(content_words(finding.text))]
    passages = [finding.evidence[0].passage for finding in near or findings][:_FOR_SUMMARY]
    return Claim(sentence, " … ".join(passages), "")
