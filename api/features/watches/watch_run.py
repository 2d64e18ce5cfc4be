"""What one run of a watch came to: typed like a report. No model wrote any of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field
from pydantic.json_schema import SkipJsonSchema

from api.choices import Only
from api.core.domain import Agreement, Outcome
from api.core.published import IF_SET, WHERE_THERE, Published, Timestamp
from api.features.comparisons.comparison import Measure
from api.pipeline.evidence.figures import Interval

VERSION = 1
"""Of a `WatchRun`; raised when a field changes meaning."""
State = Literal["baseline", "changed", "nothing", "not_asked", "failed"]
"""The first run, by which later ones are measured; something is new or unusual; nothing is; no
source could be asked; it ended without a report."""
WITHOUT_ANSWER = frozenset({"not_asked", "failed"})


class SourceCount(Published):
    """What one source that answered, and was judged, held about it in a run."""

    posts: int
    """Written since the run before."""
    capped: bool
    """It may hold more: `posts` is a minimum."""
    fresh: int
    """New to the watch, whenever they were written; the shares are of these."""
    undated: int | None = None
    """Of these, those without a date, so never in `posts`; None in a run of an earlier version."""
    graded: int
    """Of these, those of which a model said how they sound."""
    tallies: Mapping[str, int]
    """Of the fresh ones: `MEASURE` or `MEASURE:ASPECT` -> how many."""


class RunCounts(Published):
    """What later runs are compared with."""

    since: Timestamp
    until: Timestamp
    sources: Mapping[str, SourceCount]
    """Those that could not be asked are not in it: nothing is known, which is not 0."""

    @property
    def seconds(self) -> float:
        """How long the time is; nothing where this machine's clock was set back."""
        return max(0.0, (self.until - self.since).total_seconds())


class NewPost(Published):
    """A post that the watch had not seen: where it is, and a few of its words."""

    key: str
    source: str
    title: str
    url: str
    created_at: Timestamp | None
    passage: str
    """Verbatim, as a report quotes it; empty where none tells of a known aspect and the post has a title."""
    complains: bool
    """Plainly of an aspect, or by its grade."""


class Change(Published):
    """Something that differs from the watch's own past by more than chance makes likely."""

    measure: Measure
    subject: str
    """A source of `posts`, an aspect, or empty of how posts sound."""
    more: bool
    count: int
    of: int | None
    """New posts; None of `posts`."""
    past: int
    past_of: int | None
    usual: Interval
    """Of `posts` how many are usual in as long a time, else the ends of the difference of shares,
    at 95 %."""
    chance: Annotated[float, Field(ge=0, le=1)]
    """How often chance alone makes one as large, after Holm's correction for `looked_at`."""
    cites: tuple[str, ...]
    """Keys of the counted posts."""
    text: str


class NewQuestion(Published):
    """What somebody asks in a new post, and nobody in a post of an earlier run."""

    text: str
    """One sentence, word for word."""
    cites: tuple[str, ...]
    """Keys of the new posts that ask it, the best first; the words are the first one's."""


class Gap(Published):
    """A source of which this run knows nothing."""

    source: str
    outcome: Outcome
    reason: str | None


Failure = Literal[
    "not_configured", "not_allowed", "no_address", "unauthorized", "refused", "unavailable",
    "insecure", "timed_out", "unreachable", "unwritable", "internal",
]  # fmt: skip
"""Why a message did not arrive; docs/watches.md has a row for each."""
Held = Literal["rule", "digest", "removed"]
"""Why a receiver was not notified: its rule leaves the run out; it waits for its digest; it was removed before that."""


class Delivery(Published):
    """What became of one notification: delivered, or the reason why not."""

    target: str
    """Its kind and server; of e-mail and files the whole."""
    delivered: bool
    tries: int
    """All of them, also those of `notify-again`."""
    failure: Failure | None = None
    reason: str = ""
    """Why it was not, with what helps."""
    at: Timestamp | None = None
    """When it was tried last."""
    held: Annotated[Held | SkipJsonSchema[None], WHERE_THERE] = None
    """Why it was not tried, which is no failure; `reason` says it in words."""
    receiver: Annotated[str, IF_SET] = ""
    """A mark of the receiver's address, which tells two of one server apart."""

    @property
    def missed(self) -> bool:
        """Whether it was tried in vain."""
        return not (self.delivered or self.held)


class WatchRun(Published):
    """One run of a watch, as it is stored and published."""

    version: int
    id: str
    watch_id: str
    state: State
    reason: str | None
    """Why it failed or no source answered; else None."""
    report_id: str | None
    counts: RunCounts | None
    new: tuple[NewPost, ...]
    """Told by this run, best first."""
    kept: int
    """Posts that its report holds, known ones too."""
    unusual: tuple[Change, ...]
    """Those least likely by chance first."""
    looked_at: int
    """Comparisons that could have been unusual; 0 while there is too little past."""
    new_aspects: tuple[str, ...]
    gaps: tuple[Gap, ...]
    sample: bool
    created_at: AwareDatetime
    news: bool = False
    """News: receivers were notified, and it stands in the feed."""
    questions: tuple[NewQuestion, ...] = ()
    """Asked for the first time; those that most posts ask first."""
    deliveries: tuple[Delivery, ...] = ()
    as_it_happens: Annotated[bool, IF_SET] = False
    """It is of posts that came by a stream, apart from the schedule: it has no counts, and no report unless it is the
    first, which says what was written before."""
    more: Annotated[int, IF_SET] = 0
    """New posts beyond those of `new`, which the archive holds."""
    unjudged: Annotated[int, IF_SET] = 0
    """Posts that hold the name and were not judged: too many waited, or the model's provider refused them."""
    agreement: Annotated[Agreement | SkipJsonSchema[None], WHERE_THERE] = None
    """Of such posts, where `LISTENPOST_AGREEMENT` is set; other runs have it in their report."""

    @property
    def waits_for_digest(self) -> bool:
        """Whether some receiver is notified of it later."""
        return any(delivery.held == "digest" for delivery in self.deliveries)


@dataclass(frozen=True, slots=True)
class NewsKind:
    """Which posts and changes are news to a watch by its `only`, and the words for them."""

    noun: str
    """One post: `complaint`."""
    label: str
    """The choice among others: `complaints only`."""
    has_post: Callable[[NewPost], bool]
    has_change: Callable[[Change], bool]

    def posts(self, new: Sequence[NewPost]) -> tuple[NewPost, ...]:
        """Those of the new posts that are news, in their order."""
        return tuple(filter(self.has_post, new))

    def changes(self, unusual: Sequence[Change]) -> tuple[Change, ...]:
        """Those of the unusual changes that are news, in their order."""
        return tuple(filter(self.has_change, unusual))


NEWS: Mapping[Only | None, NewsKind] = MappingProxyType({
    None: NewsKind("post", "every new post", lambda post: True, lambda change: True),
    "complaints": NewsKind(
        "complaint", "complaints only", lambda post: post.complains,
        # more complaints are news, fewer are not
        lambda change: change.more and change.measure in {"complaint", "sounds_negative"},
    ),
})  # fmt: skip
"""Each value of `Watch.only`, None first, in the order of a form."""
