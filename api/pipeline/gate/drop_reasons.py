"""Why a judge dropped an item, as an answer words it, and what of that the judge itself gave.

Why an item is judged by nobody, where others than its source need to know.
"""

from __future__ import annotations

from api.core.domain import Verdict


def drop_reason(verdict: Verdict) -> str:
    """What decided, where the judge says so: `names no plaud (7 % likely)`."""
    reason = verdict.reason or _unexplained(verdict.judge)
    return reason + _likely(verdict.probability)


def judge_reason(reason: str, judge: str | None, probability: float | None) -> str:
    """What the judge said of it, out of `drop_reason`; empty where it answered yes or no alone."""
    given = reason.removesuffix(_likely(probability))
    return "" if given == _unexplained(judge) else given


def _unexplained(judge: str | None) -> str:
    return f"judged off topic by {judge or 'the gate'}"


def _likely(probability: float | None) -> str:
    return "" if probability is None else f" ({probability * 100:.0f} % likely)"
