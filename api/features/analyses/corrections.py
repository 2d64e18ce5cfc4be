"""Corrections: what a person says of an item's relevance; later questions learn from it.

There is one for each tenant, question and item, and the last one stands. A question is recognised
by product, description and aim, in any spelling, so that watches and later analyses find it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from api.core.domain import Correction, Question
from api.core.words import canonical
from api.features.analyses import audit
from api.features.analyses.audit import UncertainFigure
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
    """See `question_digest`."""
    query: str
    about: str
    source: str
    """The source of the item."""
    created_at: datetime
    """Time of the correction, aware UTC."""


@dataclass(frozen=True, slots=True)
class ChosenSense:
    """Which of the things that share a name is meant, as a person chose it."""

    about: str
    not_about: tuple[str, ...]


class CorrectionBook(Protocol):
    """Corrections and chosen senses of every tenant; a deleted item takes its corrections along.

    A sense is looked up by `question_digest` of the name alone.
    """

    async def choose_sense(self, tenant: str, question: str, sense: ChosenSense | None) -> None:
        """Store it in place of the one before; None forgets that."""
        ...

    async def chosen_sense(self, tenant: str, question: str) -> ChosenSense | None:
        """What was chosen last; None where nothing was."""
        ...

    async def put_correction(self, tenant: str, entry: StoredCorrection, most: int) -> None:
        """Store it in place of what the tenant said of the same item before.

        Raises:
            UsageError: the question has `most` of them already.
        """
        ...

    async def corrections(self, tenant: str, question: str | None = None) -> Sequence[StoredCorrection]:
        """Of one question, or all of the tenant; oldest first."""
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
    """What the tenant said of items of this question before, oldest first."""
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
    """How right the gate was about the items of one report, by what a person read of them."""

    read: int
    """Items of the report that have a correction."""
    precision: UncertainFigure | None
    """Share of the kept items that is relevant; None where none was kept."""
    recall: UncertainFigure | None
    """Share of the relevant items that was kept; None where there may be none."""
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
    return GateQuality(
        len(read), audit.precision(kept, read), audit.recall(kept, dropped, read),
        audit.missed(dropped, read),
    )  # fmt: skip
