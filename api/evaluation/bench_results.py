"""Results of the public benchmark: a gate asked about all sets in every way, scored by set, task and part."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ValidationError, model_validator

from api.core.domain import Usage
from api.errors import ConfigurationError, ModelError, UsageError
from api.evaluation.bench_sets import BenchQuery, BenchSets
from api.evaluation.judge_evaluation import (
    AnswerCache,
    Candidate,
    EvaluationOptions,
    Progress,
    answer_sheets,
    order_stability,
)
from api.evaluation.judge_scores import Answered, AnswerSheet, Opinion, tallies_by_query
from api.evaluation.labelled_items import LabelledQuery
from api.evaluation.metrics import Measures, compare, grouped, measures, rounded, summary, tally, total

PASSES = {"described": True, "alone": False}
"""Ways to ask: with what each query is about, and without."""
REFERENCE = "keyword"
"""The gate that others are compared with."""
MIN_YIELD = 0.5
_WIDTH = len(tally(()))
_COUNTS = ("n", "relevant", "kept", "pages")
Row = dict[str, Any]


class _Figures(BaseModel):
    n: int
    relevant: int
    recall: float | None
    dropped: float | None
    mcc: float | None
    yield_mae: float | None
    refetch_right: float | None
    ece: float | None
    ms_per_1000: float | None
    usd_per_1000: float | None
    intervals: dict[str, tuple[float | None, float | None]]


class _Pass(BaseModel):
    groups: dict[str, _Figures]
    queries: dict[str, dict[str, Any]]


class _Stay(BaseModel):
    stay: float | None
    low: float | None
    high: float | None


class _Orders(BaseModel):
    shuffled: _Stay
    other_yield: _Stay


class _Difference(BaseModel):
    difference: float | None
    low: float | None
    high: float | None


class _Differences(BaseModel):
    mcc: _Difference


class _Comparison(BaseModel):
    overall: _Differences
    families: dict[str, _Differences]


class _ResultRow(BaseModel):
    gate: str
    judge: str
    how: str
    note: str
    unanswered: int
    described: _Pass
    alone: _Pass
    orders: dict[str, _Orders]


class _Results(BaseModel):
    version: Literal[1]
    listenpost: str
    page: int
    coverage: dict[str, tuple[int, int]]
    rows: list[_ResultRow]
    comparisons: dict[str, _Comparison]

    @model_validator(mode="after")
    def _has_orders(self) -> Self:
        """Check that each table of each row has its orders; the other groups are sets and test parts."""
        for row in self.rows:
            tables = {name for name in row.described.groups if name not in self.coverage and ", " not in name}
            if not tables <= row.orders.keys():
                raise ValueError("a table without orders")
        return self


@dataclass(frozen=True, slots=True)
class BenchRun:
    """Queries, texts and options that a gate is measured on."""

    sets: BenchSets
    chosen: Sequence[BenchQuery]
    queries: Sequence[LabelledQuery]
    """Queries that have texts; each query's family is its set."""
    options: EvaluationOptions

    def table(self, query: LabelledQuery) -> str:
        """The table of results that a query belongs to."""
        return self.sets.sets[query.family]["table"]

    def groups(self, query: LabelledQuery) -> list[str]:
        """Groups of a query: its set, its table, and the table's test part if it belongs to it."""
        parts = {(chosen.set, chosen.query): chosen.part for chosen in self.chosen}
        table = self.table(query)
        test = [f"{table}, test"] if parts[query.family, query.query] == "test" else []
        return [query.family, table, *test]


async def ask_gate(
    candidate: Candidate, run: BenchRun, cache: AnswerCache | None = None, progress: Progress | None = None
) -> tuple[dict[str, list[AnswerSheet]], dict[str, Any]]:
    """Ask in every way: answers by pass, and what stays in other orders by table."""
    sheets = {
        name: await answer_sheets(
            candidate, run.queries, replace(run.options, about=about), cache=cache, progress=progress
        )
        for name, about in PASSES.items()
    }
    tables = grouped(run.queries, run.table)
    orders = {
        name: await order_stability(candidate, queries, run.options, cache=cache) for name, queries in tables.items()
    }
    return sheets, orders


async def measure(
    candidate: Candidate, run: BenchRun, *, gate: str, how: str, note: str = "", timed: bool = True,
    cache: AnswerCache | None = None, progress: Progress | None = None,
) -> Row:  # fmt: skip
    """One row of the results; its milliseconds are unknown unless `timed`.

    Raises `ModelError` where every page of the described pass failed.
    """
    sheets, orders = await ask_gate(candidate, run, cache, progress)
    described = sheets["described"]
    lost = [len(page) for sheet, page in zip(described, _pages(run, described), strict=True) if not sheet.answered]
    if not any(sheet.answered for sheet in described):
        raise ModelError(next((sheet.reason for sheet in described), "malformed"), "no batch was answered")
    return {
        "gate": gate, "judge": candidate.name, "how": how, "note": note, "unanswered": sum(lost),
        **{name: _scored(run, answers, timed, all_groups=name == "described") for name, answers in sheets.items()},
        "orders": orders,
    }  # fmt: skip


def _scored(run: BenchRun, sheets: Sequence[AnswerSheet], timed: bool, *, all_groups: bool) -> Row:
    """Figures by group, and the counts by set and query they come from.

    A page without an answer is kept, as in the product; a group without any is left out unless `all_groups`.
    """
    answered = {sheet.query for sheet in sheets if sheet.answered}
    opened = [
        sheet if sheet.answered else replace(sheet, answered=Answered(tuple(Opinion(True) for _ in positions)))
        for sheet, positions in zip(sheets, _pages(run, sheets), strict=True)
    ]
    rows: list[tuple[LabelledQuery, tuple[float, ...]]] = []
    known_cost = True
    for number, query in enumerate(run.queries):
        mine = [replace(sheet, query=0) for sheet in opened if sheet.query == number]
        counted = tallies_by_query([query], mine, min_yield=MIN_YIELD)[query.query]
        usage = sum((sheet.usage for sheet in mine), Usage())
        known_cost = known_cost and usage.usd is not None
        seconds = sum(sheet.answered.seconds for sheet in mine if sheet.answered)
        rows.append((query, (*counted, seconds, usage.usd or 0.0)))
    groups: dict[str, list[tuple[str, tuple[float, ...]]]] = {}
    for query, counts in rows:
        for group in run.groups(query):
            groups.setdefault(group, []).append((query.query, counts))
    asked_groups = {group for number in answered for group in run.groups(run.queries[number])}
    return {
        "groups": {
            name: _figures(
                [total(counts for _, counts in members) for members in grouped(counted, _text).values()],
                {"ms_per_1000": timed, "usd_per_1000": known_cost},
            )
            for name, counted in sorted(groups.items())
            if all_groups or name in asked_groups
        },
        "queries": {
            f"{query.family}: {query.query}": {
                "family": query.family, "tally": [_short(part) for part in counts[:_WIDTH]],
            }
            for query, counts in rows
            if all_groups  # the pass that rows are compared by
        },
    }  # fmt: skip


def _short(part: float) -> float | None:
    """A part of a tally, as a whole number where it is one: most are."""
    return int(part) if part.is_integer() else rounded(part)


def _pages(run: BenchRun, sheets: Sequence[AnswerSheet]) -> list[range]:
    """Positions of the items of every page."""
    return [
        range(sheet.start, min(sheet.start + run.options.page, len(run.queries[sheet.query].items))) for sheet in sheets
    ]


def _text(row: tuple[str, tuple[float, ...]]) -> str:
    return row[0]


def _figures(counted: Sequence[tuple[float, ...]], known: Mapping[str, bool]) -> dict[str, Any]:
    """Every measure with its interval by query; cost and time where they are `known`."""

    def measured(drawn: Sequence[tuple[float, ...]]) -> Measures:
        both = total(drawn)
        figures, (seconds, usd) = measures(both[:_WIDTH]), both[_WIDTH:]
        wrong, n = figures["kept_irrelevant"], figures["n"] or 1
        costs = {"ms_per_1000": seconds / n * 1_000_000, "usd_per_1000": usd / n * 1_000}
        return {
            **figures, "dropped": None if wrong is None else 1 - wrong,
            **{name: cost if known[name] else None for name, cost in costs.items()},
        }  # fmt: skip

    return summary(counted, measured, _COUNTS)


def _comparisons(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Each gate's differences to the reference with intervals, by set; none where that is not among the rows."""
    results = {row["gate"]: {"judge": row["gate"], "queries": row["described"]["queries"]} for row in rows}
    reference = results.pop(REFERENCE, None)
    return {} if reference is None else {gate: compare(mine, reference) for gate, mine in results.items()}


def results_of(rows: Sequence[Row], run: BenchRun, coverage: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    """The results of a run as one JSON object."""
    return {
        "version": 1, "listenpost": version("listenpost"), "page": run.options.page,
        "coverage": {name: list(counts) for name, counts in coverage.items()},
        "rows": list(rows), "comparisons": _comparisons(rows),
    }  # fmt: skip


def read_results(path: Path) -> dict[str, Any]:
    """Results that `bench run --out` wrote; raises `UsageError` for anything else."""
    try:
        held = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}") from None
    except ValueError:
        held = None
    try:
        _Results.model_validate(held)
    except ValidationError:
        raise UsageError(f"`{path}` holds no results of the benchmark; write them with `bench run --out`") from None
    return dict(held)


def merged(results: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Results with the rows of later ones, which replace those of the same gate.

    Raises `UsageError` where they were measured on other texts.
    """
    for field, what in (("coverage", "texts"), ("page", "batches")):
        if results[field] != later[field]:
            raise UsageError(f"the results were measured on other {what}; write each to a file of its own")
    new = {row["gate"]: row for row in later["rows"]}
    kept = [new.pop(row["gate"], row) for row in results["rows"]]
    rows = [*kept, *new.values()]
    return {**results, "listenpost": later["listenpost"], "rows": rows, "comparisons": _comparisons(rows)}


def write_results(results: Mapping[str, Any], path: Path) -> None:
    """Write results atomically; results of other gates in the file are kept."""
    if path.exists():
        results = merged(read_results(path), results)
    partial = path.with_name(f"{path.name}.part")
    try:
        partial.write_text(json.dumps(results, ensure_ascii=False) + "\n", "utf-8")
        os.replace(partial, path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise ConfigurationError(f"`{path}` cannot be written ({error.strerror})") from None
