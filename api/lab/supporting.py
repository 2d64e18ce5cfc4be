"""How good a support check is on labelled sentences and passages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from api.errors import ModelError, UsageError
from api.lab.metrics import cohen_kappa
from api.services.bills import bill_of
from api.services.ports import PER_CALL, Claim, SupportChecker
from api.services.schemas import Question, Usage


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
    kappa: float | None
    unanswered: int
    """Claims without an answer; they count in no figure."""
    usd: float | None

    def as_json(self) -> dict[str, Any]:
        """The result as `eval --format json` prints it."""
        return asdict(self)


def read_claims(lines: Sequence[str], name: str) -> list[LabelledClaim]:
    """One claim a line: `query`, `sentence`, `passage`, and perhaps `about` and `item`.

    Its label is `supported`, or the two readings `first` and `second`, which must agree on yes.

    Raises:
        UsageError: a line that is none of these.
    """
    return [_read(line, f"{name}:{at}") for at, line in enumerate(lines, 1) if line.strip()]


async def evaluate_support(
    checker: SupportChecker, claims: Sequence[LabelledClaim]
) -> SupportResult:
    """Ask about all claims, those of one question together, and compare with the labels."""
    answers: list[tuple[bool, bool]] = []
    usage = Usage()
    for question, group in groupby(claims, key=lambda labelled: labelled.question):
        members = list(group)
        for start in range(0, len(members), PER_CALL):
            batch = members[start : start + PER_CALL]
            try:
                support = await checker.check(question, [labelled.claim for labelled in batch])
            except ModelError as error:
                usage += bill_of(error)
                continue
            usage += support.usage
            labels = (labelled.supported for labelled in batch)
            answers += zip(labels, support.supported, strict=True)
    passed = [label for label, answer in answers if answer]
    good = [answer for label, answer in answers if label]
    bad = [answer for label, answer in answers if not label]
    kappa = cohen_kappa([label for label, _ in answers], [answer for _, answer in answers])
    return SupportResult(
        checker.name, len(claims), sum(labelled.supported for labelled in claims),
        _share(passed), _share(good), _share(bad), kappa, len(claims) - len(answers), usage.usd,
    )  # fmt: skip


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


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
