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
"""Configuration of a dataclass inside a `Published` model: unknown keys are ignored, since it cannot hold them."""


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
        """The outcome for an error's code; `broken` when no outcome has its name."""
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
    """One of several things that share a name, described by a group of items about it."""

    __pydantic_config__: ClassVar = PUBLISHED_VALUE
    number: int
    """Number of the sense, from 1; the largest group comes first."""
    words: tuple[str, ...]
    """Words that its items share and those of the other groups do not, the clearest first."""
    titles: tuple[str, ...]
    """Titles of its two most central items."""
    count: int
    """How many items the group holds."""
    kept: int = 0
    """How many items of the group the gate kept."""
    name: str = ""
    """Kind of thing, in a model's words; empty when no model named it."""

    @property
    def description(self) -> str:
        """Description for a judge: the name, if there is one, and what the items have in common."""
        return "; ".join(filter(None, (self.name, ", ".join(self.words))))


@dataclass(frozen=True, slots=True)
class Question:
    """The person's question; judges always use it, never a rewritten query."""

    text: str
    about: str = ""
    """Optional description that tells the product from others of its name."""
    not_about: tuple[str, ...] = ()
    """Exclusions, each one other thing of the same name or one topic."""
    aim: Aim = "about"
    """What makes an item relevant: that it is about the product, or that it mentions it."""
    corrections: tuple[Correction, ...] = ()
    """The tenant's earlier corrections of items for this question, one for each item."""


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """The query, window and number of items that one source is asked for."""

    query: str
    limit: int
    window: Window = "all"
    name: str = field(default="", compare=False)
    """The product's name as it may stand in the query; empty when it is unknown."""

    def widened(self, factor: int) -> Self:
        """The same plan with `factor` times as many items."""
        return replace(self, limit=self.limit * factor)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, requests and cost of model calls; `usd` is None when a model's price is unknown."""

    __pydantic_config__: ClassVar = PUBLISHED_VALUE
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0
    requests: int = 0
    """Number of requests that a model answered; the local judge counts none."""

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
    """Promised agreement of verdicts on some posts, the judges that gave them, and the savings."""

    __pydantic_config__: ClassVar = PUBLISHED_VALUE
    target: float
    """Least share of the verdicts that are the model's, or what the model would say."""
    confidence: float
    """Probability of at least which that holds."""
    judged: int
    local: int
    """Number of judged posts whose verdict is the local judge's."""
    sample: int
    """Posts that both judges have judged: what the promise rests on. The model's verdicts on them were paid for."""
    saved: Usage
    """About what the model would have used for the posts that the local judge decided."""

    def __add__(self, other: Agreement) -> Agreement:
        """Sum of two batches; the sample size is the larger one, since that sample contains the other."""
        return replace(
            self, judged=self.judged + other.judged, local=self.local + other.local,
            sample=max(self.sample, other.sample), saved=self.saved + other.saved,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """One judge's answer about one item."""

    relevant: bool
    judge: str = ""
    """Name and version of the judge; empty when the item was not judged."""
    probability: float | None = None
    """Probability that the item is relevant; None when the judge gives none."""
    disputed: bool = False
    """A second judge is sure of the opposite."""
    reason: str = ""
    """What decided, in a few words; empty when the judge gives no reason."""
    place: tuple[str, int] | None = field(default=None, compare=False)
    """Key of the first item of the call that judged it, and the item's number in that call, from 1."""
    second: bool | None = field(default=None, compare=False)
    """Verdict of a second judge, however sure it is; None when it was not asked."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One fetch and the judging of what was new in it."""

    __pydantic_config__: ClassVar = PUBLISHED_VALUE
    limit: int
    fetched: int
    new: int
    relevant: int
    """Number of new items that a judge found relevant."""
    requests: int
    status: Status
    reason: str | None = None


def passed_unjudged(status: Status, model: str | None) -> bool:
    """The gate failed and no other judge stood in: what passed is not known to be relevant."""
    return status == "degraded" and model is None


def open_reason(attempts: Iterable[Attempt]) -> str | None:
    """Reason of the first attempt whose items got no verdict; None when all were judged."""
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
    """Whether no grade was available; `score` is then 3."""
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
"""Reason of an item that its source deleted; stored copies of it are deleted, too."""

INVISIBLE = "no title and no text that can be seen"

BY_BOT = "written by a bot"

PULL_REQUEST = "a pull request, not an issue"


def drop_reason(verdict: Verdict) -> str:
    """The judge's reason, or who dropped it, with the likelihood: `names no plaud (7 % likely)`."""
    reason = verdict.reason or _without_reason(verdict.judge)
    return reason + _likelihood(verdict.probability)


def judge_reason(reason: str, judge: str | None, probability: float | None) -> str:
    """The judge's part of a `drop_reason`; empty when the judge gave no reason."""
    given = reason.removesuffix(_likelihood(probability))
    return "" if given == _without_reason(judge) else given


def _without_reason(judge: str | None) -> str:
    return f"judged off topic by {judge or 'the gate'}"


def _likelihood(probability: float | None) -> str:
    return "" if probability is None else f" ({probability * 100:.0f} % likely)"
