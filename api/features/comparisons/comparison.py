"""The comparison of products: typed and versioned like the reports that it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal

from pydantic.json_schema import SkipJsonSchema

from api.choices import DepthName, Window
from api.core.domain import Outcome
from api.core.published import IF_SET, WHERE_THERE, Published, Timestamp
from api.pipeline.evidence.figures import AspectCount, Interval, Sentiment
from api.reports.report import Cost, KeptItem, Passage

VERSION = 1  # of a `Comparison`; raised when a field changes meaning
State = Literal["compared", "nothing", "unjudged", "not_asked", "failed"]
"""Of a product: posts about it were counted; there were none; those found went unjudged; no source
could be asked; its analysis ended without a report."""
Measure = Literal["posts", "sounds_positive", "sounds_negative", "mentions", "praise", "complaint"]
"""What two products differ in: how many posts, how the graded ones sound, and of an aspect how many
posts speak of it, plainly praise it, or plainly complain of it."""


class SourceVolume(Published):
    """One source's posts about one product."""

    outcome: Outcome
    reason: str | None
    fetched: int
    posts: int
    """Judged to be about the product, and kept in the end."""
    capped: bool
    """It may hold more than was asked for, or that is unknown: both counts are a minimum."""
    judged: bool
    """Whether a judge gave verdicts on its posts."""

    @property
    def comparable(self) -> bool:
        """Whether the count is of all that the source has."""
        return self.outcome.answered and self.judged and not self.capped


class Standing(Published):
    """One product's row: its posts, and what these speak of."""

    query: str
    about: str
    analysis_id: str | None
    """Of the stored report; None where there is none."""
    state: State
    reason: str | None
    """Why it could not be compared."""
    posts: int
    """Kept posts that a judge found to be about the product; all shares are of these."""
    capped: bool
    """A source may hold more."""
    sources: Mapping[str, SourceVolume]
    sentiment: Sentiment | None
    """Of the graded posts; None where no model graded, and of sample data."""
    aspects: tuple[AspectCount, ...]
    """Posts that surely speak of each aspect: a minimum, for every product alike."""


class Contrast(Published):
    """A difference between two products that chance does not explain."""

    measure: Measure
    aspect: str
    """Empty where it is of posts as a whole."""
    more: str
    less: str
    """Queries of the two products."""
    estimate: float | None
    """The ratio of `posts`, None where the other has none; else the difference of two shares."""
    low: float
    high: float | None
    """95 % interval of the estimate; None: no upper end."""
    chance: float
    """Probability that chance makes one as large, after Holm's correction for `looked_at`."""
    sources: tuple[str, ...]
    """Whose posts are counted: all that answered for both, for `posts` without a limit."""
    cites: tuple[str, ...]
    """Keys of the counted posts: of `more`, then of `less`."""
    text: str


class Side(Published):
    """The counts and passages of a finding for one product."""

    query: str
    count: int
    of: int
    positive: int
    negative: int
    """Counted posts whose passage plainly praises the aspect, and plainly complains of it."""
    evidence: tuple[Passage, ...]
    """A passage of each counted post, the most telling first."""


class ComparedFinding(Published):
    """What is said of one aspect, for every product."""

    aspect: str
    text: str
    sides: tuple[Side, ...]
    marked: bool
    """One of the `contrasts` is of this aspect."""


class ComparedItem(KeptItem):
    """An item that is cited, or counts for several products; its assessment is of the first."""

    products: tuple[str, ...]
    """Queries of the products it counts for."""


class Voice(Published):
    """One product's part in what is said of all of them."""

    query: str
    people: int
    """Who wrote kept posts about it: one author is one person in a place."""
    share: float | None
    """Of the people of all products; None of nobody."""
    interval: Interval | None
    """95 % interval of the share (Wilson)."""


class VoiceWeek(Published):
    """The shares of one week, of people who wrote in it."""

    monday: date
    voices: tuple[Voice, ...]


class ShareOfVoice(Published):
    """How the people who speak of the products divide among them, counted from posts; no model counts."""

    reason: str | None
    """Why no share can be stated; None where one is."""
    total: tuple[Voice, ...]
    """Of all counted places together, by product."""
    places: Mapping[str, tuple[Voice, ...]]
    """By source, those that were read to the end for every product."""
    weeks: tuple[VoiceWeek, ...]
    """Weeks in which anybody wrote, in order, of all counted places."""
    left_out: Mapping[str, str]
    """Source -> why nobody there is counted, for any product."""
    undated: int
    """Counted posts without a date, which no week holds."""


class Comparison(Published):
    """Products side by side; depth, sources, window and limit are those of the first product."""

    version: int
    depth: DepthName
    sources: tuple[str, ...]
    """As chosen; empty: those of the settings."""
    since: Window
    limit: int | None
    unlike: Annotated[tuple[str, ...], IF_SET] = ()
    """How the requests differed, a phrase each; differences of the products may come from it."""
    products: tuple[Standing, ...]
    """In the order in which they were named."""
    looked_at: int
    """How many differences were tested for significance."""
    contrasts: tuple[Contrast, ...]
    """Those least likely by chance first."""
    findings: tuple[ComparedFinding, ...]
    """Those with a contrast first, then by the number of posts."""
    items: tuple[ComparedItem, ...]
    """By product, best first."""
    voice: Annotated[ShareOfVoice | SkipJsonSchema[None], WHERE_THERE] = None
    sample: bool
    cost: Cost
    """USD, tokens and requests of all analyses together."""
    created_at: Timestamp

    @property
    def comparable(self) -> tuple[Standing, ...]:
        """The products whose posts were counted."""
        return tuple(standing for standing in self.products if standing.state == "compared")

    @property
    def answered(self) -> bool:
        """Whether any source could be asked about any product."""
        return any(standing.state not in {"not_asked", "failed"} for standing in self.products)
