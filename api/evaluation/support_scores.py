"""Measures a support check on labelled sentences and passages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, groupby
from statistics import median
from time import perf_counter
from typing import Any

from api.core.domain import Usage
from api.core.model_batches import usage_of_error
from api.core.ports import PER_CALL, SupportChecker
from api.errors import ModelError
from api.evaluation.judge_evaluation import Around
from api.evaluation.judge_scores import Answered, AnswerSheet, Opinion, verdicts_on
from api.evaluation.labelled_items import LabelledClaim
from api.evaluation.metrics import LabelledVerdict, measures, tally


@dataclass(frozen=True, slots=True)
class SupportResult:
    """Scores of a checker; a share over no cases is None."""

    checker: str
    claims: int
    supported: int  # claims whose label is supported
    precision: float | None  # supported claims among those it accepts
    recall: float | None  # accepted claims among the supported ones
    let_by: float | None  # accepted claims among the unsupported ones
    mcc: float | None
    kappa: float | None
    unanswered: int  # claims without an answer; they count in no measure
    usd: float | None
    ms_per_10: float | None  # milliseconds for ten claims, the median of the questions
    queries: Mapping[str, Mapping[str, Any]]
    """Tally that `compare` pairs, by question, as in the result of a judge."""

    def as_json(self) -> dict[str, Any]:
        """The result as `eval --format json` prints it."""
        return {"judge": self.checker, **asdict(self)}


def by_question(claims: Sequence[LabelledClaim]) -> list[list[LabelledClaim]]:
    """Consecutive claims of one question, together."""
    return [list(group) for _, group in groupby(claims, key=lambda labelled: labelled.question)]


async def evaluate_support(
    checker: SupportChecker, claims: Sequence[LabelledClaim], *, around: Around | None = None
) -> SupportResult:
    """Ask about all claims, those of one question together, and compare with the labels."""
    answered: dict[str, list[LabelledVerdict]] = {}
    usage, times = Usage(), []
    for number, members in enumerate(by_question(claims)):
        ask = partial(_check, checker, number, members)
        sheets = await (ask() if around is None else around(number, ask))
        verdicts = verdicts_on([labelled.supported for labelled in members], sheets)
        answered.setdefault(members[0].question.text, []).extend(verdicts)
        usage = sum((sheet.usage for sheet in sheets), usage)
        if verdicts:
            seconds = sum(sheet.answered.seconds for sheet in sheets if sheet.answered)
            times.append(seconds / len(verdicts) * 10_000)
    verdicts = list(chain.from_iterable(answered.values()))
    shares = measures(tally(verdicts))
    return SupportResult(
        checker.name,
        len(claims),
        sum(labelled.supported for labelled in claims),
        precision=shares["precision"], recall=shares["recall"], mcc=shares["mcc"],
        let_by=shares["kept_irrelevant"], kappa=shares["kappa"],
        unanswered=len(claims) - len(verdicts), usd=usage.usd,
        ms_per_10=round(median(times), 2) if times else None,
        queries={
            text: {"family": "", "tally": list(tally(given))} for text, given in answered.items()
        },
    )  # fmt: skip


async def _check(checker: SupportChecker, number: int, members: Sequence[LabelledClaim]) -> list[AnswerSheet]:
    sheets = []
    for start in range(0, len(members), PER_CALL):
        claims, began = [part.claim for part in members[start : start + PER_CALL]], perf_counter()
        try:
            support = await checker.check(members[0].question, claims)
        except ModelError as error:
            wasted = usage_of_error(error)
            sheets.append(AnswerSheet(number, start, None, wasted, error.reason))
            continue
        opinions = tuple(map(Opinion, support.supported))
        answered = Answered(opinions, support.usage, perf_counter() - began)
        sheets.append(AnswerSheet(number, start, answered))
    return sheets
