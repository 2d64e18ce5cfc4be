"""Two results side by side: paired differences, and whether one is worse for certain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from api.errors import UsageError
from api.lab.metrics import Measures, Tally, differences, intervals, rounded, tally, total

_WIDTH = len(tally(()))
_COMPARED = (
    "precision", "recall", "f1", "balanced_accuracy", "mcc", "kept_irrelevant", "yield_mae",
    "refetch_right", "ece",
)  # fmt: skip


def compare(mine: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Differences (mine minus other) with intervals, over the queries that both results hold.

    A query counts when both have answers to the same items of it; else a judge would gain by not
    answering what is hard. `unpaired` and `missing` are those of the first and of the second
    alone, `changed` are not the same items in both.

    Raises:
        UsageError: a result is malformed, or no query is in both.
    """
    try:
        shared = {
            name: (row["family"], _tally_of(row), _tally_of(other["queries"][name]))
            for name, row in mine["queries"].items()
            if name in other["queries"]
        }
        judges = mine["judge"], other["judge"]
        alone, missing = (len(part["queries"]) - len(shared) for part in (mine, other))
    except (KeyError, TypeError, ValueError):
        raise UsageError(
            "the result to compare with is malformed; write it with `--format json`"
        ) from None
    paired = [
        (family, first + second)
        for family, first, second in shared.values()
        if _labels(first) == _labels(second)
    ]
    if not paired:
        raise UsageError(
            "the two results share no query with the same items; evaluate both on the same files"
        )
    families = sorted({family for family, _ in paired})
    return {
        "judge": judges[0],
        "other": judges[1],
        "queries": len(paired),
        "unpaired": alone,
        "missing": missing,
        "changed": len(shared) - len(paired),
        "overall": _differing([both for _, both in paired]),
        "families": {
            name: _differing([both for family, both in paired if family == name])
            for name in families
        },
    }


def is_regression(comparison: Mapping[str, Any], threshold: float) -> bool:
    """Whether the first judge's MCC is lower by more than `threshold` (0 or less) for certain.

    That is when the whole 95 % interval of the difference lies below it: `high < threshold`. A
    difference that noise may explain, or that the threshold allows, is none.

    Raises:
        UsageError: there is no interval.
    """
    high = comparison["overall"]["mcc"]["high"]
    if high is None:
        raise UsageError(
            "there is no interval to decide by; it takes several queries, each with relevant and "
            "irrelevant items"
        )
    return bool(high < threshold)


def _tally_of(row: Mapping[str, Any]) -> Tally:
    values = tuple(float(value) for value in row["tally"])
    if len(values) != _WIDTH:
        raise ValueError("columns are missing")
    return values


def _labels(counted: Tally) -> tuple[float, float]:
    """How many items are relevant, and how many are not."""
    right, wrongly_kept, missed, dropped = counted[:4]
    return right + missed, wrongly_kept + dropped


def _differing(both: Sequence[Tally]) -> dict[str, dict[str, float | None]]:
    def differing(drawn: Sequence[Tally]) -> Measures:
        return differences(total(drawn))

    spread, point = intervals(both, differing), differing(both)
    return {
        name: {
            "difference": rounded(point[name]),
            "low": rounded(spread[name][0]) if name in spread else None,
            "high": rounded(spread[name][1]) if name in spread else None,
        }
        for name in _COMPARED
    }
