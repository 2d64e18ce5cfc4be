"""Why an item is dropped, in words: as unfit to be judged (`Item.unfit`), or by a judge."""

from __future__ import annotations

from api.core.domain import Verdict

REMOVED = "title and text were removed"
"""The source says that the item is gone; stored copies of it are deleted, too."""
INVISIBLE = "no title and no text that can be seen"
BY_BOT = "written by a bot"
PULL_REQUEST = "a pull request, not an issue"


def drop_reason(verdict: Verdict) -> str:
    """The judge's reason, or who dropped it, with the likelihood: `names no plaud (7 % likely)`."""
    reason = verdict.reason or _without_reason(verdict.judge)
    return reason + _likelihood(verdict.probability)


def judge_reason(reason: str, judge: str | None, probability: float | None) -> str:
    """The judge's part of a `drop_reason`; empty where it gave none."""
    given = reason.removesuffix(_likelihood(probability))
    return "" if given == _without_reason(judge) else given


def _without_reason(judge: str | None) -> str:
    return f"judged off topic by {judge or 'the gate'}"


def _likelihood(probability: float | None) -> str:
    return "" if probability is None else f" ({probability * 100:.0f} % likely)"
