"""Corrections: what a person says of an item's relevance; later questions learn from it.

There is one for each tenant, question and item, and the last one stands. A question is recognised
by product, description and aim, in any spelling, so that watches and later analyses find it.

They also say how right the gate was: of every stratum of the judge's probability there is a
distribution over how many relevant items it holds (beta-binomial, over the items that nobody read),
and the figures are means and 95 % intervals of sums of these.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, pairwise
from math import exp, lgamma
from random import Random
from statistics import fmean
from typing import Protocol

from api.core.domain import Correction, Question
from api.core.words import canonical
from api.pipeline.question.product_name import judged_words
from api.reports.report import Report

MOST = 500
"""Corrections of one question that a tenant can keep."""
LONGEST_BODY = 1_000
"""Longest text of a corrected item that is kept, in characters: what the local judge reads."""


@dataclass(frozen=True, slots=True)
class StoredCorrection:
    """A correction with the question it belongs to."""

    correction: Correction
    question: str
    """Digest of the question, made by `question_digest`."""
    query: str
    about: str
    source: str
    """The source of the item."""
    created_at: datetime
    """Time of the correction, aware UTC."""


@dataclass(frozen=True, slots=True)
class ChosenSense:
    """The sense of an ambiguous name that a person chose."""

    about: str
    not_about: tuple[str, ...]


class CorrectionBook(Protocol):
    """Corrections and chosen senses of every tenant; a deleted item takes its corrections along.

    A sense is looked up by `question_digest` of the name alone.
    """

    async def choose_sense(self, tenant: str, question: str, sense: ChosenSense | None) -> None:
        """Store a sense in place of the earlier one; None removes it."""
        ...

    async def chosen_sense(self, tenant: str, question: str) -> ChosenSense | None:
        """The sense that was chosen last; None when none was."""
        ...

    async def put_correction(self, tenant: str, entry: StoredCorrection, most: int) -> None:
        """Store it in place of what the tenant said of the same item before.

        Raises:
            UsageError: the question has `most` of them already.
        """
        ...

    async def corrections(self, tenant: str, question: str | None = None) -> Sequence[StoredCorrection]:
        """Corrections of one question, or of all the tenant's when it is None; oldest first."""
        ...

    async def remove_correction(self, tenant: str, question: str, key: str) -> bool:
        """Remove the correction; whether there was one."""
        ...


def question_digest(question: Question) -> str:
    """SHA-256 of product, description and aim: the same in any spelling and word of asking."""
    named = judged_words(question.text)
    parts = [canonical(named) or named, canonical(question.about), question.aim]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


async def corrections_of(store: CorrectionBook, tenant: str, question: Question) -> tuple[Correction, ...]:
    """The tenant's corrections for this question, oldest first."""
    entries = await store.corrections(tenant, question_digest(question))
    return tuple(entry.correction for entry in entries)


def labelled_lines(entries: Sequence[StoredCorrection]) -> list[str]:
    """The corrections as labelled queries, a line of JSON each, which `listenpost eval` reads."""
    groups: dict[tuple[str, str], list[StoredCorrection]] = {}
    for entry in entries:
        groups.setdefault((entry.question, entry.source), []).append(entry)
    return [
        json.dumps(
            {
                "query": group[0].query,
                "about": group[0].about,
                "source_hint": source,
                "items": [
                    {
                        "title": entry.correction.title,
                        "body": entry.correction.body,
                        "relevant": entry.correction.relevant,
                    }
                    for entry in group
                ],
            },
            ensure_ascii=False,
        )
        for (_, source), group in groups.items()
    ]


FEWEST_READ = 20
"""Corrections from which precision and recall of a report are stated; fewer say little."""


@dataclass(frozen=True, slots=True)
class GateQuality:
    """Precision and recall of the gate on one report, estimated from the items that a person read."""

    read: int
    """Items of the report that have a correction."""
    precision: UncertainFigure | None
    """Share of kept items that are relevant; None when none was kept."""
    recall: UncertainFigure | None
    """Share of relevant items that were kept; None when there may be none."""
    missed: UncertainFigure
    """Relevant items among the dropped ones."""


def probabilities_of(report: Report) -> tuple[dict[str, float], dict[str, float]]:
    """The judge's probability of each kept item and of each that the gate dropped, by key.

    A judge that gives none counts as sure to nine tenths.
    """
    kept = {item.key: _probability(item.probability, 0.9) for item in report.items}
    dropped = {item.key: _probability(item.probability, 0.1) for item in report.dropped if item.dropped_by == "gate"}
    return kept, dropped


def _probability(probability: float | None, without: float) -> float:
    return without if probability is None else probability


def gate_quality(report: Report, corrections: Iterable[Correction]) -> GateQuality:
    """Estimates from the corrected items, with 95 % intervals; some 10 ms for 100 items."""
    kept, dropped = probabilities_of(report)
    read = {entry.key: entry.relevant for entry in corrections if entry.key in kept or entry.key in dropped}
    return GateQuality(len(read), precision(kept, read), recall(kept, dropped, read), missed(dropped, read))


STRATA = 2
"""Parts of equal size from which items are drawn, the less and the more probable ones."""
PRIOR, LEAST = 1.0, 0.03
"""Weight of the judge's mean probability in a stratum, as a number of read items; least weight of a verdict it
considers impossible."""
TAIL = 0.025
"""Probability that is left out on each side of an interval."""


@dataclass(frozen=True, slots=True)
class UncertainFigure:
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float


def audit_sample(probabilities: Mapping[str, float], count: int, seed: int = 0) -> list[str]:
    """Keys of `count` items to read, drawn in turn from each stratum; the same for the same seed."""
    strata = [list(stratum) for stratum in _strata(probabilities)]
    random = Random(seed)  # noqa: S311 # nosec B311 # a sample, no secret
    for stratum in strata:
        random.shuffle(stratum)
    drawn: list[str] = []
    while len(drawn) < count and any(strata):
        drawn += [stratum.pop() for stratum in strata if stratum]
    return drawn[:count]


def missed(dropped: Mapping[str, float], read: Mapping[str, bool]) -> UncertainFigure:
    """Estimated number of relevant items that the gate dropped.

    Args:
        dropped: the judge's probability of each dropped item, by key.
        read: whether an item is relevant, by key, of those that somebody read.
    """
    return _summary(_relevant(dropped, read))


def precision(kept: Mapping[str, float], read: Mapping[str, bool]) -> UncertainFigure | None:
    """Share of kept items that are relevant; None when none was kept."""
    if not kept:
        return None
    return _summary((count / len(kept), chance) for count, chance in _relevant(kept, read))


def recall(kept: Mapping[str, float], dropped: Mapping[str, float], read: Mapping[str, bool]) -> UncertainFigure | None:
    """Share of relevant items that were kept; None when there may be none at all."""
    shares = [
        (
            kept_count / (kept_count + lost_count) if kept_count + lost_count else None,
            chance * other,
        )
        for kept_count, chance in _relevant(kept, read)
        for lost_count, other in _relevant(dropped, read)
    ]
    known = [(share, chance) for share, chance in shares if share is not None]
    total = sum(chance for _, chance in known)
    return _summary((share, chance / total) for share, chance in known) if total else None


def _strata(probabilities: Mapping[str, float]) -> list[Sequence[str]]:
    ordered = sorted(probabilities, key=lambda key: (probabilities[key], key))
    bounds = [len(ordered) * part // STRATA for part in range(STRATA + 1)]
    return [ordered[low:high] for low, high in pairwise(bounds) if low < high]


def _relevant(probabilities: Mapping[str, float], read: Mapping[str, bool]) -> list[tuple[int, float]]:
    """The possible numbers of relevant items with their chances."""
    read_relevant, chances = 0, [1.0]
    for stratum in _strata(probabilities):
        answers = [read[key] for key in stratum if key in read]
        likely = PRIOR * fmean(probabilities[key] for key in stratum)
        relevant = sum(answers)
        unread = _beta_binomial(
            len(stratum) - len(answers),
            LEAST + likely + relevant,
            LEAST + PRIOR - likely + len(answers) - relevant,
        )
        read_relevant += relevant
        chances = _sum_of(chances, unread)
    return [(read_relevant + more, chance) for more, chance in enumerate(chances)]


def _beta_binomial(size: int, yes: float, no: float) -> list[float]:
    scale = lgamma(size + 1) - lgamma(yes) - lgamma(no) + lgamma(yes + no) - lgamma(size + yes + no)
    return [
        exp(
            scale + lgamma(count + yes) + lgamma(size - count + no)
            - lgamma(count + 1) - lgamma(size - count + 1)
        )
        for count in range(size + 1)
    ]  # fmt: skip


def _sum_of(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Chances of the sum of two independent counts."""
    chances = [0.0] * (len(first) + len(second) - 1)
    for at, chance in enumerate(first):
        for more, other in enumerate(second):
            chances[at + more] += chance * other
    return chances


def _summary(distribution: Iterable[tuple[float, float]]) -> UncertainFigure:
    """Mean and interval of values with their chances, of which the sum is 1."""
    values, chances = zip(*sorted(distribution), strict=True)
    below = list(accumulate(chances))
    # the last place also where rounding leaves the sum just short of what is sought
    low = min(bisect_left(below, TAIL), len(values) - 1)
    high = min(bisect_left(below, 1 - TAIL), len(values) - 1)
    mean = sum(value * chance for value, chance in zip(values, chances, strict=True))
    return UncertainFigure(mean, values[low], values[high])
