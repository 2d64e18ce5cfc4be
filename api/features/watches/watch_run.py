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
"""Version of `WatchRun`; raised when a field changes meaning."""
State = Literal["baseline", "changed", "nothing", "not_asked", "failed"]
"""Result of a run: the first run, used as baseline; something new or unusual; nothing new; no source could be asked;
no report."""
WITHOUT_ANSWER = frozenset({"not_asked", "failed"})


class SourceCount(Published):
    """Counts of one source that answered and was judged, in one run."""

    posts: int
    """Written since the run before."""
    capped: bool
    """Whether the source may hold more, so that `posts` is a minimum."""
    fresh: int
    """Posts that are new to the watch, whenever they were written; the base of all shares."""
    undated: int | None = None
    """New posts without a date, which are never in `posts`; None in a run of an earlier version."""
    graded: int
    """New posts whose sentiment a model graded."""
    tallies: Mapping[str, int]
    """Number of new posts for each `MEASURE` or `MEASURE:ASPECT`."""


class RunCounts(Published):
    """Counts with which later runs are compared."""

    since: Timestamp
    until: Timestamp
    sources: Mapping[str, SourceCount]
    """Counts by source; a source that could not be asked is missing, since nothing is known of it."""

    @property
    def seconds(self) -> float:
        """Duration in seconds; 0 when this machine's clock was set back."""
        return max(0.0, (self.until - self.since).total_seconds())


class NewPost(Published):
    """A post that the watch had not seen: where it is, and a few of its words."""

    key: str
    source: str
    title: str
    url: str
    created_at: Timestamp | None
    passage: str
    """Passage as quoted in a report, verbatim; empty when none concerns a known aspect and the post has a title."""
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
    """Number of new posts; None for `posts`."""
    past: int
    past_of: int | None
    usual: Interval
    """Usual number of `posts` in the same time; for other measures, the 95 % interval of the difference of shares."""
    chance: Annotated[float, Field(ge=0, le=1)]
    """Probability of a change of this size by chance, after Holm's correction for `looked_at`."""
    cites: tuple[str, ...]
    """Keys of the counted posts."""
    text: str


class NewQuestion(Published):
    """A question asked in a new post and in no post of an earlier run."""

    text: str
    """One sentence, verbatim."""
    cites: tuple[str, ...]
    """Keys of the new posts that ask it, best first; the text is from the first."""


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
"""Why a receiver was not notified: its rule excludes the run; it waits for its digest; it was removed before."""


class Delivery(Published):
    """Result of one notification: delivered, or the reason of the failure."""

    target: str
    """Kind and server of the receiver; for mail and files the whole address."""
    delivered: bool
    tries: int
    """Number of all tries, including those of `notify-again`."""
    failure: Failure | None = None
    reason: str = ""
    """Why it was not, with what helps."""
    at: Timestamp | None = None
    """Time of the last try."""
    held: Annotated[Held | SkipJsonSchema[None], WHERE_THERE] = None
    """Why it was not tried, which is no failure; `reason` says it in words."""
    receiver: Annotated[str, IF_SET] = ""
    """A mark of the receiver's address, which tells two of one server apart."""

    @property
    def missed(self) -> bool:
        """Whether it was tried in vain."""
        return not (self.delivered or self.held)


class WatchRun(Published):
    """One run of a watch, as stored and published."""

    version: int
    id: str
    watch_id: str
    state: State
    reason: str | None
    """Why it failed or no source answered; otherwise None."""
    report_id: str | None
    counts: RunCounts | None
    new: tuple[NewPost, ...]
    """New posts that this run reports, best first."""
    kept: int
    """Posts that its report holds, known ones too."""
    unusual: tuple[Change, ...]
    """Unusual changes, those least likely by chance first."""
    looked_at: int
    """Number of comparisons that could have been unusual; 0 while the past is too short."""
    new_aspects: tuple[str, ...]
    gaps: tuple[Gap, ...]
    sample: bool
    created_at: AwareDatetime
    news: bool = False
    """Whether the run is news: receivers were notified, and the feed lists it."""
    questions: tuple[NewQuestion, ...] = ()
    """Questions asked for the first time; those asked by most posts come first."""
    deliveries: tuple[Delivery, ...] = ()
    as_it_happens: Annotated[bool, IF_SET] = False
    """Whether its posts came by a stream, apart from the schedule. Such a run has no counts, and no report unless it
    is the first, which lists older posts."""
    more: Annotated[int, IF_SET] = 0
    """New posts beyond those of `new`, which the archive holds."""
    unjudged: Annotated[int, IF_SET] = 0
    """Posts that hold the name and were not judged: too many waited, or the model's provider refused them."""
    agreement: Annotated[Agreement | SkipJsonSchema[None], WHERE_THERE] = None
    """Agreement of the judges on these posts, when `LISTENPOST_AGREEMENT` is set; other runs have it in their
    report."""

    @property
    def waits_for_digest(self) -> bool:
        """Whether any receiver is notified of it later."""
        return any(delivery.held == "digest" for delivery in self.deliveries)


@dataclass(frozen=True, slots=True)
class NewsKind:
    """Which posts and changes are news for a watch's `only`, and the words for them."""

    noun: str
    """Word for one such post, for example `complaint`."""
    label: str
    """The choice among others: `complaints only`."""
    has_post: Callable[[NewPost], bool]
    has_change: Callable[[Change], bool]

    def posts(self, new: Sequence[NewPost]) -> tuple[NewPost, ...]:
        """The new posts that are news, in their order."""
        return tuple(filter(self.has_post, new))

    def changes(self, unusual: Sequence[Change]) -> tuple[Change, ...]:
        """The unusual changes that are news, in their order."""
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
