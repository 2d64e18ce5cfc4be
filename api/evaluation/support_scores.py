"""How good a support check is on labelled sentences and passages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby
from statistics import median
from time import perf_counter
from typing import Any

from api.core.domain import Question, Usage
from api.core.model_cost import usage_of_error
from api.core.ports import PER_CALL, Claim, SupportChecker
from api.errors import ModelError, UsageError
from api.evaluation.evaluate import Around
from api.evaluation.metrics import LabelledVerdict, Measures, confusion, tally


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim of a report about a product, and whether its passage carries it."""

    question: Question
    claim: Claim
    supported: bool


@dataclass(frozen=True, slots=True)
class SupportResult:
    """What a checker got right; a share without any case is None."""

    checker: str
    claims: int
    supported: int
    """Claims that the readers call supported."""
    precision: float | None
    """Of what it lets by, how much is supported."""
    recall: float | None
    """Of what is supported, how much it lets by."""
    let_by: float | None
    """Of what is unsupported, how much it lets by."""
    mcc: float | None
    kappa: float | None
    unanswered: int
    """Claims without an answer; they count in no figure."""
    usd: float | None
    ms_per_10: float | None
    """Milliseconds for ten claims, the median of the questions."""
    queries: Mapping[str, Mapping[str, Any]]
    """By question what `compare` pairs, as in the result of a judge."""

    def as_json(self) -> dict[str, Any]:
        """The result as `eval --format json` prints it."""
        return {"judge": self.checker, **asdict(self)}


@dataclass(frozen=True, slots=True)
class CaseAnswers:
    """What was said of the texts of one case, such as the claims of one question."""

    answers: tuple[bool | None, ...]
    """Yes or no for each; None for one without an answer."""
    usage: Usage
    seconds: float
    """That the answers took."""
    reasons: tuple[str, ...] = ()
    """Why some are missing."""
    calls: int = 1


def read_claims(lines: Sequence[str], name: str) -> list[LabelledClaim]:
    """One claim a line: `query`, `sentence`, `passage`, and perhaps `about` and `item`.

    Its label is `supported`, or the two readings `first` and `second`, which must agree on yes.

    Raises:
        UsageError: a line that is none of these.
    """
    return [_read(line, f"{name}:{at}") for at, line in enumerate(lines, 1) if line.strip()]


def by_question(claims: Sequence[LabelledClaim]) -> list[list[LabelledClaim]]:
    """Claims that follow each other and are of one question, together."""
    return [list(group) for _, group in groupby(claims, key=lambda labelled: labelled.question)]


async def evaluate_support(
    checker: SupportChecker,
    claims: Sequence[LabelledClaim],
    *,
    around: Around[CaseAnswers] | None = None,
) -> SupportResult:
    """Ask about all claims, those of one question together, and compare with the labels."""
    groups = by_question(claims)
    parts: list[CaseAnswers] = []
    for number, members in enumerate(groups):
        ask = partial(_check, checker, members)
        parts.append(await (ask() if around is None else around(number, ask)))
    pairs: dict[str, list[tuple[bool, bool]]] = {}
    times = []
    for members, part in zip(groups, parts, strict=True):
        given = answered(members, part)
        pairs.setdefault(members[0].question.text, []).extend(given)
        if given:
            times.append(part.seconds / len(given) * 10_000)
    shares = measured([pair for answers in pairs.values() for pair in answers])
    count = sum(map(len, pairs.values()))
    return SupportResult(
        checker.name,
        len(claims),
        sum(labelled.supported for labelled in claims),
        precision=shares["precision"],
        recall=shares["recall"],
        let_by=shares["kept_irrelevant"],
        mcc=shares["mcc"],
        kappa=shares["kappa"],
        unanswered=len(claims) - count,
        usd=sum((part.usage for part in parts), Usage()).usd,
        ms_per_10=round(median(times), 2) if times else None,
        queries={
            text: {
                "family": "",
                "tally": list(tally([LabelledVerdict(*pair) for pair in answers])),
            }
            for text, answers in pairs.items()
        },
    )


def answered(members: Sequence[LabelledClaim], part: CaseAnswers) -> list[tuple[bool, bool]]:
    """Label and answer of each claim that has one."""
    both = zip(members, part.answers, strict=True)
    return [(labelled.supported, answer) for labelled, answer in both if answer is not None]


def measured(pairs: Sequence[tuple[bool, bool]]) -> Measures:
    """The measures of verdicts, for labels and answers."""
    counts = Counter(pairs)
    return confusion(*(counts[pair] for pair in ((True, True), (False, True),
                                                 (True, False), (False, False))))  # fmt: skip


async def _check(checker: SupportChecker, members: Sequence[LabelledClaim]) -> CaseAnswers:
    answers: list[bool | None] = []
    usage, seconds, reasons = Usage(), 0.0, []
    starts = range(0, len(members), PER_CALL)
    for start in starts:
        batch, began = members[start : start + PER_CALL], perf_counter()
        try:
            support = await checker.check(members[0].question, [part.claim for part in batch])
        except ModelError as error:
            usage += usage_of_error(error)
            reasons.append(error.reason)
            answers += [None] * len(batch)
            continue
        usage += support.usage
        seconds += perf_counter() - began
        answers += support.supported
    return CaseAnswers(tuple(answers), usage, seconds, tuple(reasons), len(starts))


def _read(line: str, place: str) -> LabelledClaim:
    try:
        row = json.loads(line)
        labels = [row["supported"]] if "supported" in row else [
            row[reader]["supported"] for reader in ("first", "second")
        ]  # fmt: skip
        query, sentence, passage = row["query"], row["sentence"], row["passage"]
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"`{place}` is no labelled claim; see docs/evaluation.md") from None
    context = f"{row.get('item', '')} {passage}".strip()
    question = Question(query, row.get("about", ""))
    return LabelledClaim(question, Claim(sentence, passage, context), all(labels))
