"""The vocabulary: frozen classes for most words of docs/architecture.md, The idea."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from api.choices import Aim, Window

if TYPE_CHECKING:
    from pydantic import ConfigDict


Status = Literal["ok", "degraded", "skipped"]
Stage = Literal["unfit", "excluded", "gate", "cutoff", "floor", "duplicate"]
BEFORE_JUDGING: frozenset[Stage | None] = frozenset({"unfit", "excluded"})
"""Stages that drop an item before a judge sees it."""
EXCLUDED = "excluded: "
"""Begins the reason why an item is unfit that the question leaves out."""
PUBLISHED_VALUE: ConfigDict = {"extra": "ignore"}
"""Of a dataclass within a `Published`, which has no room for what it does not know."""


class Outcome(StrEnum):
    """How asking a source ended; a closed set."""

    OK = "ok"
    EMPTY = "empty"
    IRRELEVANT = "irrelevant"
    NOT_CONFIGURED = "not_configured"
    REFUSED = "refused"
    RATE_LIMITED = "rate_limited"
    QUOTA_EXHAUSTED = "quota_exhausted"
    BLOCKED = "blocked"
    TIMED_OUT = "timed_out"
    UNREACHABLE = "unreachable"
    BROKEN = "broken"
    CANCELLED = "cancelled"
    NOT_ASKED = "not_asked"

    @classmethod
    def of(cls, code: str) -> Outcome:
        """What an error with this code leads to; `broken` where no outcome has its name."""
        return next((outcome for outcome in cls if outcome == code), cls.BROKEN)

    @property
    def answered(self) -> bool:
        """Whether the source could be asked and answered, were it with nothing."""
        return self in {Outcome.OK, Outcome.EMPTY, Outcome.IRRELEVANT}


class Decision(StrEnum):
    """What kind of answer the evidence allows."""

    FULL = "full_report"
    SHORT = "short_report"
    INSUFFICIENT = "insufficient_data"
    CLARIFY = "clarify"
    UNJUDGED = "unjudged"


@dataclass(frozen=True, slots=True)
class Correction:
    """A person's verdict on one item of a question; the item is never judged again."""

    key: str
    """Key of the corrected item, such as `reddit:t3_1abc`."""
    relevant: bool
    title: str
    body: str = ""
    """Beginning of the item's text, as a judge is shown it."""
    place: str = ""
    """Subreddit, channel or brand of the item."""


@dataclass(frozen=True, slots=True)
class Sense:
    """One of the things that share a name, as a group of items about it."""

    __pydantic_config__: ClassVar = PUBLISHED_VALUE
    number: int
    """From 1; the largest group first."""
    words: tuple[str, ...]
    """What its items have in common and those of the other groups have not, the clearest first."""
    titles: tuple[str, ...]
    """Of its two most central items."""
    count: int
    """How many items the group holds."""
    kept: int = 0
    """Those of them that the gate kept."""
    name: str = ""
    """What kind of thing it is, as a model says; empty where none did."""

    @property
    def description(self) -> str:
        """It in words that a judge can compare: its name, where it has one, and what its items have in common."""
        return "; ".join(filter(None, (self.name, ", ".join(self.words))))


@dataclass(frozen=True, slots=True)
class Question:
    """What the person asked; judges always judge against this, never against a rewritten query."""

    text: str
    about: str = ""
    """What the product is; optional words that tell it from its namesakes."""
    not_about: tuple[str, ...] = ()
    """What it is not: one namesake or topic each."""
    aim: Aim = "about"
    """What makes an item relevant: that it is about the product, or that it mentions it."""
    corrections: tuple[Correction, ...] = ()
    """What this tenant said of items of this question before; each item once."""


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """The query, window and number of items that one source is asked for."""

    query: str
    limit: int
    window: Window = "all"
    name: str = field(default="", compare=False)
    """The product's name as it may stand in the query; empty: nobody knows."""

    def widened(self, factor: int) -> Self:
        """The same question, `factor` times as many items."""
        return replace(self, limit=self.limit * factor)


@dataclass(frozen=True, slots=True)
class Usage:
    """What model calls used; `usd` is None when the model's price is unknown."""

    __pydantic_config__: ClassVar = PUBLISHED_VALUE
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0
    requests: int = 0
    """Answers of models; the judge on this machine gives none."""

    def __add__(self, other: Usage) -> Usage:
        """The sum; an unknown price stays unknown."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            None if self.usd is None or other.usd is None else self.usd + other.usd,
            self.requests + other.requests,
        )


@dataclass(frozen=True, slots=True)
class Agreement:
    """What was promised of the verdicts on some posts, who gave them, and what that saved."""

    __pydantic_config__: ClassVar = PUBLISHED_VALUE
    target: float
    """Least share of the verdicts that are the model's, or what the model would say."""
    confidence: float
    """Probability of at least which that holds."""
    judged: int
    local: int
    """Of the judged posts, those that the local judge decided."""
    sample: int
    """Posts that both judges have judged: what the promise rests on. The model's verdicts on them were paid for."""
    saved: Usage
    """About what the model would have used for the posts that the local judge decided."""

    def __add__(self, other: Agreement) -> Agreement:
        """Of both batches; the larger sample holds the other's."""
        return replace(
            self, judged=self.judged + other.judged, local=self.local + other.local,
            sample=max(self.sample, other.sample), saved=self.saved + other.saved,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """One judge's answer about one item."""

    relevant: bool
    judge: str = ""
    """Name and version of the judge; empty when nobody judged."""
    probability: float | None = None
    """Calibrated, where the judge has one."""
    disputed: bool = False
    """A second judge is sure of the opposite."""
    reason: str = ""
    """What decided, in a few words; empty where the judge does not say."""
    place: tuple[str, int] | None = field(default=None, compare=False)
    """Key of the first item of the call that judged it, and the item's number in that call, from 1."""
    second: bool | None = field(default=None, compare=False)
    """What a second judge says, sure or not; None: it was not asked."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One fetch and the judging of what was new in it."""

    __pydantic_config__: ClassVar = PUBLISHED_VALUE
    limit: int
    fetched: int
    new: int
    relevant: int
    """Of the new ones, those that a judge said yes to."""
    requests: int
    status: Status
    reason: str | None = None


def passed_unjudged(status: Status, model: str | None) -> bool:
    """The gate failed and no other judge stood in: what passed is not known to be relevant."""
    return status == "degraded" and model is None


def open_reason(attempts: Iterable[Attempt]) -> str | None:
    """Why items went without a verdict: the first reason; None when none did."""
    # a fetch that failed brought nothing that could go unjudged
    opened = (entry for entry in attempts if entry.status == "degraded" and entry.new)
    return next((entry.reason or "unknown" for entry in opened), None)


@dataclass(frozen=True, slots=True)
class Grade:
    """How well one item answers the question."""

    score: int
    """From 1 (worst) to 5 (best)."""
    explanation: str = ""
    defaulted: bool = False
    """No grade could be had; 3 stands in."""
    sentiment: int | None = None
    """-1 negative, 0 neutral, 1 positive."""
    aspects: tuple[str, ...] = ()
    quote: str = ""
    """Words of the item, verbatim."""

    @property
    def relevance(self) -> float:
        """The score on a scale from 0 to 1."""
        return (self.score - 1) / 4


DAYS_BY_DAY = 31
"""Longest span that a timeline counts by day; longer ones are counted by week or month."""


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
