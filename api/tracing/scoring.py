"""Which scores a source and a question get: one name has one meaning and one level.

What is not known has no score, and what was not judged no yield, so that every mean is one of
what was measured.
"""

from __future__ import annotations

from collections.abc import Sequence

from api.services.ports import Facts
from api.services.schemas import Gathered, open_reason

Score = bool | float | str
_ENDING = {"analyze": "decision", "chat": "turn_outcome"}
"""How a question ended, by its kind; how a `fetch` did stands at its source."""


def source_scores(gathered: Gathered) -> dict[str, Score]:
    """Of asking one source; of one that did not answer its outcome alone."""
    scores: dict[str, Score] = {"outcome": str(gathered.outcome)}
    if not gathered.outcome.answered:
        return scores
    reason = open_reason(gathered.attempts)
    scores |= {"refetched": gathered.refetched, "fail_open": reason is not None}
    if gathered.refetched:
        scores["refetch_gain"] = float(gathered.refetch_gain)
    if gathered.status == "ok" and gathered.yield_ratio is not None:
        scores["relevance_yield"] = gathered.yield_ratio
    if reason is not None:
        scores["fail_open_reason"] = reason
    return scores


def run_scores(name: str, facts: Facts, searches: Sequence[Gathered]) -> dict[str, Score]:
    """Of one question of this name; of one for which nobody was asked its ending alone."""
    scores: dict[str, Score] = {_ENDING[name]: facts.decision} if name in _ENDING else {}
    if not (searches or facts.upstream_calls or facts.usd):
        return scores
    scores |= {
        "items_kept": float(facts.items_kept),
        "upstream_calls": float(facts.upstream_calls),
    }
    if facts.items_cited is not None:
        scores["items_cited"] = float(facts.items_cited)
    if facts.support_rate is not None:
        scores["support_rate"] = facts.support_rate
    if facts.usd is not None:
        scores["run_cost_usd"] = facts.usd
    answers = [gathered for gathered in searches if gathered.outcome.answered]
    degraded = any(gathered.status == "degraded" for gathered in answers)
    if facts.usd is not None and facts.items_kept and not degraded:
        scores["cost_per_kept_item_usd"] = facts.usd / facts.items_kept
    if answers:
        kept, judged = _judged(answers)
        scores |= {
            "run_refetched": any(gathered.refetched for gathered in answers),
            "run_fail_open": any(open_reason(gathered.attempts) for gathered in answers),
            "items_judged": float(judged),
        }
        if judged and not degraded:
            scores["run_yield"] = kept / judged
    return scores


def older_scores(facts: Facts, searches: Sequence[Gathered]) -> dict[str, Score]:
    """What stood on a trace under names that now mean something else; gone in 0.2.0."""
    scores: dict[str, Score] = {"decision": facts.decision}
    answers = [gathered for gathered in searches if gathered.outcome.answered]
    if answers:
        kept, judged = _judged(answers)
        scores |= {
            "refetched": any(gathered.refetched for gathered in answers),
            "refetch_gain": float(sum(gathered.refetch_gain for gathered in answers)),
            "fail_open": any(open_reason(gathered.attempts) for gathered in answers),
        }
        if judged:
            scores["relevance_yield"] = kept / judged
    return scores


def _judged(answers: Sequence[Gathered]) -> tuple[int, int]:
    """Items that are relevant, and items with a sound verdict: each once, over all sources."""
    sound = [gathered for gathered in answers if gathered.status == "ok"]
    kept = {entry.item.original for gathered in sound for entry in gathered.kept}
    dropped = {
        entry.item.original
        for gathered in sound
        for entry in gathered.dropped
        if entry.dropped_by != "unfit"
    }
    return len(kept), len(kept | dropped)
